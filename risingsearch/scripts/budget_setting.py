"""What a sweep may spend, as its file or an option of the command line says it."""

from __future__ import annotations

from typing import Annotated, Any

from risingsearch.arms import Budget
from risingsearch.errors import InvalidParameterError, missing
from risingsearch.scheduling.units import SECONDS, budget_of, in_unit

try:
    from pydantic import Field, ValidationError, model_validator
except ModuleNotFoundError as error:
    raise missing(str(error.name), "cli") from error

from risingsearch.scripts.parameter import Strict
from risingsearch.scripts.problems import problems_of

LONGEST = 1e9  # seconds, some 30 years
MOST_EPOCHS = 10**12
LARGEST_COST = 1e15

Epochs = Annotated[int, Field(ge=1, le=MOST_EPOCHS)]
Seconds = Annotated[float, Field(gt=0.0, le=LONGEST)]
Hours = Annotated[float, Field(gt=0.0, le=LONGEST / SECONDS["hours"])]


class BudgetSetting(Strict):
    """What the sweep may spend: exactly one of these; see ``Budget``."""

    epochs: Epochs | None = None
    seconds: Seconds | None = None
    hours: Hours | None = None
    wall_seconds: Seconds | None = None
    wall_hours: Hours | None = None
    gpu_hours: Hours | None = None
    cost: Annotated[float, Field(gt=0.0, le=LARGEST_COST)] | None = None

    @model_validator(mode="after")
    def _one(self) -> BudgetSetting:
        given = [name for name, value in self if value is not None]
        if len(given) != 1:
            *names, last = type(self).model_fields
            msg = f"give one of {', '.join(names)} and {last}; got {given or 'none'}"
            raise ValueError(msg)
        return self

    @property
    def unit(self) -> str:
        """In which the budget is given."""
        return next(name for name, value in self if value is not None)

    @property
    def budget(self) -> int | Budget:
        """As a search takes it."""
        return self.epochs or Budget(**{self.unit: getattr(self, self.unit)})

    def with_amount(self, amount: float | Budget) -> BudgetSetting:
        """Return another budget: a number is in the unit of this one."""
        if not isinstance(amount, Budget):
            return _checked({self.unit: amount})
        [unit] = amount.units
        return _checked({unit: getattr(amount, unit)})

    def more(self, added: float | Budget) -> int | Budget:
        """Return what is added to the budget: a number is in its unit."""
        if isinstance(added, Budget) and in_unit(added, self.unit) is None:
            [unit] = added.units
            msg = (
                f"the budget is in {self.unit}, and cannot grow by "
                f"{getattr(added, unit):g} {unit}: add a number of {self.unit}"
            )
            raise InvalidParameterError(msg)
        return self.with_amount(added).budget


def budget_as_mapping(value: Any) -> Any:
    """Return a budget in a file as a mapping: a number is of epochs, text a time."""
    if isinstance(value, dict | BudgetSetting):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return {"epochs": value}
    try:
        budget = budget_of(value)
    except InvalidParameterError:
        budget = None
    if not isinstance(budget, Budget):
        msg = (
            "it is a number of epochs, a time such as 8h, 8wall-h or 20gpu-h, or a "
            "mapping such as {hours: 1}"
        )
        raise ValueError(msg)
    [unit] = budget.units
    return {unit: getattr(budget, unit)}


def _checked(amount: dict[str, Any]) -> BudgetSetting:
    try:
        return BudgetSetting.model_validate(amount)
    except ValidationError as error:
        msg = f"a budget: {problems_of(error, {}, {})}"
        raise InvalidParameterError(msg) from error
