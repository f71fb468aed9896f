"""Arrays, paths and seeds at the boundary: as they should be, or why they are not."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import checked_seed
from risingsearch.errors import InvalidParameterError


def checked_array(
    name: str, value: Any, dtype: type | None = float, ndmin: int = 0
) -> NDArray[Any]:
    """Return a new array of numbers, or raise what is wrong."""
    try:
        return np.array(value, dtype=dtype, ndmin=ndmin, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"{name} must be numbers in a regular table; got {reprlib.repr(value)}"
        raise InvalidParameterError(msg) from error


def checked_path(name: str, value: Any) -> Path:
    """Return a path, or raise what is wrong."""
    try:
        return Path(value)
    except TypeError as error:
        msg = f"{name} must be a path; got {value!r}"
        raise InvalidParameterError(msg) from error


def checked_generator(seed: Any) -> np.random.Generator:
    """Return a generator: itself, a seeded one, or for None an unseeded one."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(checked_seed(seed))
