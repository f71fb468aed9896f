"""Numbers from a range, any of them or those at equal steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Literal

import numpy as np

from risingsearch.errors import missing

try:
    from pydantic import Field, model_validator
except ModuleNotFoundError as error:
    raise missing("pydantic", "cli") from error

from risingsearch.scripts.parameter import (
    LARGEST,
    BaseParameter,
    Integral,
    Step,
    exact,
)


class _Range(BaseParameter):
    low: float
    high: float
    step: Step | None = None

    @property
    def n_values(self) -> float:
        """How many different values there are."""
        return math.inf if self.step is None else self._n_steps + 1

    @property
    def possible(self) -> Sequence[float]:
        """All of them, where there is a step."""
        return [self._at(k) for k in range(self._n_steps + 1)]

    @model_validator(mode="after")
    def _in_order(self) -> _Range:
        if not self.low < self.high:
            msg = f"low must be below high; got {self.low:g} and {self.high:g}"
            raise ValueError(msg)
        if math.isinf(self.high - self.low):
            msg = f"from {self.low:g} to {self.high:g} is too far for a number"
            raise ValueError(msg)
        if self.step is not None:
            _check_step(self.step, self.high - self.low, self._n_steps)
        return self

    @cached_property
    def _n_steps(self) -> int:
        low, high, step = (exact(one) for one in (self.low, self.high, self.step))
        return int((high - low) / step)

    def _at(self, k: int) -> float:
        return float(exact(self.low) + k * exact(self.step))


class Uniform(_Range):
    """Any number between two, or those at equal steps from the lower one."""

    type: Literal["uniform"]

    def draw(self, rng: np.random.Generator) -> float:
        """Return a value."""
        if self.step is not None:
            return self._at(int(rng.integers(self._n_steps + 1)))
        return float(rng.random()) * (self.high - self.low) + self.low


class LogUniform(_Range):
    """Any number between two, its logarithm evenly spread; or the step below it."""

    type: Literal["log-uniform"]
    low: float = Field(gt=0.0)

    def draw(self, rng: np.random.Generator) -> float:
        """Return a value."""
        drawn = _between_logs(*self._logs, rng)
        if self.step is None:
            return drawn
        return self._at(max(0, min(int((drawn - self.low) / self.step), self._n_steps)))

    @cached_property
    def _logs(self) -> tuple[float, float]:
        if self.step is None:
            return _logs(self.low, self.high)
        return _logs(self.low, self._at(self._n_steps + 1))


class Integer(BaseParameter):
    """A whole number between two, both included, or one at equal steps."""

    type: Literal["int"]
    low: Integral
    high: Integral
    log: bool = False
    step: Annotated[Integral, Field(ge=1)] = 1

    @property
    def n_values(self) -> int:
        """How many different values there are."""
        return (self.high - self.low) // self.step + 1

    @property
    def possible(self) -> Sequence[int]:
        """All of them."""
        return range(self.low, self.high + 1, self.step)

    @model_validator(mode="after")
    def _in_order(self) -> Integer:
        if not self.low < self.high:
            msg = f"low must be below high; got {self.low} and {self.high}"
            raise ValueError(msg)
        if self.log and self.low < 1:
            msg = f"with log, low must be at least 1; got {self.low}"
            raise ValueError(msg)
        _check_step(self.step, self.high - self.low, self.n_values - 1)
        return self

    def draw(self, rng: np.random.Generator) -> int:
        """Return a value."""
        if not self.log:
            drawn = int(rng.integers(self.low, self.low + self.n_values))
            return self.low + self.step * (drawn - self.low)
        k = (int(_between_logs(*self._logs, rng)) - self.low) // self.step
        return self.low + self.step * max(0, min(k, self.n_values - 1))

    @cached_property
    def _logs(self) -> tuple[float, float]:
        return _logs(self.low, self.low + self.n_values * self.step)


def _check_step(step: float, width: float, n_steps: int) -> None:
    if n_steps < 1:
        msg = f"step {step:g} is wider than from low to high, which is {width:g}"
        raise ValueError(msg)
    if n_steps > 2 * LARGEST:
        msg = f"step {step:g} is too fine for a range of {width:g}"
        raise ValueError(msg)


def _logs(low: float, high: float) -> tuple[float, float]:
    return float(np.log(float(low))), float(np.log(float(high)))


def _between_logs(low: float, high: float, rng: np.random.Generator) -> float:
    # numpy's exp and log: others differ in the last bit, and so would candidates
    return float(np.exp(low + float(rng.random()) * (high - low)))
