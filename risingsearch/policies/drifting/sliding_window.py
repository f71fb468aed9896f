"""Policies that forget: only the last rewards count, whichever arms they came from.

All four keep one ring of the last ``window`` rewards recorded, and per arm the count
and the sum of those in the ring, so that ``update`` costs the same for any window.
"""

from __future__ import annotations

from math import ceil, inf, log, sqrt
from typing import NamedTuple, Self

from risingsearch.checks import checked_float, checked_int, checked_reward_range
from risingsearch.policies.arrays import (
    Bools,
    Floats,
    Ints,
    RewardRange,
    Rng,
    int_zeros,
    zeros,
)
from risingsearch.policies.base import WAIT, arm_arrays, leader, least_pulled
from risingsearch.policies.shared.kl import kl_exploration, kl_upper, surely_below
from risingsearch.policies.shared.rewards import coin_flip, range_width, unit_reward


class Windowed(NamedTuple):
    """Shared state of the four; a subclass selects and explains."""

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    window_arms: Ints  # (window,)
    window_rewards: Floats  # (window,); of SW-TS 1 for a success
    taken: Ints  # (1,), rewards so far
    window_pulls: Ints  # (n_arms,), those in the window
    window_total: Floats  # (n_arms,), their sum
    reward_range: RewardRange
    weight: float  # xi, c or precision
    forced_pulls: int

    @classmethod
    def empty(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None,
        window: int,
        reward_range: RewardRange = (0.0, 1.0),
        weight: float = 0.0,
        forced_pulls: int = 0,
    ) -> Self:
        """Return a policy with an empty window."""
        window = checked_int("window", window, 1)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            window_arms=int_zeros(window),
            window_rewards=zeros(window),
            taken=int_zeros(1),
            window_pulls=int_zeros(n_arms),
            window_total=zeros(n_arms),
            reward_range=checked_reward_range(reward_range),
            weight=weight,
            forced_pulls=forced_pulls,
        )

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the window on by this reward."""
        slide(self, arm, reward)


def slide(policy: Windowed, arm: int, reward: float) -> None:
    """Record a reward in the window, and remove the one that is now too old."""
    arms = policy.window_arms
    rewards = policy.window_rewards
    n = policy.window_pulls
    total = policy.window_total
    length = len(arms)
    slot = policy.taken[0] % length
    if policy.taken[0] >= length:
        oldest = arms[slot]
        n[oldest] -= 1
        total[oldest] -= rewards[slot]
    arms[slot] = arm
    rewards[slot] = reward
    n[arm] += 1
    total[arm] += reward
    policy.taken[0] += 1
    policy.pulls[arm] += 1
    # The sums are added up anew, or rounding errors would outlive the window.
    if slot == length - 1:
        for i in range(len(total)):
            total[i] = 0.0
        for k in range(length):
            total[arms[k]] += rewards[k]


def rounds_seen(policy: Windowed, t: int) -> int:
    """Return ``min(t - 1, window)``, the rounds before ``t`` that count; at least 1."""
    return max(1, min(t - 1, len(policy.window_arms)))


class SWUCB(Windowed):  # numpydoc ignore=PR01
    r"""SW-UCB: the usual confidence bound, from the last ``window`` rewards alone.

    With :math:`n` pulls of the arm among the last :math:`\tau` = ``window`` rewards,
    :math:`S` their sum and :math:`B` the width of ``reward_range``, the index is

    .. math:: \frac{S}{n} + B \sqrt{\frac{\xi \ln \min(t - 1, \tau)}{n}}

    and infinite where :math:`n = 0`.

    The defaults are those of the CURE-UCB paper's experiments. The original uses
    ``xi = 0.6`` and twice the window; ``xi = 2``, the padding of UCB1, reproduces the
    comparisons of Levine et al., "Rotting Bandits" (Table 1).

    References
    ----------
    Garivier, Moulines: "On Upper-Confidence Bound Policies for Switching Bandit
    Problems", ALT 2011, arXiv 0805.3415.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = SWUCB.create(n_arms=2, horizon=100, window=8, xi=0.1)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.9 if t < 10 else 0.1][arm], 24)
    [0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    """

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        window: int | None = None,
        xi: float = 1.5,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> SWUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        window : int, optional
            Rewards that count, at least 1; by default ``max(n_arms, 2 sqrt(T ln T))``.
        xi : float, default 1.5
            Exploration factor of the bonus, at least 0.
        """
        if window is None:
            window = max(n_arms, int(2.0 * sqrt(horizon * log(horizon))))
        xi = checked_float("xi", xi, 0.0)
        return cls.empty(n_arms, horizon, max_pulls, window, reward_range, xi)

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest index; one outside the window comes first."""
        padding = self.weight * log(rounds_seen(self, t))
        width = range_width(self.reward_range)
        arm = WAIT
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                n = self.window_pulls[i]
                index = inf
                if n > 0:
                    bonus = width * sqrt(padding / n)
                    index = self.window_total[i] / n + bonus
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def explain(self, arm: int) -> dict[str, float]:
        """Return recent mean and bonus at the coming round."""
        n = self.window_pulls[arm]
        if n == 0:
            return {
                "recent_mean": 0.0,
                "bonus": inf,
            }
        padding = self.weight * log(rounds_seen(self, int(self.taken[0]) + 1))
        return {
            "recent_mean": self.window_total[arm] / n,
            "bonus": range_width(self.reward_range) * sqrt(padding / n),
        }


class SWKLUCB(Windowed):  # numpydoc ignore=PR01
    r"""SW-KL-UCB: SW-UCB with the tighter bound for rewards in [0, 1].

    With :math:`n` pulls of the arm among the last :math:`\tau` = ``window`` rewards,
    :math:`m` their mean and :math:`u = \min(t - 1, \tau)`, the index is

    .. math:: \max\{q \in [m, 1]: n\,\mathrm{kl}(m, q) \le \ln u + c \ln \ln u\}

    where kl is the divergence of two coins, and infinite where :math:`n = 0`. The term
    with ``c`` is left out for :math:`u < 3`.

    The window of 252 is :math:`\sigma^{-4/5}` of the CURE-UCB paper, which does not
    state ``c``, with :math:`\sigma = 0.001`: the drift of the means per round, not
    the noise.

    References
    ----------
    Garivier, Cappe: "The KL-UCB Algorithm for Bounded Stochastic Bandits and Beyond",
    COLT 2011; with a window: Combes, Proutiere: "Unimodal Bandits", ICML 2014.

    Examples
    --------
    >>> from risingsearch.policies.base import explain, play_alone
    >>> policy = SWKLUCB.create(n_arms=2, horizon=100)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.9, 0.9][t - 1], 3)
    [0, 1, 1]
    >>> explain(policy, 0), explain(policy, 1)
    ({'recent_mean': 0.50, 'bonus': 0.47}, {'recent_mean': 0.90, 'bonus': 0.099})
    """

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        window: int | None = None,
        c: float = 0.0,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> SWKLUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        window : int, optional
            Rewards that count, at least 1; by default ``max(n_arms, 252)``.
        c : float, default 0.0
            Weight of ``ln ln u``, at least 0; 3 in theory, 0 in practice.
        """
        if window is None:
            window = max(n_arms, 252)
        c = checked_float("c", c, 0.0)
        return cls.empty(n_arms, horizon, max_pulls, window, reward_range, c)

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest bound; one outside the window comes first."""
        exploration = kl_exploration(self.weight, rounds_seen(self, t))
        arm = WAIT
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                n = self.window_pulls[i]
                index = inf
                if n > 0:
                    mean = window_mean(self, i)
                    level = exploration / n
                    if surely_below(mean, level, best):
                        continue
                    index = kl_upper(mean, level)
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the window on by this reward."""
        slide(self, arm, unit_reward(reward, self.reward_range))

    def explain(self, arm: int) -> dict[str, float]:
        """Return recent mean and bonus at the coming round, in units of [0, 1]."""
        n = self.window_pulls[arm]
        if n == 0:
            return {
                "recent_mean": 0.0,
                "bonus": inf,
            }
        mean = window_mean(self, arm)
        t = int(self.taken[0]) + 1
        level = kl_exploration(self.weight, rounds_seen(self, t)) / n
        return {
            "recent_mean": mean,
            "bonus": kl_upper(mean, level) - mean,
        }


