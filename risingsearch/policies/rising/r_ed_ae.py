"""R-ed-AE: elimination of arms that rise in straight lines."""

from __future__ import annotations

from math import isnan, log, sqrt
from typing import NamedTuple

from risingsearch.checks import checked_float
from risingsearch.policies.arrays import (
    Bools,
    Floats,
    Ints,
    Rng,
    all_true,
    int_zeros,
    zeros,
)
from risingsearch.policies.base import arm_arrays
from risingsearch.policies.shared.race import (
    all_have,
    drop_behind,
    in_race,
    next_in_turn,
)
from risingsearch.policies.shared.rewards import (
    add_residual,
    append_reward,
    checked_sigma,
    noise_scale,
    prefix_sums,
)


class REdAE(NamedTuple):
    r"""R-ed-AE: drop the arms whose line to the horizon pays less for certain.

    The arms in the race are pulled round-robin. When each has :math:`2M` pulls, with
    :math:`S_1` and :math:`S_2` the sums of its first and second ``M`` rewards,

    .. math:: V = \frac{S_1 + S_2}{2M} + \frac{S_2 - S_1}{M^2}\,\frac{T - 2M}{2}
              \qquad
              r = \sigma \sqrt{\ln\frac{2KT}{\delta}
                  \Big(\frac{1}{M} + \frac{(T - 2M)^2}{M^3}\Big)}

    are its average reward if it were played for all ``T`` rounds, and a radius around
    it. Arms with ``V + r`` below the highest ``V - r`` are dropped; the last one left
    is played to the end.

    This is a reconstruction: that the arms' lines are eliminated by their totals over a
    known horizon is the paper's, the estimator and the constants are ours.

    References
    ----------
    Amichay, Mansour: "Rising Rested MAB with Linear Drift", arXiv 2501.04403; the
    default of ``delta`` as a baseline in Song et al., arXiv 2602.10727.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = REdAE.create(n_arms=2, horizon=20, sigma=0.0)
    >>> play_alone(policy, lambda arm, n, t: [0.4, 0.1 * n][arm], 7)
    [0, 1, 0, 1, 1, 1, 1]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    sigma: float  # NaN: estimated
    delta: float
    P: Floats  # (n_arms, max_pulls + 1), P[i, n]: sum of n rewards
    alive: Bools  # (n_arms,)
    value: Floats  # (n_arms,), V
    radius: Floats  # (n_arms,), r
    judged: Ints  # (1,), M
    last_two: Floats  # (n_arms, 2)
    residual: Floats  # (2,), sum of squared second differences, count

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        sigma: float | None = None,
        delta: float = 0.01,
    ) -> REdAE:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        sigma : float, optional
            As in every policy; nothing is dropped before there is an estimate.
        delta : float, default 0.01
            Confidence level, above 0 and at most 1.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            sigma=checked_sigma(sigma),
            delta=checked_float("delta", delta, 0.0, 1.0, open_low=True),
            P=prefix_sums(n_arms, horizon, max_pulls),
            alive=all_true(n_arms),
            value=zeros(n_arms),
            radius=zeros(n_arms),
            judged=int_zeros(1),
            last_two=zeros((n_arms, 2)),
            residual=zeros(2),
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
        """Append the reward to the prefix sums; judge all after a double sweep."""
        n = append_reward(self.P, self.pulls, arm, reward)
        add_residual(self.residual, self.last_two[arm], n, reward)
        if all_have(self.pulls_left, self.alive, self.pulls, 2 * (self.judged[0] + 1)):
            self.judged[0] += 1
            judge_lines(self, self.judged[0])

    def explain(self, arm: int) -> dict[str, float]:
        """Return the average reward to the horizon and its radius, as last judged."""
        return {
            "average_to_horizon": self.value[arm],
            "radius": self.radius[arm],
        }


def judge_lines(policy: REdAE, half: int) -> None:
    """Estimate all arms in the race from ``2M`` rewards each, and drop the losers."""
    if isnan(policy.sigma) and policy.residual[1] == 0.0:
        return
    sigma = noise_scale(policy.sigma, policy.residual)
    alive = policy.alive
    pulls_left = policy.pulls_left
    P = policy.P
    M = float(half)
    for i in range(len(policy.pulls)):
        if in_race(alive, pulls_left, i):
            T = policy.horizon[i]
            ahead = max(0.0, T - 2.0 * M)
            slope = (P[i, 2 * half] - 2.0 * P[i, half]) / (M * M)
            spread = 1.0 / M + ahead * ahead / (M * M * M)
            log_term = log(2.0 * len(policy.pulls) * T / policy.delta)
            policy.value[i] = P[i, 2 * half] / (2.0 * M) + 0.5 * slope * ahead
            policy.radius[i] = sigma * sqrt(log_term * spread)
    drop_behind(pulls_left, alive, policy.value, policy.radius)
