"""R-ed-UCB and R-UCBE: rising arms, projected to the current round or the horizon.

The recent slope of an arm is taken from prefix sums ``P`` and ``Q``, so that ``update``
costs the same for any window.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from risingsearch.checks import checked_float
from risingsearch.policies.arrays import Bools, Floats, Ints
from risingsearch.policies.base import WAIT, arm_arrays, leader
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


class REdUCB(NamedTuple):
    r"""R-ed-UCB: what an arm would pay now, had it been pulled all the time.

    Good for rising curves when the number of rounds is not known. CURE-UCB improves on
    it: this one extrapolates to the current round instead of the horizon, and so finds
    late bloomers later.

    With ``a``, ``b`` and ``h`` as in CURE-UCB and ``c``, ``d`` the same sums weighted
    by the number of the pull, the index is

    .. math:: \frac{1}{h}\Big(a + t\,\frac{a - b}{h} - \frac{c - d}{h}\Big)
              + \sigma\,(t - N + h - 1)\sqrt{\frac{10 \ln(1/\delta_t)}{h^3}}

    (Metelli et al. 2022, eq. 7-8). Every arm is pulled twice first, round-robin;
    ``h`` is at least 1. The noiseless form (eq. 11 of the CURE-UCB paper) is the
    same with ``sigma = 0`` and ``h = 1``. The estimator is the paper's, not the one of
    the public code of the same authors, which weighs and refreshes differently.

    References
    ----------
    Metelli, Trovo, Pirola, Restelli: "Stochastic Rising Bandits", ICML 2022.

    Examples
    --------
    >>> from risingsearch.policies.base import explain, play_alone
    >>> policy = REdUCB.create(n_arms=2, horizon=20, sigma=0.0)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.1, 0.5, 0.2][t - 1], 4)
    [0, 1, 0, 1]
    >>> explain(policy, 1)
    {'recent_average': 0.20, 'expected_gain': 0.30, 'bonus': 0.0}
    """

    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    eps: float  # 0: h = 1
    sigma: float  # NaN: estimated
    delta: float
    alpha: float  # 0: delta is constant
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
        noiseless: bool = False,
    ) -> REdUCB:
        """Return a new policy; shared parameters: ``risingsearch.policies.base``.

        Parameters
        ----------
        delta : float, default 0.001
            Confidence level, above 0 and at most 1, as in the CURE-UCB paper.
        alpha : float, optional
            Use ``delta_t = t ** -alpha`` as in the original paper; above 0, there
            above 2.
        noiseless : bool, default False
            Use the form for noise-free rewards: ``sigma = 0`` and ``h = 1``.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            eps=0.0 if noiseless else checked_eps(eps),
            sigma=0.0 if noiseless else checked_sigma(sigma),
            delta=checked_float("delta", delta, 0.0, 1.0, open_low=True),
            alpha=0.0
            if alpha is None
            else checked_float("alpha", alpha, 0.0, open_low=True),
            **window_arrays(n_arms, horizon, max_pulls),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the arm of highest index, after two pulls of each."""
        noise = r_ed_noise(self, t)
        arm, best = WAIT, -math.inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                index = math.inf  # until there is a slope
                if self.pulls[i] >= SLOPE_PULLS:
                    recent, gain, bonus = r_ed_index(self, i, float(t), noise)
                    index = recent + gain + bonus
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Append the reward to the arm's prefix sums and refresh its window."""
        r_ed_update(self, arm, reward)

    def explain(self, arm: int) -> dict[str, float]:
        """Return recent average, expected gain and bonus at the coming round."""
        t = int(self.pulls.sum()) + 1
        recent, gain, bonus = r_ed_index(self, arm, float(t), r_ed_noise(self, t))
        return {"recent_average": recent, "expected_gain": gain, "bonus": bonus}


def window_arrays(n_arms: int, horizon: int, max_pulls: int | None) -> dict[str, Any]:
    """Return the arrays from ``P`` on, before the first reward."""
    return {
        "P": prefix_sums(n_arms, horizon, max_pulls),
        "Q": prefix_sums(n_arms, horizon, max_pulls),
        "average": np.zeros(n_arms),
        "slope": np.zeros(n_arms),
        "lag": np.zeros(n_arms),
        "window": np.ones(n_arms),
        "spread": np.ones(n_arms),
        "last_two": np.zeros((n_arms, 2)),
        "residual": np.zeros(2),
    }


def r_ed_noise(policy: REdUCB, t: int) -> float:
    """Return ``sigma sqrt(10 ln(1 / delta_t))``, common to all bonuses of a round."""
    if policy.alpha > 0.0:
        confidence = policy.alpha * math.log(t)
    else:
        confidence = math.log(1.0 / policy.delta)
    return noise_scale(policy.sigma, policy.residual) * math.sqrt(10.0 * confidence)