def window_mean(policy: SWKLUCB, arm: int) -> float:
    """Return the arm's mean in the window; between 0 and 1 in spite of rounding."""
    mean: float = policy.window_total[arm] / policy.window_pulls[arm]
    return min(1.0, max(0.0, mean))


class SWTS(Windowed):  # numpydoc ignore=PR01
    r"""SW-TS: Thompson sampling that remembers only the last ``window`` rewards.

    With :math:`n` pulls of the arm among the last :math:`\tau` = ``window`` rewards,
    :math:`S` of them successes, it draws

    .. math:: \theta \sim \mathrm{Beta}(S + 1, n - S + 1)

    for every arm and pulls the arm of the highest draw. An arm that has left the window
    is back at the uniform prior. A reward between 0 and 1 is a success with that
    probability.

    References
    ----------
    Trovo, Paladino, Restelli, Gatti: "Sliding-Window Thompson Sampling for
    Non-Stationary Settings", JAIR 68, 2020; the window for ``beta = 1/2``.

    Examples
    --------
    >>> import numpy as np
    >>> from risingsearch.policies import explain
    >>> policy = SWTS.create(n_arms=2, horizon=9)
    >>> rng = np.random.default_rng(0)
    >>> for t, reward in enumerate([1.0, 1.0, 0.0, 1.0], start=1):
    ...     policy.update(t, 0, reward, rng)
    >>> explain(policy, 0), explain(policy, 1)
    ({'posterior_mean': 0.60}, {'posterior_mean': 0.50})
    """

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        window: int | None = None,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> SWTS:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        window : int, optional
            Rewards that count, ``tau``, at least 1; by default ``sqrt(T)``, rounded up.
        """
        if window is None:
            window = ceil(sqrt(horizon))
        return cls.empty(n_arms, horizon, max_pulls, window, reward_range)

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of the highest draw."""
        arm = WAIT
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                successes = self.window_total[i]
                failures = self.window_pulls[i] - successes
                theta = rng.beta(successes + 1.0, failures + 1.0)
                arm, best = leader(arm, best, i, theta, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Move the window on by a success or a failure."""
        slide(self, arm, coin_flip(unit_reward(reward, self.reward_range), rng))

    def explain(self, arm: int) -> dict[str, float]:
        """Return the mean of the arm's posterior, in units of [0, 1]."""
        mean = (self.window_total[arm] + 1.0) / (self.window_pulls[arm] + 2.0)
        return {"posterior_mean": mean}


class ETSWGTS(Windowed):  # numpydoc ignore=PR01
    r"""ET-SWGTS: a round-robin phase, then Gaussian Thompson sampling with a window.

    Every arm is pulled :math:`\Gamma` = ``forced_pulls`` times, round-robin. Then, with
    :math:`n` pulls of the arm among the last :math:`\tau` = ``window`` rewards,
    :math:`S` their sum and :math:`\gamma` = ``precision``, it draws

    .. math:: \theta \sim \mathcal{N}\Big(\frac{S}{n}, \frac{1}{\gamma n}\Big)

    for every arm and pulls the arm of the highest draw; an arm that is not in the
    window comes first. This is the paper's gamma-SWGTS. The forced phase around it is a
    **reconstruction** from its description: that it goes round-robin, and that the
    window counts rounds rather than pulls of the arm, are our readings.

    The defaults are those of the CURE-UCB paper for linear-then-flat arms; for concave
    arms and for IMDB it has ``window=200``, ``forced_pulls=1000``.

    References
    ----------
    Fiandri, Metelli, Trovo, arXiv 2505.12092; SWGTS: arXiv 2409.05181.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = ETSWGTS.create(n_arms=3, horizon=100, forced_pulls=2, window=50)
    >>> play_alone(policy, lambda arm, n, t: [0.0, 0.0, 5.0][arm], 14)
    [0, 1, 2, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    """

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        window: int = 1000,
        forced_pulls: int = 10,
        precision: float = 1.0,
    ) -> ETSWGTS:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls
            See ``risingsearch.policies.base``.
        window : int, default 1000
            Rewards that count, at least 1; below ``n_arms`` it is round-robin.
        forced_pulls : int, default 10
            Pulls of every arm before the first draw, ``Gamma``, at least 0.
        precision : float, default 1.0
            Of a pull, above 0; in theory at most ``min(1, 1 / (4 sigma^2))``.
        """
        return cls.empty(
            n_arms,
            horizon,
            max_pulls,
            window,
            weight=checked_float("precision", precision, 0.0, open_low=True),
            forced_pulls=checked_int("forced_pulls", forced_pulls, 0),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return an arm that is owed a forced pull, or the one of the highest draw."""
        arm = least_pulled(self.available, self.pulls, self.forced_pulls)
        if arm != WAIT:
            return arm
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                n = self.window_pulls[i]
                theta = inf
                if n > 0:
                    spread = sqrt(1.0 / (self.weight * n))
                    theta = self.window_total[i] / n + spread * rng.standard_normal()
                arm, best = leader(arm, best, i, theta, self.pulls)
        return arm

    def explain(self, arm: int) -> dict[str, float]:
        """Return mean and standard deviation of the arm's next draw."""
        n = self.window_pulls[arm]
        if n == 0:
            return {
                "recent_mean": 0.0,
                "spread": inf,
            }
        return {
            "recent_mean": self.window_total[arm] / n,
            "spread": sqrt(1.0 / (self.weight * n)),
        }
