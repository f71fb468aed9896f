"""Rows to train on and to test on, split once for every epoch of every arm."""

from __future__ import annotations

import math
import warnings
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    StratifiedGroupKFold,
    check_cv,
    train_test_split,
)
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from risingsearch.arms import Configuration, Params
from risingsearch.errors import InvalidParameterError
from risingsearch.policies.arrays import Ints, Rng

Split: TypeAlias = tuple[Ints, Ints]
"""Row numbers to train on, and those to test on."""

Targets: TypeAlias = Any
"""An array, list, data frame or sparse matrix; None for those that learn without."""

GROUP_DRAWS = 20  # of the groups that are held out, one of which is taken


class Rows(NamedTuple):
    """Some rows, with the metadata for them."""

    X: ArrayLike
    y: Targets
    fit_params: Params
    score_params: Params


def frozen_splits(
    cv: object,
    estimator: BaseEstimator,
    X: ArrayLike,
    y: Targets,
    params: Configuration,
    random: np.random.RandomState,
) -> list[Split]:
    """Return the splits that serve every epoch of every arm: at least one."""
    groups = params.get("groups")
    if isinstance(cv, Real) and not isinstance(cv, Integral):
        share = float(cv)
        seed = random.randint(2**31 - 1)
        if not 0.0 < share < 1.0:
            raise InvalidParameterError(
                f"a float cv is the share held out, between 0 and 1; got {cv!r}"
            )
        classes = class_numbers(estimator, X, y)
        if groups is not None:
            return [_held_out_groups(share, classes, groups, seed)]
        return [_held_out(share, classes, seed)]
    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    if groups is not None and isinstance(cv, Integral | None):
        by_groups = StratifiedGroupKFold
        if type(splitter) is KFold:
            by_groups = GroupKFold
        splitter = by_groups(splitter.get_n_splits())
    splits = list(splitter.split(X, y, **params))
    if not splits:
        raise InvalidParameterError(f"cv={cv!r} gives no split: use at least one")
    return splits


def class_numbers(estimator: BaseEstimator, X: ArrayLike, y: Targets) -> Ints:
    """Return the number of each row's class; 0 for all without classes."""
    if is_classifier(estimator) and type_of_target(y) in ("binary", "multiclass"):
        _, numbers = np.unique(np.asarray(y), return_inverse=True)
        return numbers.ravel()
    return np.zeros(_num_samples(X), dtype=int)


def nested_order(strata: Ints, random: Rng) -> Ints:
    """Return the rows so that the first ones have all strata in proportion."""
    rows = random.permutation(len(strata))
    place = np.empty(len(rows))
    for stratum in np.unique(strata):
        of_stratum = np.flatnonzero(strata[rows] == stratum)
        place[of_stratum] = np.arange(len(of_stratum)) / len(of_stratum)
    return rows[np.argsort(place, kind="stable")]


def _held_out_groups(
    share: float,
    classes: Ints,
    groups: ArrayLike,
    seed: int,
) -> Split:
    """Return a split with all rows of a group on one side.

    Of several draws, the one with the share of rows, and of every class, is taken.
    """
    n_in_all = np.bincount(classes)

    def unevenness(split: Split) -> float:
        n_held_out = np.bincount(classes[split[1]], minlength=len(n_in_all))
        return float(np.abs(n_held_out / n_in_all - share).sum())

    splitter = GroupShuffleSplit(GROUP_DRAWS, test_size=share, random_state=seed)
    try:
        draws: list[Split] = list(splitter.split(classes, groups=groups))
    except ValueError as error:
        n_groups = len(np.unique(np.asarray(groups)))
        raise InvalidParameterError(
            f"cv={share} cannot hold out some of {n_groups} groups and train on "
            f"others: {error}"
        ) from error
    return min(draws, key=unevenness)


def _held_out(share: float, classes: Ints, seed: int) -> Split:
    """Return a split with the share of the rows, and of each class if possible."""
    n_rows = len(classes)
    n_test = math.ceil(share * n_rows)
    n_train = n_rows - n_test
    if n_train == 0:
        raise InvalidParameterError(
            f"cv={share} holds out all n_samples={n_rows} rows: give a smaller share"
        )
    counts = np.bincount(classes)
    n_classes = len(counts)
    rarest = counts.min()
    if rarest == 1 or n_classes > min(n_test, n_train):
        warnings.warn(
            f"cv={share} holds out {n_test} of {n_rows} rows, which cannot have all of "
            f"the {n_classes} classes, the rarest with {rarest} rows: of a rare class "
            "rows are trained on first",
            UserWarning,
            stacklevel=7,
        )
        order = nested_order(classes, np.random.default_rng(seed))
        return order[:n_train], order[n_train:]
    train, test = train_test_split(
        np.arange(n_rows),
        test_size=share,
        random_state=seed,
        stratify=classes if n_classes > 1 else None,
    )
    return train, test


def given(X: ArrayLike, y: Targets) -> tuple[ArrayLike, ...]:
    """Return the positional arguments of a method that learns, or scores."""
    if y is None:
        return (X,)
    return (X, y)
