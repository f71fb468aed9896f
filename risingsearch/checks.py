"""Arguments at the boundary: returned as they should be, or why they are refused."""

import inspect
import math
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any, SupportsFloat, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from risingsearch.errors import InvalidParameterError

LARGEST_SCORE = 1e150
"""The largest magnitude of a score: policies add up squares of scores."""

LARGEST_COST = 1e100
"""Of an epoch: those of a whole search still add up to a finite number."""

LARGEST_INT = 2**53  # of sizes and counts: up to here they are exact as floats, too

LARGEST_SEED = 2**128 - 1  # as many bits as numpy draws where no seed is given

_SHOWN = 200  # characters of a value in a message


def shown(value: object) -> str:
    """Return a value as text for a message, cut where it is long.

    Examples
    --------
    >>> shown("0.5"), shown(10**5000)
    ("'0.5'", 'an int that is too large to be shown')
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # over 4,300 digits; nested too deep
        kind = type(value).__name__
        article = "an" if kind[0] in "aeiou" else "a"
        return f"{article} {kind} that is too large to be shown"
    return cut(text)


def cut(text: str) -> str:
    """Return the text, or its beginning where it is long."""
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}..."


def on_one_line(text: str, longest: int = _SHOWN) -> str:
    """Return a foreign name as printable text on one line.

    Examples
    --------
    >>> on_one_line("May" * 100, longest=9)
    'MayM…yMay'
    """
    shown = ""
    for character in text:
        if not character.isprintable():
            character = character.encode("unicode_escape").decode()
        shown += character
    if len(shown) <= longest:
        return shown
    half = (longest - 1) // 2
    return f"{shown[:half]}…{shown[-half:]}"


def is_number(value: object) -> TypeGuard[float]:
    """Return whether this is a real number; True and False are none.

    Examples
    --------
    >>> is_number(0.5), is_number(np.float32(0.5)), is_number(True), is_number("0.5")
    (True, True, False, False)
    """
    if type(value) in (float, int):  # most are, and abstract classes are slow to ask
        return True
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


def unwrapped(value: object) -> Any:
    """Return the number in a tensor or array without dimensions; all else as it is.

    Examples
    --------
    >>> unwrapped(np.array(0.5)), unwrapped("0.5")
    (0.5, '0.5')
    """
    if is_number(value) or isinstance(value, type) or getattr(value, "ndim", 1) != 0:
        return value
    if hasattr(value, "item"):
        return value.item()
    return value


def as_float(value: object) -> float | None:
    """Return a number as a float; None if it is no number or exceeds all floats.

    Examples
    --------
    >>> as_float(1), as_float(10**400), as_float("1")
    (1.0, None, None)
    """
    if not is_number(value):
        return None
    try:
        return float(value)
    except (OverflowError, ValueError):  # 10**400; a signalling NaN
        return None


def is_cost(value: object) -> bool:
    """Return whether this is a finite number of at least 0, as costs are.

    Examples
    --------
    >>> is_cost(0.5), is_cost(-1), is_cost(10**400)
    (True, False, False)
    """
    number = as_float(value)
    return number is not None and 0.0 <= number <= LARGEST_COST


def checked_int(
    name: str,
    value: object,
    low: int,
    high: int = LARGEST_INT,
) -> int:
    """Return ``value`` as an int from ``low`` to ``high``, or raise an error.

    Parameters
    ----------
    name : str
        The parameter, for the message.
    value : object
        Anything; booleans are refused, and so are floats.
    low, high : int
        The range; both ends belong to it.

    Returns
    -------
    int
        The value, where it was a numpy integer too.

    Raises
    ------
    InvalidParameterError
        If it is no whole number of this range.

    Examples
    --------
    >>> checked_int("n_runs", np.int64(3), 1)
    3
    >>> checked_int("n_runs", 0, 1)
    Traceback (most recent call last):
    ...
    risingsearch.errors.InvalidParameterError: n_runs must be a whole number of ...
    """
    allowed = f"a whole number of at least {low}"
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if low <= number <= high:
            return number
        if number > high:
            allowed += f" and at most {high}"
    raise InvalidParameterError(f"{name} must be {allowed}; got {shown(value)}")


def checked_seed(value: object) -> int | None:
    """Return a seed as an int, or None as it is, or raise an error."""
    if value is None:
        return None
    return checked_int("seed", value, 0, LARGEST_SEED)


def checked_float(
    name: str,
    value: object,
    low: float,
    high: float = math.inf,
    *,
    open_low: bool = False,
) -> float:
    """Return ``value`` as a finite float between ``low`` and ``high``, or raise.

    ``low`` itself is refused if ``open_low``, and allowed if not; ``high`` is allowed.

    Parameters
    ----------
    name : str
        The parameter, for the message.
    value : object
        Anything; booleans are refused.
    low, high : float
        The range; ``high`` belongs to it.
    open_low : bool, default False
        Whether ``low`` itself is refused.

    Returns
    -------
    float
        The value.

    Raises
    ------
    InvalidParameterError
        If it is no finite number of this range.

    Examples
    --------
    >>> checked_float("eps", 1, 0.0, 1.0, open_low=True)
    1.0
    >>> checked_float("eps", 0, 0.0, 1.0, open_low=True)
    Traceback (most recent call last):
    ...
    risingsearch.errors.InvalidParameterError: eps must be a finite number above 0 ...
    """
    number = as_float(value)
    if number is not None and math.isfinite(number) and low <= number <= high:
        is_refused_end = open_low and number == low
        if not is_refused_end:
            return number
    bounds = []
    if low > -math.inf:
        words = "above" if open_low else "of at least"
        bounds.append(f" {words} {low:g}")
    if high < math.inf:
        bounds.append(f" at most {high:g}")
    allowed = "a finite number" + " and".join(bounds)
    raise InvalidParameterError(f"{name} must be {allowed}; got {shown(value)}")


def checked_magnitude(name: str, value: float) -> float:
    """Return a number as the float of a score, or raise where it is too large."""
    number = as_float(value)
    if number is not None and not LARGEST_SCORE < abs(number) < math.inf:
        return number
    raise InvalidParameterError(
        f"{name} must be at most {LARGEST_SCORE:g} in magnitude, so that policies can "
        f"add up squares of it; got {shown(value)}"
    )


def checked_flag(name: str, value: object) -> bool:
    """Return ``value`` if it is True or False, or raise an error."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidParameterError(f"{name} must be True or False; got {shown(value)}")
    return bool(value)


