"""The arms and their jobs: epochs, scores, status, history and promised epochs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Job, Status, sign_of
from risingsearch.checks import checked_magnitude, is_number, shown, unwrapped
from risingsearch.errors import InvalidParameterError
from risingsearch.events import Started, saved_params
from risingsearch.json_values import Json, as_json, from_json
from risingsearch.proposers.base import Proposal
from risingsearch.scheduling.ledger import Ledger, resized
from risingsearch.scheduling.options import SchedulerOptions

EVERY_ARM = slice(None)
_ARRAYS = ("charged", "epochs", "failures", "busy", "ended", "failed")
_COUNTS = ("counted_from", "n_asked", "n_applied", "rounds", "n_jobs")


class Result(NamedTuple):
    """Scores and cost of a job."""

    job: Job
    scores: tuple[float, ...]
    cost: float | None
    failure: str | None
    ended: bool | str  # what fewer scores than epochs mean; text: why
    attempts: int  # that a failure stands for
    charged: int  # epochs that were trained, with and without a score

    @property
    def has_ended(self) -> bool:
        """Whether the arm has ended by itself; a last lost score is a failure."""
        is_short = len(self.scores) < self.job.n_epochs
        is_lost = not all(map(math.isfinite, self.scores[-1:]))
        return bool(self.ended) and is_short and not is_lost

    def to_json(self) -> list[Any]:
        """Return the result as JSON values."""
        return [
            self.job.to_json(),
            as_json(self.scores),
            *self[2:],
        ]

    @classmethod
    def from_json(cls, values: list[Any]) -> Result:
        """Read the values of ``to_json``."""
        job = Job.from_json(values[0])
        scores = tuple(from_json(values[1]))
        cost, failure, ended, attempts, *charged = values[2:]
        if not charged:  # an earlier release charged a failure the whole job
            charged = [len(scores) if failure is None else job.n_epochs]
        return cls(
            job,
            scores,
            cost,
            failure,
            ended,
            attempts,
            *charged,
        )


class ArmTable:
    """Arms with their epochs, scores and history, and the jobs that train them."""

    def __init__(self, options: SchedulerOptions, max_epochs: int) -> None:
        n_arms = options.n_arms
        self.max_epochs = max_epochs
        self.sign = sign_of(options.direction)
        self.error_score = options.error_score
        self.max_failures = options.max_failures
        self.min_epochs = options.min_epochs
        self.trains_anew = options.trains_anew
        self.enqueued = options.enqueue
        self.n_jobs = options.n_jobs  # in flight at most
        self.deterministic = options.deterministic
        self.charged = np.zeros(n_arms, dtype=np.int64)  # epochs charged
        self.epochs = np.zeros(n_arms, dtype=np.int64)  # epochs trained
        self.failures = np.zeros(n_arms, dtype=np.int64)
        self.busy = np.zeros(n_arms, dtype=np.bool_)
        self.ended = np.zeros(n_arms, dtype=np.bool_)  # by itself
        self.why_ended: dict[int, str] = {}  # by arm, if that is known
        self.failed = np.zeros(n_arms, dtype=np.bool_)  # and retired
        self._forget_scores()
        self.history: list[Json] = []
        self.counted_from = 0  # length of the history when the count began anew
        self.n_asked = 0
        self.n_applied = 0  # results, in the order of the decisions
        self.rounds = 0  # epochs charged or reserved
        self.in_flight: dict[int, Job] = {}
        self.decisions: dict[int, Started] = {}  # until the result is applied
        self._held: dict[int, Result] = {}  # told, and not yet applied
        self.proposals: dict[int, Proposal] = {}  # by the arm opened with it

    def _forget_scores(self) -> None:
        n_arms = len(self.charged)
        self.last = np.full(n_arms, math.nan)
        self.best = np.full(n_arms, math.nan)
        self.best_epoch = np.zeros(n_arms, dtype=np.int64)
        self.worst_reward = math.inf
        self._first_best: int | None = None  # the first to reach the best score
        self._improved_at = 0  # length of the history at the last new best score
        self._curves: dict[int, list[float]] = {}  # by arm, the score of every epoch

    def resize(self, n: int) -> None:
        """Have so many arms, of which new ones are unopened."""
        for name in _ARRAYS:
            setattr(self, name, resized(getattr(self, name), n))
        for name in ("last", "best"):
            setattr(
                self,
                name,
                resized(getattr(self, name), n, math.nan),
            )
        self.best_epoch = resized(self.best_epoch, n)

    def forgive(self, arm: int) -> None:
        """Take back an arm that its failures have retired: it can fail once more."""
        self.failed[arm] = False
        self.failures[arm] = self.max_failures

    def start(self, decision: Started) -> None:
        """Put a decided job in flight."""
        job = decision.job
        self.decisions[job.id] = decision
        self.in_flight[job.id] = job
        self.n_asked += 1
        self.rounds += job.n_epochs
        self.busy[job.arm] = True
        if decision.params is not None:
            self.proposals[job.arm] = Proposal(decision.params, decision.like)

    def checked(self, job: Job) -> Job:
        """Return the job if it is in flight, else raise an error."""
        msg = f"tell and fail take a Job from ask; {shown(job)} was never asked for"
        if isinstance(job, Job):
            if self.in_flight.get(job.id) == job:
                return job
            if 0 <= job.id < self.n_asked and job.id not in self.in_flight:
                msg = f"{shown(job)} was told before; a job is told once"
        raise InvalidParameterError(msg)

    def hold(self, result: Result) -> None:
        """Take the result of a job in flight, to be applied."""
        del self.in_flight[result.job.id]
        self._held[result.job.id] = result

    @property
    def holds_next(self) -> bool:
        """Whether the result of the next job in the order of the decisions is held."""
        return self.n_applied in self._held

    @property
    def holds_results(self) -> bool:
        """Whether a result is told and not yet applied."""
        return bool(self._held)

    def release(self, job_id: int | None = None) -> tuple[Result, Started]:
        """Return a held result to apply, by default of the earliest decision."""
        job_id = min(self._held) if job_id is None else job_id
        self.n_applied = max(self.n_applied, job_id + 1)
        result = self._held.pop(job_id)
        decision = self.decisions.pop(job_id)
        self.rounds -= result.job.n_epochs - result.charged
        return result, decision

    @property
    def is_full(self) -> bool:
        """Whether as many jobs are in flight as there may be."""
        return self.n_jobs is not None and len(self.in_flight) >= self.n_jobs

    @property
    def must_see_next(self) -> bool:
        """Whether the next decision has to see another result first."""
        n_unseen = self.n_asked - self.n_applied
        return self.deterministic and n_unseen >= (self.n_jobs or 1)

    def free(
        self,
        arm: int,
        n_failures: int,
        *,
        ended: bool | str,
    ) -> None:
        """Count an arm as free, and its failures; it may have ended or be retired."""
        self.busy[arm] = False
        self.ended[arm] |= bool(ended)
        if isinstance(ended, str):
            self.why_ended[arm] = f": {ended}"
        self.failures[arm] += n_failures
        self.failed[arm] = self.failures[arm] > self.max_failures
        if self.failed[arm] and self.trains_anew:  # it would fail with all rows, too
            self.best[arm] = math.nan
            self.best_epoch[arm] = 0

    def add_epoch(
        self,
        job: Job,
        k: int,
        round_: int,
        score: float,
        facts: Json,
        *,
        trained: bool,
    ) -> float:
        """Add the ``k``-th charged epoch, ``trained`` or lost; return its reward."""
        arm = job.arm
        self.charged[arm] += 1
        self.epochs[arm] += trained
        epoch = job.from_epoch + k + 1
        row = {
            "arm": arm,
            "epoch": epoch,
            "score": score,
            "round": round_,
            "job": job.id,
        }
        self.history.append(row | facts | row)  # no part of an index stands for these
        self._compare(
            arm,
            epoch,
            score,
            len(self.history),
        )
        return self._reward(score)

    def _compare(
        self,
        arm: int,
        epoch: int,
        score: float,
        n_rows: int,
    ) -> None:
        self._curves.setdefault(arm, [])[epoch - 1 :] = [score]
        if not math.isfinite(score):
            return
        reward = self.sign * score
        self.last[arm] = score
        self.worst_reward = min(self.worst_reward, reward)
        if self.failed[arm] and self.trains_anew:
            return
        before, leader = self.best[arm], self._first_best
        is_higher = math.isnan(before) or reward > self.sign * before
        if leader is None or (is_higher and reward > self.best_reward):
            self._first_best = arm
        if is_higher or self.trains_anew:
            self.best[arm] = score
            self.best_epoch[arm] = epoch
        if is_higher and self.best_arm == arm:
            self._improved_at = n_rows

    def _reward(self, score: float) -> float:
        if math.isfinite(score):
            return self.sign * score
        if self.error_score is not None:
            return self.sign * self.error_score
        return self.worst_reward if math.isfinite(self.worst_reward) else 0.0

    def curve(self, arm: int) -> NDArray[np.float64]:
        """Return the rewards of an arm until its last score; a lost epoch repeats one.

        Without a score it is the reward of a failure, alone.
        """
        rewards = self.sign * np.array(self._curves.get(arm, [math.nan]))
        scored = np.flatnonzero(np.isfinite(rewards))
        if not len(scored):
            return np.array([self._reward(math.nan)])
        epochs = np.arange(scored[-1] + 1)
        before = np.searchsorted(scored, epochs, side="right") - 1
        return np.asarray(rewards[scored[np.maximum(before, 0)]])

    def has_failed(self, opened: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which opened arms were retired by a failure, or have no score."""
        return np.asarray(self.failed[opened] | np.isnan(self.best[opened]))

    @property
    def best_arm(self) -> int | None:
        """The arm with the best score; None before the first finite one.

        Where every epoch trains anew on more, the later of equal scores is better.
        """
        if not self.trains_anew:
            return self._first_best
        rewards = np.where(np.isnan(self.best), -math.inf, self.sign * self.best)
        best = int(np.lexsort((self.best_epoch, rewards))[-1])
        return best if self.best_epoch[best] else None

    @property
    def finalist(self) -> int | None:
        """The arm that the cost of its last epochs is kept for; None for no such."""
        best = self.best_arm if self.trains_anew else None
        return best if best is not None and self.can_train(best) else None

    @property
    def best_reward(self) -> float:
        """The best reward so far; NaN before the first finite one."""
        arm = self.best_arm
        return math.nan if arm is None else self.sign * float(self.best[arm])

    @property
    def epochs_since_improvement(self) -> int:
        """Epochs charged since there was a new best score, or a larger budget."""
        return len(self.history) - max(self._improved_at, self.counted_from)

    @property
    def has_provisional_rewards(self) -> bool:
        """Whether failures count as 0 because no score is known yet."""
        unknown = self.error_score is None and math.isinf(self.worst_reward)
        return unknown and bool(self.history)

    def rewards(self) -> list[tuple[int, int, int, float]]:
        """Return (job, round, arm, reward) of all epochs, by today's worst score."""
        return [
            (row["job"], row["round"], row["arm"], self._reward(row["score"]))
            for row in self.history
        ]

    def can_train(self, at: Any = EVERY_ARM) -> NDArray[np.bool_]:
        """Return which arms could still train, busy ones included."""
        gone: Any = self.ended[at] | self.failed[at]
        can: NDArray[np.bool_] = (self.charged[at] < self.max_epochs) & ~gone
        return can

    @property
    def has_told(self) -> NDArray[np.bool_]:
        """Whether each arm has trained, or ended before its first epoch."""
        return (self.charged > 0) | self.ended

    def unopened(self) -> NDArray[np.int64]:
        """Return the arms that could be opened."""
        return np.flatnonzero((self.charged == 0) & ~self.busy & self.can_train())

    def has_finished(self, arm: int) -> bool:
        """Return whether the arm has ended by itself or used all its epochs."""
        return bool(self.ended[arm] or self.charged[arm] >= self.max_epochs)

    def status(self, arm: int) -> Status:
        """Return where the arm stands."""
        if self.busy[arm]:
            return "running"
        if self.failed[arm]:
            return "failed"
        if self.has_finished(arm):
            return "finished"
        return "paused" if self.charged[arm] else "unopened"

    def promised(self, ledger: Ledger) -> int | None:
        """Return the arm that trains before the policy is asked; None for no such."""
        if self.min_epochs == 1 and not self.enqueued:
            return None
        affordable = ledger.affordable()
        due = self.can_train() & ~self.busy & (affordable > 0)
        due &= self.epochs < self.min_epochs
        opened = due & (self.charged > 0)
        if self.min_epochs > 1 and opened.any():
            return int(opened.argmax())
        due &= ~self.too_late(affordable)
        return next((arm for arm in self.enqueued if due[arm]), None)

    def too_late(self, affordable: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which arms are not opened, since the budget cannot train them long."""
        late: NDArray[np.bool_] = (self.charged == 0) & (affordable < self.min_epochs)
        return late

    def state_dict(self) -> Json:
        """Return everything as JSON values."""
        decisions = self.decisions.values()
        return {
            # Flags as 0 and 1, which are shorter.
            **{name: getattr(self, name).astype(int).tolist() for name in _ARRAYS},
            **{name: getattr(self, name) for name in _COUNTS},
            "history": [as_json(row) for row in self.history],
            "in_flight": list(self.in_flight),
            "decisions": [why.to_json() | {"round": why.round} for why in decisions],
            "why_ended": [*self.why_ended.items()],
            "held": [result.to_json() for result in self._held.values()],
            "proposals": [
                [
                    arm,
                    saved_params(proposal.params),
                    list(proposal.like),
                ]
                for arm, proposal in self.proposals.items()
            ],
        }

    def load_state_dict(self, state: Json) -> None:
        """Restore the values of ``state_dict`` but the proposals."""
        for name in _ARRAYS:
            now = getattr(self, name)
            setattr(self, name, np.array(state[name], now.dtype).reshape(now.shape))
        for name in _COUNTS:
            setattr(self, name, state[name])
        self.why_ended = dict(state["why_ended"])
        self._forget_scores()
        self.history = [from_json(row) for row in state["history"]]
        for n_rows, row in enumerate(self.history, start=1):
            self._compare(
                row["arm"],
                row["epoch"],
                row["score"],
                n_rows,
            )
        decisions = [Started.from_json(values) for values in state["decisions"]]
        self.decisions = {decision.job.id: decision for decision in decisions}
        self.in_flight = {id_: self.decisions[id_].job for id_ in state["in_flight"]}
        results = [Result.from_json(values) for values in state["held"]]
        self._held = {result.job.id: result for result in results}

    def load_proposals(self, state: Json) -> None:
        """Restore the proposals of ``state_dict``, which may have made arms."""
        self.proposals = {
            arm: Proposal(from_json(params), tuple(like))
            for arm, params, like in state["proposals"]
        }


def checked_scores(job: Job, scores: float | Iterable[float]) -> tuple[float, ...]:
    """Return the scores of a job, one per epoch; raise an error if they are invalid."""
    try:
        told: tuple[Any, ...] = tuple(scores)  # type: ignore[arg-type]
    except TypeError:
        told = (scores,)
    told = tuple(map(unwrapped, told))
    for score in told:
        if not is_number(score):
            msg = f"scores must be numbers, one per epoch; got {shown(score)}"
            raise InvalidParameterError(msg)
    if len(told) > job.n_epochs:
        msg = f"{job} has {job.n_epochs} epochs; got {len(told)} scores"
        raise InvalidParameterError(msg)
    return tuple(checked_magnitude("a score", score) for score in told)
