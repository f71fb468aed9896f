"""Rotting bandits: what an arm pays falls with its pulls, so its recent past counts.

SWA and wSWA look at one window of fixed length, FEWA and RAW-UCB at windows of many
lengths at once. Made for rewards that wear out; learning curves rise, and for them
these are baselines.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import checked_float
from risingsearch.policies.base import (
    WAIT,
    arm_arrays,
    best_available,
    better,
    least_pulled,
)
from risingsearch.policies.rising import add_residual, checked_sigma, noise_scale

N_EPOCHS = 62  # of wSWA: more rounds than anyone can play, and still an int64


class SWA(NamedTuple):
    r"""SWA: the highest mean of the last M rewards, after M pulls of every arm.

    For rewards that fall with the pulls of their arm (rested rotting), in any way, when
    the number of rounds :math:`T` is known. With

    .. math:: M = \big\lceil \alpha\, 4^{2/3} \sigma^{2/3} K^{-2/3} T^{2/3}
              \ln^{1/3}(\sqrt 2\, T) \big\rceil

    every arm is pulled ``M`` times, round-robin; from then on the arm with the highest
    mean of its last ``M`` rewards is pulled (Algorithm 1). Where ``K M`` exceeds ``T``
    it is round-robin to the end.

    References
    ----------
    Levine, Crammer, Mannor: "Rotting Bandits", NIPS 2017.

    Examples
    --------
    Arm 1 pays more, until it is worn out.

    >>> import numpy as np
    >>> policy = SWA.create(n_arms=2, horizon=12)
    >>> policy.window
    2
    >>> rng = np.random.default_rng(0)
    >>> curves = [lambda n: 0.5, lambda n: 0.9 if n <= 5 else 0.2]
    >>> for t in range(1, 13):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, curves[arm](policy.pulls[arm] + 1), rng)
    ...     print(arm, end=" ")
    0 1 0 1 1 1 1 1 1 0 0 0
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    window: int  # M
    P: NDArray[np.float64]  # (n_arms, max_pulls + 1), P[i, n]: sum of n rewards
    average: NDArray[np.float64]  # (n_arms,), of the last M rewards

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        alpha: float = 0.2,
        sigma: float = 0.5,
    ) -> SWA:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms ``K``, at least 1.
        horizon : int
            Number of rounds ``T``, at least 1.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        alpha : float, default 0.2
            Scales the window, above 0. The paper's choice in all experiments; its bound
            is smallest at ``(2 * highest mean) ** (-2 / 3)``.
        sigma : float, default 0.5
            Standard deviation of the noise, at least 0; 0.5 covers any rewards in
            [0, 1].

        Returns
        -------
        SWA

        Raises
        ------
        InvalidParameterError
            If ``alpha`` or ``sigma`` is outside its range.
        """
        alpha = checked_float("alpha", alpha, 0.0, open_low=True)
        sigma = checked_float("sigma", sigma, 0.0, open_low=False)
        columns = (horizon if max_pulls is None else max_pulls) + 1
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            window=swa_window(alpha, sigma, n_arms, horizon),
            P=np.zeros((n_arms, columns)),
            average=np.zeros(n_arms),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the arm of the highest recent mean, after ``M`` pulls of each."""
        arm = least_pulled(self.available, self.pulls, self.window)
        if arm != WAIT:
            return arm
        return best_available(self.available, self.average, self.pulls)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Append the reward to the arm's prefix sums and move its window."""
        n = self.pulls[arm] + 1
        self.pulls[arm] = n
        P = self.P
        P[arm, n] = P[arm, n - 1] + reward
        h = min(n, self.window)
        self.average[arm] = (P[arm, n] - P[arm, n - h]) / h

    def explain(self, arm: int) -> dict[str, float]:
        """Return the mean of the arm's last ``M`` rewards, or of all if fewer."""
        return {"recent_average": self.average[arm]}


