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

from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline

from risingsearch.arms import Params
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
# parameters by which an estimator would stop training by itself
_STOPPING: dict[Kind, tuple[str, ...]] = {
    "partial_fit": ("early_stopping",),
    "n_estimators": ("n_iter_no_change",),
    "max_iter": ("early_stopping",),
    "boosting": (
        "early_stopping_rounds",
        "early_stopping_round",
        "early_stopping",
        "n_iter_no_change",
    ),
}
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
_STOPS = "the search decides when to stop, take it out"
_RESET = "it begins anew in every epoch, take a schedule by the number of the epoch"
_SHARED = "all configurations and folds would write to the same place, take it out"
# classes of xgboost, lightgbm, skorch and Keras that would not do over several calls
# what they do in one
_CALLBACKS = {
    **dict.fromkeys(("EarlyStopping", "_EarlyStoppingCallback"), _STOPS),
    **dict.fromkeys(("ReduceLROnPlateau", "SwapEMAWeights"), _RESET),
    **dict.fromkeys(("TrainingCheckPoint", "_RecordEvaluationCallback"), _SHARED),
    **dict.fromkeys(("Checkpoint", "TrainEndCheckpoint", "LoadInitState"), _SHARED),
    **dict.fromkeys(("ModelCheckpoint", "BackupAndRestore"), _SHARED),
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


def epoch_method(estimator: Any) -> Kind:
    """Return how an estimator trains by epochs, or raise why it cannot."""
    params = params_of(estimator)
    if isinstance(estimator, Pipeline):
        _check_pipeline(estimator)
        return "pipeline"
    if isinstance(estimator, TransformedTargetRegressor):
        regressor = estimator.regressor
        epoch_method(LinearRegression() if regressor is None else regressor)
        return "target"
    kind: Kind
    if hasattr(estimator, "partial_fit"):
        kind = "partial_fit"
        if hasattr(inner := params.get("estimator"), "partial_fit"):
            epoch_method(inner)
            if params_of(inner).get("class_weight") == "balanced":
                advice = "of several outputs it would differ, use a dict of weights"
                raise _not_trainable(inner, advice, "class_weight")
    elif continuation(estimator):
        kind = "boosting"
    elif "warm_start" in params and "n_estimators" in params:
        kind = "n_estimators"
    elif isinstance(estimator, HIST_GRADIENT_BOOSTING):
        kind = "max_iter"
    else:
        raise _no_method(estimator, params)
    for parameter, advice in _obstacles(estimator, kind, params):
        raise _not_trainable(estimator, advice, parameter)
    return kind


def epochs_in_full(estimator: Any, steps_per_epoch: int) -> int:
    """Return the epochs of a full training: ``PASSES``, or all trees or rounds."""
    last = _innermost(estimator)[1]
    counter = COUNTERS.get(epoch_method(last))
    # how many passes one makes at most says little: it stops by itself long before
    steps: Any = PASSES if counter is None else params_of(last)[counter]
    if makes_one_pass(last):
        steps = 1
    if not isinstance(steps, Integral) or steps < 1:  # None: the library decides
        steps = PASSES
    return max(1, int(steps) // steps_per_epoch)


def trains_in_one_fit(estimator: Any) -> bool:
    """Return whether one ``fit`` trains as well as several epochs: trees, rounds."""
    return epoch_method(_innermost(estimator)[1]) != "partial_fit"


def makes_one_pass(estimator: Any) -> bool:
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


def passes(estimator: Any) -> list[str]:
    """Return parameters by which ``partial_fit`` may make several passes in a call."""
    prefix, model = _innermost(estimator)  # scikit-learn's own make one
    params = {} if of_scikit_learn(model) else params_of(model)
    counts = filter(_PASSES.fullmatch, params)
    return [prefix + n for n in counts if isinstance(params[n], Integral | None)]


def warn_of_fewer(estimators: Iterable[Any], most: int) -> None:
    """Warn if estimators' own numbers of passes or trees are more than they get."""
    found = (count for estimator in estimators for count in _own_counts(estimator))
    for owner, name, value in dict.fromkeys(found):
        if value > most:
            warnings.warn(
                f"{owner} has {name}={value}, and the search trains {most} at most: "
                "the epochs count in its place, so raise max_epochs or "
                f"steps_per_epoch to {value} in all, or set {name} to {most}",
                UserWarning,
                stacklevel=6,
            )


def warn_of_idle_epochs(estimators: Sequence[Any], max_epochs: int) -> None:
    """Warn if the first epoch is a full training of every estimator."""
    if max_epochs > 1 and all(map(makes_one_pass, estimators)):
        name = type(_innermost(estimators[0])[1]).__name__
        warnings.warn(
            f"a full training of {name} is one pass, and with max_epochs={max_epochs} "
            "the budget also pays for epochs that change nothing: set it to 1",
            UserWarning,
            stacklevel=6,
        )


def _own_counts(estimator: Any) -> Iterator[tuple[str, str, int]]:
    """Yield the passes or trees of a model that are not its default."""
    _, model = _innermost(estimator)
    defaults = inspect.signature(type(model)).parameters
    for name in fixed_by_search(model)[0]:
        value = params_of(model)[name]
        is_own = name not in defaults or value != defaults[name].default
        if is_own and isinstance(value, Integral):
            yield type(model).__name__, name, int(value)


def fixed_by_search(estimator: Any) -> tuple[list[str], list[str]]:
    """Return parameters that count the epochs, and those that have no effect."""
    prefix, model = _innermost(estimator)
    params = params_of(model)
    kind = epoch_method(model)
    counters = {COUNTERS.get(kind)}
    if kind == "partial_fit":
        counters = {name for name in params if _PASSES.fullmatch(name)}
    idle = _IDLE if kind != "partial_fit" or of_scikit_learn(model) else set()
    if params.get("learning_rate") == "adaptive":  # an MLP lowers it by these two
        idle = idle - {"tol", "n_iter_no_change"}
    return (
        [prefix + name for name in params if name in counters],
        [prefix + name for name in params if name in idle],
    )


def _innermost(estimator: Any) -> tuple[str, Any]:
    """Return the innermost model, and the prefix of its parameters."""
    prefix = ""
    while True:
        name, inner = "estimator", params_of(estimator).get("estimator")
        if isinstance(estimator, Pipeline):
            name, inner = estimator.steps[-1]
        elif isinstance(estimator, TransformedTargetRegressor):
            name, inner = "regressor", estimator.regressor
        elif not (hasattr(estimator, "partial_fit") and hasattr(inner, "partial_fit")):
            return prefix, estimator
        prefix, estimator = f"{prefix}{name}__", inner


def check_arguments(estimator: Any, arguments: Mapping[str, Any]) -> None:
    """Raise if an argument of ``fit`` would stop a model, or forgets between epochs."""
    for name, value in arguments.items():
        last = name.rpartition("__")[2]
        advice = _bad_callback(value) if last == "callbacks" else ""
        if last == "monitor" and callable(value):
            advice = f"monitor: {_STOPS}"
        if advice:
            raise _not_trainable(estimator, f"{advice} of fit")


def of_scikit_learn(estimator: Any) -> bool:
    """Return whether ``partial_fit`` is one of scikit-learn's."""
    return str(getattr(estimator.partial_fit, "__module__", "")).startswith("sklearn.")


def _bad_callback(callbacks: Any) -> str:
    """Return the callback that behaves differently over several calls."""
    if isinstance(callbacks, Mapping):
        callbacks = callbacks.values()
    for one in callbacks if isinstance(callbacks, Iterable) else [callbacks]:
        callback = one[-1] if isinstance(one, tuple) else one  # skorch has names
        bases = (callback if isinstance(callback, type) else type(callback)).__mro__
        advice = next(
            (_CALLBACKS[b.__name__] for b in bases if b.__name__ in _CALLBACKS), ""
        )
        policy = getattr(callback, "policy", None)
        waits = getattr(policy, "__name__", policy) == "ReduceLROnPlateau"
        if waits or getattr(callback, "step_every", None) == "batch":
            advice = _RESET
        if any(isinstance(v, list) for v in getattr(callback, "kwargs", {}).values()):
            advice = "give a function of the round instead of a list"
        if advice:
            return f"{bases[0].__name__.strip('_')}: {advice}"
    return ""


def last_step(estimator: Any) -> Any:
    """Return the model of a pipeline, or an estimator itself."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def routing_callee(estimator: Any) -> Literal["partial_fit", "fit"]:
    """Return the method whose metadata request selects the arguments of training."""
    # also one that has it for some parameters only: one search has one answer
    own = hasattr(estimator, "partial_fit") or hasattr(type(estimator), "partial_fit")
    return "partial_fit" if own else "fit"


def params_of(estimator: Any) -> dict[str, Any]:
    """Return the estimator's own parameters."""
    own = getattr(estimator, "get_params", None)
    return {} if own is None else dict(own(deep=False))


def _check_pipeline(pipeline: Any) -> None:
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


def continuation(estimator: Any) -> str:
    """Return the keyword of ``fit`` that continues a booster, "" for other classes."""
    bases = type(estimator).__mro__
    if any(base.__name__.startswith("XGBRF") for base in bases):
        return ""  # a forest: n_estimators counts the trees of its only round
    modules = (base.__module__ for base in bases)
    return next((_CONTINUATION[m] for m in modules if m in _CONTINUATION), "")


def _obstacles(estimator: Any, kind: Kind, params: Params) -> Iterator[tuple[str, str]]:
    """Iterate over parameters that forbid training by epochs, with their remedies."""
    for parameter in _STOPPING[kind]:
        if params.get(parameter) not in (None, False, "auto"):
            yield parameter, "the search decides when to stop, turn it off"
    for parameter in ("callbacks", "fit__callbacks"):
        if advice := _bad_callback(params.get(parameter) or ()):
            yield parameter, advice
    adaptive = params.get("learning_rate") == "adaptive"
    if kind == "partial_fit" and adaptive and "eta0" in params:  # MLP remembers
        advice = "it falls only within one fit, use 'optimal' or 'invscaling'"
        yield "learning_rate", advice
    bagging = isinstance(estimator, (BaggingClassifier, BaggingRegressor))
    if bagging and params.get("oob_score"):
        yield "oob_score", "it has no warm start with out-of-bag scores, turn them off"
    if kind == "boosting":
        yield from _obstacles_of_boosting(params)


def _obstacles_of_boosting(params: Params) -> Iterator[tuple[str, str]]:
    forgets = "its state ends with a fit, and an epoch is one, "
    forest = "a random forest cannot be continued, use 'gbdt'"
    of_kinds = {
        **dict.fromkeys(("rf", "random_forest"), forest),
        "dart": "earlier trees are never dropped, use 'gbdt' or xgboost's dart",
        "goss": forgets + "use 'gbdt' with bagging (subsample)",
    }
    for parameter in ("boosting_type", "boosting", "boost", "data_sample_strategy"):
        if (kind := params.get(parameter)) in of_kinds:
            yield parameter, of_kinds[kind]
    for parameter in ("cegb_penalty_feature_coupled", "cegb_penalty_feature_lazy"):
        if params.get(parameter):
            yield parameter, forgets + "use cegb_penalty_split"
    if params.get("process_type") == "update":
        yield "process_type", "it adds no rounds, use 'default'"
    for parameter in ("seed", "random_seed"):
        if params.get(parameter) is not None:
            yield parameter, "every epoch needs a different one, give random_state"
    for parameter in sorted(_ROUNDS & params.keys()):
        advice = "it counts the epochs, which the search decides, set max_epochs"
        yield parameter, advice


def _no_method(estimator: Any, params: Params) -> NotTrainableError:
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
    setting = ""
    if parameter in ("callbacks", "fit__callbacks"):
        setting = parameter  # their repr is long
    elif parameter:
        setting = f"{parameter}={estimator.get_params()[parameter]!r}"
    name = f"{type(estimator).__name__}({setting})"
    return NotTrainableError(f"{name} cannot be trained one epoch at a time: {advice}")
