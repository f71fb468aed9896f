"""Prefixes of boosted trees: the models that an ensemble was before its last rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial, wraps
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.pipeline import Pipeline

from risingsearch.integrations.sklearn.epoch_methods import (
    COUNTERS,
    HIST_GRADIENT_BOOSTING,
    continuation,
    epoch_method,
    params_of,
)
from risingsearch.policies.arrays import Floats

METHODS = ("predict", "predict_proba", "decision_function")
_GRADIENT_BOOSTING = GradientBoostingClassifier, GradientBoostingRegressor
# predictions of lightgbm by the sums of its trees, unless these parameters are set
_OUTPUTS: dict[object, Callable[[Floats], Floats]] = {
    "binary": lambda sums: np.column_stack([1.0 - expit(sums), expit(sums)]),
    "multiclass": lambda sums: softmax(sums, axis=1),
    "regression": lambda sums: sums,
}
_OTHER_OUTPUTS = {"sigmoid", "reg_sqrt"}
_LIBRARIES = ("sklearn.", "lightgbm.", "xgboost.")


def prefixes_of_epoch(epoch: int, steps: int, n: int) -> list[int]:
    """Return after how many trees an epoch is scored, its end included."""
    before = (epoch - 1) * steps
    return sorted({before + math.ceil(steps * k / n) for k in range(1, n + 1)})


def has_prefixes(estimator: BaseEstimator) -> bool:
    """Return whether the first trees of a model are those of a shorter training."""
    if isinstance(estimator, Pipeline):
        return has_prefixes(estimator.steps[-1][1])
    if isinstance(estimator, TransformedTargetRegressor):
        return has_prefixes(estimator.regressor)
    if continuation(estimator):
        # dart weighs its trees anew in each round, and a linear model has none
        return params_of(estimator).get("booster") in (None, "gbtree")
    return isinstance(estimator, (*HIST_GRADIENT_BOOSTING, *_GRADIENT_BOOSTING))


def shortened(estimator: BaseEstimator, n_trees: int) -> BaseEstimator:
    """Return a fitted estimator with its first trees alone."""
    twin = copy(estimator)
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        twin.steps = [*estimator.steps[:-1], (name, shortened(last, n_trees))]
        return twin
    if isinstance(estimator, TransformedTargetRegressor):
        twin.regressor_ = shortened(estimator.regressor_, n_trees)
        twin.regressor = clone(twin.regressor_)
        return twin
    twin.set_params(**{COUNTERS[epoch_method(estimator)]: n_trees})
    match continuation(estimator):
        case "xgb_model":
            twin._Booster = estimator.get_booster()[:n_trees]
        case "init_model":
            booster = estimator.booster_
            as_text = booster.model_to_string(num_iteration=n_trees)
            twin._Booster = type(booster)(model_str=as_text)
        case _ if isinstance(estimator, HIST_GRADIENT_BOOSTING):
            twin._predictors = estimator._predictors[:n_trees]
        case _:
            twin.estimators_ = estimator.estimators_[:n_trees]
            twin.n_estimators_ = n_trees
            twin.train_score_ = estimator.train_score_[:n_trees]
    return twin


def predicting(
    estimator: BaseEstimator,
    X: ArrayLike,
    prefixes: Sequence[int],
) -> list[BaseEstimator]:
    """Return copies that predict rows X as each prefix does, made all at once."""
    if not type(estimator).__module__.startswith(_LIBRARIES):
        return [shortened(estimator, n) for n in prefixes]  # it may predict its own way
    if isinstance(estimator, TransformedTargetRegressor):
        twins = []
        for regressor in predicting(estimator.regressor_, X, prefixes):
            twins.append(copy(estimator))
            twins[-1].regressor_ = regressor
        return twins
    made: dict[str, list[Any]] = {}

    def predict(place: int, method: str, rows: ArrayLike) -> object:
        if rows is not X:
            return _predictions(estimator, method, rows, prefixes[place : place + 1])[0]
        if method not in made:
            made[method] = _predictions(estimator, method, X, prefixes)
        return made[method][place]

    twins = [copy(estimator) for _ in prefixes]
    for place, twin in enumerate(twins):
        for method in METHODS:
            if hasattr(estimator, method):
                as_named = wraps(getattr(estimator, method))
                setattr(twin, method, as_named(partial(predict, place, method)))
    return twins


def _predictions(
    estimator: BaseEstimator,
    method: str,
    X: ArrayLike,
    prefixes: Sequence[int],
) -> list[Any]:
    """Return the predictions of each prefix; the trees of several are asked once."""
    match continuation(estimator):
        case "xgb_model":
            ask = getattr(estimator, method)
            return [ask(X, iteration_range=(0, n)) for n in prefixes]
        case "init_model":
            return _of_lightgbm(estimator, method, X, prefixes)
    stages = islice(getattr(estimator, f"staged_{method}")(X), prefixes[-1])
    made = [np.array(stage) for n, stage in enumerate(stages, 1) if n in prefixes]
    if method == "decision_function" and made[0].shape[1:] == (1,):  # not so unstaged
        return [values.ravel() for values in made]
    return made


def _of_lightgbm(
    estimator: BaseEstimator,
    method: str,
    X: ArrayLike,
    prefixes: Sequence[int],
) -> list[Any]:
    output = _OUTPUTS.get(estimator.objective_)
    if method == "decision_function":
        output = _OUTPUTS["regression"]
    if output is None or _OTHER_OUTPUTS & estimator.get_params().keys():
        return [getattr(estimator, method)(X, num_iteration=n) for n in prefixes]
    sums = 0.0
    predictions = []
    for first, end in pairwise([0, *prefixes]):
        sums = sums + estimator.predict(
            X,
            raw_score=True,
            start_iteration=first,
            num_iteration=end - first,
        )
        predictions.append(output(sums))
    if method == "predict" and hasattr(estimator, "classes_"):
        return [estimator.classes_[shares.argmax(axis=1)] for shares in predictions]
    return predictions
