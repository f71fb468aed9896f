"""The size of the noise: given, or estimated from the rewards as they come in."""

from __future__ import annotations

import math

from risingsearch.checks import checked_float
from risingsearch.policies.arrays import Floats


def checked_sigma(sigma: float | None) -> float:
    """Return ``sigma`` as a number at least 0; NaN stands for None, "estimate it"."""
    if sigma is None:
        return math.nan
    return checked_float("sigma", sigma, 0.0, open_low=False)


def add_residual(residual: Floats, last_two: Floats, n: int, reward: float) -> None:
    """Add the second difference of an arm's newest rewards to the noise estimate.

    ``residual`` holds the sum of squares and their count over all arms; ``last_two``
    the arm's two rewards before this one, its ``n``-th.
    """
    if n > 2:
        bend = reward - 2.0 * last_two[1] + last_two[0]
        residual[0] += bend * bend
        residual[1] += 1.0
    last_two[0] = last_two[1]
    last_two[1] = reward


def noise_scale(sigma: float, residual: Floats) -> float:
    """Return ``sigma``, or its estimate ``sqrt(mean(d^2) / 6)`` where it is NaN.

    ``d`` are the second differences of the arms' curves; independent noise of standard
    deviation sigma gives them the variance ``6 sigma^2``.
    """
    if not math.isnan(sigma):
        return sigma
    if residual[1] == 0.0:
        return 0.0
    return math.sqrt(residual[0] / (6.0 * residual[1]))
