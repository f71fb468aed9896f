"""Results of jobs, and the ledger of a budget: spent, reserved and left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from risingsearch.arms import Job
from risingsearch.budget import Budget, in_words
from risingsearch.checks import (
    as_float,
    checked_magnitude,
    is_number,
    shown,
    unwrapped,
)
from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import Json, as_json, from_json
from risingsearch.policies.arrays import Bools, Floats, Ints
from risingsearch.scheduling.columns import Columns
from risingsearch.scheduling.events import Started

ENDLESS = 2.0**62  # epochs that are as good as infinitely many
ROUNDING = 1e-9
"""Tolerance of a sum of ``epoch_costs``, relative to the cost of a whole arm."""


class Result(NamedTuple):
    """Scores and cost of a job.

    Parameters
    ----------
    job : Job
        The job.
    scores : tuple of float
        One for each epoch that has one.
    cost : float or None
        In the unit of the budget, if it is known.
    failure : str or None
        Why it failed, if it did.
    ended : bool or str
        Whether fewer scores than epochs mean that the arm has ended; a text says why.
    attempts : int
        Failed attempts that a failure stands for.
    charged : int
        Epochs that were trained, with and without a score.
    """

    job: Job
    scores: tuple[float, ...]
    cost: float | None
    failure: str | None
    ended: bool | str
    attempts: int
    charged: int

    @property
    def has_ended(self) -> bool:
        """Whether the arm has ended by itself; a last lost score is a failure."""
        is_short = len(self.scores) < self.job.n_epochs
        is_lost = not all(map(math.isfinite, self.scores[-1:]))
        return bool(self.ended) and is_short and not is_lost

    @property
    def n_failures(self) -> int:
        """Failed attempts and scores that are not finite."""
        n_lost = sum(not math.isfinite(score) for score in self.scores)
        if self.failure is None:
            return n_lost
        return n_lost + self.attempts

    def rows(self, decision: Started) -> list[Json]:
        """Return a row of the history for each epoch that is charged.

        The epochs without a score have failed, or the last one if the failure came
        after it.
        """
        job = self.job
        n_scores = len(self.scores)
        cost = math.nan
        if self.cost is not None:
            cost = self.cost / max(1, self.charged)
        facts = {"cost": cost, "reason": decision.reason, **decision.parts}
        rows = []
        for k in range(self.charged):
            if self.failure is not None and k >= min(n_scores, self.charged - 1):
                facts["failure"] = self.failure
            score = math.nan
            if k < n_scores:
                score = self.scores[k]
            row: Json = {
                "arm": job.arm,
                "epoch": job.from_epoch + k + 1,
                "score": score,
                "round": decision.round + k,
                "job": job.id,
            }
            rows.append(row | facts | row)  # no part of an index stands for these
        return rows

    def to_json(self) -> list[object]:
        """Return the result as JSON values."""
        return [self.job.to_json(), as_json(self.scores), *self[2:]]

    @classmethod
    def from_json(cls, values: list[Any]) -> Result:
        """Read the values of ``to_json``."""
        job = Job.from_json(values[0])
        scores = tuple(from_json(values[1]))
        rest = values[2:]
        if len(rest) == 4:  # an earlier release charged a failure the whole job
            rest.append(len(scores) if rest[1] is None else job.n_epochs)
        return cls(job, scores, *rest)


def checked_scores(job: Job, scores: float | Iterable[float]) -> tuple[float, ...]:
    """Return the scores of a job, one per epoch; raise an error if they are invalid."""
    try:
        told: tuple[object, ...] = tuple(scores)  # type: ignore[arg-type]
    except TypeError:
        told = (scores,)
    checked = []
    for score in map(unwrapped, told):
        if not is_number(score):
            raise InvalidParameterError(
                f"scores must be numbers, one per epoch; got {shown(score)}"
            )
        checked.append(checked_magnitude("a score", score))
    if len(checked) > job.n_epochs:
        raise InvalidParameterError(
            f"{job} has {job.n_epochs} epochs; got {len(checked)} scores"
        )
    return tuple(checked)


class Ledger(Columns):
    """Account of a budget: reserves jobs when they start, charges them at their end.

    A budget in epochs is exact: an epoch costs one, or its share in ``epoch_costs``. In
    another unit an epoch is expected to cost the average of the arm's epochs, or of all
    arms while it has none, times its share. A job starts only while that fits, so the
    budget is overrun by no more than the error of the expectation, which failures, paid
    too, do not change. Wall-clock time stands where the last job came back; nothing of
    it is reserved for jobs, and none starts that is expected to end too late.
    """

    arrays = ("paid", "weight", "trained", "promised", "since")
    numbers = ("total", "lost", "now", "n_workers", "kept")

    def __init__(
        self,
        budget: Budget,
        n_arms: int,
        n_jobs: int | None = None,
        epoch_costs: Sequence[float] | None = None,
    ) -> None:
        self.unit = budget.unit
        self.total = budget.amount
        self.is_wall_clock = budget.is_wall_clock
        self.n_workers = n_jobs or 1
        self._until: Floats | None = None  # cost of the epochs before
        if epoch_costs is not None:
            self._until = np.concatenate([[0.0], np.cumsum(epoch_costs)])
        self.is_plain = self.unit == "epochs" and epoch_costs is None  # one per epoch
        self.lost = 0.0  # on failures
        self.now = 0.0
        self.kept = 0.0  # of wall-clock time, for a refit once the search has ended
        self.n_arms = n_arms
        # An account for each arm; where an epoch costs one, a single one for all arms.
        n_accounts = 1 if self.is_plain else n_arms
        self.paid = np.zeros(n_accounts)
        self.weight = np.zeros(n_accounts)  # of the epochs paid for, by ``epoch_costs``
        self.trained = np.zeros(n_accounts, dtype=np.int64)
        self.promised = np.zeros(n_accounts)  # weight of the job in flight
        self.since = np.zeros(n_accounts)  # clock at its start

    @property
    def spent(self) -> float:
        """Cost of all results so far; under wall-clock time, the clock."""
        if self.is_wall_clock:
            return self.now
        spent = float(self.paid.sum()) + self.lost
        return int(spent) if self.is_plain else spent

    @property
    def reserved(self) -> float:
        """Expected cost of the jobs in flight, or the time that is kept for a refit."""
        if self.is_wall_clock:
            return self.kept
        if self.is_plain:
            return int(self.promised.sum())
        return float((self._rate() * self.promised).sum())

    def cost_per_epoch(self) -> Floats:
        """Return the expected cost of each arm's next epoch; 0 while none is known."""
        if self._until is None:
            return self._rate()
        last = np.minimum(self.trained, len(self._until) - 2)
        return np.asarray(self._rate() * np.diff(self._until)[last])

    def _rate(self) -> Floats:
        """Return the expected cost of an epoch of each arm, per unit of weight."""
        if self.unit == "epochs":
            return np.ones(self.n_arms)
        weight = self.weight.sum()
        average = 0.0
        if weight:
            average = self.paid.sum() / weight
        rate = np.full(self.n_arms, average)
        np.divide(self.paid, self.weight, out=rate, where=self.weight > 0.0)
        return rate

    def _account(self, job: Job) -> int:
        return 0 if self.is_plain else job.arm

    def _weight(self, from_epoch: int, n_epochs: int) -> float:
        if self._until is None:
            return float(n_epochs)
        return float(self._until[from_epoch + n_epochs] - self._until[from_epoch])

    def affordable(self, finalist: int | None = None) -> Ints:
        """Return how many epochs of each arm the rest of the budget pays for.

        What the finalist's last epochs cost is kept from the other arms, and none of
        them trains that could not be trained to its own last epoch as the finalist.
        """
        left = self.total - self.spent - self.reserved
        if self.is_plain:
            return np.full(self.n_arms, left, dtype=np.int64)
        rate = self._rate()
        weight = _divided(left, rate)
        if finalist is not None and self._until is not None:
            rest = self._until[-1] - self._until[self.trained] - self.promised
            kept = rate[finalist] * rest[finalist]
            if kept <= left:
                others = np.where(rest <= weight, _divided(left - kept, rate), 0.0)
                others[finalist] = weight[finalist]
                weight = others
        if self._until is None:
            return np.minimum(weight, ENDLESS).astype(int)
        rounding = 0.0
        if left > 0.0:
            rounding = ROUNDING * self._until[-1]
        up_to = self._until[self.trained] + weight + rounding
        reached = np.searchsorted(self._until, up_to, side="right") - 1
        return np.asarray(np.maximum(reached - self.trained, 0), dtype=np.int64)

    def pulls_left(
        self,
        left: Ints,
        busy: Bools,
        affordable: Ints,
    ) -> Ints:
        """Return how many epochs each arm can get, of those it has ``left``."""
        if self.is_plain:
            return left
        paid = np.minimum(left, affordable)
        if self.is_wall_clock:
            return paid
        return np.where(busy, left, paid)

    def horizon(self, rounds: int) -> Floats:
        """Return the last round of each arm if it alone trained from now on."""
        # If epochs differ in cost, an arm's next one counts: so a share of the horizon
        # for first looks is that share of the budget. Under wall-clock time all workers
        # train.
        if self.is_plain:
            return np.full(self.n_arms, float(self.total))
        left = self.total - self.spent - self.reserved
        if self.is_wall_clock:
            left *= self.n_workers
        epochs = _divided(left, self.cost_per_epoch())
        return np.asarray(rounds + np.minimum(epochs, ENDLESS))

    def reserve(self, job: Job) -> None:
        """Set the expected cost of a job aside."""
        at = self._account(job)
        self.promised[at] += self._weight(job.from_epoch, job.n_epochs)
        self.since[at] = self.now
        self.n_workers = max(self.n_workers, int(np.count_nonzero(self.promised)))

    def charge(self, result: Result) -> None:
        """Spend the cost of a job, the expected one if it is unknown; free the rest."""
        job = result.job
        at = self._account(job)
        weight = self._weight(job.from_epoch, result.charged)
        in_epochs = self.unit == "epochs"
        cost = weight if in_epochs else result.cost
        if cost is None:
            cost = float(self._rate()[at] * weight)
        self.promised[at] -= self._weight(job.from_epoch, job.n_epochs)
        self.trained[at] += len(result.scores)
        if not in_epochs and (result.failure is not None or not result.charged):
            self.lost += cost
        else:
            self.paid[at] += cost
            self.weight[at] += weight

    def pass_until(self, now: float, *, keeps_rest: bool = False) -> None:
        """Put the clock forward, if it is not as far; the rest may be kept."""
        self.now = max(self.now, now)
        self.kept = 0.0
        if keeps_rest:
            self.kept = max(0.0, self.total - self.now)

    def away(self, job: Job, now: float) -> float:
        """Return how much wall-clock time has passed since a job was reserved."""
        return max(0.0, now - float(self.since[self._account(job)]))

    def extend(self, budget: int | str | Budget) -> None:
        """Add more of the same kind."""
        added = Budget.of(budget).in_unit(self.unit)
        if added is None:
            in_epochs = self.unit == "epochs"
            by = "a whole number"
            if not in_epochs:
                by = f"Budget({self.unit}=...)"
            raise InvalidParameterError(
                f"the budget is in {in_words(self.unit)}: extend it by {by}, not "
                f"{shown(budget)}"
            )
        self.pass_until(self.now + self.kept)
        self.total += added.amount

    def resize(self, n: int) -> None:
        """Have so many arms."""
        self.n_arms = n
        if not self.is_plain:
            super().resize(n)


def _divided(left: float, cost: Floats) -> Floats:
    """Return the epochs left by each cost: endless for a cost of 0."""
    if left <= 0.0:
        return np.zeros(len(cost))
    epochs = np.full(len(cost), math.inf)
    with np.errstate(over="ignore"):
        np.divide(left, cost, out=epochs, where=cost > 0.0)
    return epochs


def checked_epoch_costs(
    costs: object, max_epochs: int | None
) -> tuple[float, ...] | None:
    """Return the costs, one for each epoch of an arm, or raise an error."""
    if costs is None:
        return None
    listed = costs if isinstance(costs, Iterable) else [costs]
    numbers = [as_float(cost) or 0.0 for cost in listed]
    are_costs = all(0.0 < number < math.inf for number in numbers)
    if len(numbers) != max_epochs or not are_costs:
        raise InvalidParameterError(
            "epoch_costs are the costs of an arm's epochs, one above 0 for each of "
            f"max_epochs={max_epochs}; got {shown(costs)}"
        )
    return tuple(numbers)
