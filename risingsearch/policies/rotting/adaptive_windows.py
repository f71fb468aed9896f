"""Rewards that fall, at an unknown pace: windows of many lengths.

Short windows see that an arm has worn out, long ones tell small differences.
"""

from __future__ import annotations

from math import ceil, inf, log, sqrt
from typing import NamedTuple, Self

import numpy as np

from risingsearch.checks import checked_float
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
from risingsearch.policies.shared.rewards import (
    add_residual,
    checked_sigma,
    noise_scale,
)


class AdaptiveWindows(NamedTuple):
    """Shared state of both; a subclass selects."""

    # The fields are made by ``create``: numpydoc ignore=PR01
    available: Bools  # (n_arms,)
    pulls_left: Ints  # (n_arms,)
    horizon: Floats  # (n_arms,)
    pulls: Ints  # (n_arms,)
    length: Ints  # (n_windows,), of the windows; the last is never full
    spread: Floats  # (n_windows,), 1 / sqrt(length)
    mean: Floats  # (n_arms, n_windows)
    pending: Floats  # (n_arms, n_windows), sum that becomes the next mean
    filled: Ints  # (n_arms, n_windows), rewards in pending
    n_full: Ints  # (n_arms,), windows that have a mean
    alpha: float
    sigma: float  # NaN: estimated
    last_two: Floats  # (n_arms, 2)
    residual: Floats  # (2,), sum of squared second differences, count
    kept: Ints  # (n_arms,), of FEWA room for the arms that pass; else zero
    tightest: Ints  # (n_arms,), of RAW-UCB: last window of the lowest bound
    latest: Ints  # (2,), of RAW-UCB: last arm updated, and the round after that
    width: Floats  # (1,), of RAW-UCB: of the confidence at that round

    @classmethod
    def empty(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None,
        alpha: float,
        sigma: float | None,
        growth: float,
    ) -> Self:
        """Return a policy without rewards."""
        length = window_lengths(growth, pull_limit(horizon, max_pulls))
        shape = (n_arms, len(length))
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            length=length,
            spread=1.0 / np.sqrt(length),
            mean=zeros(shape),
            pending=zeros(shape),
            filled=int_zeros(shape),
            n_full=int_zeros(n_arms),
            alpha=checked_float("alpha", alpha, 0.0, open_low=True),
            sigma=checked_sigma(sigma),
            last_two=zeros((n_arms, 2)),
            residual=zeros(2),
            kept=int_zeros(n_arms),
            tightest=int_zeros(n_arms),
            latest=int_zeros(2),
            width=zeros(1),
        )

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Add the reward to all windows of the arm."""
        extend_windows(self, arm, reward)


class FEWA(AdaptiveWindows):  # numpydoc ignore=PR01
    r"""FEWA: drop arms by the means of longer and longer windows of recent rewards.

    For rewards that fall with the pulls of their arm, in any way; it needs neither how
    fast they fall nor the number of rounds, which only bounds its memory. With
    :math:`\bar x_i(h)` the mean of the arm's last :math:`h` rewards, the arms go
    through one filter after another, :math:`h = 1, 2, \ldots`. The filter keeps those
    with

    .. math:: \bar x_i(h) \ge \max_j \bar x_j(h)
              - 2 \sqrt{\frac{2 \alpha \sigma^2 \ln t}{h}}

    and as soon as a kept arm has no more than ``h`` rewards, it is pulled: the least
    pulled, if there are several. Every arm is pulled once first.

    ``growth=1`` is that algorithm exactly. Its memory and the cost of a pull grow with
    the pulls of the arm. The default is the authors' efficient version, EFF-FEWA: only
    windows of length 1, 2, 4, ... (each ``growth`` times as long as the one before),
    each holding a mean over as many consecutive rewards, which are the last ones or
    lag behind by less than the window; a kept arm is pulled when it cannot fill the
    next window. It keeps the guarantee up to constants.

    References
    ----------
    Seznec, Locatelli, Carpentier, Lazaric, Valko: "Rotting bandits are no harder than
    stochastic ones", AISTATS 2019.

    Examples
    --------
    >>> from risingsearch.policies.base import coming_round, play_alone
    >>> policy = FEWA.create(n_arms=2, horizon=12, sigma=0.1)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.9 if n <= 5 else 0.2][arm], 12)
    [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    """

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        alpha: float = 0.06,
        sigma: float | None = None,
        growth: float = 2.0,
    ) -> FEWA:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, sigma
            See ``risingsearch.policies.base``.
        alpha : float, default 0.06
            Exponent of the confidence ``t ** -alpha``, above 0; 4 in theory.
        growth : float, default 2.0
            Of each window over the one before, from 1 (exact) to 2 (fastest).
        """
        return cls.empty(n_arms, horizon, max_pulls, alpha, sigma, growth)

    def select(self, t: int, rng: Rng) -> int:
        """Return the first arm that has passed all filters up to its longest window."""
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        width = 2.0 * confidence_width(self, t)
        n_kept = 0
        for i in range(len(self.pulls)):
            if self.available[i]:
                self.kept[n_kept] = i
                n_kept += 1
        for j in range(len(self.length)):
            n_kept, arm = keep_best(self, n_kept, j, width * self.spread[j])
            if arm != WAIT:
                break
        self.kept[:] = 0
        return arm


def keep_best(
    policy: FEWA,
    n_kept: int,
    window: int,
    tolerance: float,
) -> tuple[int, int]:
    """Filter ``kept``; return how many pass, and the least pulled of no longer one."""
    best = -inf
    for k in range(n_kept):
        best = max(best, policy.mean[policy.kept[k], window])
    lowest = best - tolerance
    n_left = 0
    shortest = WAIT
    for k in range(n_kept):
        arm = int(policy.kept[k])
        if policy.mean[arm, window] < lowest:
            continue
        policy.kept[n_left] = arm
        n_left += 1
        if policy.n_full[arm] == window + 1 and (
            shortest == WAIT or policy.pulls[arm] < policy.pulls[shortest]
        ):
            shortest = arm
    if n_left == 1:
        return 1, int(policy.kept[0])
    return n_left, shortest


class RAWUCB(AdaptiveWindows):  # numpydoc ignore=PR01
    r"""RAW-UCB: the tightest of the upper bounds from windows of every length.

    For rewards that fall with the pulls of their arm or with time, in any way; it needs
    neither how fast they fall nor the number of rounds, which only bounds its memory.
    With :math:`\bar x(h)` the mean of the arm's last :math:`h` of :math:`N` rewards,
    the index is

    .. math:: \min_{h \le N}\; \bar x(h) + \sqrt{\frac{2 \alpha \sigma^2 \ln t}{h}}

    Every arm is pulled once first.

    ``growth=1`` is that algorithm exactly; the default is the authors' efficient
    version, EFF-RAW-UCB, with windows as of ``FEWA``: 90 up to 30,000 pulls.

    References
    ----------
    Seznec, Menard, Lazaric, Valko: "A single algorithm for both restless and rested
    rotting bandits", AISTATS 2020.

    Examples
    --------
    >>> from risingsearch.policies.base import coming_round, play_alone
    >>> policy = RAWUCB.create(n_arms=2, horizon=12, sigma=0.1)
    >>> play_alone(policy, lambda arm, n, t: [0.5, 0.9 if n <= 5 else 0.2][arm], 12)
    [0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    """

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        alpha: float = 1.4,
        sigma: float | None = None,
        growth: float = 1.1,
    ) -> RAWUCB:
        """Return a new policy.

        Parameters
        ----------
        n_arms, horizon, max_pulls, sigma
            See ``risingsearch.policies.base``.
        alpha : float, default 1.4
            Exponent of the confidence ``t ** -alpha``, above 0; 4 in theory.
        growth : float, default 1.1
            As of ``FEWA``.
        """
        return cls.empty(n_arms, horizon, max_pulls, alpha, sigma, growth)

    def select(self, t: int, rng: Rng) -> int:
        """Return the arm of highest index, after one pull of each.

        The bound of any window is at least the index. So only arms whose bound from the
        window that was tightest last reaches an index known need theirs worked out.
        """
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        width = self.width[0]
        if t != self.latest[1]:
            width = confidence_width(self, t)
        promising = WAIT
        reached = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                bound = last_bound(self, i, width)
                promising, reached = leader(promising, reached, i, bound, self.pulls)
        reached = lowest_bound(self, promising, width)
        best = -inf
        for i in range(len(self.pulls)):
            if self.available[i]:
                bound = last_bound(self, i, width)
                if not (bound < best or bound < reached):
                    index = reached
                    if i != promising:
                        index = lowest_bound(self, i, width)
                    arm, best = leader(arm, best, i, index, self.pulls)
        return arm

    def update(
        self,
        t: int,
        arm: int,
        reward: float,
        rng: Rng,
    ) -> None:
        """Add the reward to all windows of the arm, and seek the tightest bound."""
        extend_windows(self, arm, reward)
        self.latest[0] = arm
        self.latest[1] = t + 1
        self.width[0] = confidence_width(self, t + 1)
        self.tightest[arm] = tightest_window(self, arm, self.width[0])

    def explain(self, arm: int) -> dict[str, float]:
        """Return recent average and bonus of the tightest bound at the coming round."""
        if self.pulls[arm] == 0:
            return {
                "recent_average": 0.0,
                "bonus": inf,
            }
        width = confidence_width(self, coming_round(self.pulls))
        window = tightest_window(self, arm, width)
        return {
            "recent_average": self.mean[arm, window],
            "bonus": width * self.spread[window],
        }


