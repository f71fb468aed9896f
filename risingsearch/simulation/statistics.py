"""Statistics over many runs: 95 % interval of a mean, average ranks, and tables."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from risingsearch.errors import needed
from risingsearch.json_values import Json
from risingsearch.policies.arrays import Array, Floats


def scipy_stats() -> Any:
    """Return ``scipy.stats``, or raise how to install it."""
    with needed("scipy", "sim"):
        from scipy import stats
    return stats


def half_width(values: Floats) -> Floats:
    """Return half the 95 % interval (Student's t) of the mean over the last axis.

    Examples
    --------
    >>> round(float(half_width(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))), 2)
    1.96
    """
    n = values.shape[-1]
    if n == 1:
        return np.full(values.shape[:-1], np.nan)
    error: Floats = values.std(axis=-1, ddof=1) / np.sqrt(n)
    return error * float(scipy_stats().t.ppf(0.975, n - 1))


def average_ranks(values: Floats) -> Floats:
    """Return the mean rank over the last axis, among the values of the axis before.

    Examples
    --------
    >>> average_ranks(np.array([[1.0, 1.0], [2.0, 0.0], [2.0, 3.0]]))
    array([1.5 , 1.75, 2.75])
    """
    ranks: Floats = scipy_stats().rankdata(values, axis=-2).mean(axis=-1)
    return ranks


def table_rows(
    names: Mapping[str, Sequence[object]], columns: Mapping[str, Array]
) -> list[Json]:
    """Return one row per combination of names, and the entry of each column there.

    Examples
    --------
    >>> names = {"horizon": [10], "policy": ["asha", "random"]}
    >>> table_rows(names, {"regret": np.array([[0.5, 0.9]])})[1]
    {'horizon': 10, 'policy': 'random', 'regret': 0.9}
    """
    keys = (*names, *columns)
    places = product(*names.values())
    entries = zip(
        *(column.ravel().tolist() for column in columns.values()), strict=True
    )
    return [
        dict(zip(keys, (*place, *values), strict=True))
        for place, values in zip(places, entries, strict=True)
    ]
