"""Repeats of the best arms with other seeds, for the part of a budget that is kept."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from risingsearch.arms import Job
from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.events import Repeated
from risingsearch.scheduling.scheduler import Scheduler

FINALISTS = 5  # arms that are repeated, at most
LEAST = 2  # repeats of each, which tell of its noise
MOST = 20  # repeats of each: more of cheap ones would tell little
FIRST_JOB = 10**9  # numbers of repeats as jobs, above those of a scheduler
_ROUNDING = 1e-9


class Repeat(NamedTuple):
    """An arm that is to be trained again until its best epoch."""

    arm: int
    number: int  # among the repeats of the arm, from 0
    n_epochs: int
    cost: float  # as expected, in the unit of the budget

    def job(self, number: int) -> Job:
        """Return it as a job for workers."""
        return Job(self.arm, 0, self.n_epochs, FIRST_JOB + number)


def divided(budget: Budget, share: float | None) -> tuple[Budget, float]:
    """Return the budget of a search, and the amount that is kept for repeats.

    Examples
    --------
    >>> divided(Budget(epochs=70), 0.05)
    (Budget(epochs=67), 3)
    """
    if share is None:
        return budget, 0
    kept = share * budget.amount
    if budget.unit == "epochs":
        kept = math.floor(kept + _ROUNDING)
    return Budget.from_json({budget.unit: budget.amount - kept}), kept


def check_divided(budget: Budget, share: float | None) -> None:
    """Raise if nothing could be repeated for the share of a budget."""
    if share is None:
        return
    if budget.is_wall_clock:
        raise InvalidParameterError(
            "confirm needs a budget in epochs, training time or cost, which repeats "
            f"can be charged to; got {budget}"
        )
    if divided(budget, share)[1] < 1 and budget.unit == "epochs":
        raise InvalidParameterError(
            f"confirm={share:g} keeps less than one epoch of {budget}: give a larger "
            "share or budget"
        )


class Reserve:
    """The part of a budget that is kept for repeats, and the repeats so far."""

    def __init__(self, kept: float) -> None:
        self.kept = kept
        self.repeated: list[Repeated] = []

    @property
    def spent(self) -> float:
        """The amount that the repeats have cost."""
        return math.fsum(event.cost for event in self.repeated)

    @property
    def n_epochs(self) -> int:
        """The epochs that were trained again."""
        return sum(len(event.scores) for event in self.repeated)

    @property
    def seconds(self) -> float:
        """The seconds in which they were trained."""
        return math.fsum(event.elapsed for event in self.repeated)

    @property
    def remark(self) -> str:
        """How much of it is spent, as the end of a clause; empty if none is kept."""
        if not self.kept:
            return ""
        return f", and {self.spent:g} of {self.kept:g} that are kept for repeats"

    @property
    def scores(self) -> dict[int, list[float]]:
        """The scores of the repeats by arm, each at the arm's best epoch."""
        scores: dict[int, list[float]] = {}
        for event in self.repeated:
            if event.failure is None:
                scores.setdefault(event.arm, []).append(event.scores[-1])
        return scores

    def next(self, scheduler: Scheduler, begun: Sequence[Repeat]) -> Repeat | None:
        """Return the next repeat beside those that have begun; None if none is due."""
        if not self.kept or scheduler.stop_reason is None:
            return None
        finalists = self._finalists(scheduler.with_all_results())
        begun_cost = math.fsum(repeat.cost for repeat in begun)
        left = self.kept - self.spent - begun_cost + _ROUNDING
        n_of = Counter(event.arm for event in self.repeated)
        n_of.update(repeat.arm for repeat in begun)
        failed = {event.arm for event in self.repeated if event.failure is not None}
        affordable = [
            repeat._replace(number=n_of[repeat.arm])
            for repeat in finalists
            if repeat.cost <= left
            and n_of[repeat.arm] < MOST
            and repeat.arm not in failed
        ]
        return min(affordable, key=lambda repeat: repeat.number, default=None)

    def _finalists(self, scheduler: Scheduler) -> list[Repeat]:
        """Return the best arms, as many as can be repeated twice, the winner first."""
        costs: dict[tuple[int, int], float] = {}
        for row in scheduler.history:
            costs[row["arm"], row["epoch"]] = row["cost"]
        arms = [arm for arm in scheduler.explain() if arm.best_epoch]
        arms.sort(
            key=lambda arm: (
                arm.arm != scheduler.best_arm,
                -scheduler.sign * arm.best_score,
                arm.arm,
            )
        )
        finalists: list[Repeat] = []
        total = 0.0
        for arm in arms[:FINALISTS]:
            cost = float(arm.best_epoch)
            if scheduler.unit != "epochs":
                epochs = range(1, arm.best_epoch + 1)
                cost = math.fsum(costs[arm.arm, epoch] for epoch in epochs)
            total += LEAST * cost
            if total > self.kept + _ROUNDING:
                break
            finalists.append(Repeat(arm.arm, 0, arm.best_epoch, cost))
        return finalists
