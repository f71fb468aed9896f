"""CURE-UCB: rising arms, projected to a known horizon."""

from __future__ import annotations

from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np

from risingsearch.policies.arrays import Bools, Floats, Ints, Rng, zeros
from risingsearch.policies.base import WAIT, arm_arrays, coming_round, leader
from risingsearch.policies.shared.rewards import (
    SLOPE_PULLS,
    add_residual,
    append_reward,
    checked_eps,
    checked_sigma,
    noise_scale,
    prefix_sums,
    refresh_slope,
)


class CureUCB(NamedTuple):
    r"""CURE-UCB: how much an arm will give over the rounds that are left.

    Good for collecting reward from curves that rise, when the number of rounds is
    known. Its projection is a straight line to the horizon; real
    learning curves bend, so a tuner that wants one good model at the end is better
    served by ``looks-then-slope``.

    With :math:`N` pulls of the arm, :math:`h = \max(1, \lfloor \epsilon N \rfloor)`,
    :math:`a` and :math:`b` the sums of its last ``h`` rewards and of the ``h`` before,
    and :math:`R = T - t` rounds left after this one, the index is

    .. math:: \frac{a}{h} + \frac{R}{2}\,\frac{a - b}{h^2}
              + \sigma \sqrt{6 \ln t \,\frac{3 R^2 + 8 h^2}{4 h^3}}

    (eq. 6 and Algorithm 1 of the paper). Every arm is pulled twice first, round-robin.
    The paper leaves ``h`` at 0 for few pulls; at least 1 is our reading. It takes
    ``sigma`` as known and gives no value; the estimate is ours too. The noiseless
    form (eq. 12, Algorithm 3) is the same with ``sigma = 0`` and ``h = 1``, as of an
    ``eps`` of 1e-9; here it too starts with two pulls, where the paper uses one and the
    known value of the curve at 0.

    References
    ----------
    Song, Gan, Yoon, Wang, Chen, Ok: "Rising Multi-Armed Bandits with Known Horizons",
    arXiv 2602.10727.

    Examples
    --------
    A late bloomer against a plateau, 20 rounds: after two pulls each, its slope wins.

    >>> from risingsearch.policies.base import play_alone
    >>> policy = CureUCB.create(n_arms=2, horizon=20, sigma=0.0)
    >>> play_alone(policy, lambda arm, n, t: [0.4, 0.1 * n][arm], 5)
    [0, 1, 0, 1, 1]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    eps: float
    sigma: float  # NaN: estimated
    P: Floats  # (n_arms, max_pulls + 1), P[i, n]: sum of n rewards
    average: Floats  # (n_arms,), of the last h rewards
    slope: Floats  # (n_arms,), per pull
    average_spread: Floats  # (n_arms,), 2 / h
    slope_spread: Floats  # (n_arms,), 3 / (4 h^3)
    last_two: Floats  # (n_arms, 2)
    residual: Floats  # (2,), sum of squared second differences, count

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eps: float = 0.25,
        sigma: float | None = None,
    ) -> CureUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        eps : float, default 0.25
            Share of an arm's pulls in its window, above 0 and at most 1/2.
        sigma : float, optional
            Standard deviation of the noise, at least 0; by default it is estimated.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            eps=checked_eps(eps),
            sigma=checked_sigma(sigma),
            P=prefix_sums(n_arms, horizon, max_pulls),
            average=zeros(n_arms),
            slope=zeros(n_arms),
            average_spread=np.full(n_arms, 2.0),
            slope_spread=np.full(n_arms, 0.75),
            last_two=zeros((n_arms, 2)),
            residual=zeros(2),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest index, after two pulls of each."""
        noise = cure_noise(self, t)
        arm = WAIT
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                index = inf  # until there is a slope
                if self.pulls[i] >= SLOPE_PULLS:
                    recent, gain, bonus = cure_index(self, i, t, noise)
                    index = recent + gain + bonus
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Append the reward to the arm's prefix sums and refresh its window."""
        n = append_reward(self.P, self.pulls, arm, reward)
        add_residual(self.residual, self.last_two[arm], n, reward)
        if n >= SLOPE_PULLS:
            h, _ = refresh_slope(self.P, self.average, self.slope, arm, n, self.eps)
            self.average_spread[arm] = 2.0 / h
            self.slope_spread[arm] = 0.75 / (float(h) * h * h)

    def explain(self, arm: int) -> dict[str, float]:
        """Return recent average, expected gain and bonus at the coming round."""
        t = coming_round(self.pulls)
        recent, gain, bonus = cure_index(self, arm, t, cure_noise(self, t))
        return {
            "recent_average": recent,
            "expected_gain": gain,
            "bonus": bonus,
        }


def cure_noise(policy: CureUCB, t: int) -> float:
    """Return ``sigma sqrt(6 ln t)``, the common factor of the bonuses of a round."""
    sigma = noise_scale(policy.sigma, policy.residual)
    return sigma * sqrt(6.0 * log(t))


def cure_index(
    policy: CureUCB,
    arm: int,
    t: int,
    noise: float,
) -> tuple[float, float, float]:
    """Return the three terms of eq. 6: recent average, expected gain and bonus."""
    left = max(0.0, policy.horizon[arm] - t)
    spread = policy.slope_spread[arm] * left * left + policy.average_spread[arm]
    return (
        policy.average[arm],
        0.5 * left * policy.slope[arm],
        noise * sqrt(spread),
    )
