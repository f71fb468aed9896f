"""Configurations as numbers that a model can use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from risingsearch.contents import digest

ABSENT = object()
MOST_CATEGORIES = 100
_ROOT = math.sqrt(0.5)


def encode(
    candidates: Sequence[Mapping[str, Any]],
    distributions: Mapping[str, Any] | None = None,
) -> NDArray[np.float64] | None:
    """Return a row of features per configuration, about 0 to 1 in each column.

    A number becomes its place in its distribution (in the logarithm if that says so, or
    by its ``cdf``), without one its rank among the configurations. Anything else is a
    category, with a column of 0 and the root of 1/2 per value, so that two are as far
    apart as the ends of a number; one of over 100 values, or of hardly any twice, is
    left out. A parameter that some lack gets a column more, and one half as its number.
    None comes back if nothing tells the configurations apart.
    """
    names = dict.fromkeys(name for params in candidates for name in params)
    columns = [
        column
        for name in names
        for column in _columns(
            [params.get(name, ABSENT) for params in candidates],
            (distributions or {}).get(name),
        )
    ]
    varying = [column for column in columns if np.ptp(column) > 0]
    return np.stack(varying, axis=1) if varying else None


def _columns(values: Sequence[Any], distribution: Any) -> list[NDArray[np.float64]]:
    here = np.array([value is not ABSENT for value in values])
    known = [value for value in values if value is not ABSENT]
    presence = [] if here.all() else [_ROOT * here]
    if all(is_number(value) for value in known):
        numbers = np.array([float(value) for value in known])
        column = np.full(len(values), 0.5)
        column[here] = _placed(numbers, distribution)
        return [column, *presence]
    keys = [value if _is_hashable(value) else digest(value) for value in values]
    kinds = dict.fromkeys(key for key in keys if key is not ABSENT)
    if len(kinds) > min(len(known) / 2, MOST_CATEGORIES):  # hardly any repeat
        return presence
    equal = [kind for kind in kinds if kind == kind]  # NaN is not even like itself
    number_of = {kind: number for number, kind in enumerate(equal)}
    numbers = np.array([number_of.get(key, -1) for key in keys])
    return [*(_ROOT * (numbers == k) for k in range(len(equal))), *presence]


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
