"""Statistics of the regrets of a part: means, intervals, ranks, tests.

Arrays have the axes (methods,) tasks, multiples, seeds. A *balanced* mean counts every
family alike: over the tasks of a family, then over the families. Where a table does
not hold a budget its task is left out there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from risingsearch.simulation.statistics import half_width

RESAMPLES = 2_000


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float


class Paired(NamedTuple):
    """One method against another, over the tasks; differences below 0 are good."""

    won: float  # share of the tasks
    difference: Interval  # balanced, from a bootstrap over the tasks
    p_value: float  # Wilcoxon's signed ranks, mean over the budgets


def balanced(
    values: NDArray[np.float64], families: NDArray[np.str_]
) -> NDArray[np.float64]:
    """Return the balanced mean over the first axis, the tasks."""
    by_family = [
        mean_known(values[families == family], axis=0) for family in np.unique(families)
    ]
    return mean_known(np.array(by_family), axis=0)


def mean_known(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return the mean of what is not NaN; NaN where nothing is left."""
    known = ~np.isnan(values)
    n = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.where(n > 0, total / np.maximum(n, 1), math.nan)


def overall(
    regret: NDArray[np.float64], families: NDArray[np.str_]
) -> NDArray[np.float64]:
    """Return the balanced mean over budgets, per seed; of shape (..., seeds).

    ``regret`` is of one method, of shape (tasks, multiples, seeds).
    """
    return mean_known(balanced(regret, families), axis=0)


def over_seeds(values: NDArray[np.float64]) -> Interval:
    """Return the mean over seeds with its interval; the tasks are what they are."""
    mean, half = float(values.mean()), float(half_width(values))
    return Interval(mean, mean - half, mean + half)


def over_tasks(
    values: NDArray[np.float64], families: NDArray[np.str_], seed: int = 0
) -> Interval:
    """Return the balanced mean of one value per task; tasks drawn anew per family."""
    rng = np.random.default_rng(seed)
    means = []
    for family in np.unique(families):
        own = values[families == family]
        drawn = rng.integers(len(own), size=(len(own), RESAMPLES))
        means.append(mean_known(own[drawn], axis=0))
    low, high = np.quantile(mean_known(np.array(means), axis=0), [0.025, 0.975])
    return Interval(float(balanced(values, families)), float(low), float(high))


def per_task(regret: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over budgets and seeds, the last two axes."""
    return mean_known(mean_known(regret, axis=-1), axis=-1)


def paired(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    families: NDArray[np.str_],
) -> Paired:
    """Compare two methods, of shape (tasks, multiples, seeds), task by task."""
    difference = per_task(first) - per_task(second)
    p = 1.0
    if np.any(difference != 0.0):
        p = float(stats.wilcoxon(difference).pvalue)
    return Paired(float(np.mean(difference < 0.0)), over_tasks(difference, families), p)


def cell_ranks(regret: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the average rank of each method over tasks and budgets; 1 is the best."""
    cells = mean_known(regret, axis=-1).reshape(len(regret), -1)
    cells = cells[:, ~np.isnan(cells).any(axis=0)]
    ranks: NDArray[np.float64] = stats.rankdata(cells, axis=0).mean(axis=1)
    return ranks


def task_ranks(regret: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the average rank of each method over the tasks, by mean regret."""
    ranks: NDArray[np.float64] = stats.rankdata(per_task(regret), axis=0).mean(axis=1)
    return ranks


def critical_difference(n_methods: int, n_tasks: int) -> float:
    """Return by how much average ranks must differ, at 5 %: Nemenyi's test.

    >>> critical_difference(5, 30)
    1.11
    """
    q = stats.studentized_range.ppf(0.95, n_methods, math.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_tasks)))


def cliques(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """Return the widest groups of sorted ranks that lie within a difference.

    >>> cliques([1.0, 1.5, 2.8, 3.0, 6.0], 1.6)
    [(0, 1), (1, 3)]
    """
    found: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(
            i for i in range(first, len(ranks)) if ranks[i] - ranks[first] <= difference
        )
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found