def last_bound(policy: RAWUCB, arm: int, width: float) -> float:
    """Return the bound from the window that was tightest last."""
    return window_bound(policy, arm, policy.tightest[arm], width)


def window_bound(
    policy: RAWUCB,
    arm: int,
    window: int,
    width: float,
) -> float:
    """Return the upper bound of the arm from one of its windows."""
    return float(policy.mean[arm, window] + width * policy.spread[window])


def lowest_bound(policy: RAWUCB, arm: int, width: float) -> float:
    """Return the arm's index."""
    if arm == policy.latest[0] and width == policy.width[0]:
        return last_bound(policy, arm, width)
    return window_bound(policy, arm, tightest_window(policy, arm, width), width)


def tightest_window(policy: RAWUCB, arm: int, width: float) -> int:
    """Return the window of the arm's lowest bound; the shortest one wins ties."""
    tightest = 0
    lowest = inf
    for j in range(policy.n_full[arm]):
        bound = window_bound(policy, arm, j, width)
        if bound < lowest:
            lowest = bound
            tightest = j
    return tightest


def confidence_width(policy: AdaptiveWindows, t: int) -> float:
    """Return ``sigma * sqrt(2 alpha ln t)``, how far one reward may be off its mean."""
    sigma = noise_scale(policy.sigma, policy.residual)
    return sigma * sqrt(2.0 * policy.alpha * log(t))


