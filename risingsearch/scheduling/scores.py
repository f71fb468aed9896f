"""Scores of the arms: the best and the last of each, its curve, and the best arm."""

import math
from typing import NamedTuple

import numpy as np

from risingsearch.arms import sign_of
from risingsearch.policies.arrays import Bools, Floats, Ints
from risingsearch.scheduling.options import SchedulerOptions


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
        is_higher = arm not in self._best or reward > self.sign * self._best[arm].score
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
        return self._best.get(arm, Best()) if arm is not None else Best()

    @property
    def best_arm(self) -> int | None:
        """The arm with the best score; None before the first finite one.

        Where every epoch trains anew, the later of equal scores is better.
        """
        if not self.trains_anew:
            return self._first_best
        ranks = [
            (
                self.sign * best.score,
                best.epoch,
                arm,
            )
            for arm, best in self._best.items()
        ]
        return max(ranks)[-1] if ranks else None

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
        return self.worst_reward if math.isfinite(self.worst_reward) else 0.0

    def curve(self, arm: int) -> Floats:
        """Return the rewards of an arm until its last score; a lost epoch repeats one.

        Without a score it is the reward of a failure, alone.
        """
        rewards = self.sign * np.array(self._curves.get(arm, [math.nan]))
        scored = np.flatnonzero(np.isfinite(rewards))
        if not len(scored):
            return np.array([self.reward(math.nan)])
        epochs = np.arange(scored[-1] + 1)
        before = np.searchsorted(scored, epochs, side="right") - 1
        return np.asarray(rewards[scored[np.maximum(before, 0)]])

    def have_none(self, arms: Ints) -> Bools:
        """Return which of these arms count by no score."""
        return np.array([arm not in self._best for arm in arms.tolist()], dtype=bool)
