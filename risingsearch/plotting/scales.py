"""On which scale the values of a parameter are spread evenly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def is_logarithmic(values: Sequence[float]) -> bool:
    """Return whether numbers lie more evenly in their logarithm than as they are.

    They have to be positive, and to reach over a factor of ten at least.

    Examples
    --------
    >>> is_logarithmic([1e-4, 1e-3, 1e-2]), is_logarithmic([10, 200, 400, 600])
    (True, False)
    """
    if not len(values) or min(values) <= 0 or max(values) < 10 * min(values):
        return False
    return _unevenness(np.log(values)) < _unevenness(np.asarray(values, dtype=float))


def _unevenness(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return how far from evenly spread numbers are between their ends."""
    places = np.sort((values - values.min()) / np.ptp(values))
    return float(np.abs(places - np.linspace(0.0, 1.0, len(places))).max())
