"""Extreme bandits: only the best single reward counts, not the sum of all."""

from __future__ import annotations

from math import inf, log
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_float
from risingsearch.policies.arrays import Bools, Floats, Ints, Rng
from risingsearch.policies.base import WAIT, arm_arrays, coming_round, leader


class MaxUCB(NamedTuple):
    r"""MaxUCB: the highest reward so far, and a bonus that fades fast.

    Every arm is pulled once first, round-robin. Then, with :math:`N` pulls of the arm
    and :math:`m` the highest of its rewards, the index is

    .. math:: m + (\alpha \ln t / N)^2

    Because ``alpha`` depends on the scale, ``m`` is read after the rewards seen so far,
    of all arms, are stretched to the interval from 0.01 to 0.99, as in the authors'
    code; that is an affine map, so that the maxima and two bounds are all it takes.

    References
    ----------
    Balef, Vernade, Eggensperger: "Put CASH on Bandits: A Max K-Armed Problem for
    Automated Machine Learning", 2025, arXiv 2505.05226, and the authors' code.

    Examples
    --------
    >>> from risingsearch.policies.base import explain, play_alone
    >>> policy = MaxUCB.create(n_arms=2, horizon=20)
    >>> play_alone(policy, lambda arm, n, t: [60.0, 20.0, 80.0][t - 1], 3)
    [0, 1, 0]
    >>> explain(policy, 0)
    {'best_reward': 0.99, 'bonus': 0.12}
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    alpha: float
    best: Floats  # (n_arms,), highest reward
    extent: Floats  # (2,), lowest and highest reward of all arms

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        alpha: float = 0.5,
    ) -> MaxUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        alpha : float, default 0.5
            Exploration, at least 0; for rewards stretched to [0.01, 0.99].
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            alpha=checked_float("alpha", alpha, 0.0),
            best=np.full(n_arms, -inf),
            extent=np.array([inf, -inf]),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest index, after a pull of each."""
        scale = reward_scale(self.extent)
        reach = self.alpha * log(t)
        arm = WAIT
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                index = inf  # until it is pulled
                if self.pulls[i] > 0:
                    highest, bonus = max_index(self, i, scale, reach)
                    index = highest + bonus
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Raise the arm's maximum, and move the bounds of all rewards."""
        self.pulls[arm] += 1
        self.best[arm] = max(self.best[arm], reward)
        self.extent[0] = min(self.extent[0], reward)
        self.extent[1] = max(self.extent[1], reward)

    def explain(self, arm: int) -> dict[str, float]:
        """Return the stretched maximum and the bonus; nothing before the first pull."""
        if self.pulls[arm] == 0:
            return {}
        reach = self.alpha * log(coming_round(self.pulls))
        highest, bonus = max_index(self, arm, reward_scale(self.extent), reach)
        return {
            "best_reward": highest,
            "bonus": bonus,
        }


def reward_scale(extent: Floats) -> float:
    """Return the factor that stretches all rewards to a width of 0.98."""
    if extent[0] >= extent[1]:
        return 0.0
    return float(0.98 / (extent[1] - extent[0]))


def max_index(
    policy: MaxUCB,
    arm: int,
    scale: float,
    reach: float,
) -> tuple[float, float]:
    """Return the terms of the index: the stretched maximum, and the bonus."""
    bonus = reach / policy.pulls[arm]
    above_lowest = policy.best[arm] - policy.extent[0]
    return 0.01 + above_lowest * scale, bonus * bonus
