"""The arms and their jobs: epochs, scores, failures, status and history."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from risingsearch.arms import Status, sign_of
from risingsearch.json_values import Json, as_json, from_json
from risingsearch.policies.arrays import Bools, Floats, Ints, int_zeros
from risingsearch.proposers.base import Proposal
from risingsearch.scheduling.columns import Columns
from risingsearch.scheduling.events import Started, saved_params
from risingsearch.scheduling.ledger import Result
from risingsearch.scheduling.options import SchedulerOptions

EVERY_ARM = slice(None)


class Best(NamedTuple):
    """The score that an arm counts by, and its epoch, from 1."""

    score: float = math.nan
    epoch: int = 0


class Scores:
    """Finite scores of the arms.

    An arm counts by its best score; where every epoch trains anew on more, by its last
    one, and once it has failed by none: it would fail with all rows, too.
    """

    def __init__(self, options: SchedulerOptions) -> None:
        self.sign = sign_of(options.direction)
        self.error_score = options.error_score
        self.trains_anew = options.trains_anew
        self.last: dict[int, float] = {}
        self.worst_reward = math.inf
        self.improved_at = 0  # epochs charged until the last new best score
        self._best: dict[int, Best] = {}
        self._first_best: int | None = None  # the first to reach the best score
        self._curves: dict[int, list[float]] = {}

    def add(
        self, arm: int, epoch: int, score: float, n_epochs: int, *, has_failed: bool
    ) -> None:
        """Add the score of an epoch, with which so many were charged in all."""
        self._curves.setdefault(arm, [])[epoch - 1 :] = [score]
        if not math.isfinite(score):
            return
        reward = self.sign * score
        self.last[arm] = score
        self.worst_reward = min(self.worst_reward, reward)
        if has_failed and self.trains_anew:
            return
        before = self._best.get(arm)
        is_higher = before is None or reward > self.sign * before.score
        if is_higher and not reward <= self.best_reward:  # which is NaN at first
            self._first_best = arm
        if is_higher or self.trains_anew:
            self._best[arm] = Best(score, epoch)
        if is_higher and self.best_arm == arm:
            self.improved_at = n_epochs

    def retire(self, arm: int) -> None:
        """Have an arm that has failed count by no score, if all train anew."""
        if self.trains_anew:
            self._best.pop(arm, None)

    def best(self, arm: int | None) -> Best:
        """Return the score that an arm counts by; NaN without a finite one."""
        if arm is None:
            return Best()
        return self._best.get(arm, Best())

    @property
    def best_arm(self) -> int | None:
        """The arm with the best score; None before the first finite one.

        Where every epoch trains anew, the later of equal scores is better.
        """
        if not self.trains_anew:
            return self._first_best
        if not self._best:
            return None
        ranks = []
        for arm, best in self._best.items():
            rank = (self.sign * best.score, best.epoch, arm)
            ranks.append(rank)
        return max(ranks)[-1]

    @property
    def best_reward(self) -> float:
        """The best reward so far; NaN before the first finite one."""
        return self.sign * self.best(self.best_arm).score

    def reward(self, score: float) -> float:
        """Return the reward of an epoch; of a lost one, by today's worst score."""
        if math.isfinite(score):
            return self.sign * score
        if self.error_score is not None:
            return self.sign * self.error_score
        if math.isfinite(self.worst_reward):
            return self.worst_reward
        return 0.0

    def curve(self, arm: int) -> Floats:
        """Return the rewards of an arm until its last score; a lost epoch repeats one.

        Without a score it is the reward of a failure, alone.
        """
        scores = self._curves.get(arm, [math.nan])
        rewards = self.sign * np.array(scores)
        scored = np.flatnonzero(np.isfinite(rewards))
        if not len(scored):
            return np.array([self.reward(math.nan)])
        epochs = np.arange(scored[-1] + 1)
        before = np.searchsorted(scored, epochs, side="right") - 1
        return np.asarray(rewards[scored[np.maximum(before, 0)]])

    def have_none(self, arms: Ints) -> Bools:
        """Return which of these arms count by no score."""
        return np.array([arm not in self._best for arm in arms.tolist()], dtype=bool)


