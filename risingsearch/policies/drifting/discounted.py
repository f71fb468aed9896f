"""Policies that forget gradually: every new reward makes all older ones count less.

The statistics of all arms shrink at every round. Written out that would be a loop over
the arms; here they share one scale, and only a new reward is divided by it.
"""

from __future__ import annotations

from math import exp, inf, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from risingsearch.checks import (
    checked_choice,
    checked_float,
    checked_int,
    checked_reward_range,
)
from risingsearch.policies.arrays import Bools, Floats, Ints, RewardRange, Rng, zeros
from risingsearch.policies.base import (
    WAIT,
    arm_arrays,
    leader,
    least_pulled,
    pull_limit,
)
from risingsearch.policies.shared.rewards import coin_flip, range_width, unit_reward

SMALLEST_SCALE = 1e-6
SMALLEST_BETA = 1e-300
COMBINATIONS = ("min", "max", "mean")
MIN, MAX, MEAN = range(3)


def age(
    scale: Floats,
    discount: float,
    first: Floats,
    second: Floats,
) -> None:
    """Multiply two statistics of every arm by ``discount``, through their scale."""
    scale[0] *= discount
    if scale[0] < SMALLEST_SCALE:
        for i in range(len(first)):
            first[i] *= scale[0]
            second[i] *= scale[0]
        scale[0] = 1.0


def checked_discount(discount: float) -> float:
    """Return ``discount``, which is above 0 and at most 1."""
    return checked_float("discount", discount, 0.0, 1.0, open_low=True)


class DUCB(NamedTuple):
    r"""D-UCB: the usual confidence bound, from rewards that fade with their age.

    A reward that came ``k`` rewards ago, whichever arms those were of, counts
    :math:`\gamma^k`, with :math:`\gamma` = ``discount``. With :math:`n` and :math:`S`
    the arm's pulls and rewards counted like that, and :math:`B` the width of
    ``reward_range``, the index is

    .. math:: \frac{S}{n} + 2 B \sqrt{\frac{\xi \ln \sum_j n_j}{n}}

    and infinite where :math:`n = 0`.

    ``xi = 0.5`` makes it the padding of UCB1, and reproduces the comparisons of Levine
    et al., "Rotting Bandits" (Table 1); the original's experiments have ``xi = 0.6``.

    References
    ----------
    Garivier, Moulines: "On Upper-Confidence Bound Policies for Switching Bandit
    Problems", ALT 2011, arXiv 0805.3415; first in Kocsis, Szepesvari: "Discounted UCB",
    2nd PASCAL Challenges Workshop, 2006.

    Examples
    --------
    >>> from risingsearch.policies.base import play_alone
    >>> policy = DUCB.create(n_arms=2, horizon=100, discount=0.9, xi=0.02)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.9 if t < 10 else 0.1][arm], 24)
    [0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0]
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    discount: float
    xi: float
    width: float  # B
    scale: Floats  # (1,), what the next two are to be multiplied by
    discounted_pulls: Floats  # (n_arms,), n
    discounted_total: Floats  # (n_arms,), S
    all_pulls: Floats  # (1,), sum of all n, to scale

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        discount: float | None = None,
        xi: float = 0.5,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> DUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        discount : float, optional
            ``gamma``, above 0, at most 1; by default ``1 - 1 / (4 sqrt(T))``.
        xi : float, default 0.5
            Exploration factor of the bonus, at least 0.
        """
        if discount is None:
            discount = 1.0 - 0.25 / sqrt(horizon)
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            discount=checked_discount(discount),
            xi=checked_float("xi", xi, 0.0),
            width=range_width(checked_reward_range(reward_range)),
            scale=np.ones(1),
            discounted_pulls=zeros(n_arms),
            discounted_total=zeros(n_arms),
            all_pulls=zeros(1),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest index."""
        padding = discounted_padding(self)
        arm = WAIT
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                n = self.discounted_pulls[i]
                index = inf
                if n > 0.0:
                    bonus = 2.0 * self.width * sqrt(padding / n)
                    index = self.discounted_total[i] / n + bonus
                arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Let all rewards fade, and add this one."""
        self.pulls[arm] += 1
        age(self.scale, self.discount, self.discounted_pulls, self.discounted_total)
        self.discounted_pulls[arm] += 1.0 / self.scale[0]
        self.discounted_total[arm] += reward / self.scale[0]
        self.all_pulls[0] = self.discount * self.all_pulls[0] + 1.0

    def explain(self, arm: int) -> dict[str, float]:
        """Return the discounted mean and the bonus at the coming round."""
        n = self.discounted_pulls[arm]
        if n == 0.0:
            return {
                "recent_mean": 0.0,
                "bonus": inf,
            }
        return {
            "recent_mean": self.discounted_total[arm] / n,
            "bonus": 2.0 * self.width * sqrt(discounted_padding(self) / n),
        }


