"""The configurations of a sweep: of its parameters, or of a ConfigSpace file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, Literal

import numpy as np

from risingsearch.errors import InvalidParameterError, missing
from risingsearch.json_values import plain

try:
    from pydantic import AfterValidator, Field, model_validator
except ModuleNotFoundError as error:
    raise missing("pydantic", "cli") from error

from risingsearch.scripts.settings import Strict

LARGEST = 2**62
MOST_CANDIDATES = 1_000_000
TRIES = 20
"""Draws in a row without a new configuration, per known one, before giving up."""
_NAME = re.compile(r"[^\W\d][\w.-]*")


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        msg = "a number must be finite"
        raise ValueError(msg)
    if value is not None and not isinstance(value, bool | int | float | str):
        msg = "a value is a number, text, true, false, null or a list of these"
        raise ValueError(msg)
    return value


Value = bool | int | float | str
Integral = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]


class BaseParameter(Strict):
    """A parameter; ``when`` maps earlier parameters to the values that it needs."""

    when: dict[str, Value | list[Value]] = Field(default_factory=dict)

    def applies(self, drawn: Mapping[str, Any]) -> bool:
        """Whether the parameter is used with the values drawn before."""
        for name, wanted in self.when.items():
            values = wanted if isinstance(wanted, list) else [wanted]
            if name not in drawn or drawn[name] not in values:
                return False
        return True

    @property
    def possible(self) -> Sequence[Any] | None:
        """All values; None if there is no end of them."""
        return None


class _Range(BaseParameter):
    low: float
    high: float

    @model_validator(mode="after")
    def _in_order(self) -> _Range:
        if not self.low < self.high:
            msg = f"low must be below high; got {self.low:g} and {self.high:g}"
            raise ValueError(msg)
        step = getattr(self, "step", None)
        if step is not None and _exact(step) > _exact(self.high) - _exact(self.low):
            msg = f"step {step:g} is wider than high - low, {self.high - self.low:g}"
            raise ValueError(msg)
        return self


class Uniform(_Range):
    """Any number of a range, or those at equal steps from the lower end."""

    type: Literal["uniform"]
    step: Annotated[float, Field(gt=0.0)] | None = None

    @property
    def possible(self) -> Sequence[float] | None:
        """The numbers at the steps."""
        if self.step is None:
            return None
        return [self._at(k) for k in range(self._n_steps + 1)]

    @cached_property
    def _n_steps(self) -> int:
        low, high, step = (_exact(one) for one in (self.low, self.high, self.step))
        return int((high - low) / step)

    def _at(self, k: int) -> float:
        return float(_exact(self.low) + k * _exact(self.step))

    def draw(self, rng: np.random.Generator) -> float:
        """Return a value."""
        if self.step is not None:
            return self._at(int(rng.integers(self._n_steps + 1)))
        return float(rng.random()) * (self.high - self.low) + self.low


class LogUniform(_Range):
    """Any number of a range, its logarithm evenly spread."""

    type: Literal["log-uniform"]
    low: float = Field(gt=0.0)

    def draw(self, rng: np.random.Generator) -> float:
        """Return a value."""
        return _log_uniform(self.low, self.high, rng)


class Integer(_Range):
    """A whole number of a range, both ends included, or one at equal steps."""

    type: Literal["int"]
    low: Integral
    high: Integral
    log: bool = False
    step: Annotated[Integral, Field(ge=1)] = 1

    @property
    def possible(self) -> range:
        """All values."""
        return range(self.low, self.high + 1, self.step)

    @model_validator(mode="after")
    def _on_its_scale(self) -> Integer:
        if self.log and self.low < 1:
            msg = f"with log, low must be at least 1; got {self.low}"
            raise ValueError(msg)
        if self.log and self.step > 1:
            msg = "a step and log exclude each other: leave out one of them"
            raise ValueError(msg)
        return self

    def draw(self, rng: np.random.Generator) -> int:
        """Return a value."""
        if self.log:
            drawn = int(_log_uniform(self.low, self.high + 1, rng))
            return max(self.low, min(drawn, self.high))
        drawn = int(rng.integers(self.low, self.low + len(self.possible)))
        return self.low + self.step * (drawn - self.low)


class Normal(BaseParameter):
    """Numbers around ``mu``, with the standard deviation ``sigma``."""

    type: Literal["normal"]
    mu: float
    sigma: float = Field(gt=0.0)

    def draw(self, rng: np.random.Generator) -> float:
        """Return a value."""
        return float(rng.normal(self.mu, self.sigma))


class Categorical(BaseParameter):
    """One of some values, each as likely as often it is listed."""

    type: Literal["choice"]
    values: list[Annotated[Any, AfterValidator(_plain)]] = Field(min_length=1)

    @property
    def possible(self) -> Sequence[Any]:
        """The values, each once."""
        return list({json.dumps(one): one for one in self.values}.values())

    def draw(self, rng: np.random.Generator) -> Any:
        """Return a value."""
        return self.values[int(rng.integers(len(self.values)))]


Parameter = Annotated[
    Uniform | LogUniform | Integer | Normal | Categorical, Field(discriminator="type")
]


class ParameterSpace:
    """The configurations of some parameters; a ValueError if they are invalid."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters = parameters
        self.names = list(parameters)
        for k, (name, parameter) in enumerate(parameters.items()):
            if not _NAME.fullmatch(name):
                msg = (
                    f"parameters.{name}: a name has letters, digits, _, - and dots, "
                    "and begins with a letter"
                )
                raise ValueError(msg)
            before = self.names[:k]
            if unknown := sorted(parameter.when.keys() - {*before}):
                msg = (
                    f"parameters.{name}.when names {unknown}: it may name parameters "
                    f"that stand before it, {sorted(before)}"
                )
                raise ValueError(msg)
            for other, wanted in parameter.when.items():
                possible = parameters[other].possible
                for value in wanted if isinstance(wanted, list) else [wanted]:
                    if isinstance(possible, list) and value not in possible:
                        msg = (
                            f"parameters.{name}.when.{other}: {value!r} is none of its "
                            f"values, {possible}"
                        )
                        raise ValueError(msg)

    def check_configuration(self, place: str, params: Mapping[str, Any]) -> None:
        """Raise a ValueError unless each parameter that applies has a value."""
        if unknown := sorted(params.keys() - self.parameters.keys()):
            msg = (
                f"{place} names {unknown[0]!r}, which is none of the parameters, "
                f"{', '.join(self.names)}"
            )
            raise ValueError(msg)
        for name, parameter in self.parameters.items():
            if parameter.applies(params) != (name in params):
                needs = "leaves out" if name not in params else "has"
                msg = (
                    f"{place} {needs} {name!r}: it gives a value to each parameter "
                    "that applies, by its when, and to no other"
                )
                raise ValueError(msg)

    def drawn(self, seed: int | None) -> Iterator[dict[str, Any]]:
        """Yield random configurations without end."""
        rng = np.random.default_rng(None if seed is None else [seed, 1])
        while True:
            # Unused values are drawn too: those of the other parameters stay the same.
            values = {name: one.draw(rng) for name, one in self.parameters.items()}
            for name, parameter in self.parameters.items():
                if not parameter.applies(values):
                    del values[name]
            yield values

    def every(self) -> Iterator[dict[str, Any]]:
        """Yield all configurations, or raise an error if there is no end of them."""
        for name, parameter in self.parameters.items():
            if parameter.possible is None:
                msg = (
                    f"candidates: all, and parameters.{name} has no end of them: say "
                    "how many are drawn, or give it a step or values"
                )
                raise InvalidParameterError(msg)
        yield from self._every({}, self.names)

    def _every(
        self, chosen: dict[str, Any], names: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        if not names:
            yield chosen
            return
        name, *rest = names
        if not self.parameters[name].applies(chosen):
            yield from self._every(chosen, rest)
            return
        for value in self.parameters[name].possible:
            yield from self._every({**chosen, name: value}, rest)


class ImportedSpace:
    """The configurations of a ConfigSpace, as its file has it."""

    def __init__(self, content: dict[str, Any]) -> None:
        try:
            from ConfigSpace import ConfigurationSpace
        except ModuleNotFoundError as error:
            raise missing("ConfigSpace", "configspace") from error

        try:
            self._space = ConfigurationSpace.from_serialized_dict(deepcopy(content))
        except Exception as error:  # of many kinds
            msg = f"space is not what ConfigSpace has written ({error!r})"
            raise ValueError(msg) from error
        self.names = list(self._space)
        if not self.names:
            msg = "space has no hyperparameters: write it with ConfigSpace's to_yaml"
            raise ValueError(msg)

    def check_configuration(self, place: str, params: Mapping[str, Any]) -> None:
        """Raise a ValueError unless the configuration is one of the space."""
        from ConfigSpace import Configuration

        try:
            Configuration(self._space, values=dict(params))
        except Exception as error:  # of many kinds
            problem = " ".join(str(error).split())
            msg = f"{place} is not a configuration of the space ({problem})"
            raise ValueError(msg) from error

    def drawn(self, seed: int | None) -> Iterator[dict[str, Any]]:
        """Yield random configurations without end."""
        if seed is not None:
            self._space.seed(seed % 2**32)
        while True:
            drawn = dict(self._space.sample_configuration())
            yield {name: plain(value) for name, value in drawn.items()}

    def every(self) -> Iterator[dict[str, Any]]:
        """Raise an error: a ConfigSpace is drawn from."""
        msg = "candidates: all needs parameters; with a space say how many are drawn"
        raise InvalidParameterError(msg)


Space = ParameterSpace | ImportedSpace


def all_of(space: Space) -> list[dict[str, Any]]:
    """Return all configurations, or raise an error if there are too many."""
    found = list(islice(space.every(), MOST_CANDIDATES + 1))
    if len(found) > MOST_CANDIDATES:
        msg = (
            f"candidates: all are more than {MOST_CANDIDATES:,} configurations; say "
            "how many are drawn, such as candidates: 100"
        )
        raise InvalidParameterError(msg)
    return found


def different(space: Space, n: int, seed: int | None) -> list[dict[str, Any]]:
    """Return ``n`` different configurations, fewer if no others are found."""
    found: dict[str, dict[str, Any]] = {}
    n_in_vain = 0
    for params in space.drawn(seed):
        key = json.dumps(params)
        n_in_vain = n_in_vain + 1 if key in found else 0
        found.setdefault(key, params)
        if len(found) == n or n_in_vain > TRIES * (len(found) + 50):
            break
    return list(found.values())


def _exact(number: Any) -> Decimal:
    """Return a number as the file has it: 0.1 and 0.2 are 0.3."""
    return Decimal(repr(number))


def _log_uniform(low: float, high: float, rng: np.random.Generator) -> float:
    # numpy's exp and log: others differ in the last bit, and so would candidates
    ends = np.log(float(low)), np.log(float(high))
    return float(np.exp(ends[0] + float(rng.random()) * (ends[1] - ends[0])))
