"""In which way a scikit-learn style estimator can be trained by epochs.

An epoch is ``steps_per_epoch`` passes, trees or boosting rounds, whichever of these
the estimator can add to its earlier training:

===============  ==================================================================
``partial_fit``  a pass over the training rows: SGD, MLP, naive Bayes, MiniBatchKMeans
``n_estimators`` trees of a warm-started ensemble: RandomForest, ExtraTrees, Bagging,
                 GradientBoosting, IsolationForest
``max_iter``     rounds of HistGradientBoosting, warm-started
``boosting``     rounds of xgboost or lightgbm, continued from the last booster
``pipeline``     the last step of a ``Pipeline``; its transformers are fitted once
===============  ==================================================================

The method is chosen by the attributes of an instance, not by its class, so other
libraries' estimators and a user's own work the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Literal, NamedTuple

from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.pipeline import Pipeline

from risingsearch.errors import NotTrainableError

Kind = Literal["partial_fit", "n_estimators", "max_iter", "boosting", "pipeline"]
HIST_GRADIENT_BOOSTING = HistGradientBoostingClassifier, HistGradientBoostingRegressor
PASSES = 100
"""Passes over the rows of a full training."""


class EpochMethod(NamedTuple):
    """How an estimator trains by epochs."""

    kind: Kind  # one of the module's table
    parameter: str | None  # it would count the epochs; the search sets it


# parameters by which an estimator would stop training by itself
_STOPPING: dict[Kind, tuple[str, ...]] = {
    "partial_fit": ("early_stopping",),
    "n_estimators": ("n_iter_no_change",),
    "max_iter": ("early_stopping",),
    "boosting": ("early_stopping_rounds", "early_stopping_round", "n_iter_no_change"),
}
# other names of lightgbm for n_estimators
_ROUNDS = {
    *("max_iter", "n_iter", "nrounds", "num_boost_round", "num_iteration"),
    *("num_iterations", "num_round", "num_rounds", "num_tree", "num_trees"),
}
# module of the class -> the keyword of its fit that continues from a fitted model
_CONTINUATION = {"xgboost.sklearn": "xgb_model", "lightgbm.sklearn": "init_model"}


def epoch_method(estimator: Any) -> EpochMethod:
    """Return how an estimator trains by epochs, or raise why it cannot.

    The answer holds for this instance with its parameters as they are set.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> epoch_method(RandomForestClassifier())
    EpochMethod(kind='n_estimators', parameter='n_estimators')
    """
    params = params_of(estimator)
    if isinstance(estimator, Pipeline):
        return _pipeline_method(estimator)
    if hasattr(estimator, "partial_fit"):
        inner = params.get("estimator")
        if hasattr(inner, "partial_fit"):
            method = _prefixed("partial_fit", "estimator", inner)
        else:
            parameter = "max_iter" if "max_iter" in params else None
            method = EpochMethod("partial_fit", parameter)
    elif continuation(estimator):
        method = EpochMethod("boosting", "n_estimators")
    elif "warm_start" in params and "n_estimators" in params:
        method = EpochMethod("n_estimators", "n_estimators")
    elif isinstance(estimator, HIST_GRADIENT_BOOSTING):
        method = EpochMethod("max_iter", "max_iter")
    else:
        raise _no_method(estimator, params)
    for parameter, advice in _obstacles(estimator, method.kind, params):
        raise _not_trainable(estimator, advice, parameter)
    return method


def epochs_in_full(estimator: Any, steps_per_epoch: int) -> int:
    """Return the epochs of a full training: ``PASSES``, or all trees or rounds.

    How many passes an estimator makes at most says little: it stops by itself long
    before. An ensemble has as many trees as it was given.
    """
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    kind, parameter = epoch_method(last)
    steps = PASSES
    if kind != "partial_fit" and parameter is not None:
        steps = params_of(last)[parameter]
    if not isinstance(steps, Integral) or steps < 1:  # None: the library decides
        steps = PASSES
    return max(1, int(steps) // steps_per_epoch)


def routing_callee(estimator: Any) -> Literal["partial_fit", "fit"]:
    """Return the method whose metadata request decides what training receives.

    It depends on the class alone, so that one search has one answer: an estimator
    that has ``partial_fit`` for some of its parameters counts as having it.
    """
    own = hasattr(estimator, "partial_fit") or hasattr(type(estimator), "partial_fit")
    return "partial_fit" if own else "fit"


def params_of(estimator: Any) -> dict[str, Any]:
    """Return the estimator's own parameters."""
    own = getattr(estimator, "get_params", None)
    return {} if own is None else dict(own(deep=False))


