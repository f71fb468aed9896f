"""Rising bandits for CASH: elimination by bounds on the best reward to come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from risingsearch.checks import checked_int, checked_reward_range
from risingsearch.policies.arrays import (
    Bools,
    Floats,
    Ints,
    RewardRange,
    Rng,
    all_true,
    int_zeros,
    zeros,
)
from risingsearch.policies.base import WAIT, arm_arrays
from risingsearch.policies.shared.race import all_have, in_race, next_in_turn
from risingsearch.policies.shared.rewards import unit_reward


class RisingBandits(NamedTuple):
    r"""Rising bandits for CASH: drop an arm whose best hope another has reached.

    The arms in the race are pulled in sweeps. With :math:`y(N)` the arm's best reward
    so far, after each sweep, at round ``t``,

    .. math:: l = y(N) \qquad
              u = \min\Big(1,\; y(N) + (T - t)\,\frac{y(N) - y(N - C)}{C}\Big)

    bound the reward of the arm at the horizon ``T``, and an arm is dropped
    when another has ``l`` at its ``u`` or above. Where an arm has no more than ``C``
    pulls, :math:`y(N - C)` is -1, as in the public code.

    References
    ----------
    Li, Jiang, Gao, Shao, Zhang, Cui: "Efficient Automatic CASH via Rising Bandits",
    AAAI 2020, with ``C = 7`` as in the code of Balef et al., arXiv 2505.05226.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = RisingBandits.create(n_arms=2, horizon=20, window=2)
    >>> play_alone(policy, lambda arm, n, t: [0.4, 0.1 * n][arm], 12)
    [0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    reward_range: RewardRange
    past: Floats  # (n_arms, C), the last C values of y, in a ring
    alive: Bools  # (n_arms,)
    value: Floats  # (n_arms,), y(N), which is l
    before: Floats  # (n_arms,), y(N - C)
    upper: Floats  # (n_arms,), u when last judged
    judged: Ints  # (1,), sweeps

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        window: int = 7,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> RisingBandits:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        window : int, default 7
            Pulls ``C`` that the slope is taken over, at least 1.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            reward_range=checked_reward_range(reward_range),
            past=zeros((n_arms, checked_int("window", window, 1))),
            alive=all_true(n_arms),
            value=zeros(n_arms),
            before=np.full(n_arms, -1.0),
            upper=np.ones(n_arms),
            judged=int_zeros(1),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the next arm of the sweep, or the one that is left."""
        return next_in_turn(
            self.available, self.pulls_left, self.alive, self.pulls, self.value
        )

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Raise the best reward so far; judge all after a sweep."""
        C = self.past.shape[1]
        n = int(self.pulls[arm]) + 1
        self.pulls[arm] = n
        self.value[arm] = max(self.value[arm], unit_reward(reward, self.reward_range))
        slot = n % C
        if n > C:
            self.before[arm] = self.past[arm, slot]
        self.past[arm, slot] = self.value[arm]
        if all_have(self.pulls_left, self.alive, self.pulls, self.judged[0] + 1):
            self.judged[0] += 1
            judge_bounds(self, t)

    def explain(self, arm: int) -> dict[str, float]:
        """Return the best reward so far, from 0 to 1, and its bound as last judged."""
        return {
            "best_reward": self.value[arm],
            "upper_bound": self.upper[arm],
        }


def judge_bounds(policy: RisingBandits, t: int) -> None:
    """Drop all arms in the race but those that may pass the highest lower bound."""
    alive = policy.alive
    pulls_left = policy.pulls_left
    C = policy.past.shape[1]
    leader = WAIT
    for i in range(len(policy.pulls)):
        if in_race(alive, pulls_left, i):
            gain = (policy.value[i] - policy.before[i]) / C
            left = max(0.0, policy.horizon[i] - t)
            policy.upper[i] = min(1.0, policy.value[i] + left * gain)
            if leader == WAIT or leads(policy, i, leader):
                leader = i
    for i in range(len(policy.pulls)):
        if in_race(alive, pulls_left, i) and policy.upper[i] <= policy.value[leader]:
            alive[i] = i == leader


def leads(policy: RisingBandits, arm: int, leader: int) -> bool:
    """Return whether the arm's best reward is higher, or as high with more to come."""
    if policy.value[arm] == policy.value[leader]:
        return bool(policy.upper[arm] > policy.upper[leader])
    return bool(policy.value[arm] > policy.value[leader])