class ArmTable(Columns):
    """Arms with their epochs, scores and history, and the jobs that train them."""

    arrays = ("charged", "epochs", "failures", "busy", "ended", "failed")
    numbers = ("counted_from", "n_asked", "rounds", "n_jobs")

    def __init__(self, options: SchedulerOptions, max_epochs: int) -> None:
        n_arms = options.n_arms
        self._options = options
        self.max_epochs = max_epochs
        self.n_jobs = options.n_jobs  # in flight at most
        self.charged = int_zeros(n_arms)  # epochs charged
        self.epochs = int_zeros(n_arms)  # epochs trained
        self.failures = int_zeros(n_arms)
        self.busy = np.zeros(n_arms, dtype=bool)
        self.ended = np.zeros(n_arms, dtype=bool)  # by itself
        self.failed = np.zeros(n_arms, dtype=bool)  # and retired
        self.why_ended: dict[int, str] = {}  # by arm, if that is known
        self.scores = Scores(options)
        self.history: list[Json] = []
        self.counted_from = 0  # length of the history when the count began anew
        self.n_asked = 0
        self.rounds = 0  # epochs charged or reserved
        self.in_flight: dict[int, Started] = {}  # by the id of the job
        self.proposals: dict[int, Proposal] = {}  # by the arm opened with it

    @property
    def n_arms(self) -> int:
        """Arms that may be opened."""
        return len(self.busy)

    @property
    def is_full(self) -> bool:
        """Whether as many jobs are in flight as there may be."""
        return self.n_jobs is not None and len(self.in_flight) >= self.n_jobs

    def forgive(self, arm: int) -> None:
        """Take back an arm that its failures have retired: it can fail once more."""
        self.failed[arm] = False
        self.failures[arm] = self._options.max_failures

    def start(self, decision: Started) -> None:
        """Put a decided job in flight."""
        job = decision.job
        self.in_flight[job.id] = replace(decision, round=self.rounds + 1)
        self.n_asked += 1
        self.rounds += job.n_epochs
        self.busy[job.arm] = True
        if decision.params is not None:
            self.proposals[job.arm] = Proposal(decision.params, decision.like)

    def take_back(self, result: Result) -> Started:
        """Free the arm of a job that came back; return the decision to start it."""
        arm = result.job.arm
        self.rounds -= result.job.n_epochs - result.charged
        self.busy[arm] = False
        self.epochs[arm] += len(result.scores)
        self.ended[arm] |= result.has_ended
        if result.has_ended and isinstance(result.ended, str):
            self.why_ended[arm] = f": {result.ended}"
        self.failures[arm] += result.n_failures
        self.failed[arm] = self.failures[arm] > self._options.max_failures
        if self.failed[arm]:
            self.scores.retire(arm)
        return self.in_flight.pop(result.job.id)

    def add(self, row: Json) -> None:
        """Add a charged epoch to the history."""
        self.history.append(row)
        self.charged[row["arm"]] += 1
        self._add_score(row, len(self.history))

    def _add_score(self, row: Json, n_epochs: int) -> None:
        arm = row["arm"]
        self.scores.add(
            arm,
            row["epoch"],
            row["score"],
            n_epochs,
            has_failed=bool(self.failed[arm]),
        )

    def has_failed(self, opened: Ints) -> Bools:
        """Return which opened arms were retired by a failure, or have no score."""
        return np.asarray(self.failed[opened] | self.scores.have_none(opened))

    @property
    def finalist(self) -> int | None:
        """The arm that the cost of its last epochs is kept for; None for no such."""
        if not self.scores.trains_anew:
            return None
        best = self.scores.best_arm
        if best is None or not self.can_train()[best]:
            return None
        return best

    @property
    def epochs_since_improvement(self) -> int:
        """Epochs charged since there was a new best score, or a larger budget."""
        return len(self.history) - max(self.scores.improved_at, self.counted_from)

    @property
    def has_provisional_rewards(self) -> bool:
        """Whether failures count as 0 because no score is known yet."""
        scores = self.scores
        unknown = scores.error_score is None and math.isinf(scores.worst_reward)
        return unknown and bool(self.history)

    def can_train(self, at: slice = EVERY_ARM) -> Bools:
        """Return which arms could still train, busy ones included."""
        gone = self.ended[at] | self.failed[at]
        return np.asarray((self.charged[at] < self.max_epochs) & ~gone)

    def too_late(self, affordable: Ints, at: slice = EVERY_ARM) -> Bools:
        """Return which arms are not opened, as the budget cannot train them so long."""
        is_short = affordable < self._options.min_epochs
        return np.asarray((self.charged[at] == 0) & is_short)

    @property
    def has_told(self) -> Bools:
        """Whether each arm has trained, or ended before its first epoch."""
        return (self.charged > 0) | self.ended

    def unopened(self) -> Ints:
        """Return the arms that could be opened."""
        is_new = (self.charged == 0) & ~self.busy
        return np.flatnonzero(is_new & self.can_train())

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

    def state_dict(self) -> Json:
        """Return everything as JSON values."""
        decisions = self.in_flight.values()
        proposals = []
        for arm, proposal in self.proposals.items():
            params = saved_params(proposal.params)
            proposals.append([arm, params, list(proposal.like)])
        return super().state_dict() | {
            "history": [as_json(row) for row in self.history],
            "decisions": [why.to_json() | {"round": why.round} for why in decisions],
            "why_ended": list(self.why_ended.items()),
            "proposals": proposals,
        }

    def load_state_dict(self, state: Json) -> None:
        """Restore the values of ``state_dict`` but the proposals."""
        super().load_state_dict(state)
        self.why_ended = dict(state["why_ended"])
        self.history = [from_json(row) for row in state["history"]]
        self.scores = Scores(self._options)
        for n_epochs, row in enumerate(self.history, start=1):
            self._add_score(row, n_epochs)
        decisions = [Started.from_json(values) for values in state["decisions"]]
        self.in_flight = {decision.job.id: decision for decision in decisions}

    def load_proposals(self, state: Json) -> None:
        """Restore the proposals of ``state_dict``, which may have made arms."""
        self.proposals = {}
        for arm, params, like in state["proposals"]:
            self.proposals[arm] = Proposal(from_json(params), tuple(like))
