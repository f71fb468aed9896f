"""Policies that stop an arm when the others say it will not make it."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_int
from risingsearch.policies.arrays import Bools, Floats, Ints, Rng
from risingsearch.policies.base import arm_arrays, least_pulled
from risingsearch.policies.shared.rewards import append_reward, prefix_sums


class MedianStopping(NamedTuple):
    """Train one arm after another; stop it when its best falls below the median.

    Good for cutting hopeless runs short where runs cannot be paused.

    After each of its pulls an arm is compared with all others that have as many: it is
    stopped when its best reward so far is strictly below the median of their running
    averages, and never comes back. The policy stops when all arms have been stopped or
    trained to the end.

    References
    ----------
    Golovin, Solnik, Moitra, Kochanski, Karro, Sculley: "Google Vizier: A Service for
    Black-Box Optimization", KDD 2017, section 3.2.1. ``min_arms`` is ours, as in other
    tools: a median of very few says little.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = MedianStopping.create(n_arms=3, horizon=9, max_pulls=3, min_arms=1)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.1, 0.9][arm], 9)
    [0, 0, 0, 1, 2, 2, 2]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    min_arms: int
    P: Floats  # (n_arms, max_pulls + 1), sums of the rewards
    best: Floats  # (n_arms,), highest reward
    stopped: Bools  # (n_arms,)

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        min_arms: int = 5,
    ) -> MedianStopping:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        min_arms : int, default 5
            Others with as many pulls before an arm is judged, at least 1.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            min_arms=checked_int("min_arms", min_arms, 1),
            P=prefix_sums(n_arms, horizon, max_pulls),
            best=np.full(n_arms, -inf),
            stopped=np.zeros(n_arms, dtype=np.bool_),
        )

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int, *, min_arms: int = 5) -> int:
        """Return more arms than the budget trains in full: many will be stopped.

        Examples
        --------
        >>> MedianStopping.recommended_arms(270, 27)
        40
        """
        return max(2, min_arms, 4 * horizon // max_pulls)

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm in training, or the next one."""
        for i in range(len(self.pulls)):
            if self.available[i] and not self.stopped[i] and self.pulls[i] > 0:
                return i
        return least_pulled(self.available, self.pulls, 1)

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Append the reward and judge the arm by it."""
        append_reward(self.P, self.pulls, arm, reward)
        self.best[arm] = max(self.best[arm], reward)
        if below_median(self, arm):
            self.stopped[arm] = True

    def explain(self, arm: int) -> dict[str, float]:
        """Return the arm's best reward and whether it was stopped."""
        return {
            "best_reward": self.best[arm],
            "stopped": self.stopped[arm],
        }


def below_median(policy: MedianStopping, arm: int) -> bool:
    """Return whether the arm's best is below the median of the others' averages."""
    n = policy.pulls[arm]
    best = policy.best[arm]
    n_below = 0
    n_above = 0
    highest_below = -inf
    lowest_above = inf
    for i in range(len(policy.pulls)):
        if i != arm and policy.pulls[i] >= n:
            average = policy.P[i, n] / n
            if average > best:
                n_above += 1
                lowest_above = min(lowest_above, average)
            else:
                n_below += 1
                highest_below = max(highest_below, average)
    if n_above + n_below < policy.min_arms:
        return False
    if n_above == n_below:  # the median is the middle of the two around the best
        return bool(best < 0.5 * (highest_below + lowest_above))
    return n_above > n_below
