"""From ``param_distributions`` to the list of configurations that are the arms."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler

from risingsearch.checks import checked_int
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.integrations.sklearn.epoch_methods import (
    epoch_method,
    fixed_by_search,
)
from risingsearch.integrations.sklearn.folds import configured
from risingsearch.integrations.sklearn.resources import Resource
from risingsearch.integrations.sklearn.spaces import as_configurations, as_sampled

IN_TIME = 500  # are drawn under a budget in time; those never opened cost nothing

Space = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def draw_candidates(
    space: Space,
    n_candidates: int | str,
    random_state: Any,
    recommended: int | None,
    n_epochs: int | None = None,
    *,
    prior: bool = False,
    n_enqueued: int = 0,
) -> list[dict[str, Any]]:
    """Return the configurations: those that are given, and a sample of the spaces."""
    spaces, configurations = _parts(space)
    candidates = [dict(one) for one in configurations]
    if spaces:
        n_given = len(candidates) + n_enqueued
        _check_choices(spaces)
        n = _how_many(spaces, n_candidates, recommended, n_epochs, n_given)
        sampler = ParameterSampler(spaces, n, random_state=random_state)
        candidates += as_configurations(sampler)
    if n_epochs is not None and len(candidates) > n_epochs and not prior:
        msg = (
            f"a budget of {n_epochs} epochs is less than one for each of the "
            f"{len(candidates)} candidates: raise it, search fewer "
            "(n_candidates='auto'), or say with prior= which are worth one"
        )
        raise InvalidParameterError(msg)
    return candidates


def _parts(space: Space) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    if isinstance(space, Iterable) and not isinstance(space, (Mapping, str)):
        space = list(space)  # such as a ParameterGrid
    if not isinstance(space, (Mapping, list)) or len(space) == 0:
        msg = (
            "param_distributions must be a dict, a list of dicts or a list of "
            f"configurations, and not empty; got {space!r}"
        )
        raise InvalidParameterError(msg)
    if isinstance(space, Mapping):
        return [as_sampled(space)], []
    for one in space:
        if not isinstance(one, Mapping):
            msg = f"param_distributions holds {one!r}; its parts must be dicts"
            raise InvalidParameterError(msg)
    parts = [as_sampled(one) for one in space]
    spaces = [one for one in parts if _is_space(one)]
    return spaces, [one for one in parts if not _is_space(one)]


def _is_space(part: Mapping[str, Any]) -> bool:
    single = {k: v for k, v in part.items() if not _is_choice(v)}
    if not single or len(single) == len(part):
        return bool(part) and not single
    name, value = next(iter(single.items()))
    several = next(name for name in part if name not in single)
    msg = (
        f"one dict of param_distributions gives {name!r} a single value, {several!r} "
        f"several: write {name!r}: [{value!r}] for a space"
    )
    raise InvalidParameterError(msg)


def _is_choice(value: Any) -> bool:
    return hasattr(value, "rvs") or isinstance(value, (list, np.ndarray, range))


def _check_choices(spaces: Sequence[Mapping[str, Any]]) -> None:
    for name, value in (item for one in spaces for item in one.items()):
        several = isinstance(value, (list, tuple, np.ndarray, range)) and len(value)
        if not several and not hasattr(value, "rvs"):
            msg = (
                f"param_distributions must give {name!r} a list of values, not empty, "
                f"or a distribution, with rvs or of Optuna; got {value!r}"
            )
            raise InvalidParameterError(msg)


def _how_many(
    spaces: Sequence[Mapping[str, Any]],
    n_candidates: int | str,
    recommended: int | None,
    n_epochs: int | None,
    n_given: int,
) -> int:
    """Return how many configurations to draw besides those that are given."""
    if n_candidates == "auto":
        limits = [recommended or IN_TIME] + [n for n in [n_epochs] if n is not None]
        n = max(1, min(limits) - n_given)
    else:
        n = checked_int("n_candidates", n_candidates, 1)
    if any(hasattr(v, "rvs") for one in spaces for v in one.values()):
        return n
    n_combinations = len(ParameterGrid(spaces))
    if n > n_combinations and n_candidates != "auto":
        warnings.warn(
            f"n_candidates is {n}, and the space has {n_combinations} combinations: "
            "each of them is a candidate once",
            UserWarning,
            stacklevel=8,
        )
    return min(n, n_combinations)


def _what_matters(params: Mapping[str, Any]) -> frozenset[Any]:
    """Return the facts that can matter: of a number, its type and whether it is 0."""
    return frozenset(
        (name, type(value), bool(value) if isinstance(value, Real) else id(value))
        for name, value in params.items()
    )


def check_trainable(
    estimator: Any,
    candidates: Iterable[Mapping[str, Any]],
    resource: Resource | None = None,
) -> None:
    """Raise if a configuration cannot be trained by epochs, or sets their number."""
    without_effect: set[str] = set()
    checked: set[Any] = set()
    for params in candidates:
        kind = _what_matters(params)
        if resource is None and kind in checked:
            continue
        checked.add(kind)
        counters: list[str] = []
        try:
            one = configured(estimator, params)
            if resource is not None:
                resource.check(one, params)
            else:
                epoch_method(one)
                counters, idle = fixed_by_search(one)
                without_effect |= params.keys() & set(idle)
        except (NotTrainableError, ValueError) as error:
            error.add_note(f"in the configuration {params}")
            raise
        for counter in params.keys() & set(counters):
            msg = f"{counter} counts the epochs: take it out and set max_epochs instead"
            raise InvalidParameterError(msg)
    if without_effect:
        warnings.warn(
            f"{', '.join(sorted(without_effect))} in param_distributions has no "
            "effect, as every epoch is one call and the search decides when to stop: "
            "take it out",
            UserWarning,
            stacklevel=6,
        )
