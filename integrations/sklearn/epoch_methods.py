"""In which way a scikit-learn style estimator can be trained by epochs.

The method is chosen by the attributes of an instance, not by its class, so other
libraries' estimators and a user's own work the same way.
"""

import inspect
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, Literal

from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline

from risingsearch.arms import Configuration, Params
from risingsearch.errors import NotTrainableError

Kind = Literal[
    "partial_fit", "n_estimators", "max_iter", "boosting", "pipeline", "target"
]
HIST_GRADIENT_BOOSTING = HistGradientBoostingClassifier, HistGradientBoostingRegressor
PASSES = 100  # over the rows, of a full training
# parameters that count trees or rounds; the search sets them
COUNTERS: dict[Kind, str] = {
    "n_estimators": "n_estimators",
    "max_iter": "max_iter",
    "boosting": "n_estimators",
}
# parameters by which an estimator would stop training by itself; where an epoch adds
# trees, n_iter_no_change is one too
_STOPPING = {"early_stopping", "early_stopping_round", "early_stopping_rounds"}
# other names of lightgbm for n_estimators
_ROUNDS = {
    "max_iter",
    "n_iter",
    "nrounds",
    "num_boost_round",
    "num_iteration",
    "num_iterations",
    "num_round",
    "num_rounds",
    "num_tree",
    "num_trees",
}
# classes of xgboost, lightgbm, skorch and Keras that would not do over several calls
# what they do in one, by what to do about them
_STOPS = "the search decides when to stop, take it out"
_RESET = "it begins anew in every epoch, take a schedule by the number of the epoch"
_CALLBACKS = {
    _STOPS: {"EarlyStopping", "_EarlyStoppingCallback"},
    _RESET: {"ReduceLROnPlateau", "SwapEMAWeights"},
    "all configurations and folds would write to the same place, take it out": {
        "BackupAndRestore",
        "Checkpoint",
        "LoadInitState",
        "ModelCheckpoint",
        "TrainEndCheckpoint",
        "TrainingCheckPoint",
        "_RecordEvaluationCallback",
    },
}
_CALLBACK_PARAMETERS = ("callbacks", "fit__callbacks")
# boosters whose trees are not what several fits would add up to
_FORGETS = "its state ends with a fit, and an epoch is one, "
_FOREST = "a random forest cannot be continued, use 'gbdt'"
_BOOSTING_TYPES = {
    "rf": _FOREST,
    "random_forest": _FOREST,
    "dart": "earlier trees are never dropped, use 'gbdt' or xgboost's dart",
    "goss": _FORGETS + "use 'gbdt' with bagging (subsample)",
}
# parameters that count passes over the rows
_PASSES = re.compile(
    "(fit__)?(epochs|iterations|passes|(max|n|num|nb)_?(epochs?|iters?|iterations|passes))"
)
# those without effect where an epoch is one call and the search decides when to stop
_IDLE = {
    "tol",
    "n_iter_no_change",
    "validation_fraction",
    "max_no_improvement",
    "warm_start",
    "scoring",
    "evaluate_every",
    "perp_tol",
    "learning_method",
    "early_stopping_min_delta",
    "first_metric_only",
}
# module of the class -> the keyword of its fit that continues from a fitted model
_CONTINUATION = {"xgboost.sklearn": "xgb_model", "lightgbm.sklearn": "init_model"}


def epoch_method(estimator: BaseEstimator) -> Kind:
    """Return how an estimator trains by epochs, or raise why it cannot."""
    if isinstance(estimator, Pipeline):
        _check_pipeline(estimator)
        return "pipeline"
    if isinstance(estimator, TransformedTargetRegressor):
        regressor = estimator.regressor
        epoch_method(LinearRegression() if regressor is None else regressor)
        return "target"
    params = params_of(estimator)
    kind = _kind(estimator, params)
    inner = params.get("estimator")
    if kind == "partial_fit" and hasattr(inner, "partial_fit"):
        epoch_method(inner)
        if params_of(inner).get("class_weight") == "balanced":
            advice = "of several outputs it would differ, use a dict of weights"
            raise _not_trainable(inner, advice, "class_weight")
    for name, value in params.items():
        advice = _obstacle(estimator, kind, name, value)
        if advice:
            raise _not_trainable(estimator, advice, name)
    return kind


