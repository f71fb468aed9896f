"""CCB: a bonus that shrinks in steps."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_reward_range
from risingsearch.policies.arrays import Bools, Floats, Ints, RewardRange, Rng, zeros
from risingsearch.policies.base import WAIT, arm_arrays, leader, least_pulled
from risingsearch.policies.shared.rewards import range_width, record_mean


class CCB(NamedTuple):
    r"""CCB: a bonus of the fourth root of T / N that shrinks in steps.

    With :math:`m` the mean of the arm's :math:`N` rewards, :math:`B` the width of
    ``reward_range`` and :math:`\Delta` a gap that starts at 1, the index is

    .. math:: m + B \frac{\Delta}{2} \Big(\frac{T}{N}\Big)^{1/4}

    Whenever an arm just pulled has at least :math:`n_\Delta` pulls (0 at first),
    :math:`\Delta` is halved and :math:`n_\Delta` grows by
    :math:`\lceil 2 \ln(T \Delta^2) / \Delta^2 \rceil`; no step is taken that would
    leave :math:`T \Delta^2 \le e`. Every arm is pulled once first.

    The rule is that of the public script of the RAVEN-UCB paper, which runs it as a
    baseline under this name; stopping the halving is our reading, there the logarithm
    may become negative.

    References
    ----------
    Liu, Tsuruoka: "Modification of improved upper confidence bounds for regulating
    exploration in Monte-Carlo tree search", Theoretical Computer Science 644, 2016;
    as in Fang et al., "From Theory to Practice with RAVEN-UCB", section 4.3.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = CCB.create(n_arms=2, horizon=20)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.6][arm], 20)
    [0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    width: float  # B
    mean: Floats  # (n_arms,)
    gap: Floats  # (1,), Delta
    enough: Floats  # (1,), pulls of an arm that halve the gap

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> CCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        reward_range : (float, float), default (0.0, 1.0)
            Lowest and highest reward.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            width=range_width(checked_reward_range(reward_range)),
            mean=zeros(n_arms),
            gap=np.ones(1),
            enough=zeros(1),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest index, after one pull of each."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        best = -math.inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                index = self.mean[i] + ccb_bonus(self, i)
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the arm's mean; halve the gap when the arm has had enough pulls."""
        n = record_mean(self.pulls, self.mean, arm, reward)
        half = 0.5 * self.gap[0]
        square = half * half
        if n >= self.enough[0] and self.horizon[arm] * square > math.e:
            self.gap[0] = half
            more = 2.0 * math.log(self.horizon[arm] * square) / square
            self.enough[0] += math.ceil(more)

    def explain(self, arm: int) -> dict[str, float]:
        """Return mean and bonus."""
        if self.pulls[arm] == 0:
            return {
                "mean": 0.0,
                "bonus": math.inf,
            }
        return {
            "mean": self.mean[arm],
            "bonus": ccb_bonus(self, arm),
        }


def ccb_bonus(policy: CCB, arm: int) -> float:
    """Return ``B Delta / 2`` times the fourth root of ``T / N``."""
    gap: float = policy.gap[0]
    ratio = policy.horizon[arm] / policy.pulls[arm]
    return policy.width * 0.5 * gap * math.sqrt(math.sqrt(ratio))
