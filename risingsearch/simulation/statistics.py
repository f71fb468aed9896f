"""Statistics over many runs: 95 % interval of a mean, and average ranks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from risingsearch.errors import missing


def scipy_stats() -> Any:
    """Return ``scipy.stats``, or raise how to install it."""
    try:
        from scipy import stats
    except ImportError as error:
        raise missing("scipy", "sim") from error
    return stats


def half_width(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return half the 95 % interval (Student's t) of the mean over the last axis."""
    n = values.shape[-1]
    if n == 1:
        return np.full(values.shape[:-1], np.nan)
    error: NDArray[np.float64] = values.std(axis=-1, ddof=1) / np.sqrt(n)
    return error * float(scipy_stats().t.ppf(0.975, n - 1))


def average_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean rank over the last axis, among the values of the axis before."""
    ranks: NDArray[np.float64] = scipy_stats().rankdata(values, axis=-2).mean(axis=-1)
    return ranks


def paired_p_value(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of a paired t-test; NaN where none differs."""
    difference = first - second
    n = len(difference)
    if n == 1 or not difference.any():
        return math.nan
    error = difference.std(ddof=1) / math.sqrt(n)
    t = abs(difference.mean()) / error if error > 0.0 else math.inf
    return float(2.0 * scipy_stats().t.sf(t, n - 1))