def _kind(estimator: BaseEstimator, params: Params) -> Kind:
    if hasattr(estimator, "partial_fit"):
        return "partial_fit"
    if continuation(estimator):
        return "boosting"
    if "warm_start" in params and "n_estimators" in params:
        return "n_estimators"
    if isinstance(estimator, HIST_GRADIENT_BOOSTING):
        return "max_iter"
    if hasattr(type(estimator), "partial_fit"):
        if "solver" in params:
            raise _not_trainable(estimator, "use 'adam' or 'sgd'", "solver")
        if "estimator" in params:
            raise _not_trainable(estimator, "use one with partial_fit", "estimator")
    raise _not_trainable(
        estimator,
        "it has neither partial_fit nor a warm_start that n_estimators counts, "
        "search by the number of training rows (resource='n_samples') or use an "
        "estimator that has one of them",
    )


def epochs_in_full(estimator: BaseEstimator, steps_per_epoch: int) -> int:
    """Return the epochs of a full training: ``PASSES``, or all trees or rounds."""
    model = _innermost(estimator)[1]
    if makes_one_pass(model):
        return 1
    # how many passes one makes at most says little: it stops by itself long before
    counter = COUNTERS.get(epoch_method(model), "")
    steps = params_of(model).get(counter)
    if not isinstance(steps, Integral) or int(steps) < 1:  # the library decides
        steps = PASSES
    return max(1, int(steps) // steps_per_epoch)


def trains_in_one_fit(estimator: BaseEstimator) -> bool:
    """Return whether one ``fit`` trains as well as several epochs: trees, rounds."""
    return epoch_method(_innermost(estimator)[1]) != "partial_fit"


def makes_one_pass(estimator: BaseEstimator) -> bool:
    """Return whether ``fit`` makes one pass, as that of naive Bayes or Birch.

    Another one would count the same rows again, so it is no further training.
    """
    _, model = _innermost(estimator)
    if not hasattr(model, "partial_fit"):
        return False
    for base in type(model).__mro__:  # a subclass may have other parameters
        if base.__module__.startswith("sklearn.") and hasattr(base, "partial_fit"):
            names = inspect.signature(base).parameters
            return not any(map(_PASSES.fullmatch, names))
    return False


def passes(estimator: BaseEstimator) -> list[str]:
    """Return parameters by which ``partial_fit`` may make several passes in a call."""
    prefix, model = _innermost(estimator)  # scikit-learn's own make one
    params = {} if of_scikit_learn(model) else params_of(model)
    counts = filter(_PASSES.fullmatch, params)
    return [prefix + n for n in counts if isinstance(params[n], Integral | None)]


def warn_of_fewer(estimators: Iterable[BaseEstimator], n_steps: int) -> None:
    """Warn if estimators' own numbers of passes or trees are more than they get."""
    counts = {count: None for model in estimators for count in _own_counts(model)}
    for owner, name, value in counts:
        if value > n_steps:
            warnings.warn(
                f"{owner} has {name}={value}, and the search trains {n_steps} at most: "
                "the epochs count in its place, so raise max_epochs or "
                f"steps_per_epoch to {value} in all, or set {name} to {n_steps}",
                UserWarning,
                stacklevel=6,
            )


def warn_of_idle_epochs(estimators: Sequence[BaseEstimator], max_epochs: int) -> None:
    """Warn if the first epoch is a full training of every estimator."""
    if max_epochs > 1 and all(map(makes_one_pass, estimators)):
        name = type(_innermost(estimators[0])[1]).__name__
        warnings.warn(
            f"a full training of {name} is one pass, and with max_epochs={max_epochs} "
            "the budget also pays for epochs that change nothing: set it to 1",
            UserWarning,
            stacklevel=6,
        )


def _own_counts(estimator: BaseEstimator) -> Iterator[tuple[str, str, int]]:
    """Yield the passes or trees of a model that are not its default."""
    _, model = _innermost(estimator)
    kind = type(model)
    defaults = inspect.signature(kind).parameters
    for name in fixed_by_search(model)[0]:
        value = params_of(model)[name]
        is_default = name in defaults and value == defaults[name].default
        if isinstance(value, Integral) and not is_default:
            yield kind.__name__, name, int(value)


def fixed_by_search(estimator: BaseEstimator) -> tuple[list[str], list[str]]:
    """Return parameters that count the epochs, and those that have no effect."""
    prefix, model = _innermost(estimator)
    params = params_of(model)
    kind = epoch_method(model)
    if kind == "partial_fit":
        counters = list(filter(_PASSES.fullmatch, params))
    else:
        counters = [COUNTERS[kind]]
    idle: set[str] = set()
    if kind != "partial_fit" or of_scikit_learn(model):
        idle = _IDLE & params.keys()
    if params.get("learning_rate") == "adaptive":  # an MLP lowers it by these two
        idle -= {"tol", "n_iter_no_change"}
    return [prefix + name for name in counters], [prefix + name for name in idle]


def _innermost(estimator: BaseEstimator) -> tuple[str, BaseEstimator]:
    """Return the innermost model, and the prefix of its parameters."""
    if isinstance(estimator, Pipeline):
        name, inner = estimator.steps[-1]
    elif isinstance(estimator, TransformedTargetRegressor):
        name = "regressor"
        inner = estimator.regressor
    else:
        name = "estimator"
        inner = params_of(estimator).get(name)
        if not (hasattr(estimator, "partial_fit") and hasattr(inner, "partial_fit")):
            return "", estimator
    prefix, model = _innermost(inner)
    return f"{name}__{prefix}", model


def check_arguments(estimator: BaseEstimator, arguments: Configuration) -> None:
    """Raise if an argument of ``fit`` would stop a model, or forgets between epochs."""
    for name, value in arguments.items():
        last = name.rpartition("__")[2]
        advice = ""
        if last == "callbacks":
            advice = _bad_callback(value)
        if last == "monitor" and callable(value):
            advice = f"monitor: {_STOPS}"
        if advice:
            raise _not_trainable(estimator, f"{advice} of fit")


def of_scikit_learn(estimator: BaseEstimator) -> bool:
    """Return whether ``partial_fit`` is one of scikit-learn's."""
    return str(getattr(estimator.partial_fit, "__module__", "")).startswith("sklearn.")


def _bad_callback(callbacks: object) -> str:
    """Return the callback that behaves differently over several calls."""
    if isinstance(callbacks, Mapping):
        callbacks = callbacks.values()
    for callback in callbacks if isinstance(callbacks, Iterable) else [callbacks]:
        if isinstance(callback, tuple):  # skorch has names
            callback = callback[-1]
        advice = _advice_on_callback(callback)
        if advice:
            name = _class_of(callback).__name__.strip("_")
            return f"{name}: {advice}"
    return ""


def _advice_on_callback(callback: object) -> str:
    kwargs = getattr(callback, "kwargs", {})
    if any(isinstance(value, list) for value in kwargs.values()):
        return "give a function of the round instead of a list"
    policy = getattr(callback, "policy", None)
    waits = getattr(policy, "__name__", policy) == "ReduceLROnPlateau"
    if waits or getattr(callback, "step_every", None) == "batch":
        return _RESET
    bases = {base.__name__ for base in _class_of(callback).__mro__}
    return next((advice for advice, names in _CALLBACKS.items() if names & bases), "")


def _class_of(callback: object) -> type:
    if isinstance(callback, type):
        return callback
    return type(callback)


def last_step(estimator: BaseEstimator) -> BaseEstimator:
    """Return the model of a pipeline, or an estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def routing_callee(estimator: BaseEstimator) -> Literal["partial_fit", "fit"]:
    """Return the method whose metadata request selects the arguments of training."""
    # also one that has it for some parameters only: one search has one answer
    if hasattr(estimator, "partial_fit") or hasattr(type(estimator), "partial_fit"):
        return "partial_fit"
    return "fit"


def params_of(estimator: BaseEstimator) -> Params:
    """Return the estimator's own parameters."""
    return estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}