def checked_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``choices``, or raise an error.

    Parameters
    ----------
    name : str
        The parameter, for the message.
    value : object
        Anything.
    choices : tuple of str
        The texts allowed.

    Examples
    --------
    >>> checked_choice("order", "rnd", ("random", "round-robin"))
    Traceback (most recent call last):
    ...
    risingsearch.errors.InvalidParameterError: order must be one of 'random', ...
    """
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameterError(
            f"{name} must be one of {allowed}; got {shown(value)}"
        )
    return str(value)


def checked_reward_range(value: Iterable[SupportsFloat]) -> tuple[float, float]:
    """Return ``value`` as (lowest, highest), both finite, or raise an error.

    Examples
    --------
    >>> checked_reward_range([0, 100])
    (0.0, 100.0)
    """
    try:
        low, high = (float(bound) for bound in value)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if low < high and math.isfinite(high - low):
        return low, high
    raise InvalidParameterError(
        f"reward_range must be (lowest, highest), both finite; got {shown(value)}"
    )


def checked_order(name: str, value: object, n_arms: int) -> NDArray[np.int64]:
    """Return ``value`` as an array that names each arm once, or raise.

    Examples
    --------
    >>> checked_order("order", [2, 0, 1], n_arms=3)
    array([2, 0, 1])
    """
    return np.array(checked_arms(name, value, n_arms, every=True), dtype=np.int64)


def checked_arms(
    name: str,
    value: object,
    n_arms: int,
    *,
    every: bool = False,
) -> list[int]:
    """Return ``value`` as a list of some of the arms, or of all, or raise an error.

    Examples
    --------
    >>> checked_arms("arms", 2, n_arms=3), checked_arms("arms", [0, 2], n_arms=3)
    ([2], [0, 2])
    """
    arms: list[Any] = [value]
    if isinstance(value, Iterable):
        arms = list(value)
    numbers = [int(arm) for arm in arms if isinstance(arm, Integral)]
    different = {number for number in numbers if 0 <= number < n_arms}
    needed = n_arms if every else len(arms)
    if needed == len(arms) == len(different):
        return numbers
    which = "each" if every else "some"
    raise InvalidParameterError(
        f"{name} must name {which} of the {n_arms} arms once; got {shown(value)}"
    )


def checked_array(
    name: str,
    value: ArrayLike,
    dtype: type | None = float,
    ndmin: int = 0,
) -> NDArray[Any]:
    """Return a new array of numbers, or raise an error.

    Examples
    --------
    >>> checked_array("means", [[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    try:
        return np.array(
            value,
            dtype=dtype,
            ndmin=ndmin,
            order="C",
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidParameterError(
            f"{name} must be numbers in a regular table; got {shown(value)}"
        ) from error


def checked_path(name: str, value: object) -> Path:
    """Return a path, or raise an error."""
    if isinstance(value, str | os.PathLike):
        with suppress(TypeError):  # a path of bytes
            path = Path(value)
            if value != "" and "\0" not in str(path):
                return path
    raise InvalidParameterError(
        f"{name} must be a path, as text or a pathlib.Path; got {shown(value)}"
    )


def kept_path(name: str, value: object) -> Path:
    """Return a checked path that stays the same if the current folder changes."""
    return checked_path(name, value).absolute()


def checked_generator(seed: object) -> np.random.Generator:
    """Return a generator: itself, a seeded one, or for None an unseeded one."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(checked_seed(seed))


def call_problem(
    call: Callable[..., object], takes: str, /, **given: object
) -> str | None:
    """Return why a function does not take these arguments; None if it does.

    Parameters
    ----------
    call : callable
        The function, or an object that can be called.
    takes : str
        The names of the arguments given by position, with commas.
    **given : object
        The arguments given by name.

    Returns
    -------
    str or None
        As Python words it; None also where a builtin does not tell its signature.

    Examples
    --------
    >>> call_problem(lambda t, rng: 0, "t, rng"), call_problem(lambda t: 0, "t, rng")
    (None, 'too many positional arguments')
    """
    try:
        # of a decorated one, what the decorator takes
        inspect.signature(call, follow_wrapped=False).bind(*takes.split(", "), **given)
    except TypeError as error:
        return str(error)
    except ValueError:  # of a builtin, which has no signature
        pass
    return None


@cache
def keyword_defaults(function: Callable[..., object]) -> dict[str, Any]:
    """Return the keyword-only parameters of a function; ``...`` where one is needed.

    Examples
    --------
    >>> keyword_defaults(checked_float)
    {'open_low': False}
    """
    parameters = inspect.signature(function).parameters.values()
    defaults = {}
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY:
            is_needed = parameter.default is parameter.empty
            defaults[parameter.name] = ... if is_needed else parameter.default
    return defaults
