"""The units of a budget: how they are written, and what measured time is in them."""

from __future__ import annotations

import re
from typing import Any

from risingsearch.arms import Budget
from risingsearch.checks import checked_float, checked_int, shown
from risingsearch.errors import InvalidParameterError

SECONDS = {
    "seconds": 1.0,
    "hours": 3600.0,
    "gpu_hours": 3600.0,
    "wall_seconds": 1.0,
    "wall_hours": 3600.0,
}
"""In one of each unit of time."""
BY_THE_CLOCK = ("wall_seconds", "wall_hours")
OF_TRAINING = ("seconds", "hours")

_KINDS = {None: OF_TRAINING, "wall-": BY_THE_CLOCK, "gpu-": ("gpu_hours", "gpu_hours")}
_PER_HOUR = {"s": 3600.0, "min": 60.0, "h": 1.0}
_TEXT = re.compile(
    r"(?P<amount>\d+\.?\d*|\.\d+) ?(?P<kind>gpu-|wall-)?(?P<size>s|min|h)", re.ASCII
)
FORMS = (
    "'8h', '90min' or '45s' of training, summed over all workers, '8wall-h' by the "
    "clock, or '20gpu-h'"
)


def budget_of(given: Any) -> Any:
    """Return a budget that may be text; what is none is returned as it is.

    Minutes are shown as hours.

    Raises
    ------
    InvalidParameterError
        If a text is no budget.

    Examples
    --------
    >>> budget_of("90min"), budget_of("8 wall-h"), budget_of("20gpu-h"), budget_of(60)
    (Budget(hours=1.5), Budget(wall_hours=8.0), Budget(gpu_hours=20.0), 60)
    """
    if not isinstance(given, str):
        return given
    found = _TEXT.fullmatch(given.strip())
    if found is None:
        msg = (
            f"budget must be a whole number of epochs, a Budget, or a time such as "
            f"{FORMS}; got {shown(given)}"
        )
        raise InvalidParameterError(msg)
    amount, in_seconds, in_hours = float(found["amount"]), *_KINDS[found["kind"]]
    if found["size"] == "s" and in_seconds != in_hours:
        return _budget(in_seconds, amount)
    return _budget(in_hours, amount / _PER_HOUR[found["size"]])


def in_unit(budget: Any, unit: str) -> Budget | None:
    """Return a budget in another unit of its kind; None where it is of another kind.

    Examples
    --------
    >>> in_unit(Budget(seconds=5400), "hours")
    Budget(hours=1.5)
    """
    if not isinstance(budget, Budget) or len(budget.units) != 1:
        return None
    [given] = budget.units
    if given == unit:
        return budget
    for kind in (OF_TRAINING, BY_THE_CLOCK):
        if given in kind and unit in kind:
            amount = checked_float("budget", getattr(budget, given), 0.0, open_low=True)
            return _budget(unit, amount * SECONDS[given] / SECONDS[unit])
    return None


def epochs_of(budget: Any, instead: str) -> int:
    """Return a budget that can only be in epochs; ``instead`` limits the time.

    Examples
    --------
    >>> epochs_of(Budget(epochs=60), instead="")
    60
    """
    budget = budget_of(budget)
    if not isinstance(budget, Budget):
        return checked_int("budget", budget, 1)
    if budget.units != ["epochs"]:
        msg = (
            f"budget is a number of epochs here; got {budget}: limit time by {instead}"
        )
        raise InvalidParameterError(msg)
    return checked_int("budget", budget.epochs, 1)


def _budget(unit: str, amount: float) -> Budget:
    given: dict[str, Any] = {unit: amount}
    return Budget(**given)
