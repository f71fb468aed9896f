r"""Statistics of an arm's rewards: means, variances, sums and their noise.

Rewards are brought to the unit interval where a formula lives there. Of prefix sums any
window is a difference of two, and appending costs the same after a million pulls.

A curve that flattens has a damped slope. With :math:`N` pulls behind an arm, the mean
:math:`m` and the slope :math:`s \ge 0` of its last windows of
:math:`h = \max(1, \lfloor \epsilon N \rfloor)` scores, the curve :math:`y = a - b / n`
through them reaches

.. math:: m + s N (1 - N / n_2), \qquad n_2 = N + \min(R - N,\; T - t + 1)

at the last pull that the arm can still get: of ``R`` in all, in ``T`` rounds.
"""

from collections.abc import Sequence
from math import isnan, nan, sqrt

import numpy as np

from risingsearch.checks import checked_float
from risingsearch.policies.arrays import Floats, Ints, RewardRange, Rng, zeros
from risingsearch.policies.base import pull_limit

VARIANCES = ("biased", "eq5", "alg1", "table4")
BIASED, EQ5, ALG1 = range(3)
SLOPE_PULLS = 2  # that make a slope


def range_width(reward_range: RewardRange) -> float:
    """Return the distance from the lowest to the highest reward."""
    low, high = reward_range
    return high - low


def unit_reward(reward: float, reward_range: RewardRange) -> float:
    """Return the reward mapped from its range to [0, 1], and clipped there.

    Examples
    --------
    >>> unit_reward(15.0, (10.0, 20.0)), unit_reward(30.0, (10.0, 20.0))
    (0.5, 1.0)
    """
    low, high = reward_range
    return min(1.0, max(0.0, (reward - low) / (high - low)))


def coin_flip(probability: float, rng: Rng) -> float:
    """Return 1.0 with this probability, else 0.0; no draw where it is 0 or 1."""
    # How a reward between 0 and 1 becomes the success or failure that a Beta posterior
    # counts (Agrawal and Goyal 2012).
    if probability <= 0.0:
        return 0.0
    if probability >= 1.0:
        return 1.0
    return 1.0 if rng.random() < probability else 0.0


def record_mean(
    pulls: Ints,
    mean: Floats,
    arm: int,
    reward: float,
) -> int:
    """Move the arm's mean by a reward, and return its number, from 1."""
    n = int(pulls[arm]) + 1
    pulls[arm] = n
    mean[arm] += (reward - mean[arm]) / n
    return n


def next_variance(
    kind: int,
    variance: float,
    n: int,
    square: float,
) -> float:
    """Return the variance after the ``n``-th reward, by a kind of ``VARIANCES``.

    Parameters
    ----------
    kind : int
        Place in ``VARIANCES``.
    variance : float
        The variance of the rewards before.
    n : int
        The number of the new reward, from 1.
    square : float
        Product of the reward's distances to the old and the new mean.

    Returns
    -------
    float
        0 for the first reward.
    """
    # ``square`` is the product of the reward's distances to the old and the new mean.
    if n < 2:
        return 0.0
    if kind == BIASED:
        return ((n - 1) * variance + square) / n
    if kind == EQ5:
        return ((n - 2) * variance + square) / (n - 1)
    if kind == ALG1:
        return (variance + square) / (n - 1)
    return variance + square / (n - 1)


def record_moments(
    kind: int,
    pulls: Ints,
    mean: Floats,
    variance: Floats,
    arm: int,
    reward: float,
) -> int:
    """Move the arm's mean and variance by a reward, and return its number, from 1."""
    distance = reward - mean[arm]
    n = record_mean(pulls, mean, arm, reward)
    square = distance * (reward - mean[arm])
    variance[arm] = next_variance(kind, variance[arm], n, square)
    return n


def prefix_sums(n_arms: int, horizon: int, max_pulls: int | None) -> Floats:
    """Return zeros for ``P[i, n]``, the sum of the first ``n`` rewards of arm ``i``."""
    limit = pull_limit(horizon, max_pulls)
    return zeros((n_arms, limit + 1))


def append_reward(
    sums: Floats,
    pulls: Ints,
    arm: int,
    reward: float,
) -> int:
    """Append the reward to the arm's sums, and return its number, from 1."""
    n = int(pulls[arm]) + 1
    pulls[arm] = n
    sums[arm, n] = sums[arm, n - 1] + reward
    return n


def append_weighted(
    sums: Floats,
    arm: int,
    n: int,
    reward: float,
) -> None:
    """Append the ``n``-th reward, ``n`` times, to the arm's sums."""
    sums[arm, n] = sums[arm, n - 1] + n * reward


def window_sum(
    sums: Floats,
    arm: int,
    before: int,
    last: int,
) -> float:
    """Return the sum of the arm's rewards after number ``before``, up to ``last``."""
    return float(sums[arm, last] - sums[arm, before])