def swa_window(alpha: float, sigma: float, n_arms: int, horizon: int) -> int:
    """Return the window ``M`` of SWA, from 1 to the horizon."""
    scale = math.pow(4.0 * sigma * horizon / n_arms, 2 / 3)
    log_root = math.pow(math.log(math.sqrt(2.0) * horizon), 1 / 3)
    return max(1, math.ceil(min(alpha * scale * log_root, horizon)))


class WSWA(NamedTuple):
    r"""wSWA: SWA in epochs of doubling length, each forgetting all before.

    For rewards that fall with the pulls of their arm, when the number of rounds is not
    known. Epoch :math:`j = 0, 1, \dots` covers the rounds :math:`2^j` to
    :math:`2^{j+1} - 1` and runs SWA anew for the horizon :math:`2^j`, its ramp-up
    included; the last one is cut where the rounds end (Corollary 3.1.1). Early epochs,
    too short for their ramp-up, are round-robin.

    References
    ----------
    Levine, Crammer, Mannor: "Rotting Bandits", NIPS 2017.

    Examples
    --------
    The fourth epoch begins at round 8, with a window of 2 and a new ramp-up.

    >>> import numpy as np
    >>> policy = WSWA.create(n_arms=2, horizon=15)
    >>> policy.windows[:4].tolist()
    [1, 1, 1, 2]
    >>> rng = np.random.default_rng(0)
    >>> for t in range(1, 16):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, [0.5, 0.9][arm], rng)
    ...     print(arm, end=" ")
    0 0 1 0 1 1 1 0 1 0 1 1 1 1 1
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    windows: NDArray[np.int64]  # (N_EPOCHS,), M of every epoch
    epoch: NDArray[np.int64]  # (1,), j
    epoch_pulls: NDArray[np.int64]  # (n_arms,)
    P: NDArray[np.float64]  # (n_arms, max_pulls + 1), P[i, n]: sum of n rewards
    average: NDArray[np.float64]  # (n_arms,), of the last M rewards of the epoch

    @classmethod
    def create(
        cls,
        n_arms: int,
        horizon: int,
        max_pulls: int | None = None,
        *,
        alpha: float = 0.2,
        sigma: float = 0.5,
    ) -> WSWA:
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms ``K``, at least 1.
        horizon : int
            Number of rounds, at least 1; it bounds the memory, no choice depends on it.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        alpha : float, default 0.2
            Scales the windows, above 0, as in ``swa``.
        sigma : float, default 0.5
            Standard deviation of the noise, at least 0; 0.5 covers any rewards in
            [0, 1].

        Returns
        -------
        WSWA

        Raises
        ------
        InvalidParameterError
            If ``alpha`` or ``sigma`` is outside its range.
        """
        alpha = checked_float("alpha", alpha, 0.0, open_low=True)
        sigma = checked_float("sigma", sigma, 0.0, open_low=False)
        columns = (horizon if max_pulls is None else max_pulls) + 1
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            windows=np.array(
                [swa_window(alpha, sigma, n_arms, 1 << j) for j in range(N_EPOCHS)],
                dtype=np.int64,
            ),
            epoch=np.zeros(1, dtype=np.int64),
            epoch_pulls=np.zeros(n_arms, dtype=np.int64),
            P=np.zeros((n_arms, columns)),
            average=np.zeros(n_arms),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return what SWA would, knowing this epoch alone."""
        start_epoch(self, t)
        window = self.windows[self.epoch[0]]
        arm = least_pulled(self.available, self.epoch_pulls, window)
        if arm != WAIT:
            return arm
        return best_available(self.available, self.average, self.epoch_pulls)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Move the arm's window; rewards decided in an epoch that is over are late."""
        start_epoch(self, t)
        n = self.pulls[arm] + 1
        self.pulls[arm] = n
        P = self.P
        P[arm, n] = P[arm, n - 1] + reward
        if t >= 1 << self.epoch[0]:
            self.epoch_pulls[arm] += 1
            h = min(self.epoch_pulls[arm], self.windows[self.epoch[0]])
            self.average[arm] = (P[arm, n] - P[arm, n - h]) / h

    def explain(self, arm: int) -> dict[str, float]:
        """Return the mean of the last ``M`` rewards in the arm's latest epoch."""
        return {"recent_average": self.average[arm]}


