"""How fast regret grows: straight lines through log regret over log horizon."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.shared.results import at
from risingsearch.simulation import Comparison

RESAMPLES = 4000


class Slope(NamedTuple):
    """An exponent of the horizon, with its 95 % interval, and the line's height."""

    value: float
    low: float
    high: float
    intercept: float  # log10 of the regret at a horizon of one round

    def __str__(self) -> str:
        """Return the slope and its interval, in words."""
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def regret(self, horizon: float) -> float:
        """Return the regret that the line has at a horizon."""
        return float(10**self.intercept * horizon**self.value)


def slope(
    comparison: Comparison, policy: str, first: int = 0, last: int | None = None
) -> Slope:
    """Fit a line to the mean regrets of a policy between two of the horizons.

    Least squares on decimal logarithms; the interval is the middle 95 % of fits to
    runs drawn with replacement, the same ones at every horizon.
    """
    horizons = [h for h in comparison.horizons if first <= h <= (last or h)]
    p = comparison.policies.index(policy)
    regret = np.array([at(comparison, horizon)[p] for horizon in horizons])
    n_runs = regret.shape[1]
    drawn = np.random.default_rng(0).integers(n_runs, size=(RESAMPLES, n_runs))
    means = np.column_stack([regret.mean(axis=1), regret[:, drawn].mean(axis=2)])
    values, intercepts = _fit(np.log10(horizons), np.log10(means))
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return Slope(float(values[0]), float(low), float(high), float(intercepts[0]))


def _fit(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return slope and intercept of the line through every column of ``y``."""
    values, intercepts = np.polyfit(x, y, 1)
    return values, intercepts
