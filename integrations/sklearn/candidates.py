"""From ``param_distributions`` to the list of configurations that are the arms."""

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from risingsearch.arms import Configuration, Params
from risingsearch.checks import checked_int
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.integrations.sklearn import epoch_methods
from risingsearch.integrations.sklearn.families import Families, chosen, each_of
from risingsearch.integrations.sklearn.folds import configured
from risingsearch.integrations.sklearn.resources import Resource
from risingsearch.search.arguments import arm_of
from risingsearch.space import Configurations, Space, is_distribution
from risingsearch.space.by_name import (
    FAMILY,
    PACKAGE,
    configuration_of,
    learnt_starts,
    own_values,
    starts_of,
)

Spaces = Configuration | Sequence[Configuration]


def draw_candidates(
    space: Spaces,
    n_candidates: int | str,
    random_state: int | np.random.RandomState,
    recommended: int,
    n_epochs: int | None = None,
    *,
    prior: bool = False,
    n_enqueued: int = 0,
    own: Sequence[Params] = (),
) -> Configurations:
    """Return the configurations: those that are given, and a sample of the spaces.

    What the estimator has itself, if it is not given, begins the sample.
    """
    spaces, configurations = _parts(space)
    listed = [dict(params) for params in configurations]
    candidates = Configurations(listed, None)
    if spaces:
        n = max(1, min(recommended, n_epochs or recommended) - len(listed) - n_enqueued)
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
        space_left = None if listed else drawn.space
        own = [params for params in own if arm_of(params, listed) == len(listed)]
        others = (params for params in drawn if arm_of(params, own) == len(own))
        sample = [*own, *others][: max(n, len(own))]
        candidates = Configurations([*listed, *sample], space_left)
    if n_epochs is not None and len(candidates) > n_epochs and not prior:
        raise InvalidParameterError(
            f"a budget of {n_epochs} epochs is less than one for each of the "
            f"{len(candidates)} candidates: raise it, search fewer "
            "(n_candidates='auto'), or say with prior= which are worth one"
        )
    return candidates


def first_configurations(
    estimator: BaseEstimator,
    space: Spaces,
    *,
    is_auto: bool,
    portfolio: bool,
) -> tuple[list[Params], list[Params]]:
    """Return the estimators' own configurations, and the starts of the package.

    In a space of the user's, only those that lie in it.
    """
    spaces, listed = _parts(space)
    if isinstance(estimator, Families):
        for part in (*spaces, *listed):
            if FAMILY not in part:
                raise InvalidParameterError(
                    "a configuration or space of several estimators says which one it "
                    f"is of: add {FAMILY!r}: [{estimator.estimator!r}] to {part!r}"
                )
    parts = [Space.of(part) for part in spaces]
    own: list[Params] = []
    starts: list[Params] = []
    for number, family in enumerate(each_of(estimator)):
        prefix = f"{family.estimator}__" if isinstance(family, Families) else ""
        model = chosen(family)
        values = own_values(family)
        among = parts[number : number + 1] if is_auto else parts
        for params in _within(values, listed, among, beyond=is_auto):
            if arm_of(params, own) == len(own):
                own.append(params)
        for start in starts_of(model) if portfolio else ():
            of_family = {prefix + name: value for name, value in start.items()}
            for params in _within(values | of_family, listed, among, beyond=is_auto):
                if arm_of(params, [*own, *starts]) == len(own) + len(starts):
                    starts.append(params)
    if portfolio and not starts:
        raise InvalidParameterError(
            f"prior={PACKAGE!r} has no starts of {type(chosen(estimator)).__name__} in "
            f"this space; it has some of {', '.join(sorted(learnt_starts()))}"
        )
    return own, starts


def _within(
    values: Params,
    listed: list[Configuration],
    parts: list[Space],
    *,
    beyond: bool,
) -> list[Params]:
    """Return the configuration of these values, none if it is in no part."""
    for params in listed:
        same = {name: values[name] for name in params if name in values}
        if arm_of(same, [params]) == 0:
            return [dict(params)]
    for part in parts:
        params = configuration_of(values, part)
        if beyond or part.problem_of(params) is None:
            return [params]
    return []


def _parts(space: Spaces) -> tuple[list[Configuration], list[Configuration]]:
    """Return the spaces, and the single configurations."""
    if isinstance(space, Iterable) and not isinstance(space, (Mapping, str)):
        space = list(space)  # such as a ParameterGrid
    if not isinstance(space, (Mapping, list)) or len(space) == 0:
        raise InvalidParameterError(
            "param_distributions must be 'auto', a dict, a list of dicts or a list of "
            f"configurations, and not empty; got {space!r}"
        )
    if isinstance(space, dict):  # a tuple is a choice, as for RandomizedSearchCV
        space = {k: [*v] if isinstance(v, tuple) else v for k, v in space.items()}
    if isinstance(space, Mapping):
        return [space], []
    for part in space:
        if not isinstance(part, Mapping):
            raise InvalidParameterError(
                f"param_distributions holds {part!r}; its parts must be dicts"
            )
    spaces = [part for part in space if _is_space(part)]
    return spaces, [part for part in space if not _is_space(part)]


def _is_space(part: Configuration) -> bool:
    lists = (list, np.ndarray, range)
    single = [
        name
        for name, value in part.items()
        if not isinstance(value, lists) and not is_distribution(value)
    ]
    if not single or len(single) == len(part):
        return bool(part) and not single
    name = single[0]
    value = part[name]
    several = next(name for name in part if name not in single)
    raise InvalidParameterError(
        f"one dict of param_distributions gives {name!r} a single value, {several!r} "
        f"several: write {name!r}: [{value!r}] for a space"
    )


def check_trainable(
    estimator: BaseEstimator,
    candidates: Iterable[Configuration],
) -> list[BaseEstimator]:
    """Raise if a configuration cannot be trained by epochs, or sets their number.

    Returns the configured estimators, one of each kind.
    """
    kinds: dict[Hashable, BaseEstimator] = {}
    without_effect: set[str] = set()
    for params in candidates:
        kind = frozenset(  # what can matter: of a number, its type and whether it is 0
            (name, type(value), bool(value) if isinstance(value, Real) else id(value))
            for name, value in params.items()
        )
        if kind in kinds:
            continue
        with _named_in_errors(params):
            kinds[kind] = configured(estimator, params)
            epoch_methods.epoch_method(kinds[kind])
        counters, idle = epoch_methods.fixed_by_search(kinds[kind])
        without_effect |= params.keys() & set(idle)
        for counter in params.keys() & set(counters):
            raise InvalidParameterError(
                f"{counter} counts the epochs: take it out and set max_epochs instead"
            )
    if without_effect:
        warnings.warn(
            f"{', '.join(sorted(without_effect))} in param_distributions has no "
            "effect, as every epoch is one call and the search decides when to stop: "
            "take it out",
            UserWarning,
            stacklevel=5,
        )
    return list(kinds.values())


def check_settable(
    estimator: BaseEstimator,
    candidates: Iterable[Configuration],
    resource: Resource,
) -> None:
    """Raise if a configuration cannot be trained anew, or sets the resource."""
    for params in candidates:
        with _named_in_errors(params):
            resource.check(configured(estimator, params), params)


@contextmanager
def _named_in_errors(params: Configuration) -> Iterator[None]:
    try:
        yield
    except (NotTrainableError, ValueError) as error:
        error.add_note(f"in the configuration {params}")
        raise
