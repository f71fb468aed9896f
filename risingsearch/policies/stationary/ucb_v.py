"""UCB-V: a bonus that follows the variance of the arm."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import NamedTuple

from risingsearch.checks import checked_choice, checked_float, checked_reward_range
from risingsearch.policies.arrays import Bools, Floats, Ints, RewardRange, Rng, zeros
from risingsearch.policies.base import (
    WAIT,
    arm_arrays,
    coming_round,
    leader,
    least_pulled,
)
from risingsearch.policies.shared.rewards import VARIANCES, range_width, record_moments
from risingsearch.policies.stationary.ucb1 import extra_pulls


class UCBV(NamedTuple):
    r"""UCB-V: UCB1 with a bonus that follows the variance of the arm.

    With :math:`m` and :math:`V` the mean and the variance of the arm's :math:`N`
    rewards, and :math:`B` the width of ``reward_range``, the index is

    .. math:: m + \sqrt{\frac{2 \zeta V \ln t}{N}} + \frac{3 c B \zeta \ln t}{N}

    Every arm is pulled once first. The variance divides by :math:`N`, as cited. The
    public script of the RAVEN-UCB paper has :math:`N + 1` in both denominators
    (``denominator="n+1"``), a recursion that makes the variance grow with
    :math:`\ln N` (``variance="table4"``) and ``zeta=1``.

    References
    ----------
    Audibert, Munos, Szepesvari: "Exploration-exploitation tradeoff using variance
    estimates in multi-armed bandits", Theoretical Computer Science 410, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from risingsearch.policies import explain
    >>> policy = UCBV.create(n_arms=2, horizon=100)
    >>> rng = np.random.default_rng(0)
    >>> for t, reward in enumerate([0.5, 0.4, 0.5, 0.6], start=1):
    ...     policy.update(t, (t - 1) % 2, reward, rng)
    >>> explain(policy, 0)
    {'mean': 0.50, 'variance_bonus': 0.0, 'range_bonus': 2.90}
    >>> explain(policy, 1)
    {'mean': 0.50, 'variance_bonus': 0.14, 'range_bonus': 2.90}
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    zeta: float
    c: float
    extra: float  # added to N in the denominators
    width: float  # B
    variance_kind: int  # place in VARIANCES
    mean: Floats  # (n_arms,)
    variance: Floats  # (n_arms,)
    deviation: Floats  # (n_arms,), sqrt(V / (N + extra))

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        zeta: float = 1.2,
        c: float = 1.0,
        variance: str = "biased",
        denominator: str = "n",
        reward_range: RewardRange = (0.0, 1.0),
    ) -> UCBV:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        zeta : float, default 1.2
            Weight of the exploration ``ln t``, at least 0; above 1 in the theory.
        c : float, default 1.0
            Weight of the last term, at least 0.
        variance : {"biased", "table4"}, default "biased"
            The variance: over ``N``, or the growing recursion.
        denominator : {"n", "n+1"}, default "n"
            The divisor of the bonuses.
        """
        checked_choice("variance", variance, ("biased", "table4"))
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            zeta=checked_float("zeta", zeta, 0.0),
            c=checked_float("c", c, 0.0),
            extra=extra_pulls(denominator),
            width=range_width(checked_reward_range(reward_range)),
            variance_kind=VARIANCES.index(variance),
            mean=zeros(n_arms),
            variance=zeros(n_arms),
            deviation=zeros(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest index, after one pull of each."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        scale, reach = ucb_v_scales(self, t)
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                spread = scale * self.deviation[i]
                index = self.mean[i] + spread + reach / (self.pulls[i] + self.extra)
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the arm's mean and variance."""
        n = record_moments(
            self.variance_kind, self.pulls, self.mean, self.variance, arm, reward
        )
        self.deviation[arm] = sqrt(self.variance[arm] / (n + self.extra))

    def explain(self, arm: int) -> dict[str, float]:
        """Return mean, variance bonus and range bonus at the coming round."""
        n = self.pulls[arm]
        if n == 0:
            return {
                "mean": 0.0,
                "variance_bonus": 0.0,
                "range_bonus": inf,
            }
        scale, reach = ucb_v_scales(self, coming_round(self.pulls))
        return {
            "mean": self.mean[arm],
            "variance_bonus": scale * self.deviation[arm],
            "range_bonus": reach / (n + self.extra),
        }


def ucb_v_scales(policy: UCBV, t: int) -> tuple[float, float]:
    """Return ``sqrt(2 zeta ln t)`` and ``3 c B zeta ln t``, the same for all arms."""
    exploration = policy.zeta * log(t)
    return (sqrt(2.0 * exploration), 3.0 * policy.c * policy.width * exploration)
