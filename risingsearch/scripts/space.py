"""What a sweep searches: parameters, each with what it may be."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from risingsearch.errors import missing

try:
    from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
except ModuleNotFoundError as error:
    raise missing("pydantic", "cli") from error

LARGEST = 2**62
MOST_CASES = 10_000  # of the conditions, that are told apart


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


Value = Annotated[
    bool | int | float | str, AfterValidator(_small), AfterValidator(without_nul)
]
Integral = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]


class _Parameter(Strict):
    """A parameter; ``when`` names values of others that it needs."""

    when: dict[str, Value | list[Value]] = {}

    def applies(self, drawn: dict[str, Any]) -> bool:
        """Return whether the parameter is used with those drawn before."""
        for name, wanted in self.when.items():
            values = wanted if isinstance(wanted, list) else [wanted]
            if name not in drawn or drawn[name] not in values:
                return False
        return True


class _Range(_Parameter):
    low: float
    high: float

    @model_validator(mode="after")
    def _in_order(self) -> _Range:
        if not self.low < self.high:
            msg = f"low must be below high; got {self.low:g} and {self.high:g}"
            raise ValueError(msg)
        if math.isinf(self.high - self.low):
            msg = f"from {self.low:g} to {self.high:g} is too far for a number"
            raise ValueError(msg)
        return self


class Uniform(_Range):
    """Any number between two."""

    n_values: ClassVar[float] = math.inf

    type: Literal["uniform"]

    def draw(self, rng: np.random.Generator) -> float:
        """Return a value."""
        return float(rng.random()) * (self.high - self.low) + self.low


class LogUniform(_Range):
    """Any number between two, its logarithm evenly spread."""

    n_values: ClassVar[float] = math.inf

    type: Literal["log-uniform"]
    low: float = Field(gt=0.0)

    def draw(self, rng: np.random.Generator) -> float:
        """Return a value."""
        return _between_logs(*self._logs, rng)

    @cached_property
    def _logs(self) -> tuple[float, float]:
        return _logs(self.low, self.high)


class Integer(_Parameter):
    """A whole number between two, both included."""

    type: Literal["int"]
    low: Integral
    high: Integral
    log: bool = False

    @property
    def n_values(self) -> int:
        """How many different values there are."""
        return self.high - self.low + 1

    @property
    def values(self) -> Sequence[int]:
        """All of them."""
        return range(self.low, self.high + 1)

    @model_validator(mode="after")
    def _in_order(self) -> Integer:
        if not self.low < self.high:
            msg = f"low must be below high; got {self.low} and {self.high}"
            raise ValueError(msg)
        if self.log and self.low < 1:
            msg = f"with log, low must be at least 1; got {self.low}"
            raise ValueError(msg)
        return self

    def draw(self, rng: np.random.Generator) -> int:
        """Return a value."""
        if self.log:
            return min(int(_between_logs(*self._logs, rng)), self.high)
        return int(rng.integers(self.low, self.high + 1))

    @cached_property
    def _logs(self) -> tuple[float, float]:
        return _logs(self.low, self.high + 1)


class Choice(_Parameter):
    """One of some values, all as likely."""

    type: Literal["choice"]
    values: list[Value] = Field(min_length=1)

    @property
    def n_values(self) -> int:
        """How many different values there are."""
        return len({json.dumps(value) for value in self.values})

    def draw(self, rng: np.random.Generator) -> Value:
        """Return a value."""
        return self.values[int(rng.integers(len(self.values)))]


Parameter = Annotated[
    Uniform | LogUniform | Integer | Choice, Field(discriminator="type")
]


def n_configurations(parameters: Mapping[str, Parameter]) -> float:
    """Return how many different configurations there are; infinity for too many."""
    named = {name for parameter in parameters.values() for name in parameter.when}
    found: list[tuple[dict[str, Any], float]] = [({}, 1)]  # those named, and how often
    for name, parameter in parameters.items():
        used = [each for each in found if parameter.applies(each[0])]
        found = [each for each in found if not parameter.applies(each[0])]
        if name not in named:
            found += [(drawn, n * parameter.n_values) for drawn, n in used]
            continue
        if isinstance(parameter, Uniform | LogUniform):
            return math.inf
        if len(used) * parameter.n_values > MOST_CASES:
            return math.inf
        different = {json.dumps(value): value for value in parameter.values}.values()
        found += [({**drawn, name: one}, n) for drawn, n in used for one in different]
    return sum(n for _, n in found)


def _logs(low: float, high: float) -> tuple[float, float]:
    return float(np.log(float(low))), float(np.log(float(high)))


def _between_logs(low: float, high: float, rng: np.random.Generator) -> float:
    # numpy's exp and log: others differ in the last bit, and so would candidates
    return float(np.exp(low + float(rng.random()) * (high - low)))
