"""Spaces of Optuna and ConfigSpace, as scikit-learn's sampler draws from them.

Nothing is imported for it: the caller who gives a library's space has imported it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

LISTED = 1_000  # whole numbers of Optuna, at most, that are drawn once each
TRIES = 100  # draws for a configuration that is new
_WHOLE = "a whole configuration"  # the only parameter of a space of ConfigSpace


def as_sampled(space: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a space with lists and with distributions that have ``rvs``."""
    if _is_of("ConfigSpace", "ConfigurationSpace", space):
        return {_WHOLE: _Whole(space)} if len(space) else space
    return {name: _choices(value) for name, value in space.items()}


def as_configurations(drawn: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert draws to configurations, those of a ``ConfigurationSpace`` once each."""
    plain: list[dict[str, Any]] = []
    known = set()
    for params in drawn:
        if _WHOLE not in params:
            plain.append(dict(params))
        elif params[_WHOLE] not in known:
            known.add(params[_WHOLE])
            plain.append({k: _plain(v) for k, v in params[_WHOLE].items()})
    return plain


def _choices(value: Any) -> Any:
    if _is_of("optuna.distributions", "CategoricalDistribution", value):
        return list(value.choices)
    if _is_of("optuna.distributions", "IntDistribution", value):
        values = range(value.low, value.high + 1, value.step)
        if value.log:
            return _Drawn(lambda random_state: _log_whole(value, random_state))
        if len(values) <= LISTED:
            return values
        return _Drawn(
            lambda random_state: values[int(random_state.randint(len(values)))]
        )
    if _is_of("optuna.distributions", "FloatDistribution", value):
        return _Drawn(lambda random_state: _float(value, random_state))
    if _is_of("ConfigSpace.hyperparameters", "Hyperparameter", value):
        return _Drawn(
            lambda random_state: _plain(value.sample_value(seed=random_state))
        )
    return value


def _is_of(module: str, name: str, value: Any) -> bool:
    """Return whether a value is of a class whose module may not be imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


@dataclass
class _Drawn:
    """A distribution by a function of the random state."""

    rvs: Callable[[np.random.RandomState], Any]


def _log_whole(given: Any, random: np.random.RandomState) -> int:
    """Draw a whole number of Optuna whose logarithm is evenly spread, rounded."""
    low, high = int(given.low), int(given.high)
    ends = math.log(low - 0.5), math.log(high + 0.5)
    return min(max(round(math.exp(random.uniform(*ends))), low), high)


def _float(given: Any, random: np.random.RandomState) -> float:
    """Draw a number of Optuna, at its steps if it has any."""
    low, high, step = given.low, given.high, given.step
    if step is not None:
        n_values = round((high - low) / step) + 1
        return float(min(low + step * random.randint(n_values), high))
    if not given.log:
        return float(random.uniform(low, high))
    drawn = math.exp(random.uniform(math.log(low), math.log(high)))
    return float(min(max(drawn, low), high))  # exp and log may round


class _Whole:
    """Configurations of a ConfigSpace: its conditions and forbidden clauses hold."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self._space: Any = None
        self._drawn: set[Any] = set()
        self._tries = TRIES

    def rvs(self, random_state: np.random.RandomState) -> Any:
        """Return a configuration, another one as long as that is soon found."""
        if self._space is None:  # the user's own space draws on as it would
            self._space = deepcopy(self._given)
            self._space.seed(random_state.randint(2**31 - 1))
        for _ in range(self._tries):
            drawn = self._space.sample_configuration()
            if drawn not in self._drawn:
                break
        else:
            self._tries = 1
        self._drawn.add(drawn)
        return drawn


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
