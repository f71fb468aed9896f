"""Closest to origin (CTO): which of some known curves an arm follows."""

from __future__ import annotations

import itertools
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from risingsearch.checks import checked_float, checked_int
from risingsearch.policies.arrays import (
    Bools,
    Floats,
    Ints,
    Rng,
    int_zeros,
    zeros,
)
from risingsearch.policies.base import (
    WAIT,
    arm_arrays,
    coming_round,
    leader,
    least_pulled,
    pull_limit,
)
from risingsearch.policies.rotting.curve_models import model_arrays
from risingsearch.policies.shared.rewards import append_reward, prefix_sums


class DCTOUCB(NamedTuple):
    r"""D-CTO-UCB, D-CTO-SIM-UCB and CTO-SIM: which of some known curves an arm follows.

    For curves that are one of a few known models :math:`m(\cdot; \theta)` each
    (``models``), plus an unknown constant. Every arm is pulled
    :math:`m` times, round-robin. Then its model is fixed, by the difference between the
    two halves of its rewards, where the constant cancels out:

    .. math:: \hat\theta = \arg\min_\theta \big| Z - Z_\theta \big|, \qquad
              Z = 2 P_{\lfloor N/2 \rfloor} - P_N

    with :math:`P_n` the sum of the first :math:`n` rewards, and :math:`Z_\theta` the
    same of the model's sums :math:`M_n`. From then on the index is

    .. math:: \frac{P_N - M_N}{N} + m(N + 1; \hat\theta)
              + \sigma \sqrt{\frac{8 \ln t}{N}}

    (Algorithm 3). :math:`m` is the smallest even number from which on the models can be
    told apart with probability :math:`1 - \delta`: :math:`n \sigma^2 / D_n^2 \le 1 /
    (8 \ln(2 K / \delta))` for all pairs, whose :math:`Z` differ by :math:`D`.

    That bound is severe. On the paper's benchmark it exceeds two million pulls an arm;
    where ``m`` arms' worth of pulls exceed the horizon, this is round-robin to the end.
    Set ``explore_pulls``, or use D-CTO-SIM-UCB, as the paper's experiments do (there
    also D-CTO-UCB-SIM): it fits the model of an arm anew after every pull. The paper
    does not say how it begins: here every arm is pulled once. The first model wins
    ties.

    CTO-SIM (Algorithm 2) is for curves with nothing added: after one pull of each, the
    arm of the highest :math:`m(N + 1; \hat\theta)`, with :math:`Z = P_N`. Of equal arms
    it pulls the one with fewer pulls, as in the paper, then the lower index, where the
    paper draws lots.

    References
    ----------
    Levine, Crammer, Mannor: "Rotting Bandits", NIPS 2017.

    Examples
    --------
    Arm 1 falls, arm 0 does not: two pulls of each tell.

    >>> from risingsearch.policies.base import coming_round, play_alone
    >>> models = [[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, -0.5, -1.0, -1.5, -2.0]]
    >>> policy = DCTOUCB.create(2, 9, 5, models=models, sigma=0.01)
    >>> policy.explore_pulls
    2
    >>> reward = lambda arm, n, t: [0.3, 0.9][arm] + models[arm][n - 1]
    >>> play_alone(policy, reward, 7)
    [0, 1, 0, 1, 0, 0, 0]
    >>> policy = DCTOUCB.create_sim(2, 9, 5, models=models, sigma=0.01)
    >>> play_alone(policy, reward, 7)
    [0, 1, 1, 0, 0, 0, 0]

    Without constants arm 1 follows the first model, arm 0 the second: one reward of
    each shows it.

    >>> models = [[0.9, 0.8, 0.7, 0.6], [0.7, 0.5, 0.3, 0.1]]
    >>> policy = DCTOUCB.create_cto_sim(2, 6, 4, models=models)
    >>> play_alone(policy, lambda arm, n, t: models[1 - arm][n - 1], 6)
    [0, 1, 1, 1, 1, 0]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    models: Floats  # (max_pulls, n_models), the mean of every pull
    model_sums: Floats  # (max_pulls + 1, n_models), their prefix sums
    explore_pulls: int  # m
    refit: bool  # after every pull
    shifted: bool  # a constant is added to the curves
    sigma: float
    P: Floats  # (n_arms, max_pulls + 1), P[i, n]: sum of n rewards
    model: Ints  # (n_arms,), the one that fits
    offset: Floats  # (n_arms,), mean distance from the model
    forecast: Floats  # (n_arms,), what the model says of the next pull

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        models: ArrayLike | None = None,
        sigma: float = 0.5,
        delta: float = 0.1,
        explore_pulls: int | None = None,
    ) -> DCTOUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        models : array-like of float, (n_models, n_pulls), optional
            The mean of every pull, up to a constant; by default the paper's.
        sigma : float, default 0.5
            Standard deviation of the noise, at least 0; 0.5 covers rewards in [0, 1].
        delta : float, default 0.1
            Probability that some arm's model is found wrongly, above 0 and at most 1.
        explore_pulls : int, optional
            ``m``, at least 2; by default computed from ``delta``.
        """
        limit = pull_limit(horizon, max_pulls)
        table, model_sums = model_arrays(models, limit)
        sigma = checked_float("sigma", sigma, 0.0)
        delta = checked_float("delta", delta, 0.0, 1.0, open_low=True)
        if explore_pulls is None:
            explore_pulls = detection_pulls(model_sums, sigma, n_arms, delta)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            table,
            model_sums,
            explore_pulls=checked_int("explore_pulls", explore_pulls, 2),
            refit=False,
            shifted=True,
            sigma=sigma,
            P=prefix_sums(n_arms, horizon, max_pulls),
            model=int_zeros(n_arms),
            offset=zeros(n_arms),
            forecast=zeros(n_arms),
        )

    @classmethod
    def create_sim(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        models: ArrayLike | None = None,
        sigma: float = 0.5,
    ) -> DCTOUCB:
        """Return D-CTO-SIM-UCB.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        models, sigma
            As in ``create``.
        """
        policy = cls.create(
            n_arms,
            horizon,
            max_pulls,
            models=models,
            sigma=sigma,
            explore_pulls=2,
        )
        return policy._replace(explore_pulls=1, refit=True)

    @classmethod
    def create_cto_sim(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        models: ArrayLike | None = None,
    ) -> DCTOUCB:
        """Return CTO-SIM.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        models
            As in ``create``.
        """
        policy = cls.create_sim(n_arms, horizon, max_pulls, models=models, sigma=0.0)
        return policy._replace(shifted=False)

    def select(self, t: int, rng: Rng) -> int:
        """Return an arm to explore while there is one, then the highest index."""
        arm = least_pulled(self.available, self.pulls, self.explore_pulls)
        if arm != WAIT:
            return arm
        width = 0.0
        if self.shifted:
            width = self.sigma * sqrt(8.0 * log(t))
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                index = self.forecast[i]
                if self.shifted:
                    bonus = width / sqrt(self.pulls[i])
                    index = self.offset[i] + index + bonus
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Add the reward to the arm's sums, and find its model after ``m`` pulls."""
        n = append_reward(self.P, self.pulls, arm, reward)
        if self.refit or n == self.explore_pulls:
            find_model(self, arm, n)
        if n >= self.explore_pulls:
            apply_model(self, arm, n)

    def explain(self, arm: int) -> dict[str, float]:
        """Return offset, forecast and bonus; the first two are 0 while exploring."""
        if not self.shifted:
            return {"forecast": self.forecast[arm]}
        t = coming_round(self.pulls)
        n = int(self.pulls[arm])
        return {
            "offset": self.offset[arm],
            "forecast": self.forecast[arm],
            "bonus": self.sigma * sqrt(8.0 * log(t) / n) if n else inf,
        }


