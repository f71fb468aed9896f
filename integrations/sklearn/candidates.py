"""From ``param_distributions`` to the list of configurations that are the arms."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from risingsearch.arms import Configuration
from risingsearch.checks import checked_int
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.integrations.sklearn import epoch_methods
from risingsearch.integrations.sklearn.folds import configured
from risingsearch.integrations.sklearn.resources import Resource
from risingsearch.space import Configurations, Space, is_distribution

Spaces = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def draw_candidates(
    space: Spaces,
    n_candidates: int | str,
    random_state: Any,
    recommended: int,
    n_epochs: int | None = None,
    *,
    prior: bool = False,
    n_enqueued: int = 0,
) -> Configurations:
    """Return the configurations: those that are given, and a sample of the spaces."""
    spaces, configurations = _parts(space)
    candidates = [dict(one) for one in configurations]
    found = Configurations(candidates, None)
    if spaces:
        n_listed = len(candidates) + n_enqueued
        n = max(1, min(recommended, n_epochs or recommended) - n_listed)
        if n_candidates != "auto":
            n = checked_int("n_candidates", n_candidates, 1)
        seed = check_random_state(random_state).randint(2**31 - 1)
        drawn = Space.of(spaces).draw(n, np.random.default_rng(seed))
        if len(drawn) < n and n_candidates != "auto":
            warnings.warn(
                f"n_candidates is {n}, and the space has {len(drawn)} combinations: "
                "each of them is a candidate once",
                UserWarning,
                stacklevel=7,
            )
        found = Configurations(
            [*candidates, *drawn], None if candidates else drawn.space
        )
    if n_epochs is not None and len(found) > n_epochs and not prior:
        raise InvalidParameterError(
            f"a budget of {n_epochs} epochs is less than one for each of the "
            f"{len(found)} candidates: raise it, search fewer "
            "(n_candidates='auto'), or say with prior= which are worth one"
        )
    return found


def _parts(space: Spaces) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    if isinstance(space, Iterable) and not isinstance(space, (Mapping, str)):
        space = list(space)  # such as a ParameterGrid
    if not isinstance(space, (Mapping, list)) or len(space) == 0:
        raise InvalidParameterError(
            "param_distributions must be a dict, a list of dicts or a list of "
            f"configurations, and not empty; got {space!r}"
        )
    if isinstance(space, dict):  # a tuple is a choice, as for RandomizedSearchCV
        space = {k: [*v] if isinstance(v, tuple) else v for k, v in space.items()}
    if isinstance(space, Mapping):
        return [space], []
    for one in space:
        if not isinstance(one, Mapping):
            msg = f"param_distributions holds {one!r}; its parts must be dicts"
            raise InvalidParameterError(msg)
    spaces = [one for one in space if _is_space(one)]
    return spaces, [one for one in space if not _is_space(one)]


def _is_space(part: Mapping[str, Any]) -> bool:
    lists = (list, np.ndarray, range)
    given = {k: v for k, v in part.items() if not isinstance(v, lists)}
    single = {k: v for k, v in given.items() if not is_distribution(v)}
    if not single or len(single) == len(part):
        return bool(part) and not single
    name, value = next(iter(single.items()))
    several = next(name for name in part if name not in single)
    raise InvalidParameterError(
        f"one dict of param_distributions gives {name!r} a single value, {several!r} "
        f"several: write {name!r}: [{value!r}] for a space"
    )


def check_trainable(
    estimator: Any,
    candidates: Iterable[Configuration],
    resource: Resource | None = None,
) -> list[Any]:
    """Raise if a configuration cannot be trained by epochs, or sets their number.

    Returns the configured estimators, one of each kind.
    """
    kinds: list[Any] = []
    without_effect: set[str] = set()
    checked: set[Any] = set()
    for params in candidates:
        kind = frozenset(  # what can matter: of a number, its type and whether it is 0
            (name, type(value), bool(value) if isinstance(value, Real) else id(value))
            for name, value in params.items()
        )
        if resource is None and kind in checked:
            continue
        checked.add(kind)
        counters: list[str] = []
        try:
            one = configured(estimator, params)
            kinds.append(one)
            if resource is not None:
                resource.check(one, params)
            else:
                epoch_methods.epoch_method(one)
                counters, idle = epoch_methods.fixed_by_search(one)
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
            stacklevel=5,
        )
    return kinds