def _prefixed(kind: Kind, prefix: str, inner: Any) -> EpochMethod:
    parameter = epoch_method(inner).parameter
    return EpochMethod(kind, None if parameter is None else f"{prefix}__{parameter}")


def _pipeline_method(pipeline: Any) -> EpochMethod:
    *transformers, (last_name, last) = pipeline.steps
    if last is None or last == "passthrough":
        raise _not_trainable(pipeline, "its last step must be an estimator", last_name)
    if getattr(pipeline, "transform_input", None):
        advice = "metadata are passed on as they are, set it to None"
        raise _not_trainable(pipeline, advice, "transform_input")
    for name, step in transformers:
        if hasattr(step, "fit_resample"):
            raise _not_trainable(pipeline, "resample before the search", name)
    return _prefixed("pipeline", last_name, last)


def continuation(estimator: Any) -> str:
    """Return the keyword of ``fit`` that continues a booster, "" for other classes."""
    bases = type(estimator).__mro__
    if any(base.__name__.startswith("XGBRF") for base in bases):
        return ""  # a forest: n_estimators counts the trees of its only round
    modules = (base.__module__ for base in bases)
    return next((_CONTINUATION[m] for m in modules if m in _CONTINUATION), "")


def _obstacles(
    estimator: Any, kind: Kind, params: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Iterate over parameters that forbid training by epochs, with their remedies."""
    for parameter in _STOPPING[kind]:
        if params.get(parameter) not in (None, False, "auto"):
            yield parameter, "the search decides when to stop, turn it off"
    if kind == "partial_fit" and params.get("class_weight") == "balanced":
        advice = "partial_fit cannot count the classes, use a dict of weights"
        yield "class_weight", advice
    bagging = isinstance(estimator, (BaggingClassifier, BaggingRegressor))
    if bagging and params.get("oob_score"):
        yield "oob_score", "it has no warm start with out-of-bag scores, turn them off"
    if kind == "boosting":
        for parameter in ("boosting_type", "boosting", "boost"):
            if params.get(parameter) in ("rf", "random_forest"):
                yield parameter, "a random forest cannot be continued, use 'gbdt'"
        for parameter in sorted(_ROUNDS & params.keys()):
            advice = "it counts the epochs, which the search decides, set max_epochs"
            yield parameter, advice


def _no_method(estimator: Any, params: dict[str, Any]) -> NotTrainableError:
    if hasattr(type(estimator), "partial_fit"):
        if "solver" in params:
            return _not_trainable(estimator, "use 'adam' or 'sgd'", "solver")
        if "estimator" in params:
            return _not_trainable(estimator, "use one with partial_fit", "estimator")
    return _not_trainable(
        estimator,
        "it has neither partial_fit nor a warm_start that n_estimators counts, "
        "search by the number of training rows (resource='n_samples') or use an "
        "estimator that has one of them",
    )


def _not_trainable(
    estimator: Any, advice: str, parameter: str | None = None
) -> NotTrainableError:
    setting = f"{parameter}={estimator.get_params()[parameter]!r}" if parameter else ""
    name = f"{type(estimator).__name__}({setting})"
    return NotTrainableError(f"{name} cannot be trained one epoch at a time: {advice}")
