"""Thompson sampling: draw a mean for each arm, and pull the highest."""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

from risingsearch.checks import checked_float, checked_reward_range
from risingsearch.policies.arrays import Bools, Floats, Ints, RewardRange, Rng, zeros
from risingsearch.policies.base import WAIT, arm_arrays, leader, least_pulled
from risingsearch.policies.shared.rewards import coin_flip, record_mean, unit_reward


class ThompsonBeta(NamedTuple):
    r"""Thompson sampling with Beta posteriors, for rewards in [0, 1].

    With :math:`S` successes and :math:`F` failures of the arm it draws
    :math:`\theta \sim \mathrm{Beta}(S + 1, F + 1)`, the posterior of a uniform prior,
    and pulls the arm of the highest draw. A reward between 0 and 1 becomes a success
    with that probability (Algorithm 2), or with ``fractional=True`` that part of a
    success, which adds no noise of coins, and has no proof. So does the public script
    of the RAVEN-UCB paper, which knows the true means, as no policy can.

    References
    ----------
    Thompson, Biometrika 25, 1933; Agrawal, Goyal: "Analysis of Thompson Sampling for
    the Multi-armed Bandit Problem", COLT 2012, Algorithm 2.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> from risingsearch.policies import explain
    >>> policy = ThompsonBeta.create(n_arms=2, horizon=20)
    >>> _ = play_alone(policy, lambda arm, n, t: [0.0, 1.0][arm], 20)
    >>> policy.pulls
    array([ 1, 19])
    >>> explain(policy, 1)
    {'posterior_mean': 0.95, 'posterior_deviation': 0.045}
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    reward_range: RewardRange
    fractional: bool
    successes: Floats  # (n_arms,), S
    failures: Floats  # (n_arms,), F

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        reward_range: RewardRange = (0.0, 1.0),
        fractional: bool = False,
    ) -> ThompsonBeta:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        fractional : bool, default False
            Count parts of successes instead of flipping coins.
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            reward_range=checked_reward_range(reward_range),
            fractional=bool(fractional),
            successes=zeros(n_arms),
            failures=zeros(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of the highest draw."""
        arm = WAIT
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                theta = rng.beta(self.successes[i] + 1.0, self.failures[i] + 1.0)
                arm, best = leader(arm, best, i, theta, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Count a success, a failure, or parts of both."""
        self.pulls[arm] += 1
        success = unit_reward(reward, self.reward_range)
        if not self.fractional:
            success = coin_flip(success, rng)
        self.successes[arm] += success
        self.failures[arm] += 1.0 - success

    def explain(self, arm: int) -> dict[str, float]:
        """Return mean and deviation of the posterior, in units of [0, 1]."""
        a = self.successes[arm] + 1.0
        b = self.failures[arm] + 1.0
        mean = a / (a + b)
        return {
            "posterior_mean": mean,
            "posterior_deviation": sqrt(mean * (1.0 - mean) / (a + b + 1.0)),
        }


class ThompsonGaussian(NamedTuple):
    r"""Thompson sampling with Gaussian posteriors, for noise of known size.

    With :math:`m` the mean of the arm's :math:`N` rewards it draws

    .. math:: \theta \sim \mathcal{N}(m, \sigma^2 / N),

    the posterior of the mean under a flat prior, and pulls the arm of the highest
    draw. A flat prior needs a reward to become a distribution: every arm is pulled once
    first.

    References
    ----------
    Agrawal, Goyal: "Further Optimal Regret Bounds for Thompson Sampling", AISTATS 2013,
    with a prior worth one more pull; Russo et al.: "A Tutorial on Thompson Sampling",
    Foundations and Trends in Machine Learning 11, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from risingsearch.policies import explain
    >>> policy = ThompsonGaussian.create(n_arms=2, horizon=100, sigma=0.2)
    >>> rng = np.random.default_rng(0)
    >>> for t, reward in enumerate([0.5, 0.6, 0.4, 0.5], start=1):
    ...     policy.update(t, 1, reward, rng)
    >>> explain(policy, 1)
    {'posterior_mean': 0.5, 'posterior_deviation': 0.1}
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    sigma: float
    mean: Floats  # (n_arms,)
    deviation: Floats  # (n_arms,), sigma / sqrt(N)

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        sigma: float = 0.5,
    ) -> ThompsonGaussian:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        sigma : float, default 0.5
            Deviation of the noise, at least 0 (greedy); 0.5 covers rewards in [0, 1].
        """
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            sigma=checked_float("sigma", sigma, 0.0),
            mean=zeros(n_arms),
            deviation=zeros(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of the highest draw, after one pull of each."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                theta = self.mean[i] + self.deviation[i] * rng.standard_normal()
                arm, best = leader(arm, best, i, theta, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the arm's posterior."""
        n = record_mean(self.pulls, self.mean, arm, reward)
        self.deviation[arm] = self.sigma / sqrt(n)

    def explain(self, arm: int) -> dict[str, float]:
        """Return mean and deviation of the posterior."""
        if self.pulls[arm] == 0:
            return {
                "posterior_mean": 0.0,
                "posterior_deviation": inf,
            }
        return {
            "posterior_mean": self.mean[arm],
            "posterior_deviation": self.deviation[arm],
        }
