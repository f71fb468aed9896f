"""The fewest rows that every configuration can be trained on and scored with."""

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator

from risingsearch.arms import Configuration
from risingsearch.integrations.sklearn.folds import Folds, configured
from risingsearch.integrations.sklearn.resources import Resource
from risingsearch.space import Configurations

TRIED = 10  # numbers at most, and configurations that ask for the same, of a parameter
HIGHEST = np.nextafter(1.0, 0.0)  # place of a parameter's largest value
# parameters that ask for rows: a number of them, or inner splits
_ASKS = re.compile(
    r"(.*__)?(n_neighbors(_ver3)?|[km]_neighbors|n_components|n_clusters|n_inducing"
    r"|(max|min)_samples|min_cluster_size|n_landmarks|n_splits|n_folds|cv"
    r"|early_stopping)"
)


def with_enough_rows(
    folds: Folds,
    resource: Resource,
    candidates: Configurations,
) -> Resource:
    """Return the resource, begun where the most demanding configurations can train.

    They are trained, on a single fold, only if a parameter of theirs asks for rows. One
    that cannot be trained on all rows either says nothing about their number: those
    that ask for the next lower number are tried in its place.
    """
    if resource.rows is None:
        return resource
    for groups in _by_rows_asked(folds.estimator, candidates):
        for group in groups[:TRIED]:
            n_epochs = [_epochs(folds, resource, params) for params in group[:TRIED]]
            if any(n_epochs):
                resource = resource.last(min(filter(None, n_epochs)))
                break
    return resource


def _by_rows_asked(
    estimator: BaseEstimator,
    candidates: Configurations,
) -> list[list[list[Configuration]]]:
    """Return for each parameter the groups that ask for the same, the most first."""
    asking: dict[str, dict[int, list[Configuration]]] = {}
    for params in _with_largest_values(candidates):
        values = configured(estimator, params).get_params()
        for name in filter(_ASKS.fullmatch, values):
            value = values[name]
            if value is not False:
                number = 0
                if isinstance(value, Integral):
                    number = int(value)
                groups = asking.setdefault(name, {})
                groups.setdefault(number, []).append(params)
    return [
        [groups[number] for number in sorted(groups, reverse=True)]
        for groups in asking.values()
    ]


def _with_largest_values(candidates: Configurations) -> Iterator[Configuration]:
    """Yield the candidates, and those with the largest value of a space's integer."""
    yield from candidates
    for coordinate in [] if candidates.space is None else candidates.space.coordinates:
        largest = coordinate.kind.value(HIGHEST)
        if not isinstance(largest, Integral):
            continue
        for params in candidates[:TRIED]:
            if coordinate.name in params:
                yield {**params, coordinate.name: largest}


def _epochs(folds: Folds, resource: Resource, params: Configuration) -> int:
    """Return how many epochs, at the end, have enough rows; 0 if none has."""
    lengths = range(resource.max_epochs, 0, -1)
    return next((n for n in lengths if _trains(folds, resource.last(n), params)), 0)


def _trains(folds: Folds, resource: Resource, params: Configuration) -> bool:
    """Return whether the smallest fold can train and score a first epoch."""
    smallest = int(np.argmin([len(train) for train, _ in folds.splits]))
    once = replace(folds, resource=resource)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            once.train_fold(smallest, once.start(params, seed=0)[smallest])
    # An estimator may raise anything on too few rows. Nothing is lost: if another cause
    # is behind it, the same configuration fails in the search, and is recorded there.
    except Exception:
        return False
    return True
