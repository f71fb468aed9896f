"""Arguments at the boundary: returned as they should be, or why they are refused."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from risingsearch.errors import InvalidParameterError


def checked_int(name: str, value: object, low: int) -> int:
    """Return ``value`` as an int of at least ``low``, or raise what is wrong."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < low:
        msg = f"{name} must be a whole number of at least {low}; got {value!r}"
        raise InvalidParameterError(msg)
    return int(value)


def checked_float(
    name: str, value: object, low: float, high: float = math.inf, *, open_low: bool
) -> float:
    """Return ``value`` as a finite float between ``low`` and ``high``, or raise."""
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        in_range = number > low or (number == low and not open_low)
        if math.isfinite(number) and in_range and number <= high:
            return number
    bounds = []
    if low > -math.inf:
        bounds.append(f"{'above' if open_low else 'of at least'} {low:g}")
    if high < math.inf:
        bounds.append(f"at most {high:g}")
    allowed = " ".join(["a finite number", " and ".join(bounds)]).rstrip()
    msg = f"{name} must be {allowed}; got {value!r}"
    raise InvalidParameterError(msg)


def checked_flag(name: str, value: object) -> bool:
    """Return ``value`` if it is True or False, or raise what is wrong."""
    if not isinstance(value, (bool, np.bool_)):
        msg = f"{name} must be True or False; got {value!r}"
        raise InvalidParameterError(msg)
    return bool(value)


def checked_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``choices``, or raise what is wrong."""
    if value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        msg = f"{name} must be one of {allowed}; got {value!r}"
        raise InvalidParameterError(msg)
    return str(value)


def checked_range(name: str, value: Any) -> tuple[float, float]:
    """Return ``value`` as (lowest, highest), or raise what is wrong."""
    try:
        low, high = (float(bound) for bound in value)
    except (TypeError, ValueError):
        low = high = math.nan
    if low < high:
        return low, high
    msg = f"{name} must be (lowest, highest); got {value!r}"
    raise InvalidParameterError(msg)


def checked_finite_range(name: str, value: Any) -> tuple[float, float]:
    """Return ``value`` as (lowest, highest), both finite, or raise what is wrong."""
    low, high = checked_range(name, value)
    if not math.isfinite(high - low):
        msg = f"{name} must be finite on both sides; got {value!r}"
        raise InvalidParameterError(msg)
    return low, high


def checked_order(
    name: str, value: Any, n_arms: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return ``value`` as an array that names each arm once, or raise."""
    arms = list(value) if isinstance(value, Iterable) else []
    whole = all(isinstance(arm, Integral) for arm in arms)
    if not whole or sorted(arms) != list(range(n_arms)):
        msg = f"{name} must name each of the {n_arms} arms once; got {value!r}"
        raise InvalidParameterError(msg)
    return np.array(arms, dtype=np.int64)
