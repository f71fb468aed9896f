"""Numbers that are more likely around a place than far from it."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from risingsearch.errors import missing

try:
    from pydantic import Field, model_validator
except ModuleNotFoundError as error:
    raise missing("pydantic", "cli") from error

from risingsearch.scripts.parameter import LARGEST, BaseParameter, Step, exact

FARTHEST = 14.0
"""Deviations from the mean that no draw of numpy exceeds."""
LARGEST_LOG = 700.0
"""Of a number that a float can hold, and of one divided by it."""


class _Spread(BaseParameter):
    """Numbers that are more likely here than there, or multiples of a step."""

    n_values: ClassVar[float] = math.inf

    step: Step | None = None

    def _stepped(self, drawn: float) -> float:
        """Return the nearest multiple of the step."""
        if self.step is None:
            return drawn
        k = round(drawn / self.step)
        whole = self.step.is_integer()
        return k * int(self.step) if whole else float(k * exact(self.step))

    def _check_multiples(self, farthest: float) -> None:
        if self.step is not None and farthest / self.step > LARGEST:
            msg = f"step {self.step:g} is too fine for numbers like {farthest:g}"
            raise ValueError(msg)


class Normal(_Spread):
    """Numbers around ``mu``, with the standard deviation ``sigma``."""

    type: Literal["normal"]
    mu: float
    sigma: float = Field(gt=0.0)

    @model_validator(mode="after")
    def _within_numbers(self) -> Normal:
        farthest = abs(self.mu) + FARTHEST * self.sigma
        if math.isinf(farthest):
            msg = f"mu {self.mu:g} and sigma {self.sigma:g} are too large for numbers"
            raise ValueError(msg)
        self._check_multiples(farthest)
        return self

    def draw(self, rng: np.random.Generator) -> float:
        """Return a value."""
        return self._stepped(float(rng.normal(self.mu, self.sigma)))


class LogNormal(_Spread):
    """Numbers whose logarithm has the mean ``mu`` and the deviation ``sigma``."""

    type: Literal["log-normal"]
    mu: float
    sigma: float = Field(gt=0.0)

    @model_validator(mode="after")
    def _within_numbers(self) -> LogNormal:
        farthest = abs(self.mu) + FARTHEST * self.sigma
        if farthest > LARGEST_LOG:
            msg = (
                f"mu {self.mu:g} and sigma {self.sigma:g} are of the logarithm, and "
                f"|mu| + {FARTHEST:g} sigma is at most {LARGEST_LOG:g}"
            )
            raise ValueError(msg)
        self._check_multiples(math.exp(self.mu + FARTHEST * self.sigma))
        return self

    def draw(self, rng: np.random.Generator) -> float:
        """Return a value."""
        return self._stepped(float(np.exp(rng.normal(self.mu, self.sigma))))


class Beta(_Spread):
    """Numbers from 0 to 1, by the beta distribution with shapes ``a`` and ``b``."""

    type: Literal["beta"]
    a: float = Field(gt=0.0)
    b: float = Field(gt=0.0)

    @model_validator(mode="after")
    def _within_one(self) -> Beta:
        self._check_multiples(1.0)
        if self.step is not None and self.step > 1.0:
            msg = f"a step is at most 1, since all numbers are; got {self.step:g}"
            raise ValueError(msg)
        return self

    def draw(self, rng: np.random.Generator) -> float:
        """Return a value."""
        drawn = float(rng.beta(self.a, self.b))
        last = 1.0 if self.step is None else int(1.0 / self.step) * self.step
        return self._stepped(min(drawn, last))
