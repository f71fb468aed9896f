"""Configurations as numbers that a model can use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ABSENT = object()


def encode(
    candidates: Sequence[Mapping[str, Any]],
    distributions: Mapping[str, Any] | None = None,
) -> NDArray[np.float64] | None:
    """Return a row of features per configuration, about 0 to 1 in each column.

    A number becomes its place in its distribution, where one is given: in the logarithm
    if that says so (Optuna's ``log``), by the cumulative probability where there is one
    (scipy's ``cdf``, which spreads a log-uniform parameter evenly). Without a
    distribution it becomes its rank among the configurations, which needs no scale.
    Everything else is a category, with a column of 0 and the root of 1/2 per value, so
    that two categories are as far apart as the ends of a number. A parameter that some
    configurations do not have (a conditional one) gets a column more for that, and one
    half as its number. None comes back where nothing tells the configurations apart: no
    parameter varies, or each has values that no other has and that are not numbers.

    Examples
    --------
    >>> rates, kinds = [0.001, 0.1, 0.01, 1.0], "aabb"
    >>> encode([{"rate": r, "kind": k} for r, k in zip(rates, kinds)])
    array([[0.   , 0.707, 0.   ],
           [0.667, 0.707, 0.   ],
           [0.333, 0.   , 0.707],
           [1.   , 0.   , 0.707]])
    >>> encode([{"depth": 3}, {"depth": 3}]) is None
    True
    """
    features = encoded(candidates, distributions)
    return None if features is None else features[np.arange(len(candidates))]


def encoded(
    candidates: Sequence[Mapping[str, Any]],
    distributions: Mapping[str, Any] | None = None,
) -> Features | None:
    """Return the same features, without a column in memory for every category."""
    names = dict.fromkeys(name for params in candidates for name in params)
    columns = [
        column
        for name in names
        for column in _columns(
            [params.get(name, ABSENT) for params in candidates],
            (distributions or {}).get(name),
        )
    ]
    varying = [column for column in columns if np.ptp(column.values) > 0]
    return Features(varying) if varying else None


class Column(NamedTuple):
    """A parameter of every configuration: a number, or which category it is."""

    values: NDArray[Any]  # (n_candidates,), of a category its number, or NO_CATEGORY
    n_categories: int = 0  # 0 for numbers


NO_CATEGORY = -1


class Features:
    """The rows of features of many configurations, of which some are asked for.

    Examples
    --------
    >>> rates, kinds = [0.001, 0.1, 0.01, 1.0], "aabb"
    >>> features = encoded([{"rate": r, "kind": k} for r, k in zip(rates, kinds)])
    >>> features.shape
    (4, 3)
    >>> features[np.array([3, 0])]
    array([[1.   , 0.   , 0.707],
           [0.   , 0.707, 0.   ]])
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        n_features = sum(max(1, column.n_categories) for column in columns)
        self.shape = len(columns[0].values), n_features

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the features of some configurations, of shape (n, n_features)."""
        table = np.zeros((len(rows), self.shape[1]))
        first = 0
        for values, n_categories in self._columns:
            if not n_categories:
                table[:, first] = values[rows]
            else:
                known = np.flatnonzero(values[rows] != NO_CATEGORY)
                table[known, first + values[rows[known]]] = math.sqrt(0.5)
            first += max(1, n_categories)
        return table


def _columns(values: Sequence[Any], distribution: Any) -> list[Column]:
    here = np.array([value is not ABSENT for value in values])
    known = [value for value in values if value is not ABSENT]
    presence = [] if here.all() else [Column(math.sqrt(0.5) * here)]
    if all(is_number(value) for value in known):
        numbers = np.array([float(value) for value in known])
        column = np.full(len(values), 0.5)
        column[here] = _placed(numbers, distribution)
        return [Column(column), *presence]
    keys = [value if _is_hashable(value) else repr(value) for value in values]
    kinds = dict.fromkeys(key for key in keys if key is not ABSENT)
    if 2 * len(kinds) > len(known):  # next to nothing is said twice
        return presence
    equal = [kind for kind in kinds if kind == kind]  # NaN is not even like itself
    number_of = {kind: number for number, kind in enumerate(equal)}
    categories = np.array([number_of.get(key, NO_CATEGORY) for key in keys])
    return [Column(categories, len(equal)), *presence]


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_number(value: Any) -> bool:
    """Return whether a parameter's value is a number that a float can hold."""
    if type(value) is float:  # most are
        return math.isfinite(value)
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # it is an integer that no float can hold
        return False


def _placed(numbers: NDArray[np.float64], distribution: Any) -> NDArray[np.float64]:
    """Return where the numbers lie in their distribution, or among themselves."""
    if hasattr(distribution, "cdf"):
        return np.asarray(distribution.cdf(numbers), dtype=float)
    low: Any = getattr(distribution, "low", None)
    high: Any = getattr(distribution, "high", None)
    if is_number(low) and is_number(high) and low < high:
        if getattr(distribution, "log", False):
            numbers, low, high = np.log(numbers), math.log(low), math.log(high)
        places: NDArray[np.float64] = (numbers - low) / (high - low)
        return places
    _, rank = np.unique(numbers, return_inverse=True)
    return rank / max(1.0, float(rank.max(initial=0)))