def _check_pipeline(pipeline: Pipeline) -> None:
    *transformers, (last_name, last) = pipeline.steps
    if last is None or last == "passthrough":
        raise _not_trainable(pipeline, "its last step must be an estimator", last_name)
    if getattr(pipeline, "transform_input", None):
        advice = "metadata are passed on as they are, set it to None"
        raise _not_trainable(pipeline, advice, "transform_input")
    for name, step in transformers:
        if hasattr(step, "fit_resample"):
            advice = (
                "rows are made for the training rows of a fold alone, use "
                "resource='n_samples' with a Pipeline of imbalanced-learn"
            )
            raise _not_trainable(pipeline, advice, name)
    epoch_method(last)


def continuation(estimator: BaseEstimator) -> str:
    """Return the keyword of ``fit`` that continues a booster, "" for other classes."""
    bases = type(estimator).__mro__
    if any(base.__name__.startswith("XGBRF") for base in bases):
        return ""  # a forest: n_estimators counts the trees of its only round
    modules = (base.__module__ for base in bases)
    return next((_CONTINUATION[m] for m in modules if m in _CONTINUATION), "")


def _obstacle(
    estimator: BaseEstimator,
    kind: Kind,
    name: str,
    value: Any,
) -> str:
    """Return the remedy of a parameter that forbids epochs; "" of another."""
    if name in _CALLBACK_PARAMETERS:
        return _bad_callback(value or ())
    adds_trees = COUNTERS.get(kind) == "n_estimators"
    if name in _STOPPING or (adds_trees and name == "n_iter_no_change"):
        is_off = value in (None, False, "auto")
        return "" if is_off else "the search decides when to stop, turn it off"
    # an MLP, which has no eta0, remembers the rate
    adaptive = name == "learning_rate" and value == "adaptive"
    if kind == "partial_fit" and adaptive and hasattr(estimator, "eta0"):
        return "it falls only within one fit, use 'optimal' or 'invscaling'"
    bagging = isinstance(estimator, (BaggingClassifier, BaggingRegressor))
    if bagging and name == "oob_score" and value:
        return "it has no warm start with out-of-bag scores, turn them off"
    if kind == "boosting":
        return _obstacle_of_boosting(name, value)
    return ""


def _obstacle_of_boosting(name: str, value: Any) -> str:
    match name:
        case _ if name in _ROUNDS:
            return "it counts the epochs, which the search decides, set max_epochs"
        case "boosting_type" | "boosting" | "boost" | "data_sample_strategy":
            return _BOOSTING_TYPES.get(value, "")
        case "cegb_penalty_feature_coupled" | "cegb_penalty_feature_lazy" if value:
            return _FORGETS + "use cegb_penalty_split"
        case "process_type" if value == "update":
            return "it adds no rounds, use 'default'"
        case "seed" | "random_seed" if value is not None:
            return "every epoch needs a different one, give random_state"
    return ""


def _not_trainable(
    estimator: BaseEstimator,
    advice: str,
    parameter: str | None = None,
) -> NotTrainableError:
    setting = ""
    if parameter in _CALLBACK_PARAMETERS:
        setting = parameter  # their repr is long
    elif parameter:
        setting = f"{parameter}={estimator.get_params()[parameter]!r}"
    name = f"{type(estimator).__name__}({setting})"
    return NotTrainableError(f"{name} cannot be trained one epoch at a time: {advice}")
