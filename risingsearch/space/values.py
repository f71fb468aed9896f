"""Values of parameters: which are numbers, and which are the same."""

import math
from collections.abc import Hashable
from decimal import Decimal
from numbers import Integral, Real
from typing import TypeGuard

import numpy as np

from risingsearch.arms import Configuration
from risingsearch.identity.fingerprint import digest
from risingsearch.json_values import plain

SINGLE_PRECISION = 2.0**-23
"""Relative error of a number that was saved in 32 bits."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a parameter's value is a number that a float can hold.

    Parameters
    ----------
    value : object
        Any value of a parameter.

    Returns
    -------
    bool
        False for truth values, infinity, NaN, and integers that are too large.

    Examples
    --------
    >>> [is_number(value) for value in (1, 0.5, True, "1", float("nan"), 10**400)]
    [True, True, False, False, False, False]
    """
    if type(value) is float:  # most are
        return math.isfinite(value)
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def key_of(value: object) -> Hashable:
    """Return a hashable, equal for values of one type and content.

    Parameters
    ----------
    value : object
        Any value of a parameter, also one that cannot be hashed itself.

    Returns
    -------
    Hashable
        The same for all NaN; 1, 1.0 and True have different ones.

    Examples
    --------
    >>> key_of([1, 2]) == key_of([1, 2]), key_of(1) == key_of(1.0)
    (True, False)
    """
    value = plain(value)
    if isinstance(value, tuple):
        return tuple(map(key_of, value))
    if type(value) is object:  # a mark, as of what is absent
        return value
    kind = type(value).__name__
    if value is None:
        return kind, value
    if isinstance(value, (str, int, float)) and value == value:
        return kind, value
    return kind, digest(value)


def key_of_all(params: Configuration) -> Hashable:
    """Return a hashable, equal for configurations of the same values.

    Parameters
    ----------
    params : dict
        A configuration.

    Returns
    -------
    Hashable
        It does not depend on the order of the parameters.

    Examples
    --------
    >>> key_of_all({"a": 1, "b": 2}) == key_of_all({"b": 2, "a": 1})
    True
    """
    return frozenset((name, key_of(value)) for name, value in params.items())


def is_between(
    value: object,
    low: float,
    high: float,
) -> TypeGuard[float]:
    """Return whether a value is a number between two ends, except for rounding.

    Parameters
    ----------
    value : object
        Any value of a parameter.
    low, high : float
        The ends, which count as between.

    Returns
    -------
    bool
        Whether it is, where it may have been rounded to 32 bits.

    Examples
    --------
    >>> is_between(0.30000001, 0.1, 0.3), is_between(0.31, 0.1, 0.3)
    (True, False)
    """
    if not is_number(value):
        return False
    if not isinstance(value, Integral):  # which is compared exactly, however large
        rounding = rounding_of(value)
        low -= rounding
        high += rounding
    return bool(low <= value <= high)


def rounding_of(number: float) -> float:
    """Return how far a number may be from the one it stands for.

    Parameters
    ----------
    number : float
        A number, of Python or of NumPy.

    Returns
    -------
    float
        The error of 32 bits, or of the number's type if that has fewer.

    Examples
    --------
    >>> rounding_of(8.0)
    9.5367431640625e-07
    """
    relative = SINGLE_PRECISION
    if isinstance(number, np.floating):
        relative = max(relative, float(np.finfo(number).eps))
    return relative * abs(float(number))


def exact(number: float) -> Decimal:
    """Return a number as it is written.

    Parameters
    ----------
    number : float
        A number, of Python or of NumPy.

    Returns
    -------
    Decimal
        Its shortest text as a decimal number.

    Examples
    --------
    >>> 0.1 + 0.2 == 0.3, exact(0.1) + exact(0.2) == exact(0.3)
    (False, True)
    """
    return Decimal(repr(plain(number)))