def discounted_padding(policy: DUCB) -> float:
    """Return ``xi ln(sum of all n)``, divided by the scale of the ``n``."""
    scale: float = policy.scale[0]
    return policy.xi * log(max(1.0, policy.all_pulls[0])) / scale


class FDSWTS(NamedTuple):
    r"""f-dsw TS: Thompson sampling that trusts a faded past and a window of each arm.

    For rewards in [0, 1] that drift slowly and now and then jump: the faded past sees
    the drift, the short window the jump, and ``combine`` decides between the two.

    Every arm has two pairs of successes and failures: one in which a reward ``k``
    rewards ago, whichever arms those were of, counts :math:`\gamma^k` (:math:`\gamma` =
    ``discount``), and one of the arm's own last ``window`` rewards. Each gives a draw

    .. math:: \theta_1 \sim \mathrm{Beta}(S + 1, F + 1), \quad
              \theta_2 \sim \mathrm{Beta}(S_w + 1, F_w + 1)

    and the arm of the highest :math:`f(\theta_1, \theta_2)` is pulled, with ``f`` the
    min, max or mean of the two. A reward between 0 and 1 is a success with that
    probability.

    ``window=None`` with ``discount=0.99`` is the form in which the RAVEN-UCB paper's
    experiments ran it: after one pull of each arm, both draws come from the discounted
    pair; the prior fades with the rest, so that an arm not pulled for long draws 0 or
    1; a reward is credited as a fraction, and fades once before it is first used.

    References
    ----------
    Cavenaghi, Sottocornola, Stella, Zanker: "Non Stationary Multi-Armed Bandit:
    Empirical Evaluation of a New Concept Drift-Aware Algorithm", Entropy 23(3):380,
    2021; ``window=None``: Fang et al., "From Theory to Practice with RAVEN-UCB".

    Examples
    --------
    >>> import numpy as np
    >>> from risingsearch.policies import explain
    >>> policy = FDSWTS.create(n_arms=2, horizon=9, discount=0.5, window=2)
    >>> rng = np.random.default_rng(0)
    >>> for t, reward in enumerate([1.0, 1.0, 0.0], start=1):
    ...     policy.update(t, 0, reward, rng)
    >>> explain(policy, 0)
    {'discounted_mean': 0.467, 'window_mean': 0.50}
    """

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    discount: float
    combine: int  # place in COMBINATIONS
    reward_range: RewardRange
    prior: float  # 1, or 0 where it is part of successes and failures
    scale: Floats  # (1,), what the next two are to be multiplied by
    successes: Floats  # (n_arms,), discounted
    failures: Floats  # (n_arms,), discounted
    window_rewards: Floats  # (n_arms, window), 1 for a success
    window_successes: Floats  # (n_arms,)

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        combine: str = "min",
        discount: float = 0.9,
        window: int | None = 30,
        reward_range: RewardRange = (0.0, 1.0),
    ) -> FDSWTS:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, reward_range
            See ``risingsearch.policies.base``.
        combine : {"min", "max", "mean"}, default "min"
            The combination of the two draws, ``f``: careful, bold, or in between.
        discount : float, default 0.9
            A reward's weight after a round, ``gamma``, above 0 and at most 1.
        window : int or None, default 30
            Rewards of an arm's second pair, at least 1; None for no second pair.
        """
        checked_choice("combine", combine, COMBINATIONS)
        length = 0
        prior = 0.0
        if window is not None:
            limit = pull_limit(horizon, max_pulls)
            length = min(checked_int("window", window, 1), limit)
            prior = 1.0
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            discount=checked_discount(discount),
            combine=COMBINATIONS.index(combine),
            reward_range=checked_reward_range(reward_range),
            prior=prior,
            scale=np.ones(1),
            successes=np.full(n_arms, 1.0 - prior),
            failures=np.full(n_arms, 1.0 - prior),
            window_rewards=zeros((n_arms, length)),
            window_successes=zeros(n_arms),
        )

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm whose combined draw is highest."""
        if self.window_rewards.shape[1] == 0:
            arm = least_pulled(self.available, self.pulls, 1)
            if arm != WAIT:
                return arm
        arm = WAIT
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                theta = combined_draw(self, i, rng)
                arm, best = leader(arm, best, i, theta, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Let all rewards fade, and credit this one to both pairs of its arm."""
        credit = unit_reward(reward, self.reward_range)
        length = self.window_rewards.shape[1]
        if length > 0:
            credit = coin_flip(credit, rng)
            age(self.scale, self.discount, self.successes, self.failures)
        self.successes[arm] += credit / self.scale[0]
        self.failures[arm] += (1.0 - credit) / self.scale[0]
        if length == 0:
            age(self.scale, self.discount, self.successes, self.failures)
        else:
            # A slot that was never used holds a 0, which takes nothing away.
            slot = self.pulls[arm] % length
            self.window_successes[arm] += credit - self.window_rewards[arm, slot]
            self.window_rewards[arm, slot] = credit
        self.pulls[arm] += 1

    def explain(self, arm: int) -> dict[str, float]:
        """Return the means of the arm's two posteriors, in units of [0, 1]."""
        a, b = discounted_pair(self, arm)
        a_w, b_w = window_pair(self, arm)
        return {
            "discounted_mean": a / (a + b),
            "window_mean": a_w / (a_w + b_w),
        }


def discounted_pair(policy: FDSWTS, arm: int) -> tuple[float, float]:
    """Return the parameters of the arm's first draw."""
    scale = policy.scale[0]
    return (
        max(SMALLEST_BETA, policy.successes[arm] * scale + policy.prior),
        max(SMALLEST_BETA, policy.failures[arm] * scale + policy.prior),
    )


def window_pair(policy: FDSWTS, arm: int) -> tuple[float, float]:
    """Return the parameters of the arm's second draw."""
    length = policy.window_rewards.shape[1]
    if length == 0:
        return discounted_pair(policy, arm)
    successes = policy.window_successes[arm]
    n = min(policy.pulls[arm], length)
    return successes + 1.0, n - successes + 1.0


def combined_draw(policy: FDSWTS, arm: int, rng: Rng) -> float:
    """Draw from both posteriors of the arm, and return them by ``combine``."""
    a, b = discounted_pair(policy, arm)
    first = beta_draw(a, b, rng)
    a, b = window_pair(policy, arm)
    second = beta_draw(a, b, rng)
    if policy.combine == MIN:
        return min(first, second)
    if policy.combine == MAX:
        return max(first, second)
    return 0.5 * (first + second)


def beta_draw(a: float, b: float, rng: Rng) -> float:
    """Draw from Beta(a, b), however small the parameters are."""
    # Where both are small, ``rng.beta`` compiled gives other numbers than interpreted
    # and rejects nearly all of them. So that is Johnk's method, by logarithms.
    if max(a, b) > 1.0 or min(a, b) == 1.0:
        return rng.beta(a, b)
    while True:
        log_x = log(1.0 - rng.random()) / a
        log_y = log(1.0 - rng.random()) / b
        gap = abs(log_x - log_y)
        log_sum = max(log_x, log_y) + log1p(exp(-gap))
        if log_sum <= 0.0:
            return exp(log_x - log_sum)
