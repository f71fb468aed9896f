"""Prefix sums of an arm's own rewards: any window of them is a difference of two.

Appending costs the same after a million pulls as after two.
"""

from __future__ import annotations

import numpy as np

from risingsearch.checks import checked_float
from risingsearch.policies.arrays import Floats, Ints

SLOPE_PULLS = 2  # that make a slope


def prefix_sums(n_arms: int, horizon: int, max_pulls: int | None) -> Floats:
    """Return ``P`` of shape (n_arms, max_pulls + 1), before the first reward.

    ``P[i, n]`` is the sum of the first ``n`` rewards of arm ``i``.
    """
    limit = horizon if max_pulls is None else max_pulls
    return np.zeros((n_arms, limit + 1))


def append_reward(sums: Floats, pulls: Ints, arm: int, reward: float) -> int:
    """Append the reward to the arm's sums, and return its number, from 1."""
    n = int(pulls[arm]) + 1
    pulls[arm] = n
    sums[arm, n] = sums[arm, n - 1] + reward
    return n


def refresh_slope(
    sums: Floats, average: Floats, slope: Floats, arm: int, n: int, eps: float
) -> tuple[int, float]:
    """Take average and slope of an arm from its last ``2 h`` of ``n`` rewards.

    Returns the window ``h``, and the sum of the ``h`` rewards before the last ``h``.
    """
    h = window_length(eps, n)
    a = sums[arm, n] - sums[arm, n - h]
    b = sums[arm, n - h] - sums[arm, n - 2 * h]
    average[arm] = a / h
    slope[arm] = (a - b) / (float(h) * h)
    return h, b


def window_length(eps: float, n_pulls: int) -> int:
    """Return ``max(1, floor(eps * n_pulls))``, how many of the last rewards count."""
    return max(1, int(eps * n_pulls))


def checked_eps(eps: float) -> float:
    """Return the window share ``eps``, which is above 0 and at most 1/2."""
    return checked_float("eps", eps, 0.0, 0.5, open_low=True)
