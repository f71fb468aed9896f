"""Epochs of estimators that cannot be trained further: anew on more of a resource.

The last epoch has all of it, the training rows of a fold or the value of a parameter,
and every epoch before half of the next one's. The cost of an epoch is in proportion
to its amount of it, and that of the last one is ``max_epochs``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from risingsearch.arms import Configuration, Params
from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.integrations.sklearn.splits import (
    Split,
    Targets,
    class_numbers,
    given,
    nested_order,
)
from risingsearch.policies.arrays import Ints

N_SAMPLES = "n_samples"
EPOCHS = 5  # of an arm, where max_epochs does not say: the first has 1/16 of all
FEWEST_ROWS = 10  # of the first epoch,
OF_A_CLASS = 4  # as those of scikit-learn's halving with three folds, and of a class


@dataclass
class Resource:
    """Amount of a resource in every epoch, and the cost of the epoch."""

    name: str
    price: int  # epochs that the last one costs
    totals: list[int]  # how much of it every epoch has, in all folds together
    settings: list[Params]  # parameters that every epoch sets
    rows: list[list[Ints]] | None = None  # to train on, by fold and epoch

    @property
    def max_epochs(self) -> int:
        """How many epochs an arm has at most."""
        return len(self.totals)

    @property
    def costs(self) -> list[float]:
        """Cost of every epoch, in epochs, by its share of all."""
        return [self.price * total / self.totals[-1] for total in self.totals]

    def last(self, n: int) -> Resource:
        """Return the resource for those who need more than the first epochs have."""
        rows = self.rows and [of_fold[-n:] for of_fold in self.rows]
        return replace(
            self,
            totals=self.totals[-n:],
            settings=self.settings[-n:],
            rows=rows,
        )

    def check(self, estimator: BaseEstimator, params: Configuration) -> None:
        """Raise if a configured estimator cannot be trained, or sets the resource."""
        if not hasattr(estimator, "fit"):
            raise NotTrainableError(
                f"{type(estimator).__name__} cannot be trained: it has no fit"
            )
        if self.name == N_SAMPLES:
            return
        full = self.settings[-1][self.name]
        if self.name in params or _value_of(self.name, estimator) != full:
            raise InvalidParameterError(
                f"{self.name} is the resource: take it out of param_distributions, and "
                "give the estimator the value of a full training"
            )


def resource_of(
    name: object,
    max_epochs: int | None,
    seed: int,
    estimator: BaseEstimator,
    X: ArrayLike,
    y: Targets,
    splits: Sequence[Split],
    saved_costs: list[float] | None,
) -> Resource:
    """Return the resource that is given by ``resource`` and ``max_epochs``.

    Or the one of a saved search, by the costs of its epochs.
    """
    n_epochs = max_epochs or EPOCHS
    if name == N_SAMPLES:
        classes = class_numbers(estimator, X, y)
        return training_rows(splits, classes, n_epochs, seed, saved_costs)
    if isinstance(name, str) and name in estimator.get_params():
        return parameter_values(name, estimator, len(splits), n_epochs)
    raise InvalidParameterError(
        "resource must be None, 'n_samples' or the name of a whole-number parameter of "
        f"the {type(estimator).__name__}; got {shown(name)}"
    )


def training_rows(
    splits: Sequence[Split],
    strata: Ints,
    max_epochs: int,
    seed: int,
    saved_costs: list[float] | None = None,
) -> Resource:
    """Return ``resource="n_samples"``: the same rising share of each fold.

    Where rows are few there are fewer epochs: each has about half of the next. A search
    that was begun before this rule, as its ``saved_costs`` show, has all of them, and
    more rows in the first.
    """
    random = np.random.default_rng(seed)
    folds = [np.arange(len(strata))[train] for train, _ in splits]
    orders = [nested_order(strata[train], random) for train in folds]
    n_classes = max(len(np.unique(strata[train])) for train in folds)
    full = min(map(len, folds))

    def resource(n_epochs: int, fewest: int) -> Resource:
        amounts = halved(full, n_epochs, fewest)
        rows = []
        for train, order in zip(folds, orders, strict=True):
            ends = [len(train) * amount // full for amount in amounts]
            rows.append([train[np.sort(order[:end])] for end in ends])
        totals = [sum(map(len, of_epoch)) for of_epoch in zip(*rows, strict=True)]
        return Resource(N_SAMPLES, max_epochs, totals, [{}] * n_epochs, rows)

    if saved_costs is not None:
        fewest = min(30, 10 * n_classes, full // 2, full - max_epochs + 1)
        before = resource(max_epochs, fewest)
        if before.costs == saved_costs:
            return before
    fewest = min(max(FEWEST_ROWS, OF_A_CLASS * n_classes), full)
    n_halvings = round(math.log2(full / fewest))
    return resource(min(max_epochs, 1 + n_halvings), fewest)


def parameter_values(
    name: str,
    estimator: BaseEstimator,
    n_splits: int,
    max_epochs: int,
) -> Resource:
    """``resource="max_iter"``, say: a share of the value that the estimator has."""
    full = _value_of(name, estimator)
    if full < max_epochs:
        raise InvalidParameterError(
            f"max_epochs={max_epochs} is more than {name}={full}: set it lower"
        )
    values = halved(full, max_epochs, 1)
    totals = [n_splits * value for value in values]
    settings = [{name: value} for value in values]
    return Resource(name, max_epochs, totals, settings)


def _value_of(name: str, estimator: BaseEstimator) -> int:
    """Return the value of a full training, or raise that it is no whole number."""
    value = estimator.get_params().get(name)
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1:
        return int(value)
    raise InvalidParameterError(
        f"resource={name!r} needs the value of a full training, a whole number above "
        f"0: set {name} of the {type(estimator).__name__}; it is {shown(value)}"
    )


def halved(full: int, n: int, least: int) -> list[int]:
    """Return ``n`` rising amounts up to all: each half of the next, or rather more."""
    factor = min(2.0, (full / least) ** (1 / max(1, n - 1)))
    amounts = []
    for k in range(n):
        left = n - 1 - k
        amount = int(full / factor**left + 1e-9)
        amounts.append(min(max(least + k, amount), full - left))
    return amounts


class Retrainer:
    """Trains one estimator anew in every epoch; otherwise as an ``EpochTrainer``."""

    def __init__(
        self,
        estimator: BaseEstimator,
        settings: Sequence[Configuration],
    ) -> None:
        self.estimator = estimator  # of the last epoch
        self.epochs = 0
        self._settings = settings

    def train(
        self,
        X: ArrayLike,
        y: Targets = None,
        cache: object = None,
        /,
        **fit_params: object,
    ) -> None:
        """Train anew, with the parameters of the next epoch."""
        self.estimator = clone(self.estimator).set_params(**self._settings[self.epochs])
        self.estimator.fit(*given(X, y), **fit_params)
        self.epochs += 1