def start_epoch(policy: WSWA, t: int) -> None:
    """Forget the epochs before the one that round ``t`` belongs to."""
    while t >= 2 << policy.epoch[0]:
        policy.epoch[0] += 1
        for i in range(len(policy.pulls)):
            policy.epoch_pulls[i] = 0


class FEWA(NamedTuple):
    r"""FEWA: drop arms by the means of longer and longer windows of recent rewards.

    For rewards that fall with the pulls of their arm, in any way; it needs neither the
    number of rounds nor how fast they fall. With :math:`\bar x_i(h)` the mean of the
    arm's last :math:`h` rewards, the arms go through one filter after another,
    :math:`h = 1, 2, \dots`. The filter keeps those with

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
    >>> import numpy as np
    >>> policy = FEWA.create(n_arms=2, horizon=12, sigma=0.1)
    >>> rng = np.random.default_rng(0)
    >>> curves = [lambda n: 0.5, lambda n: 0.9 if n <= 5 else 0.2]
    >>> for t in range(1, 13):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, curves[arm](policy.pulls[arm] + 1), rng)
    ...     print(arm, end=" ")
    0 1 1 1 1 1 1 0 0 0 0 0
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    length: NDArray[np.int64]  # (n_windows,), of the windows; the last is never full
    spread: NDArray[np.float64]  # (n_windows,), 1 / sqrt(length)
    mean: NDArray[np.float64]  # (n_arms, n_windows)
    pending: NDArray[np.float64]  # (n_arms, n_windows), sum that becomes the next mean
    filled: NDArray[np.int64]  # (n_arms, n_windows), rewards in pending
    n_full: NDArray[np.int64]  # (n_arms,), windows that have a mean
    alpha: float
    sigma: float  # NaN: estimated
    last_two: NDArray[np.float64]  # (n_arms, 2)
    residual: NDArray[np.float64]  # (2,), sum of squared second differences, count
    kept: NDArray[np.int64]  # (n_arms,), scratch: arms that passed the last filter

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
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds, at least 1; it bounds the memory, no choice depends on it.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        alpha : float, default 0.06
            Confidence: the mean of a window is trusted to be wrong with probability
            ``t ** -alpha``; above 0. The theory asks for 4, the authors use 0.06.
        sigma : float, optional
            Standard deviation of the noise, at least 0. By default it is estimated
            from the second differences of the rewards seen so far.
        growth : float, default 2.0
            Length of a window over the one before, from 1 (every length, exact) to 2
            (fastest).

        Returns
        -------
        FEWA

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        """
        limit = horizon if max_pulls is None else max_pulls
        length = window_lengths(growth, limit)
        shape = (n_arms, len(length))
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            length=length,
            spread=1.0 / np.sqrt(length),
            mean=np.zeros(shape),
            pending=np.zeros(shape),
            filled=np.zeros(shape, dtype=np.int64),
            n_full=np.zeros(n_arms, dtype=np.int64),
            alpha=checked_float("alpha", alpha, 0.0, open_low=True),
            sigma=checked_sigma(sigma),
            last_two=np.zeros((n_arms, 2)),
            residual=np.zeros(2),
            kept=np.zeros(n_arms, dtype=np.int64),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the first arm that has passed all filters of its own length."""
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
        return arm

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Take the reward into all windows of the arm."""
        self.pulls[arm] += 1
        add_residual(self.residual, self.last_two[arm], self.pulls[arm], reward)
        extend_windows(self, arm, reward)


def keep_best(
    policy: FEWA, n_kept: int, window: int, tolerance: float
) -> tuple[int, int]:
    """Filter ``kept`` by the means of one window.

    Returns how many arms are left, and the least pulled of those that have no longer
    window, or ``WAIT``.
    """
    best = -math.inf
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