def find_model(policy: DCTOUCB, arm: int, n: int) -> None:
    """Fit the arm's model to its sum, or its halves' difference; the first of a tie."""
    half = n // 2
    Z = policy.P[arm, n]
    if policy.shifted:
        Z = 2.0 * policy.P[arm, half] - Z
    first_half = policy.model_sums[half]
    model_sums = policy.model_sums[n]
    smallest = inf
    for k in range(len(model_sums)):
        expected = model_sums[k]
        if policy.shifted:
            expected = 2.0 * first_half[k] - expected
        distance = abs(Z - expected)
        if distance < smallest:
            smallest = distance
            policy.model[arm] = k


def apply_model(policy: DCTOUCB, arm: int, n: int) -> None:
    """Refresh the arm's distance from its model, and the model's next reward."""
    model = policy.model[arm]
    if policy.shifted:
        policy.offset[arm] = (policy.P[arm, n] - policy.model_sums[n, model]) / n
    if n < len(policy.models):
        policy.forecast[arm] = policy.models[n, model]


def detection_pulls(
    model_sums: Floats,
    sigma: float,
    n_arms: int,
    delta: float,
) -> int:
    """Return the pulls ``m`` that tell an arm's model; past the table if none do.

    Parameters
    ----------
    model_sums : ndarray of shape (max_pulls + 1, n_models)
        Sums of the first means of each model.
    sigma : float
        Standard deviation of the noise.
    n_arms : int
        Number of arms.
    delta : float
        Probability that some arm's model is found wrongly.

    Returns
    -------
    int
        An even number.

    Examples
    --------
    >>> falling = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, -0.5], [0.0, -1.5]])
    >>> detection_pulls(falling, sigma=0.01, n_arms=2, delta=0.1)
    2
    """
    n = np.arange(len(model_sums))
    Z = 2.0 * model_sums[n // 2] - model_sums
    limit = 8.0 * log(2.0 * n_arms / delta) * sigma * sigma * n
    rounding = 1e-9 * n  # sums of models that do not differ differ by less
    m = 2
    for a, b in itertools.combinations(range(Z.shape[1]), 2):
        D = Z[:, a] - Z[:, b]
        too_close = np.maximum(limit, rounding * rounding) >= D * D
        m = max(m, int(np.flatnonzero(too_close)[-1]) + 1)
    return m + m % 2
