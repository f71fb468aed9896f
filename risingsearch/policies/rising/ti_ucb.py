"""Arms that rise and then converge: a line while they rise, and a test for its end."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_float, checked_int, checked_reward_range
from risingsearch.policies.arrays import Bools, Floats, Ints, RewardRange, Rng, zeros
from risingsearch.policies.base import arm_arrays, best_available
from risingsearch.policies.shared.rewards import (
    append_reward,
    append_weighted,
    prefix_sums,
    window_sum,
)

INITIAL_PULLS = 2


class TIUCB(NamedTuple):
    r"""TI-UCB: the next reward by a line, refitted where an arm stops rising.

    Every arm is pulled twice first, round-robin. Then, with :math:`N` pulls of the
    arm, the index is the value of the least-squares line through its rewards ``s`` to
    ``N`` at reward ``N + 1``, brought into the range of the rewards, plus

    .. math:: (\mathrm{high} - \mathrm{low}) \sqrt{4 \ln(1 / \delta) / N}

    At first ``s = 1``. Once the segment holds ``2 omega`` rewards, every new one is
    followed by a test: two lines, through the last ``omega`` rewards and through the
    ``omega`` before, are read off at ``N + 1``. Where the older one is higher by more
    than ``gamma (high - low)``, the arm has converged: ``s`` becomes ``N - omega + 1``.

    This is a reconstruction: the idea and the defaults of ``delta``, ``omega`` and
    ``gamma`` are those of the papers, the rest follows an implementation by others.
    Our readings: the line runs over the arm's own pulls and is read off at its next
    one; the two windows share no reward; ``N`` in the bonus counts all pulls.

    References
    ----------
    Xia, Kong, Yu, Guo, Rossi, Kim, Li: "Which LLM to Play? Convergence-Aware Online
    Model Selection with Time-Increasing Bandits", WWW 2024, arXiv 2403.07213; the
    defaults as a baseline in Song et al., arXiv 2602.10727.

    Examples
    --------
    >>> from risingsearch.policies.base import explain, play_alone
    >>> policy = TIUCB.create(n_arms=2, horizon=20)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.1, 0.5, 0.3][t - 1], 4)
    [0, 1, 0, 1]
    >>> explain(policy, 0), explain(policy, 1)
    ({'forecast': 0.5, 'bonus': 3.03}, {'forecast': 0.5, 'bonus': 3.03})
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    low: float
    high: float
    first_bonus: float  # after one pull; it shrinks with the root of their number
    omega: int
    gamma: float  # in units of the reward
    P: Floats  # (n_arms, max_pulls + 1), sums of the rewards
    Q: Floats  # (n_arms, max_pulls + 1), sums of n times the reward
    start: Ints  # (n_arms,), s
    forecast: Floats  # (n_arms,)
    bonus: Floats  # (n_arms,)
    value: Floats  # (n_arms,), their sum; infinite until there is a line

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        delta: float = 0.01,
        omega: int = 100,
        gamma: float = 0.3,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> TIUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        delta : float, default 0.01
            Confidence level, above 0 and at most 1.
        omega : int, default 100
            Rewards in each of the two windows of the test, at least 2.
        gamma : float, default 0.3
            Threshold of the test, above 0, as a share of the reward range.
        reward_range : (float, float), default (0.0, 1.0)
            Lowest and highest reward; no forecast is outside.
        """
        low, high = checked_reward_range(reward_range)
        delta = checked_float("delta", delta, 0.0, 1.0, open_low=True)
        gamma = checked_float("gamma", gamma, 0.0, open_low=True)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            low=low,
            high=high,
            first_bonus=(high - low) * sqrt(4.0 * log(1.0 / delta)),
            omega=checked_int("omega", omega, 2),
            gamma=gamma * (high - low),
            P=prefix_sums(n_arms, horizon, max_pulls),
            Q=prefix_sums(n_arms, horizon, max_pulls),
            start=np.ones(n_arms, dtype=np.int64),
            forecast=zeros(n_arms),
            bonus=zeros(n_arms),
            value=np.full(n_arms, inf),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest index, after two pulls of each."""
        return best_available(self.available, self.value, self.pulls)

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Append the reward to the prefix sums, test for a change, refit the line."""
        n = append_reward(self.P, self.pulls, arm, reward)
        append_weighted(self.Q, arm, n, reward)
        if n >= INITIAL_PULLS:
            if has_converged(self, arm, n):
                self.start[arm] = n - self.omega + 1
            line = line_at(self, arm, self.start[arm], n, n + 1)
            self.forecast[arm] = min(self.high, max(self.low, line))
            self.bonus[arm] = self.first_bonus / sqrt(n)
            self.value[arm] = self.forecast[arm] + self.bonus[arm]

    def explain(self, arm: int) -> dict[str, float]:
        """Return the forecast of the next reward, and the bonus."""
        return {
            "forecast": self.forecast[arm],
            "bonus": self.bonus[arm],
        }


def has_converged(policy: TIUCB, arm: int, n: int) -> bool:
    """Return whether the last ``omega`` rewards fall short of the ``omega`` before."""
    w = policy.omega
    if n - policy.start[arm] + 1 < 2 * w:
        return False
    older = line_at(policy, arm, n - 2 * w + 1, n - w, n + 1)
    return older - line_at(policy, arm, n - w + 1, n, n + 1) > policy.gamma


def line_at(
    policy: TIUCB,
    arm: int,
    first: int,
    last: int,
    n: int,
) -> float:
    """Return the value at ``n`` of the line through rewards ``first`` to ``last``."""
    # Squares of ``m`` numbers in a row, from their mean, add up to m (m^2 - 1) / 12.
    m = last - first + 1
    center = 0.5 * (first + last)
    total = window_sum(policy.P, arm, first - 1, last)
    moment = window_sum(policy.Q, arm, first - 1, last) - center * total
    slope = 12.0 * moment / (m * (m * m - 1.0))
    return float(total / m + slope * (n - center))
