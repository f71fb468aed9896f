"""The configurations of a sweep: of its parameters, or of a ConfigSpace file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from copy import deepcopy
from itertools import islice
from typing import Annotated, Any, Literal, Self, get_args

from risingsearch.arms import Configuration
from risingsearch.errors import InvalidParameterError, needed
from risingsearch.json_values import Json
from risingsearch.space import Kind, Space
from risingsearch.space.by_name import (
    AUTO,
    PACKAGE,
    known_estimators,
    space_of,
    starts_of,
)
from risingsearch.space.from_mappings import FORMS, TYPE, WHEN, Condition

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


def _value_or_list(value: object) -> Any:
    return [*map(_value, value)] if isinstance(value, list) else _value(value)


def _one_or_more(value: object) -> Any:
    try:
        return _value_or_list(value)
    except ValueError as error:
        raise ValueError(
            "it is a number, text, true, false, or a list of these"
        ) from error


Value = Annotated[Any, PlainValidator(_value_or_list)]
Wanted = Annotated[Any, PlainValidator(_one_or_more)]
Integral = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]


class BaseParameter(Strict):
    """A parameter; ``when`` maps earlier parameters to the values that it needs."""

    when: dict[str, Wanted] = {}

    def applies(self, drawn: Configuration) -> bool:
        """Whether it is used with earlier values; run directories name this method."""
        return Condition(self.when)(drawn)

    @property
    def kind(self) -> Kind:
        """Its values as those of a space."""
        form = self.model_dump()
        keys = {key: form[key] for key in form if key not in (TYPE, WHEN)}
        return FORMS[form[TYPE]](**keys)

    @model_validator(mode="after")
    def _has_values(self) -> Self:
        self.kind  # noqa: B018 - it raises
        return self


class _Range(BaseParameter):
    low: float
    high: float


class Uniform(_Range):
    """Any number of a range, or those at equal steps from the lower end."""

    type: Literal["uniform"]
    step: Annotated[float, Field(gt=0.0)] | None = None


class LogUniform(_Range):
    """Any number of a range, its logarithm evenly spread."""

    type: Literal["log-uniform"]
    low: float = Field(gt=0.0)


class Integer(_Range):
    """A whole number of a range, both ends included, or one at equal steps."""

    type: Literal["int"]
    low: Integral
    high: Integral
    log: bool = False
    step: Annotated[Integral, Field(ge=1)] = 1


class Normal(BaseParameter):
    """Numbers around ``mu``, with the standard deviation ``sigma``."""

    type: Literal["normal"]
    mu: float
    sigma: float = Field(gt=0.0)


class Categorical(BaseParameter):
    """One of some values, each as likely as often it is listed."""

    type: Literal["choice"]
    values: list[Annotated[Any, AfterValidator(_plain)]] = Field(min_length=1)


Parameter = Annotated[
    Uniform | LogUniform | Integer | Normal | Categorical, Field(discriminator="type")
]


PARAMETERS = {  # by their types
    get_args(form.model_fields["type"].annotation)[0]: form
    for form in get_args(get_args(Parameter)[0])
}


def space_of_parameters(parameters: Mapping[str, BaseParameter]) -> Space:
    """Return the space of some parameters; a ValueError if they are invalid."""
    for name in parameters:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"parameters.{name}: a name has letters, digits, _, - and dots, "
                "and begins with a letter"
            )
    return Space.of({name: form.model_dump() for name, form in parameters.items()})


def named_space(content: Json) -> Json:
    """Return a sweep's content with the space and the starts of its ``estimator``.

    The first start is what the estimator's library takes where nothing is given, if a
    script can be told so: not where that is text for a number, or nothing.
    """
    content = dict(content)
    name = content.pop("estimator", None)
    if content.get("space") != AUTO:
        if name is None:
            return content
        raise ValueError(f"estimator is for space: {AUTO}, which is missing")
    if not isinstance(name, str) or content.get("parameters"):
        raise ValueError(
            f"space: {AUTO} needs estimator: LGBMClassifier, say, and no parameters"
        )
    del content["space"]
    parameters = space_of(name)
    space = Space.of(parameters)
    starts = [known_estimators()[name].default]
    if content.get("prior") == PACKAGE:
        del content["prior"]
        starts += starts_of(name)
    enqueue = content.get("enqueue", [])
    if not isinstance(enqueue, list):
        return content  # which is refused
    for start in reversed(starts):
        texts = [k for k, v in start.items() if isinstance(v, str)]
        are_choices = all(parameters[k]["type"] == "choice" for k in texts)
        is_whole = space.problem_of(start, beyond=True) is None
        if are_choices and is_whole and start not in enqueue:
            enqueue = [start, *enqueue]
    return content | {"parameters": parameters, "enqueue": enqueue}


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
