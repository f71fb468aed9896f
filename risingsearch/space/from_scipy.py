"""Parameters as SciPy describes them: distributions with all their numbers."""

from typing import Any

import numpy as np

from risingsearch.errors import InvalidParameterError
from risingsearch.space.kinds import Choices, Drawn, Kind, Quantiles


def of_quantiles(name: str, value: Any) -> Kind | None:
    """Return the kind of a distribution with ``cdf`` and ``ppf``."""
    if shapes := getattr(value, "shapes", None):
        function = f"scipy.stats.{value.name}"
        raise InvalidParameterError(
            f"{name!r} has {function} without its numbers: write {function}({shapes}), "
            "with a number for each, and loc and scale if need be"
        )
    if not (hasattr(value, "ppf") and hasattr(value, "cdf")):
        return None
    with np.errstate(invalid="ignore"):
        has_width = not np.isnan(value.ppf(np.array([0.5]))).any()
    # With a scale of 0 there are no quantiles, and every draw is the same number.
    if has_width:
        return Quantiles(value)
    return Choices([value.rvs()])


def of_draws(name: str, value: object) -> Kind | None:
    """Return the kind of a distribution that can only be drawn from."""
    if hasattr(value, "rvs"):
        return Drawn(value)
    return None
