"""What a sweep searches: parameters, each with what it may be."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from risingsearch.errors import missing

try:
    from pydantic import Field, model_validator
except ModuleNotFoundError as error:
    raise missing("pydantic", "cli") from error

from risingsearch.scripts.parameter import Anything, BaseParameter
from risingsearch.scripts.ranges import Integer, LogUniform, Uniform
from risingsearch.scripts.spreads import Beta, LogNormal, Normal


class Choice(BaseParameter):
    """One of some values, all as likely unless there are ``probabilities``."""

    type: Literal["choice"]
    values: list[Anything] = Field(min_length=1)
    probabilities: list[Annotated[float, Field(ge=0.0)]] | None = None

    @property
    def n_values(self) -> int:
        """How many different values there are."""
        return len(self.possible)

    @property
    def possible(self) -> Sequence[Any]:
        """All of them, each once."""
        weights = self.probabilities or [1.0] * len(self.values)
        pairs = zip(self.values, weights, strict=True)
        return list({json.dumps(one): one for one, weight in pairs if weight}.values())

    @model_validator(mode="after")
    def _are_probabilities(self) -> Choice:
        if self.probabilities is None:
            return self
        n_given, n_wanted = len(self.probabilities), len(self.values)
        if n_given != n_wanted:
            msg = f"there are {n_given} probabilities for {n_wanted} values"
            raise ValueError(msg)
        if not math.isclose(total := math.fsum(self.probabilities), 1.0, abs_tol=1e-6):
            msg = f"the probabilities must sum to 1; got {total:g}"
            raise ValueError(msg)
        written = [json.dumps(one) for one in self.values]
        if twice := [one for k, one in enumerate(written) if one in written[:k]]:
            msg = f"the value {twice[0]} stands twice: give it once, with both shares"
            raise ValueError(msg)
        return self

    def draw(self, rng: np.random.Generator) -> Any:
        """Return a value."""
        if self.probabilities is None:
            return self.values[int(rng.integers(len(self.values)))]
        ends = np.cumsum(self.probabilities)
        drawn = np.searchsorted(ends / ends[-1], rng.random(), side="right")
        return self.values[int(drawn)]


class Fixed(BaseParameter):
    """Always the same value."""

    n_values: ClassVar[int] = 1

    type: Literal["fixed"]
    value: Anything

    @property
    def possible(self) -> Sequence[Any]:
        """The value."""
        return [self.value]

    def draw(self, rng: np.random.Generator) -> Any:
        """Return it."""
        return self.value


Parameter = Annotated[
    Uniform | LogUniform | Integer | Normal | LogNormal | Beta | Choice | Fixed,
    Field(discriminator="type"),
]
