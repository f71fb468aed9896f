"""The configurations of a sweep: of its parameters, or of a ConfigSpace file."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from itertools import islice
from statistics import NormalDist
from typing import Annotated, Any, Literal, get_args

from risingsearch.arms import Configuration
from risingsearch.errors import InvalidParameterError, needed
from risingsearch.json_values import Json
from risingsearch.space import (
    Choices,
    Coordinate,
    Interval,
    Kind,
    Quantiles,
    Space,
    exact,
)

with needed("pydantic", "cli"):
    from pydantic import AfterValidator, Field, PlainValidator, model_validator

from risingsearch.scripts.settings import Strict

LARGEST = 2**62
MOST_CANDIDATES = 1_000_000
_NAME = re.compile(r"[^\W\d][\w.-]*")


def _plain(value: object) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number must be finite")
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ValueError(
            "a value is a number, text, true, false, null or a list of these"
        )
    return value


def _value(value: object) -> Any:
    if not isinstance(value, bool | int | float | str):
        raise ValueError("it is a number, text, true or false")
    return _plain(value)


def _one_or_more(value: object) -> Any:
    try:
        if isinstance(value, list):
            return [*map(_value, value)]
        return _value(value)
    except ValueError as error:
        raise ValueError(
            "it is a number, text, true, false, or a list of these"
        ) from error


Value = Annotated[bool | int | float | str, PlainValidator(_value)]
Wanted = Annotated[Any, PlainValidator(_one_or_more)]
Integral = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]


class BaseParameter(Strict, ABC):
    """A parameter; ``when`` maps earlier parameters to the values that it needs."""

    when: dict[str, Wanted] = {}

    def applies(self, drawn: Configuration) -> bool:
        """Whether the parameter is used with the values drawn before."""
        for name, wanted in self.when.items():
            values = wanted if isinstance(wanted, list) else [wanted]
            if name not in drawn or drawn[name] not in values:
                return False
        return True

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """Its values as those of a space."""


class _Range(BaseParameter):
    low: float
    high: float

    @model_validator(mode="after")
    def _in_order(self) -> _Range:
        if not self.low < self.high:
            raise ValueError(
                f"low must be below high; got {self.low:g} and {self.high:g}"
            )
        step = getattr(self, "step", None)
        if step is not None and exact(step) > exact(self.high) - exact(self.low):
            raise ValueError(
                f"step {step:g} is wider than high - low, {self.high - self.low:g}"
            )
        return self


class Uniform(_Range):
    """Any number of a range, or those at equal steps from the lower end."""

    type: Literal["uniform"]
    step: Annotated[float, Field(gt=0.0)] | None = None

    @property
    def kind(self) -> Kind:
        """Its values as those of a space."""
        return Interval(self.low, self.high, step=self.step)


class LogUniform(_Range):
    """Any number of a range, its logarithm evenly spread."""

    type: Literal["log-uniform"]
    low: float = Field(gt=0.0)

    @property
    def kind(self) -> Kind:
        """Its values as those of a space."""
        return Interval(self.low, self.high, log=True)


class Integer(_Range):
    """A whole number of a range, both ends included, or one at equal steps."""

    type: Literal["int"]
    low: Integral
    high: Integral
    log: bool = False
    step: Annotated[Integral, Field(ge=1)] = 1

    @property
    def kind(self) -> Kind:
        """Its values as those of a space."""
        return Interval(self.low, self.high, self.log, self.step, whole=True)

    @model_validator(mode="after")
    def _on_its_scale(self) -> Integer:
        if self.log and self.low < 1:
            raise ValueError(f"with log, low must be at least 1; got {self.low}")
        if self.log and self.step > 1:
            raise ValueError("a step and log exclude each other: leave out one of them")
        return self


class Normal(BaseParameter):
    """Numbers around ``mu``, with the standard deviation ``sigma``."""

    type: Literal["normal"]
    mu: float
    sigma: float = Field(gt=0.0)

    @property
    def kind(self) -> Kind:
        """Its values as those of a space."""
        return Quantiles(NormalDist(self.mu, self.sigma))


class Categorical(BaseParameter):
    """One of some values, each as likely as often it is listed."""

    type: Literal["choice"]
    values: list[Annotated[Any, AfterValidator(_plain)]] = Field(min_length=1)

    @property
    def kind(self) -> Kind:
        """Its values as those of a space."""
        return Choices(self.values)


Parameter = Annotated[
    Uniform | LogUniform | Integer | Normal | Categorical, Field(discriminator="type")
]


PARAMETERS = {  # by their types
    get_args(form.model_fields["type"].annotation)[0]: form
    for form in get_args(get_args(Parameter)[0])
}


def space_of(parameters: Mapping[str, BaseParameter]) -> Space:
    """Return the space of some parameters; a ValueError if they are invalid."""
    before: dict[str, BaseParameter] = {}
    for name, parameter in parameters.items():
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"parameters.{name}: a name has letters, digits, _, - and dots, "
                "and begins with a letter"
            )
        if unknown := sorted(parameter.when.keys() - before.keys()):
            raise ValueError(
                f"parameters.{name}.when names {unknown}: it may name parameters "
                f"that stand before it, {sorted(before)}"
            )
        for other, wanted in parameter.when.items():
            possible = before[other].kind.listed
            for value in wanted if isinstance(wanted, list) else [wanted]:
                if isinstance(possible, list) and value not in possible:
                    raise ValueError(
                        f"parameters.{name}.when.{other}: {value!r} is none of its "
                        f"values, {possible}"
                    )
        before[name] = parameter
    return Space(
        Coordinate(
            name,
            parameter.kind,
            tuple(parameter.when),
            parameter.applies if parameter.when else None,
            parameter.when or None,
        )
        for name, parameter in parameters.items()
    )


def space_in(content: Json) -> Space:
    """Return the space of a file of ConfigSpace; a ValueError if it holds none."""
    with needed("ConfigSpace", "configspace"):
        from ConfigSpace import ConfigurationSpace

    try:
        space = ConfigurationSpace.from_serialized_dict(deepcopy(content))
    except Exception as error:  # of many kinds
        raise ValueError(
            f"space is not what ConfigSpace has written ({error!r})"
        ) from error
    if not len(space):
        raise ValueError(
            "space has no hyperparameters: write it with ConfigSpace's to_yaml"
        )
    return Space.of(space)


def all_of(space: Space) -> list[Json]:
    """Return all configurations, or raise an error if there are too many."""
    for coordinate in space.coordinates:
        if coordinate.kind.listed is None:
            raise InvalidParameterError(
                f"candidates: all, and {coordinate.name} has no end of them: say how "
                "many are drawn, or give it a step or values"
            )
    configurations = list(islice(space.every(), MOST_CANDIDATES + 1))
    if len(configurations) > MOST_CANDIDATES:
        raise InvalidParameterError(
            f"candidates: all are more than {MOST_CANDIDATES:,} configurations; say "
            "how many are drawn, such as candidates: 100"
        )
    return configurations
