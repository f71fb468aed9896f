"""KL-UCB: the tight confidence bound for rewards in [0, 1]."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from risingsearch.checks import checked_float, checked_reward_range
from risingsearch.policies.arrays import Bools, Floats, Ints, RewardRange, Rng, zeros
from risingsearch.policies.base import (
    WAIT,
    arm_arrays,
    coming_round,
    leader,
    least_pulled,
)
from risingsearch.policies.shared.kl import kl_exploration, kl_upper, surely_below
from risingsearch.policies.shared.rewards import record_mean, unit_reward


class KLUCB(NamedTuple):
    r"""KL-UCB: the highest mean that an arm's rewards in [0, 1] do not contradict.

    With :math:`m` the mean of the arm's :math:`N` rewards, the index is

    .. math:: \max\{q \in [m, 1]: N\,\mathrm{kl}(m, q) \le \ln t + c \ln \ln t\}

    where kl is the divergence of two coins; the term with ``c`` counts from
    :math:`t = 3`. Every arm is pulled once first.

    References
    ----------
    Garivier, Cappe: "The KL-UCB Algorithm for Bounded Stochastic Bandits and Beyond",
    COLT 2011.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = KLUCB.create(n_arms=2, horizon=20)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.8][arm], 20)
    [0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    c: float
    reward_range: RewardRange
    mean: Floats  # (n_arms,), in [0, 1]

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        c: float = 0.0,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> KLUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        c : float, default 0.0
            Weight of the term ``ln ln t``, at least 0; 3 in the theory, 0 in practice.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            c=checked_float("c", c, 0.0),
            reward_range=checked_reward_range(reward_range),
            mean=zeros(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest bound, after one pull of each."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        exploration = kl_exploration(self.c, t)
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                level = exploration / self.pulls[i]
                if arm == WAIT or not surely_below(self.mean[i], level, best):
                    index = kl_upper(self.mean[i], level)
                    arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the arm's mean."""
        reward = unit_reward(reward, self.reward_range)
        record_mean(self.pulls, self.mean, arm, reward)

    def explain(self, arm: int) -> dict[str, float]:
        """Return mean and bonus at the coming round, in units of [0, 1]."""
        n = self.pulls[arm]
        if n == 0:
            return {
                "mean": 0.0,
                "bonus": inf,
            }
        mean = self.mean[arm]
        level = kl_exploration(self.c, coming_round(self.pulls)) / n
        return {
            "mean": mean,
            "bonus": kl_upper(mean, level) - mean,
        }
