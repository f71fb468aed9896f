"""A line through the last rewards of every arm, and optimism about where it leads."""

from __future__ import annotations

import math
from typing import NamedTuple

from risingsearch.checks import checked_float, checked_int, checked_reward_range
from risingsearch.policies.arrays import Bools, Floats, Ints, RewardRange, Rng, zeros
from risingsearch.policies.base import (
    WAIT,
    arm_arrays,
    coming_round,
    leader,
    least_pulled,
)

LEAST_DEVIATION = 1e-6


class WLSOptimisticTS(NamedTuple):
    r"""WLS + optimistic TS: every arm's recent trend, drawn to the present round.

    An arm with a falling line is never pulled again, however long ago that was: where
    means jump, it gets stuck.

    An arm keeps the rounds and rewards :math:`(t_j, x_j)` of its last ``window`` pulls.
    At round :math:`t` they have the weights :math:`w_j = \lambda^{t - t_j}`
    (``decay``), and the line :math:`\hat x(t) = c_0 + c_1 t` minimises
    :math:`\sum_j w_j^2 (x_j - \hat x(t_j))^2`: the weights count squared. With

    .. math:: s = \sqrt{\frac{\sum_j w_j r_j^2}{\max(\sum_j w_j - 2, 1)}},
              \qquad r_j = x_j - \hat x(t_j),

    and :math:`s` at least 1e-6 of the width of ``reward_range``, it draws
    :math:`\theta \sim \mathcal{N}(\hat x(t), s^2)` and pulls the arm of the highest
    :math:`\max(\hat x(t), \theta)`. Every arm is pulled once first; with a single
    reward its index is uniform over ``reward_range``.

    The rule is that of the public script of the RAVEN-UCB paper; the work it cites has
    no regression. Here weights are relative to the arm's newest reward, so that the
    line stays the same between pulls. In the script they shrink without end: after some
    14,000 rounds they leave the range of floating-point numbers, and the line becomes
    arbitrary. The row of its Table 4 depends on this and does not come out here.

    References
    ----------
    Fang et al.: "From Theory to Practice with RAVEN-UCB", section 4.3 (baseline).

    Examples
    --------
    A rising arm overtakes a flat one on its line, before it has been higher.

    >>> import numpy as np
    >>> policy = WLSOptimisticTS.create(n_arms=2, horizon=100)
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 9):
    ...     policy.update(t, t % 2, [0.5, 0.05 * t][t % 2], rng)
    >>> policy.select(9, rng), policy.select(12, rng)
    (0, 1)
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    decay: float  # lambda
    low: float
    high: float
    rounds: Floats  # (n_arms, window), a ring per arm
    rewards: Floats  # (n_arms, window)
    weights: Floats  # (n_arms, window), 1 for the newest
    newest: Floats  # (n_arms,), round of the last pull
    level: Floats  # (n_arms,), the line in that round
    slope: Floats  # (n_arms,), per round
    total_weight: Floats  # (n_arms,)
    residual: Floats  # (n_arms,), weighted sum of squares

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        decay: float = 0.95,
        window: int = 50,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> WLSOptimisticTS:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        decay : float, default 0.95
            Factor on the weight of a reward per round, above 0 and at most 1.
        window : int, default 50
            Rewards of an arm that count, at least 2.
        reward_range : (float, float), default (0.0, 1.0)
            Of an arm's second draw; rewards outside are taken as they are.
        """
        low, high = checked_reward_range(reward_range)
        size = (n_arms, checked_int("window", window, 2))
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            decay=checked_float("decay", decay, 0.0, 1.0, open_low=True),
            low=low,
            high=high,
            rounds=zeros(size),
            rewards=zeros(size),
            weights=zeros(size),
            newest=zeros(n_arms),
            level=zeros(n_arms),
            slope=zeros(n_arms),
            total_weight=zeros(n_arms),
            residual=zeros(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of the highest optimistic draw, after one pull of each."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        best = -math.inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                if self.pulls[i] < 2:
                    index = self.low + (self.high - self.low) * rng.random()
                else:
                    index, deviation = trend(self, i, t)
                    index = max(index, index + deviation * rng.standard_normal())
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Fit the arm's line anew."""
        rounds = self.rounds[arm]
        rewards = self.rewards[arm]
        weights = self.weights[arm]
        fade = faded(self.decay, t - self.newest[arm])
        for k in range(min(self.pulls[arm], len(weights))):
            weights[k] *= fade
        slot = self.pulls[arm] % len(weights)
        rounds[slot] = t
        rewards[slot] = reward
        weights[slot] = 1.0
        self.newest[arm] = t
        self.pulls[arm] += 1
        count = min(self.pulls[arm], len(weights))
        level, slope = fitted_line(rounds, rewards, weights, count, t)
        self.level[arm] = level
        self.slope[arm] = slope
        total = 0.0
        residual = 0.0
        for k in range(count):
            r = rewards[k] - level - slope * (rounds[k] - t)
            total += weights[k]
            residual += weights[k] * r * r
        self.total_weight[arm] = total
        self.residual[arm] = residual

    def explain(self, arm: int) -> dict[str, float]:
        """Return where the line is at the coming round, and the deviation around it."""
        if self.pulls[arm] < 2:
            return {}
        prediction, deviation = trend(self, arm, coming_round(self.pulls))
        return {
            "prediction": prediction,
            "deviation": deviation,
        }


def faded(decay: float, rounds: float) -> float:
    """Return the weight of a reward by its age in rounds; 1 for future ones."""
    return math.pow(decay, max(0.0, rounds))


def trend(policy: WLSOptimisticTS, arm: int, t: int) -> tuple[float, float]:
    """Return the arm's line at round ``t``, and the deviation ``s`` there."""
    ahead = t - policy.newest[arm]
    fade = faded(policy.decay, ahead)
    weight = max(1.0, fade * policy.total_weight[arm] - 2.0)
    least = LEAST_DEVIATION * (policy.high - policy.low)
    return (
        policy.level[arm] + policy.slope[arm] * ahead,
        max(least, math.sqrt(fade * policy.residual[arm] / weight)),
    )


def fitted_line(
    rounds: Floats,
    rewards: Floats,
    weights: Floats,
    count: int,
    t: int,
) -> tuple[float, float]:
    """Return level at round ``t`` and slope, 0 for one reward, by least squares."""
    total = 0.0
    ahead = 0.0
    mean = 0.0
    for k in range(count):
        w = weights[k] * weights[k]
        total += w
        ahead += w * (rounds[k] - t)
        mean += w * rewards[k]
    ahead /= total
    mean /= total
    spread = 0.0
    product = 0.0
    for k in range(count):
        w = weights[k] * weights[k]
        distance = rounds[k] - t - ahead
        spread += w * distance * distance
        product += w * distance * (rewards[k] - mean)
    slope = 0.0
    if spread > 0.0:
        slope = product / spread
    return mean - slope * ahead, slope