def window_lengths(growth: float, max_pulls: int) -> Ints:
    """Return the lengths 1, ceil(growth), ... up to the first above ``max_pulls``.

    Examples
    --------
    >>> window_lengths(2.0, 10), window_lengths(1.5, 10)
    (array([ 1,  2,  4,  8, 16]), array([ 1,  2,  3,  5,  8, 12]))
    """
    growth = checked_float("growth", growth, 1.0, 2.0)
    lengths = [1]
    while lengths[-1] <= max_pulls:
        lengths.append(max(lengths[-1] + 1, ceil(growth * lengths[-1])))
    return np.array(lengths, dtype=np.int64)


def extend_windows(policy: AdaptiveWindows, arm: int, reward: float) -> None:
    """Record a reward in the pending sums of an arm, and average those now full."""
    # A sum that is full starts again from the pending sum of the next shorter window,
    # whose rewards are the latest. The longest sum has all rewards so far.
    policy.pulls[arm] += 1
    add_residual(policy.residual, policy.last_two[arm], policy.pulls[arm], reward)
    length = policy.length
    mean = policy.mean[arm]
    pending = policy.pending[arm]
    filled = policy.filled[arm]
    longest = policy.n_full[arm]
    # The longer windows need the shorter ones as they were.
    for j in range(longest, -1, -1):
        pending[j] += reward
        filled[j] += 1
        if filled[j] == length[j]:
            mean[j] = pending[j] / length[j]
            if j == longest:
                pending[j + 1] = pending[j]
                filled[j + 1] = filled[j]
                policy.n_full[arm] = j + 1
            pending[j] = 0.0
            filled[j] = 0
            if j > 0:
                pending[j] = pending[j - 1] + reward
                filled[j] = filled[j - 1] + 1