class RAWUCB(NamedTuple):
    r"""RAW-UCB: the tightest of the upper bounds from windows of every length.

    For rewards that fall with the pulls of their arm or with time, in any way; it needs
    neither the number of rounds nor how fast they fall. With :math:`\bar x(h)` the mean
    of the arm's last :math:`h` of :math:`N` rewards, the index is

    .. math:: \min_{h \le N}\; \bar x(h) + \sqrt{\frac{2 \alpha \sigma^2 \ln t}{h}}

    Every arm is pulled once first.

    ``growth=1`` is that algorithm exactly. Its memory and the cost of a pull grow with
    the pulls of the arm. The default is the authors' efficient version, EFF-RAW-UCB:
    only windows each ``growth`` times as long as the one before, 90 of them up to
    30,000 pulls, each holding a mean over as many consecutive rewards, which are the
    last ones or lag behind by less than the window. It keeps the guarantee up to
    constants.

    References
    ----------
    Seznec, Menard, Lazaric, Valko: "A single algorithm for both restless and rested
    rotting bandits", AISTATS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> policy = RAWUCB.create(n_arms=2, horizon=12, sigma=0.1)
    >>> rng = np.random.default_rng(0)
    >>> curves = [lambda n: 0.5, lambda n: 0.9 if n <= 5 else 0.2]
    >>> for t in range(1, 13):
    ...     arm = policy.select(t, rng)
    ...     policy.update(t, arm, curves[arm](policy.pulls[arm] + 1), rng)
    ...     print(arm, end=" ")
    0 1 1 1 1 1 1 0 0 0 0 0
    """

    available: NDArray[np.bool_]  # (n_arms,)
    pulls_left: NDArray[np.int64]  # (n_arms,)
    horizon: NDArray[np.float64]  # (n_arms,)
    pulls: NDArray[np.int64]  # (n_arms,)
    length: NDArray[np.int64]  # (n_windows,), of the windows; the last is never full
    spread: NDArray[np.float64]  # (n_windows,), 1 / sqrt(length)
    mean: NDArray[np.float64]  # (n_arms, n_windows)
    pending: NDArray[np.float64]  # (n_arms, n_windows), sum that becomes the next mean
    filled: NDArray[np.int64]  # (n_arms, n_windows), rewards in pending
    n_full: NDArray[np.int64]  # (n_arms,), windows that have a mean
    alpha: float
    sigma: float  # NaN: estimated
    last_two: NDArray[np.float64]  # (n_arms, 2)
    residual: NDArray[np.float64]  # (2,), sum of squared second differences, count
    tightest: NDArray[
        np.int64
    ]  # (n_arms,), where the lowest bound was when last sought

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
        """Return the policy, before its first round.

        Parameters
        ----------
        n_arms : int
            Number of arms, at least 1.
        horizon : int
            Number of rounds, at least 1; it bounds the memory, no choice depends on it.
        max_pulls : int, optional
            Pulls an arm can give at most; by default the horizon.
        alpha : float, default 1.4
            Confidence: the mean of a window is trusted to be wrong with probability
            ``t ** -alpha``; above 0. The theory asks for 4, the authors use 1.4.
        sigma : float, optional
            Standard deviation of the noise, at least 0. By default it is estimated
            from the second differences of the rewards seen so far.
        growth : float, default 1.1
            Length of a window over the one before, from 1 (every length, exact) to 2
            (fastest).

        Returns
        -------
        RAWUCB

        Raises
        ------
        InvalidParameterError
            If a parameter is outside its range.
        """
        limit = horizon if max_pulls is None else max_pulls
        length = window_lengths(growth, limit)
        shape = (n_arms, len(length))
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            length=length,
            spread=1.0 / np.sqrt(length),
            mean=np.zeros(shape),
            pending=np.zeros(shape),
            filled=np.zeros(shape, dtype=np.int64),
            n_full=np.zeros(n_arms, dtype=np.int64),
            alpha=checked_float("alpha", alpha, 0.0, open_low=True),
            sigma=checked_sigma(sigma),
            last_two=np.zeros((n_arms, 2)),
            residual=np.zeros(2),
            tightest=np.zeros(n_arms, dtype=np.int64),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        """Return the arm of highest index, after one pull of each.

        The bound of any window is at least the index. So all arms are compared by the
        window that was tightest when last sought, and only the winner is looked at
        again, until it stays the winner.
        """
        arm = least_pulled(self.available, self.pulls, 1)
        if arm != WAIT:
            return arm
        width = confidence_width(self, t)
        while True:
            arm = highest_bound(self, width)
            window = tightest_window(self, arm, width)
            if window == self.tightest[arm]:
                return arm
            self.tightest[arm] = window

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        """Take the reward into all windows of the arm."""
        self.pulls[arm] += 1
        add_residual(self.residual, self.last_two[arm], self.pulls[arm], reward)
        extend_windows(self, arm, reward)

    def explain(self, arm: int) -> dict[str, float]:
        """Return recent average and bonus of the tightest bound at the coming round."""
        if self.pulls[arm] == 0:
            return {"recent_average": 0.0, "bonus": math.inf}
        width = confidence_width(self, int(self.pulls.sum()) + 1)
        window = tightest_window(self, arm, width)
        return {
            "recent_average": self.mean[arm, window],
            "bonus": width * self.spread[window],
        }


