"""Parameters as Optuna describes them."""

from risingsearch.space.kinds import Choices, Interval, Kind
from risingsearch.space.values import is_number


def of_optuna(name: str, value: object) -> Kind | None:
    """Return the kind of a distribution of Optuna."""
    if hasattr(value, "choices"):
        return Choices(value.choices)
    if not hasattr(value, "log"):
        return None
    low = getattr(value, "low", None)
    high = getattr(value, "high", None)
    if not (is_number(low) and is_number(high)):
        return None
    return Interval(
        low,
        high,
        log=bool(value.log),
        step=None if value.log else getattr(value, "step", None),
        whole=isinstance(low, int),
    )
