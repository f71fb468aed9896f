"""Running mean and variance of an arm's rewards."""

from __future__ import annotations

from risingsearch.policies.arrays import Floats, Ints

VARIANCES = ("biased", "eq5", "alg1", "table4")
BIASED, EQ5, ALG1 = range(3)


def record_mean(pulls: Ints, mean: Floats, arm: int, reward: float) -> int:
    """Move the arm's mean by a reward, and return its number, from 1."""
    n = int(pulls[arm]) + 1
    pulls[arm] = n
    mean[arm] += (reward - mean[arm]) / n
    return n


def next_variance(kind: int, variance: float, n: int, square: float) -> float:
    """Return the variance of an arm after its ``n``-th reward.

    ``square`` is the product of the reward's distances to the old and the new mean;
    ``kind`` the place of the recursion in ``VARIANCES``. One reward has none.
    """
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
    kind: int, pulls: Ints, mean: Floats, variance: Floats, arm: int, reward: float
) -> int:
    """Move the arm's mean and variance by a reward, and return its number, from 1."""
    n = int(pulls[arm]) + 1
    pulls[arm] = n
    distance = reward - mean[arm]
    mean[arm] += distance / n
    square = distance * (reward - mean[arm])
    variance[arm] = next_variance(kind, variance[arm], n, square)
    return n
