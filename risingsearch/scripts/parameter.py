"""What all parameters of a sweep have in common, and what a value can be."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Annotated, Any

from risingsearch.errors import missing

try:
    from pydantic import AfterValidator, BaseModel, ConfigDict, Field
except ModuleNotFoundError as error:
    raise missing("pydantic", "cli") from error

LARGEST = 2**62


class Strict(BaseModel):
    """A part of a sweep: nothing else than its fields, and finite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def without_nul(value: Any) -> Any:
    """Return a value unless it is text that no process can be given."""
    if isinstance(value, str) and "\0" in value:
        msg = "text cannot contain the character 0"
        raise ValueError(msg)
    return value


def _small(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > LARGEST:
        msg = "a whole number is from -2**62 to 2**62; put text in quotes"
        raise ValueError(msg)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        msg = "a number must be finite"
        raise ValueError(msg)
    if value is not None and not isinstance(value, bool | int | float | str):
        msg = "a value is a number, text, true, false, null or a list of these"
        raise ValueError(msg)
    return without_nul(_small(value))


Text = Annotated[str, AfterValidator(without_nul)]
Value = Annotated[
    bool | int | float | str, AfterValidator(_small), AfterValidator(without_nul)
]
Anything = Annotated[Any, AfterValidator(_plain)]
"""What a script can be given."""
Step = Annotated[float, Field(gt=0.0)]
Integral = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]


class BaseParameter(Strict):
    """A parameter; ``when`` names values of others that it needs."""

    when: dict[str, Value | list[Value]] = {}

    def applies(self, drawn: dict[str, Any]) -> bool:
        """Return whether the parameter is used with those drawn before."""
        for name, wanted in self.when.items():
            values = wanted if isinstance(wanted, list) else [wanted]
            if name not in drawn or drawn[name] not in values:
                return False
        return True


def exact(number: Any) -> Decimal:
    """Return a number as a file has it: 0.1 and 0.2 are 0.3."""
    return Decimal(repr(number))
