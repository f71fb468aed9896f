"""Parameters as plain Python describes them: a list of values."""

from collections.abc import Sequence

import numpy as np

from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import plain
from risingsearch.space.kinds import Choices, Kind
from risingsearch.space.values import is_number


def of_list(name: str, value: object) -> Kind | None:
    """Return the kind of some values; a tuple of two numbers may be a range."""
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
        return None
    if getattr(value, "ndim", 1) == 0 or len(value) == 0:
        return None
    if isinstance(value, tuple) and len(value) == 2 and all(map(is_number, value)):
        low, high = sorted(map(plain, value))
        raise InvalidParameterError(
            f"{name!r} has {value}, which may be a choice or a range: write "
            f"[{low}, {high}] for a choice, scipy.stats.{_range(low, high)} for a range"
        )
    return Choices(value)


def _range(low: float, high: float) -> str:
    if isinstance(low, int) and isinstance(high, int):
        return f"randint({low}, {high + 1})"
    if low > 0:
        return f"loguniform({low}, {high})"
    return f"uniform({low}, {high - low:g})"
