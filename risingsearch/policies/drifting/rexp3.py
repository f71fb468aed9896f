"""Policies that assume nothing about how the rewards come about."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from risingsearch.checks import (
    LARGEST_INT,
    checked_choice,
    checked_float,
    checked_reward_range,
)
from risingsearch.policies.arrays import Bools, Floats, Ints, RewardRange, Rng, zeros
from risingsearch.policies.base import WAIT, arm_arrays
from risingsearch.policies.shared.rewards import unit_reward

LARGEST_LOG_WEIGHT = 100.0


class Rexp3(NamedTuple):
    r"""Rexp3: EXP3, begun afresh after every batch of rounds.

    With :math:`K` arms, :math:`T` rounds and :math:`V` = ``variation``, a batch has

    .. math:: \Delta = \Big\lceil (K \ln K)^{1/3} (T / V)^{2/3} \Big\rceil

    rounds, and :math:`\gamma = \min(1, \sqrt{K \ln K / ((e - 1) \Delta)})`. Every batch
    starts with the weights 1. Arm :math:`i` is drawn with the probability

    .. math:: p_i = (1 - \gamma) \frac{w_i}{\sum_j w_j} + \frac{\gamma}{K}

    and its reward :math:`x` multiplies its weight by :math:`\exp(\gamma x / (p_i K))`.
    Where arms are not available, the others share the probability in the same way. A
    reward that comes back when its batch is over is not counted.

    ``variation`` is the number of arms in the CURE-UCB paper, and 0.05 in "Smooth
    Non-Stationary Bandits", which prints the batch length with :math:`K` outside the
    cube root: ``batch_rule="printed"``.

    References
    ----------
    Besbes, Gur, Zeevi: "Stochastic Multi-Armed-Bandit Problem with Non-stationary
    Rewards", NIPS 2014; ``batch_rule="printed"``: Jia, Xie, Kallus, Frazier: "Smooth
    Non-Stationary Bandits", section 7.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = Rexp3.create(n_arms=2, horizon=1000)
    >>> policy.batch_length, round(policy.gamma, 3)
    (71, 0.107)
    >>> _ = play_alone(policy, lambda arm, n, t: [0.0, 1.0][arm], 71)
    >>> policy.pulls.tolist()
    [12, 59]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    batch_length: int  # in rounds
    gamma: float  # share of the uniform distribution
    reward_range: RewardRange
    batch_end: Ints  # (1,), last round of the batch
    log_weight: Floats  # (n_arms,), up to a shift of all
    weight: Floats  # (n_arms,), its exponential
    probability: Floats  # (n_arms,), of the arm when it was last drawn

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        variation: float | None = None,
        batch_rule: str = "besbes",
        reward_range: RewardRange = (0.0, 1.0),
    ) -> Rexp3:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        variation : float, optional
            The variation of the means in all, ``V``, above 0; by default ``n_arms``.
        batch_rule : {"besbes", "printed"}, default "besbes"
            The batch length of the original, or ``K ln^(1/3) K (T / V)^(2/3)``.
        """
        checked_choice("batch_rule", batch_rule, ("besbes", "printed"))
        if variation is None:
            variation = n_arms
        variation = checked_float("variation", variation, 0.0, open_low=True)
        K = n_arms
        arms_factor = math.cbrt(K * math.log(K))
        if batch_rule == "printed":
            arms_factor = K * math.cbrt(math.log(K))
        rounds = arms_factor * math.pow(horizon / variation, 2 / 3)
        length = max(1, math.ceil(min(LARGEST_INT, rounds)))
        gamma = min(1.0, math.sqrt(K * math.log(K) / ((math.e - 1.0) * length)))
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            batch_length=length,
            gamma=gamma,
            reward_range=checked_reward_range(reward_range),
            batch_end=np.full(1, length, dtype=np.int64),
            log_weight=zeros(n_arms),
            weight=np.ones(n_arms),
            probability=np.ones(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return an arm drawn by the weights, and sometimes any."""
        begins = t > self.batch_end[0]
        floor, share = shares(self.available, self.weight, self.gamma, begins)
        left = rng.random()
        arm = WAIT
        for i in range(len(self.weight)):
            if self.available[i]:
                arm = i
                p = floor + share * (1.0 if begins else self.weight[i])
                if left < p:
                    break
                left -= p
        return arm

    def started(self, t: int, arm: int) -> None:
        """Begin the batch of round ``t``, and note how probable the arm was."""
        if t > self.batch_end[0]:
            length = self.batch_length
            self.batch_end[0] = ((t - 1) // length + 1) * length
            for i in range(len(self.weight)):
                self.log_weight[i] = 0.0
                self.weight[i] = 1.0
        floor, share = shares(self.available, self.weight, self.gamma, begins=False)
        self.probability[arm] = floor + share * self.weight[arm]

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Raise the weight of the arm, unless the batch of round ``t`` is over."""
        self.pulls[arm] += 1
        if t > self.batch_end[0] - self.batch_length:
            x = unit_reward(reward, self.reward_range)
            gain = self.gamma * x / (self.probability[arm] * len(self.weight))
            raise_weight(self.log_weight, self.weight, arm, gain)

    def explain(self, arm: int) -> dict[str, float]:
        """Return the arm's share of all weights."""
        return {"weight_share": self.weight[arm] / self.weight.sum()}


def shares(
    available: Bools,
    weight: Floats,
    gamma: float,
    begins: bool,
) -> tuple[float, float]:
    """Return the probability that each available arm has, and that per weight."""
    n_available = 0
    total = 0.0
    for i in range(len(weight)):
        if available[i]:
            n_available += 1
            total += 1.0 if begins else weight[i]
    if total > 0.0:
        return gamma / n_available, (1.0 - gamma) / total
    # The weights are too small for numbers: all arms are as probable.
    return 1.0 / n_available, 0.0


def raise_weight(
    log_weight: Floats,
    weight: Floats,
    arm: int,
    gain: float,
) -> None:
    """Add ``gain`` to the arm's log-weight; where that is large, take it off all."""
    log_weight[arm] += gain
    if log_weight[arm] <= LARGEST_LOG_WEIGHT:
        weight[arm] = math.exp(log_weight[arm])
        return
    largest = log_weight[arm]
    for i in range(len(weight)):
        log_weight[i] -= largest
        weight[i] = math.exp(log_weight[i])