def r_ed_update(policy: REdUCB | RUCBE, arm: int, reward: float) -> None:
    """Append the reward to both prefix sums and refresh the arm's window."""
    n = append_reward(policy.P, policy.pulls, arm, reward)
    add_residual(policy.residual, policy.last_two[arm], n, reward)
    Q = policy.Q
    Q[arm, n] = Q[arm, n - 1] + n * reward
    if n >= SLOPE_PULLS:
        h, b = refresh_slope(policy.P, policy.average, policy.slope, arm, n, policy.eps)
        c = Q[arm, n] - Q[arm, n - h]
        d = Q[arm, n - h] - Q[arm, n - 2 * h] + h * b
        policy.lag[arm] = (c - d) / (float(h) * h)
        policy.window[arm] = h
        policy.spread[arm] = 1.0 / (h * math.sqrt(h))


def r_ed_index(
    policy: REdUCB | RUCBE, arm: int, t: float, noise: float
) -> tuple[float, float, float]:
    """Return the terms of the index at round ``t``: recent average, gain and bonus."""
    ahead = t - policy.pulls[arm] + policy.window[arm] - 1.0
    return (
        policy.average[arm],
        t * policy.slope[arm] - policy.lag[arm],
        noise * ahead * policy.spread[arm],
    )


class RUCBE(NamedTuple):
    r"""R-UCBE: which arm will be the best at the horizon, as R-ed-UCB projects it.

    Good for finding one arm that is best at the end of a fixed budget; what is paid on
    the way does not count. It is R-ed-UCB with the round ``t`` set to the horizon ``T``
    and a constant level of exploration ``A``:

    .. math:: \frac{1}{h}\Big(a + T\,\frac{a - b}{h} - \frac{c - d}{h}\Big)
              + \sigma\,(T - N + h - 1)\sqrt{\frac{A}{h^3}}

    Every arm is pulled first until its window :math:`\lfloor \epsilon N \rfloor` holds
    a reward, round-robin. At the end the paper recommends the arm of the highest first
    term, which ``explain`` gives as ``final_reward``. The best ``A`` depends on gaps
    between the arms that are unknown: the authors' experiments take it from an oracle,
    between 0.04 and 873. The default is R-ed-UCB's level at its default, 10 ln 1000.

    References
    ----------
    Mussi, Montenegro, Trovo, Restelli, Metelli: "Best Arm Identification for Stochastic
    Rising Bandits", arXiv 2302.07510, and the authors' code.

    Examples
    --------
    >>> from risingsearch.policies.base import explain, play_alone
    >>> policy = RUCBE.create(n_arms=2, horizon=20, eps=0.5, sigma=0.0)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.1, 0.5, 0.2, 0.3][t - 1], 5)
    [0, 1, 0, 1, 1]
    >>> explain(policy, 1)
    {'final_reward': 2.0, 'bonus': 0.0}
    """

    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    eps: float
    sigma: float  # NaN: estimated
    exploration: float  # A
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
        exploration: float = 69.0,
    ) -> RUCBE:
        """Return a new policy; shared parameters: ``risingsearch.policies.base``.

        Parameters
        ----------
        exploration : float, default 69.0
            Exploration level ``A``, at least 0.
        """
        eps = checked_eps(eps)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            eps=eps,
            sigma=checked_sigma(sigma),
            exploration=checked_float("exploration", exploration, 0.0, open_low=False),
            initial_pulls=math.ceil(1.0 / eps),
            **window_arrays(n_arms, horizon, max_pulls),
        )

    @staticmethod
    def recommended_arms(horizon: int, max_pulls: int, *, eps: float = 0.25) -> int:
        """Return so many arms that their first pulls take half of the budget."""
        return max(2, horizon // (2 * math.ceil(1.0 / eps)))

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the arm of highest index, after the first pulls of each."""
        noise = r_ucbe_noise(self)
        arm, best = WAIT, -math.inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                index = math.inf  # until its window holds a reward
                if self.pulls[i] >= self.initial_pulls:
                    recent, gain, bonus = r_ed_index(self, i, self.horizon[i], noise)
                    index = recent + gain + bonus
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Append the reward to the arm's prefix sums and refresh its window."""
        r_ed_update(self, arm, reward)

    def explain(self, arm: int) -> dict[str, float]:
        """Return the reward expected at the horizon, and the bonus."""
        recent, gain, bonus = r_ed_index(
            self, arm, self.horizon[arm], r_ucbe_noise(self)
        )
        return {"final_reward": recent + gain, "bonus": bonus}


def r_ucbe_noise(policy: RUCBE) -> float:
    """Return ``sigma sqrt(A)``, what all bonuses have in common."""
    return noise_scale(policy.sigma, policy.residual) * math.sqrt(policy.exploration)
