"""The fewest rows that every configuration can be trained on and scored with."""

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from risingsearch.arms import Configuration
from risingsearch.integrations.sklearn.folds import Folds, configured
from risingsearch.integrations.sklearn.resources import Resource
from risingsearch.space import Configurations

TRIED = 10  # configurations at most that ask for the same, for each parameter
HIGHEST = np.nextafter(1.0, 0.0)  # place of a parameter's largest value
# parameters that ask for rows: a number of them, or inner splits
_ASKS = re.compile(
    r"(.*__)?(n_neighbors(_ver3)?|[km]_neighbors|n_components|n_clusters|n_inducing"
    r"|(max|min)_samples|min_cluster_size|n_landmarks|n_splits|n_folds|cv"
    r"|early_stopping)"
)


def with_enough_rows(
    folds: Folds, resource: Resource, candidates: Configurations
) -> Resource:
    """Return the resource, begun where the most demanding configurations can train.

    They are trained, on a single fold, only if a parameter of theirs asks for rows. One
    that cannot be trained on all rows either says nothing about their number.
    """
    if resource.rows is None:
        return resource
    demanding = list(_demanding(folds.estimator, candidates))
    shorter = resource
    while not all(_trains(folds, shorter, params) for params in demanding):
        if shorter.max_epochs == 1:
            return resource
        shorter = shorter.last(shorter.max_epochs - 1)
    return shorter


def _demanding(estimator: Any, candidates: Configurations) -> Iterator[Any]:
    """Yield the configurations that ask for most, a few for each parameter."""
    asking: dict[str, dict[int, list[Mapping[str, Any]]]] = {}
    for params in _with_largest_values(candidates):
        own = configured(estimator, params).get_params()
        for name in filter(_ASKS.fullmatch, own):
            if own[name] is False:
                continue
            asked = int(own[name]) if isinstance(own[name], Integral) else 0
            asking.setdefault(name, {}).setdefault(asked, []).append(params)
    for by_number in asking.values():
        yield from by_number[max(by_number)][:TRIED]


def _with_largest_values(candidates: Configurations) -> Iterator[Mapping[str, Any]]:
    """Yield the candidates, and those with the largest value of a space's integer."""
    yield from candidates
    for coordinate in [] if candidates.space is None else candidates.space.coordinates:
        largest = coordinate.kind.value(HIGHEST)
        for params in candidates[:TRIED] if isinstance(largest, Integral) else []:
            if coordinate.name in params:
                yield {**params, coordinate.name: largest}


def _trains(folds: Folds, resource: Resource, params: Configuration) -> bool:
    """Return whether the smallest fold can train and score a first epoch."""
    smallest = int(np.argmin([len(train) for train, _ in folds.splits]))
    once = replace(folds, resource=resource)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            once.train_fold(smallest, once.start(params, seed=0)[smallest])
    except Exception:
        return False
    return True
