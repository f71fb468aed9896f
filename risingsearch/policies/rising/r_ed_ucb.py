"""R-ed-UCB and R-UCBE: rising arms, projected to the current round or the horizon."""

from __future__ import annotations

from math import ceil, inf, log, sqrt
from typing import NamedTuple

import numpy as np

from risingsearch.checks import LARGEST_INT, checked_float
from risingsearch.policies.arrays import Bools, Floats, Ints, Rng, zeros
from risingsearch.policies.base import WAIT, arm_arrays, coming_round, leader
from risingsearch.policies.shared.rewards import (
    SLOPE_PULLS,
    add_residual,
    append_reward,
    append_weighted,
    checked_eps,
    checked_sigma,
    noise_scale,
    prefix_sums,
    refresh_slope,
    window_sum,
)


class REdUCB(NamedTuple):
    r"""R-ed-UCB and R-UCBE: the reward of an arm, now or at the end, if always pulled.

    Good for rising curves when the number of rounds is not known. CURE-UCB improves on
    it: this one extrapolates to the current round instead of the horizon, and so finds
    late bloomers later.

    With ``a``, ``b`` and ``h`` as in CURE-UCB and ``c``, ``d`` the same sums weighted
    by the number of the pull, the index is

    .. math:: \frac{1}{h}\Big(a + t\,\frac{a - b}{h} - \frac{c - d}{h}\Big)
              + \sigma\,(t - N + h - 1)\sqrt{\frac{10 \ln(1/\delta_t)}{h^3}}

    (Metelli et al. 2022, eq. 7-8). Every arm is pulled twice first, round-robin;
    ``h`` is at least 1. The noiseless form (eq. 11 of the CURE-UCB paper) is the
    same with ``sigma = 0`` and ``h = 1``, as of an ``eps`` of 1e-9. The estimator is
    the paper's, not the one of the public code of the same authors, which weighs and
    refreshes differently.

    R-UCBE is good for finding one arm that is best at the end of a fixed budget. It has
    the horizon ``T`` for ``t``, and a constant ``A`` for :math:`10 \ln(1/\delta_t)`.
    Every arm is pulled first until its window :math:`\lfloor \epsilon N \rfloor` holds
    a reward, round-robin. At the end the paper recommends the arm of the highest first
    term, which ``explain`` gives as ``final_reward``. The best ``A`` depends on gaps
    between the arms that are unknown: the authors' experiments take it from an oracle,
    between 0.04 and 873. The default is R-ed-UCB's level at its default, 10 ln 1000.

    References
    ----------
    Metelli, Trovo, Pirola, Restelli: "Stochastic Rising Bandits", ICML 2022; R-UCBE:
    Mussi, Montenegro, Trovo, Restelli, Metelli: "Best Arm Identification for Stochastic
    Rising Bandits", arXiv 2302.07510, and the authors' code.

    Examples
    --------
    >>> from risingsearch.policies.base import explain, play_alone
    >>> policy = REdUCB.create(n_arms=2, horizon=20, sigma=0.0)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.1, 0.5, 0.2][t - 1], 4)
    [0, 1, 0, 1]
    >>> explain(policy, 1)
    {'recent_average': 0.20, 'expected_gain': 0.30, 'bonus': 0.0}
    >>> policy = REdUCB.create_r_ucbe(n_arms=2, horizon=20, eps=0.5, sigma=0.0)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.1, 0.5, 0.2, 0.3][t - 1], 5)
    [0, 1, 0, 1, 1]
    >>> explain(policy, 1)
    {'final_reward': 2.0, 'bonus': 0.0}
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    eps: float
    sigma: float  # NaN: estimated
    exploration: float  # A, or 10 ln(1 / delta)
    alpha: float  # 0: delta is constant
    to_horizon: bool  # whether projections end there, or now
    initial_pulls: int
    P: Floats  # (n_arms, max_pulls + 1), sums of the rewards
    Q: Floats  # (n_arms, max_pulls + 1), sums of n times the reward
    average: Floats  # (n_arms,), of the last h rewards
    slope: Floats  # (n_arms,), per pull
    lag: Floats  # (n_arms,), the part of the projection free of t
    window: Floats  # (n_arms,), h
    spread: Floats  # (n_arms,), h^(-3/2)
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
        delta: float = 0.001,
        alpha: float | None = None,
    ) -> REdUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, eps, sigma
            See ``risingsearch.policies.base``.
        delta : float, default 0.001
            Confidence level, above 0 and at most 1, as in the CURE-UCB paper.
        alpha : float, optional
            For ``delta_t = t ** -alpha``, above 0; in the paper above 2.
        """
        delta = checked_float("delta", delta, 0.0, 1.0, open_low=True)
        if alpha is None:
            alpha = 0.0
        else:
            alpha = checked_float("alpha", alpha, 0.0, open_low=True)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            eps=checked_eps(eps),
            sigma=checked_sigma(sigma),
            exploration=10.0 * log(1.0 / delta),
            alpha=alpha,
            to_horizon=False,
            initial_pulls=SLOPE_PULLS,
            P=prefix_sums(n_arms, horizon, max_pulls),
            Q=prefix_sums(n_arms, horizon, max_pulls),
            average=zeros(n_arms),
            slope=zeros(n_arms),
            lag=zeros(n_arms),
            window=np.ones(n_arms),
            spread=np.ones(n_arms),
            last_two=zeros((n_arms, 2)),
            residual=zeros(2),
        )

    @classmethod
    def create_r_ucbe(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        eps: float = 0.25,
        sigma: float | None = None,
        exploration: float = 69.0,
    ) -> REdUCB:
        """Return R-UCBE.

        Parameters
        ----------
        n_arms, horizon, max_pulls, eps, sigma
            See ``risingsearch.policies.base``.
        exploration : float, default 69.0
            Exploration level ``A``, at least 0.
        """
        policy = cls.create(n_arms, horizon, max_pulls, eps=eps, sigma=sigma)
        return policy._replace(
            exploration=checked_float("exploration", exploration, 0.0),
            to_horizon=True,
            initial_pulls=ceil(min(LARGEST_INT, 1.0 / policy.eps)),
        )

    @staticmethod
    def recommended_arms_r_ucbe(
        horizon: int, max_pulls: int, *, eps: float = 0.25
    ) -> int:
        """Return so many arms that their first pulls take half of the budget.

        Examples
        --------
        >>> REdUCB.recommended_arms_r_ucbe(270, 27)
        33
        """
        return max(2, horizon // (2 * ceil(min(LARGEST_INT, 1.0 / eps))))

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest index, after the first pulls of each."""
        noise = r_ed_noise(self, t)
        arm = WAIT
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                index = inf  # until there is a slope
                if self.pulls[i] >= self.initial_pulls:
                    recent, gain, bonus = r_ed_index(self, i, t, noise)
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
        """Append the reward to both prefix sums and refresh the arm's window."""
        n = append_reward(self.P, self.pulls, arm, reward)
        add_residual(self.residual, self.last_two[arm], n, reward)
        append_weighted(self.Q, arm, n, reward)
        if n >= SLOPE_PULLS:
            h, b = refresh_slope(self.P, self.average, self.slope, arm, n, self.eps)
            c = window_sum(self.Q, arm, n - h, n)
            d = window_sum(self.Q, arm, n - 2 * h, n - h) + h * b
            self.lag[arm] = (c - d) / (float(h) * h)
            self.window[arm] = h
            self.spread[arm] = 1.0 / (h * sqrt(h))

    def explain(self, arm: int) -> dict[str, float]:
        """Return recent average, gain and bonus; of R-UCBE the final reward instead."""
        t = coming_round(self.pulls)
        recent, gain, bonus = r_ed_index(self, arm, t, r_ed_noise(self, t))
        if self.to_horizon:
            return {
                "final_reward": recent + gain,
                "bonus": bonus,
            }
        return {
            "recent_average": recent,
            "expected_gain": gain,
            "bonus": bonus,
        }


def r_ed_noise(policy: REdUCB, t: int) -> float:
    """Return the common factor of all bonuses of a round: sigma and exploration."""
    level = policy.exploration
    if policy.alpha > 0.0:
        level = 10.0 * (policy.alpha * log(t))
    return noise_scale(policy.sigma, policy.residual) * sqrt(level)


def r_ed_index(
    policy: REdUCB,
    arm: int,
    t: int,
    noise: float,
) -> tuple[float, float, float]:
    """Return the terms of the index: recent average, expected gain and bonus."""
    end = float(t)
    if policy.to_horizon:
        end = policy.horizon[arm]
    ahead = end - policy.pulls[arm] + policy.window[arm] - 1.0
    return (
        policy.average[arm],
        end * policy.slope[arm] - policy.lag[arm],
        noise * ahead * policy.spread[arm],
    )
