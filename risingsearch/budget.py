"""Budget of a search: its units, and the text and JSON forms it is written in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from risingsearch.checks import checked_float, checked_int, shown
from risingsearch.errors import InvalidParameterError

SECONDS = {
    "seconds": 1.0,
    "hours": 3600.0,
    "gpu_hours": 3600.0,
    "wall_seconds": 1.0,
    "wall_hours": 3600.0,
}
"""Length of one of each unit of time."""
WALL_CLOCK = ("wall_seconds", "wall_hours")
TRAINING = ("seconds", "hours")

_UNITS = {
    None: TRAINING,
    "wall-": WALL_CLOCK,
    "gpu-": ("gpu_hours", "gpu_hours"),
}
_PER_HOUR = {"s": 3600.0, "min": 60.0, "h": 1.0}
_TEXT = re.compile(
    r"(?P<amount>\d+\.?\d*|\.\d+) ?(?P<kind>gpu-|wall-)?(?P<size>s|min|h)", re.ASCII
)
FORMS = (
    "'8h', '90min' or '45s' of training, summed over all workers, '8wall-h' of "
    "wall-clock time, or '20gpu-h'"
)


@dataclass(
    frozen=True,
    slots=True,
    repr=False,
)
class Budget:
    """Total that a search may spend, in exactly one of these units.

    Parameters
    ----------
    epochs : int, optional
        Number of training epochs, over all arms; at least 1. Never exceeded.
    seconds, hours : float, optional
        Training time, summed over all workers: four of them spend it four times as fast
        as the clock.
    cost : float, optional
        Any other cost: the sum of the ``"cost"`` that ``train`` returns with every
        score, or that is given to ``Scheduler.tell``.
    wall_seconds, wall_hours : float, optional
        Wall-clock time, however many workers train meanwhile. No worker idles to save
        epochs, since its time passes anyway.
    gpu_hours : float, optional
        Training time, summed over all workers, times the GPUs that a job of the
        trainable uses: its ``gpus``, by default 1.

    Raises
    ------
    InvalidParameterError
        If none or several are given, or the amount is not above 0.

    Examples
    --------
    >>> Budget(hours=1.5)
    Budget(hours=1.5)
    """

    epochs: int | None = None
    seconds: float | None = None
    cost: float | None = None
    wall_seconds: float | None = None
    hours: float | None = None
    wall_hours: float | None = None
    gpu_hours: float | None = None

    def __post_init__(self) -> None:
        amounts = {
            unit: getattr(self, unit)
            for unit in UNITS
            if getattr(self, unit) is not None
        }
        if len(amounts) != 1:
            each = [f"Budget({unit}={shown(value)})" for unit, value in amounts.items()]
            advice = "; got none of them"
            if amounts:
                advice = f": write {' or '.join(each)}"
            raise InvalidParameterError(
                f"a Budget has one of {', '.join(UNITS[:-1])} and {UNITS[-1]}{advice}"
            )
        [(unit, value)] = amounts.items()
        if unit == "epochs":
            value = checked_int("budget", value, 1)
        else:
            value = checked_float(
                "budget",
                value,
                0.0,
                open_low=True,
            )
        object.__setattr__(self, unit, value)

    def __repr__(self) -> str:
        """Show the amount in its unit."""
        return f"Budget({self.unit}={self.amount!r})"

    @property
    def unit(self) -> str:
        """The unit in which the amount is given: "epochs", "hours", ..."""
        return next(unit for unit in UNITS if getattr(self, unit) is not None)

    @property
    def amount(self) -> float:
        """The amount in that unit."""
        amount: float = getattr(self, self.unit)
        return amount

    @property
    def is_wall_clock(self) -> bool:
        """Whether it is wall-clock time, which passes for all workers at once."""
        return self.unit in WALL_CLOCK

    @classmethod
    def of(cls, value: object) -> Budget:
        """Return the budget that a number of epochs, a text or a Budget stands for.

        Minutes become hours.

        Raises
        ------
        InvalidParameterError
            If it is none of them.

        Examples
        --------
        >>> Budget.of(60), Budget.of("90min"), Budget.of("8 wall-h")
        (Budget(epochs=60), Budget(hours=1.5), Budget(wall_hours=8.0))
        """
        if isinstance(value, Budget):
            return value
        if isinstance(value, Mapping):
            raise InvalidParameterError(
                f"in Python a budget is {cls.from_json(value)}; got {shown(value)}"
            )
        if not isinstance(value, str):
            return cls(epochs=checked_int("budget", value, 1))
        match = _TEXT.fullmatch(value.strip())
        if match is None:
            raise InvalidParameterError(
                f"budget must be a whole number of epochs, a Budget, or a time such as "
                f"{FORMS}; got {shown(value)}"
            )
        amount = float(match["amount"])
        in_seconds, in_hours = _UNITS[match["kind"]]
        if match["size"] == "s" and in_seconds != in_hours:
            return cls.from_json({in_seconds: amount})
        return cls.from_json({in_hours: amount / _PER_HOUR[match["size"]]})

    def in_unit(self, unit: str) -> Budget | None:
        """Return the same budget in another unit; None if it cannot be converted.

        Examples
        --------
        >>> Budget(seconds=5400).in_unit("hours")
        Budget(hours=1.5)
        """
        unit_now = self.unit
        if unit_now == unit:
            return self
        for kind in (TRAINING, WALL_CLOCK):
            if unit_now in kind and unit in kind:
                amount = self.amount * SECONDS[unit_now] / SECONDS[unit]
                return Budget.from_json({unit: amount})
        return None

    def like(self, amount: float | str | Budget) -> Budget:
        """Return an amount as a budget: a number is in the unit of this one.

        Examples
        --------
        >>> Budget(hours=2).like(1.5), Budget(hours=2).like("1gpu-h")
        (Budget(hours=1.5), Budget(gpu_hours=1.0))
        """
        if isinstance(amount, str | Budget):
            return Budget.of(amount)
        whole = self.unit == "epochs" and float(amount).is_integer()
        return Budget.from_json({self.unit: int(amount) if whole else amount})

    def to_json(self) -> int | dict[str, float]:
        """Return the budget as YAML has it too: a number of epochs, or a mapping."""
        if self.epochs is None:
            return {self.unit: self.amount}
        return self.epochs

    @classmethod
    def from_json(cls, value: int | Mapping[str, Any]) -> Budget:
        """Read the result of ``to_json``, or raise an InvalidParameterError."""
        if not isinstance(value, Mapping):
            return cls(epochs=value)
        if unknown := sorted(map(str, value.keys() - {*UNITS})):
            raise InvalidParameterError(
                f"{unknown[0]} is no unit of a budget: give one of {', '.join(UNITS)}"
            )
        return cls(**value)


UNITS = tuple(field.name for field in fields(Budget))


def in_words(unit: str) -> str:
    """Return a unit as people are told it: "wall-clock seconds", "GPU-hours"."""
    return unit.replace("wall_", "wall-clock ").replace("gpu_", "GPU-")


def budget_within(
    budget: int | str | Budget | None, timeout: float | None = None
) -> Budget:
    """Return the budget of a search: the one given, or the time until the timeout."""
    if timeout is None and budget is None:
        raise InvalidParameterError(
            "say when the search ends: budget=300 for 300 epochs in all, or "
            "timeout=600 for 600 seconds of wall-clock time"
        )
    if timeout is not None:
        timeout = checked_timeout(timeout)
    if budget is None:
        return Budget(wall_seconds=timeout)
    return Budget.of(budget)


def checked_timeout(value: object, name: str = "timeout") -> float:
    """Return seconds as a float, or raise an error."""
    return checked_float(
        f"{name}, in seconds,",
        value,
        0.0,
        open_low=True,
    )


def epochs_of(budget: object, instead: str) -> int:
    """Return the epochs of a budget; ``instead`` says in an error how to limit time."""
    budget = Budget.of(budget)
    if budget.epochs is None:
        raise InvalidParameterError(
            f"budget is a number of epochs here; got {budget}: limit time by {instead}"
        )
    epochs: int = budget.epochs
    return epochs
