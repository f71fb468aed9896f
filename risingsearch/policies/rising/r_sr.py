"""Successive rejects: of the arms left, the worst goes."""

from __future__ import annotations

from math import ceil, fsum, inf
from typing import NamedTuple

import numpy as np

from risingsearch.policies.arrays import (
    Bools,
    Floats,
    Ints,
    Rng,
    all_true,
    int_zeros,
    zeros,
)
from risingsearch.policies.base import WAIT, arm_arrays, better, pull_limit
from risingsearch.policies.shared.race import next_in_round, next_in_turn, round_is_over
from risingsearch.policies.shared.rewards import (
    append_reward,
    checked_eps,
    prefix_sums,
    window_length,
    window_sum,
)


class RSR(NamedTuple):
    r"""R-SR: successive rejects, by the average of each arm's newest rewards.

    With ``K`` arms and ``T`` rounds there are ``K - 1`` phases. In phase ``j`` every
    arm left is brought to

    .. math:: n_j = \Big\lceil \frac{T - K}{\overline{\log}(K)\,(K + 1 - j)} \Big\rceil
              \qquad
              \overline{\log}(K) = \frac{1}{2} + \sum_{i=2}^{K} \frac{1}{i}

    pulls, one arm after another; then the one with the lowest average over its last
    :math:`\lfloor \epsilon N \rfloor` rewards goes. The last one left is recommended;
    here it also trains on with the rest of the budget.

    Two floors of 1 are ours: ``n_j`` where the budget has fewer rounds than arms, and
    the window, where the authors' code has no average and drops arms at random. With
    ``max_pulls`` no phase asks for more than that, and an arm that has ended is judged
    by its rewards so far.

    References
    ----------
    Mussi, Montenegro, Trovo, Restelli, Metelli: "Best Arm Identification for Stochastic
    Rising Bandits", arXiv 2302.07510, and the authors' code.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = RSR.create(n_arms=3, horizon=15)
    >>> policy.target
    array([3, 5])
    >>> play_alone(policy, lambda arm, n, t: [0.1, 0.4, 0.3][arm], 15)
    [0, 0, 0, 1, 1, 1, 2, 2, 2, 1, 1, 2, 2, 1, 1]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    eps: float
    target: Ints  # (n_arms - 1,), pulls in all by the end of a phase
    phase: Ints  # (1,)
    P: Floats  # (n_arms, max_pulls + 1), P[i, n]: sum of n rewards
    alive: Bools  # (n_arms,)
    value: Floats  # (n_arms,), average of the last h rewards

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eps: float = 0.25,
    ) -> RSR:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        eps : float, default 0.25
            Share of an arm's pulls in its window, above 0 and at most 1/2.
        """
        limit = pull_limit(horizon, max_pulls)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            eps=checked_eps(eps),
            target=np.minimum(phase_targets(n_arms, horizon), limit),
            phase=int_zeros(1),
            P=prefix_sums(n_arms, horizon, max_pulls),
            alive=all_true(n_arms),
            value=zeros(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the next arm of the phase; ``WAIT`` for the phase's last results."""
        if self.phase[0] < len(self.target):
            target = self.target[self.phase[0]]
            arm = next_in_round(
                self.available,
                self.pulls_left,
                self.alive,
                self.pulls,
                target,
                self.value,
            )
            if arm != WAIT or not round_is_over(
                self.pulls_left, self.alive, self.pulls, target
            ):
                return arm
        return next_in_turn(
            self.available, self.pulls_left, self.alive, self.pulls, self.value
        )

    def started(self, t: int, arm: int) -> None:
        """End a phase whose last result did not come."""
        end_phases(self)

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Append the reward, and end the phase if it was the last there."""
        n = append_reward(self.P, self.pulls, arm, reward)
        h = window_length(self.eps, n)
        self.value[arm] = window_sum(self.P, arm, n - h, n) / h
        end_phases(self)

    def slice_length(self, arm: int) -> int:
        """Return the pulls that are missing to the end of the phase."""
        if self.phase[0] < len(self.target):
            return int(max(1, self.target[self.phase[0]] - self.pulls[arm]))
        return int(max(1, self.pulls_left[arm]))

    def explain(self, arm: int) -> dict[str, float]:
        """Return the phase, whether the arm is still in it, and its recent average."""
        return {
            "phase": self.phase[0] + 1,
            "in_race": self.alive[arm],
            "recent_average": self.value[arm],
        }


def phase_targets(n_arms: int, horizon: int) -> Ints:
    """Return the pulls that each arm left has at the end of each phase.

    Parameters
    ----------
    n_arms : int
        Number of arms, ``K``.
    horizon : int
        Number of rounds, ``T``.

    Examples
    --------
    >>> phase_targets(3, 15)
    array([3, 5])
    """
    log_bar = 0.5 + fsum(1.0 / i for i in range(2, n_arms + 1))
    targets = [
        max(1, ceil((horizon - n_arms) / (log_bar * (n_arms + 1 - j))))
        for j in range(1, n_arms)
    ]
    return np.array(targets, dtype=np.int64)


def end_phases(policy: RSR) -> None:
    """End the phases whose results are in."""
    # The arm of the lowest average goes; before it, one that never paid anything.
    while policy.phase[0] < len(policy.target) and round_is_over(
        policy.pulls_left, policy.alive, policy.pulls, policy.target[policy.phase[0]]
    ):
        worst = WAIT
        lowest = inf
        for i in range(len(policy.pulls)):
            if policy.alive[i]:
                n = policy.pulls[i]
                value = -inf
                if n > 0:
                    value = policy.value[i]
                if worst == WAIT or not better(value, n, lowest, policy.pulls[worst]):
                    worst = i
                    lowest = value
        policy.alive[worst] = False
        policy.phase[0] += 1