def refresh_slope(
    sums: Floats,
    average: Floats,
    slope: Floats,
    arm: int,
    n: int,
    eps: float,
) -> tuple[int, float]:
    """Set average and slope; return ``h``, and the sum of the ``h`` before.

    Parameters
    ----------
    sums : ndarray of shape (n_arms, max_pulls + 1)
        Sums of each arm's first rewards.
    average, slope : ndarray of shape (n_arms,)
        Written for this arm.
    arm : int
        The arm.
    n : int
        Its rewards so far, at least 2.
    eps : float
        Share of the rewards in a window.

    Returns
    -------
    tuple of int and float
        The length ``h`` of its windows, and the sum of the rewards in the older one.
    """
    h = window_length(eps, n)
    a = window_sum(sums, arm, n - h, n)
    b = window_sum(sums, arm, n - 2 * h, n - h)
    average[arm] = a / h
    slope[arm] = (a - b) / (float(h) * h)
    return h, b


def window_length(eps: float, n_pulls: int) -> int:
    """Return ``max(1, floor(eps * n_pulls))``, how many of the last rewards count.

    Examples
    --------
    >>> [window_length(0.25, n) for n in (1, 4, 8, 40)]
    [1, 1, 2, 10]
    """
    return max(1, int(eps * n_pulls))


def checked_eps(eps: float) -> float:
    """Return the window share ``eps``, which is above 0 and at most 1/2."""
    return checked_float("eps", eps, 0.0, 0.5, open_low=True)


def checked_sigma(sigma: float | None) -> float:
    """Return ``sigma`` as a number at least 0; NaN stands for None, "estimate it"."""
    if sigma is None:
        return nan
    return checked_float("sigma", sigma, 0.0)


def add_residual(
    residual: Floats,
    last_two: Floats,
    n: int,
    reward: float,
) -> None:
    """Add the second difference of an arm's newest rewards to sum and count."""
    if n > 2:
        bend = reward - 2.0 * last_two[1] + last_two[0]
        residual[0] += bend * bend
        residual[1] += 1.0
    last_two[0] = last_two[1]
    last_two[1] = reward


def noise_scale(sigma: float, residual: Floats) -> float:
    """Return ``sigma``, or its estimate ``sqrt(mean(d^2) / 6)`` where it is NaN.

    Examples
    --------
    >>> noise_scale(0.1, np.zeros(2)), noise_scale(nan, np.array([0.24, 4.0]))
    (0.1, 0.1)
    """
    # Independent noise gives second differences ``d`` the variance ``6 sigma^2``.
    if not isnan(sigma):
        return sigma
    if residual[1] == 0.0:
        return 0.0
    return sqrt(residual[0] / (6.0 * residual[1]))


def record_slope(
    sums: Floats,
    average: Floats,
    slope: Floats,
    arm: int,
    n: int,
    eps: float,
) -> None:
    """Record the mean of the arm's last window, and its slope, 0 where it falls."""
    if n < SLOPE_PULLS:
        average[arm] = sums[arm, n]
        return
    refresh_slope(sums, average, slope, arm, n, eps)
    slope[arm] = max(0.0, slope[arm])


def epochs_left(
    pulls_left: Ints,
    horizon: Floats,
    arm: int,
    t: int,
) -> float:
    """Return how many epochs the arm can still get from round ``t`` on."""
    return min(float(pulls_left[arm]), float(horizon[arm]) - t + 1.0)


def damped_gain(slope: float, n: float, left: float) -> float:
    """Return ``s N (1 - N / n2)``, with ``n2 = N + left`` and at least ``N``.

    Parameters
    ----------
    slope : float
        The slope ``s``, per pull.
    n : float
        Pulls behind the arm, ``N``.
    left : float
        Pulls that it can still get.

    Returns
    -------
    float
        How much higher the arm ends than it is; 0 without a pull.

    Examples
    --------
    >>> damped_gain(0.02, 10.0, 10.0), damped_gain(0.02, 10.0, 1e9)
    (0.1, 0.199999998)
    """
    if n == 0.0:
        return 0.0
    share = n / (n + max(0.0, left))
    return float(slope * n * (1.0 - share))


def highest_end(scores: Sequence[float], max_pulls: int, eps: float = 0.25) -> float:
    """Return where the last slope of an arm's scores leads in a straight line.

    Parameters
    ----------
    scores : sequence of float
        The arm's scores so far, at least one.
    max_pulls : int
        Pulls that it can give in all.
    eps : float, default 0.25
        Share of the scores in a window.

    Returns
    -------
    float
        An upper bound for a curve that flattens.

    Examples
    --------
    >>> round(highest_end([0.1, 0.2, 0.3, 0.4], max_pulls=8), 3)
    0.8
    """
    # A curve that flattens ends below that, so what cannot win by it cannot win.
    n = len(scores)
    sums = np.concatenate([[0.0], np.cumsum(scores)])[None]
    average = zeros(1)
    slope = zeros(1)
    record_slope(sums, average, slope, 0, n, eps)
    return float(average[0] + slope[0] * max(0, max_pulls - n))