def highest_bound(policy: RAWUCB, width: float) -> int:
    """Return the available arm of the highest bound from its ``tightest`` window."""
    arm = WAIT
    best = -math.inf
    for i in range(len(policy.pulls)):
        if policy.available[i]:
            window = policy.tightest[i]
            bound = policy.mean[i, window] + width * policy.spread[window]
            if arm == WAIT or better(bound, policy.pulls[i], best, policy.pulls[arm]):
                best = bound
                arm = i
    return arm


def tightest_window(policy: RAWUCB, arm: int, width: float) -> int:
    """Return the window of the arm's lowest bound; the shortest one wins ties."""
    tightest = 0
    lowest = math.inf
    for j in range(policy.n_full[arm]):
        bound = policy.mean[arm, j] + width * policy.spread[j]
        if bound < lowest:
            lowest = bound
            tightest = j
    return tightest


def confidence_width(policy: FEWA | RAWUCB, t: int) -> float:
    """Return ``sigma * sqrt(2 alpha ln t)``, how far one reward may be off its mean."""
    sigma = noise_scale(policy.sigma, policy.residual)
    return sigma * math.sqrt(2.0 * policy.alpha * math.log(t))


def window_lengths(growth: float, max_pulls: int) -> NDArray[np.int64]:
    """Return the lengths 1, ceil(growth), ... up to the first above ``max_pulls``.

    Each is ``growth`` times the one before, rounded up, and at least one longer.
    """
    growth = checked_float("growth", growth, 1.0, 2.0, open_low=False)
    lengths = [1]
    while lengths[-1] <= max_pulls:
        lengths.append(max(lengths[-1] + 1, math.ceil(growth * lengths[-1])))
    return np.array(lengths, dtype=np.int64)


def extend_windows(policy: FEWA | RAWUCB, arm: int, reward: float) -> None:
    """Take a reward into the pending sums of an arm, and average those now full.

    A sum that is full starts again from the pending sum of the next shorter window,
    whose rewards are the latest. The longest sum has all rewards so far.
    """
    length, mean = policy.length, policy.mean[arm]
    pending, filled = policy.pending[arm], policy.filled[arm]
    longest = policy.n_full[arm]
    for j in range(longest, -1, -1):  # the longer ones need the shorter as they were
        pending[j] += reward
        filled[j] += 1
        if filled[j] == length[j]:
            mean[j] = pending[j] / length[j]
            if j == longest:
                pending[j + 1] = pending[j]
                filled[j + 1] = filled[j]
                policy.n_full[arm] = j + 1
            pending[j] = pending[j - 1] + reward if j > 0 else 0.0
            filled[j] = filled[j - 1] + 1 if j > 0 else 0
