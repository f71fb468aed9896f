"""Short names for what policies are made of and given: arrays, generator, range."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Array: TypeAlias = Bools | Ints | Floats
Rng: TypeAlias = np.random.Generator
RewardRange: TypeAlias = tuple[float, float]
"""Lowest and highest reward."""


def zeros(shape: int | tuple[int, ...]) -> Floats:
    """Return an array of floats, all 0."""
    return np.zeros(shape)


def int_zeros(shape: int | tuple[int, ...]) -> Ints:
    """Return an array of integers, all 0."""
    return np.zeros(shape, dtype=np.int64)


def all_true(n: int) -> Bools:
    """Return ``n`` flags that are set."""
    return np.ones(n, dtype=np.bool_)
