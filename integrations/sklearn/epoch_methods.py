"""How any scikit-learn style estimator trains one epoch.

An epoch is ``steps_per_epoch`` passes, trees or boosting rounds, whichever of these
the estimator can add to what it has learnt before:

===============  ==================================================================
``partial_fit``  a pass over the training rows: SGD, MLP, naive Bayes, MiniBatchKMeans
``n_estimators`` trees of a warm-started ensemble: RandomForest, ExtraTrees, Bagging,
                 GradientBoosting, IsolationForest
``max_iter``     rounds of HistGradientBoosting, warm-started
``boosting``     rounds of xgboost or lightgbm, continued from the last booster
``pipeline``     the last step of a ``Pipeline``; its transformers are fitted once
===============  ==================================================================

What can be done is decided by what an instance offers, not by its class, so other
libraries' estimators and a user's own work the same way.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from copy import deepcopy
from numbers import Integral
from typing import Any, Literal, NamedTuple

import joblib
import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import unique_labels

from risingsearch.checks import checked_int
from risingsearch.errors import InvalidParameterError, NotTrainableError

Kind = Literal["partial_fit", "n_estimators", "max_iter", "boosting", "pipeline"]
_HIST_GRADIENT_BOOSTING = (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)


class EpochMethod(NamedTuple):
    """How an estimator trains by epochs.

    Parameters
    ----------
    kind : {"partial_fit", "n_estimators", "max_iter", "boosting", "pipeline"}
        The way, one of the module's table.
    parameter : str or None
        The parameter that would say how many epochs to train; the search sets it.
    """

    kind: Kind
    parameter: str | None


# parameters by which an estimator would stop training by itself
_STOPPING: dict[Kind, tuple[str, ...]] = {
    "partial_fit": ("early_stopping",),
    "n_estimators": ("n_iter_no_change",),
    "max_iter": ("early_stopping",),
    "boosting": ("early_stopping_rounds", "early_stopping_round", "n_iter_no_change"),
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
# module of the class -> the keyword of its fit that continues from a fitted model
_CONTINUATION = {"xgboost.sklearn": "xgb_model", "lightgbm.sklearn": "init_model"}


def epoch_method(estimator: Any) -> EpochMethod:
    """Return how an estimator trains by epochs, or raise why it cannot.

    The answer holds for this instance with its parameters as they are set; neither
    fitted state nor data are looked at, and nothing is changed.

    Parameters
    ----------
    estimator : object
        A configured estimator.

    Returns
    -------
    EpochMethod
        The kind of training and the parameter that counts its epochs.

    Raises
    ------
    NotTrainableError
        If the estimator, or one of its parameters, forbids training by epochs.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> epoch_method(RandomForestClassifier())
    EpochMethod(kind='n_estimators', parameter='n_estimators')
    >>> from sklearn.linear_model import SGDClassifier
    >>> epoch_method(SGDClassifier(early_stopping=True))
    Traceback (most recent call last):
    risingsearch.errors.NotTrainableError: SGDClassifier(early_stopping=True) cannot
    be trained one epoch at a time: the search decides when to stop, turn it off
    """
    params = _params(estimator)
    if isinstance(estimator, Pipeline):
        return _pipeline_method(estimator)
    if hasattr(estimator, "partial_fit"):
        inner = params.get("estimator")
        if hasattr(inner, "partial_fit"):
            method = _prefixed("partial_fit", "estimator", inner)
        else:
            parameter = "max_iter" if "max_iter" in params else None
            method = EpochMethod("partial_fit", parameter)
    elif _continuation(estimator):
        method = EpochMethod("boosting", "n_estimators")
    elif "warm_start" in params and "n_estimators" in params:
        method = EpochMethod("n_estimators", "n_estimators")
    elif isinstance(estimator, _HIST_GRADIENT_BOOSTING):
        method = EpochMethod("max_iter", "max_iter")
    else:
        raise _no_method(estimator, params)
    _check_parameters(estimator, method.kind, params)
    return method


def epoch_parameter(estimator: Any) -> str | None:
    """Return the parameter that counts epochs, which no configuration may set.

    Parameters
    ----------
    estimator : object
        A configured estimator.

    Returns
    -------
    str or None
        Its name as ``set_params`` takes it; None when there is none.

    Raises
    ------
    NotTrainableError
        If the estimator cannot be trained by epochs.

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.pipeline import Pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> steps = [("scale", StandardScaler()), ("sgd", SGDClassifier())]
    >>> epoch_parameter(Pipeline(steps))
    'sgd__max_iter'
    """
    return epoch_method(estimator).parameter


def routing_callee(estimator: Any) -> Literal["partial_fit", "fit"]:
    """Return the method whose metadata request decides what training receives.

    It depends on the class alone, so that one search has one answer: an estimator
    that has ``partial_fit`` for some of its parameters counts as having it. For a
    ``Pipeline`` it is ``fit``, of the pipeline and of every step.

    Parameters
    ----------
    estimator : object
        Any estimator.

    Returns
    -------
    {"partial_fit", "fit"}
        The method's name.

    Examples
    --------
    >>> from sklearn.neural_network import MLPClassifier
    >>> routing_callee(MLPClassifier())
    'partial_fit'
    """
    own = hasattr(estimator, "partial_fit") or hasattr(type(estimator), "partial_fit")
    return "partial_fit" if own else "fit"


def class_labels(estimator: Any, y: Any) -> Any:
    """Return what the estimator's ``partial_fit`` takes as ``classes``.

    Call it with all of ``y`` before the data are split: a fold may lack a class.

    Parameters
    ----------
    estimator : object
        A configured estimator that can be trained by epochs.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        The targets.

    Returns
    -------
    ndarray of shape (n_classes,), list of ndarray, or None
        The sorted labels; one array for each output of a ``MultiOutputClassifier``;
        None when training takes no ``classes``.

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> class_labels(SGDClassifier(), ["no", "yes", "no"]).tolist()
    ['no', 'yes']
    """
    if isinstance(estimator, Pipeline):
        return class_labels(estimator.steps[-1][1], y)
    if not _takes_classes(estimator):
        return None
    if isinstance(estimator, MultiOutputClassifier):
        return [np.unique(column) for column in np.asarray(y).T]
    return unique_labels(y)


class EpochTrainer:
    """Trains one estimator on one set of rows, an epoch at a time.

    It can be pickled after any epoch, and goes on as if it had not been. Every epoch
    must be given the same rows.

    Parameters
    ----------
    estimator : object
        A configured, unfitted estimator that now belongs to the trainer, so pass a
        clone: it is fitted in place and its parameters may be set (below).
    steps_per_epoch : int, default=1
        Passes, trees or boosting rounds in an epoch, at least 1.
    classes : array-like or list of array-like, optional
        What ``class_labels`` returns; by default it is read from the first ``y``.

    Attributes
    ----------
    estimator : object
        The same estimator; after the first epoch it is fitted, and ready to predict.
    epochs : int
        How many epochs it has been trained.

    Raises
    ------
    NotTrainableError
        If the estimator cannot be trained by epochs.
    InvalidParameterError
        If ``steps_per_epoch`` is not a whole number of at least 1.

    Notes
    -----
    What differs from one ``fit`` over all epochs:

    - ``partial_fit`` ignores ``max_iter`` and ``tol``. With an integer
      ``random_state`` every pass visits the rows in the same order; a
      ``RandomState`` instance gives each pass its own. SGD's
      ``learning_rate="adaptive"`` stays at ``eta0``.
    - Warm-started ensembles end up exactly as after one ``fit``, once
      ``warm_start=True`` is set and, for HistGradientBoosting, ``early_stopping``,
      whose ``"auto"`` gives way to False: the search decides when to stop.
      ``n_estimators`` (``max_iter``) is the number trained so far.
    - xgboost and lightgbm end up exactly as after one ``fit`` where nothing is drawn
      at random. Rows, columns or dropped trees are drawn from other seeds: epoch by
      epoch ``random_state`` plus the rounds behind (None counts as 0). With one and
      the same seed lightgbm would draw the same columns for ever, and xgboost would
      go on with generator numbers that other boosters in the process use up.
      Afterwards ``random_state`` is as it was, and ``n_estimators`` the rounds so far.
    - A ``Pipeline`` fits its transformers on the first epoch, with ``fit_transform``
      as its own ``fit`` does, and ignores ``memory`` and ``verbose``. The transformed
      rows are kept. They are pickled too, unless ``transform`` gives the same bits
      again: the first epoch compares them, and so transforms twice.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import SGDClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> trainer = EpochTrainer(SGDClassifier(random_state=0), steps_per_epoch=5)
    >>> for epoch in range(4):
    ...     trainer.train(X, y)
    >>> trainer.epochs, trainer.estimator.score(X, y) > 0.6
    (4, True)
    """

    def __init__(
        self, estimator: Any, steps_per_epoch: int = 1, classes: Any = None
    ) -> None:
        steps = checked_int("steps_per_epoch", steps_per_epoch, 1)
        self.estimator = estimator
        self.epochs = 0
        self._stepper = _stepper(estimator, steps, classes)

    def train(self, X: Any, y: Any = None, /, **fit_params: Any) -> None:
        """Train one more epoch.

        Parameters
        ----------
        X : array-like, sparse matrix or list of shape (n_samples, n_features)
            The training rows; may be None while ``needs_rows`` is False.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Their targets; None for estimators that learn without.
        **fit_params : object
            Passed on to the estimator's training method; to the steps of a
            ``Pipeline`` as its ``fit`` does: by the prefix ``step__``, or, where
            metadata routing is enabled, by the steps' requests for ``fit``.
        """
        self._stepper.train(X, y, fit_params)
        self.epochs += 1

    @property
    def needs_rows(self) -> bool:
        """Whether the next epoch looks at X: not where a pipeline has kept its own."""
        return self._stepper.needs_rows

    def forget_rows(self) -> None:
        """Let go of the transformed rows that a pipeline keeps between epochs.

        A paused arm needs them no more; the next epoch transforms them again.
        """
        self._stepper.forget_rows()


class _Stepper(ABC):
    """One way of training, and what it must remember between epochs."""

    def __init__(self, estimator: Any, steps: int, classes: Any) -> None:
        self.estimator = estimator
        self.steps = steps
        self.classes = classes

    @abstractmethod
    def train(self, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        """Train one epoch more."""

    @property
    def needs_rows(self) -> bool:
        return True

    def forget_rows(self) -> None:  # noqa: B027, most have nothing to forget
        """Keep nothing but the model; only a pipeline has more."""


class _PartialFit(_Stepper):
    def train(self, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        if _takes_classes(self.estimator):
            if self.classes is None:
                self.classes = class_labels(self.estimator, y)
            params = {"classes": self.classes, **params}
        for _ in range(self.steps):
            self.estimator.partial_fit(*_data(X, y), **params)


class _WarmStart(_Stepper):
    def __init__(self, estimator: Any, steps: int, classes: Any) -> None:
        super().__init__(estimator, steps, classes)
        self.trained = 0
        estimator.set_params(warm_start=True)
        if isinstance(estimator, _HIST_GRADIENT_BOOSTING):
            estimator.set_params(early_stopping=False)

    def train(self, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        trained = self.trained + self.steps
        self.estimator.set_params(**{str(epoch_parameter(self.estimator)): trained})
        with contextlib.ExitStack() as stack:
            if isinstance(_params(self.estimator).get("class_weight"), str):
                # A forest warns that the next fit may see other rows, which would
                # change the weights. Here the rows stay the same.
                stack.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", "class_weight presets", UserWarning)
            self.estimator.fit(*_data(X, y), **params)
        self.trained = trained


class _Boosting(_Stepper):
    def __init__(self, estimator: Any, steps: int, classes: Any) -> None:
        super().__init__(estimator, steps, classes)
        self.trained = 0
        # Not from get_params: there xgboost draws a number from a RandomState.
        self.random_state = estimator.random_state

    def train(self, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        seed = self.random_state
        if seed is None or isinstance(seed, Integral):
            seed = (int(seed or 0) + self.trained) % 2**31
        self.estimator.set_params(n_estimators=self.steps, random_state=seed)
        if self.trained:
            params = {**params, _continuation(self.estimator): self.estimator}
        self.estimator.fit(*_data(X, y), **params)
        self.trained += self.steps
        self.estimator.set_params(
            n_estimators=self.trained, random_state=self.random_state
        )


class _Pipeline(_Stepper):
    def __init__(self, estimator: Any, steps: int, classes: Any) -> None:
        super().__init__(estimator, steps, classes)
        self.name, last = estimator.steps[-1]
        self.last = _stepper(last, steps, classes)
        self.rows: Any = None
        # None: not fitted. False: transform does not give again what fit_transform
        # gave (PCA rounds otherwise, TargetEncoder fits across folds).
        self.repeatable: bool | None = None

    def train(self, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        routed = _routed(self.estimator, params)
        if self.repeatable is None:
            untouched = deepcopy(X)  # a step with copy=False works in place
            self.rows = self._transformed(X, y, routed, fit=True)
            again = self._transformed(untouched, y, routed, fit=False)
            self.repeatable = joblib.hash(self.rows) == joblib.hash(again)
        elif self.rows is None:
            self.rows = self._transformed(X, y, routed, fit=False)
        self.last.train(self.rows, y, routed[self.name]["fit"])

    def _transformed(self, X: Any, y: Any, routed: Any, *, fit: bool) -> Any:
        for name, step in self.estimator.steps[:-1]:
            if step is None or step == "passthrough":
                continue
            params = routed[name]
            if fit and hasattr(step, "fit_transform"):
                X = step.fit_transform(X, y, **params["fit_transform"])
                continue
            if fit:
                step.fit(X, y, **params["fit"])
            X = step.transform(X, **params.get("transform", {}))
        return X

    @property
    def needs_rows(self) -> bool:
        return self.rows is None

    def forget_rows(self) -> None:
        if self.repeatable:
            self.rows = None
        self.last.forget_rows()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"rows": None} if self.repeatable else {})


_STEPPERS: dict[Kind, type[_Stepper]] = {
    "partial_fit": _PartialFit,
    "n_estimators": _WarmStart,
    "max_iter": _WarmStart,
    "boosting": _Boosting,
    "pipeline": _Pipeline,
}


def _stepper(estimator: Any, steps: int, classes: Any) -> _Stepper:
    return _STEPPERS[epoch_method(estimator).kind](estimator, steps, classes)


def _routed(pipeline: Any, params: Mapping[str, Any]) -> Any:
    """Return the parameters by step and method, as the pipeline's ``fit`` does."""
    if sklearn.get_config()["enable_metadata_routing"]:
        return process_routing(pipeline, "fit", **params)
    routed: Any = defaultdict(lambda: defaultdict(dict))
    for key, value in params.items():
        step, _, name = key.partition("__")
        if not name or step not in pipeline.named_steps:
            msg = (
                f"training got the parameter {key!r}; parameters for a Pipeline are "
                f"prefixed with a step ({', '.join(pipeline.named_steps)}), for "
                f"example {pipeline.steps[-1][0]}__sample_weight"
            )
            raise InvalidParameterError(msg)
        routed[step]["fit"][name] = routed[step]["fit_transform"][name] = value
    return routed


def _takes_classes(estimator: Any) -> bool:
    method = getattr(estimator, "partial_fit", None)
    if method is None:
        return False
    parameters = inspect.signature(method).parameters.values()
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return any(p.name == "classes" for p in parameters) or (
        takes_any and is_classifier(estimator)
    )


def _data(X: Any, y: Any) -> tuple[Any, ...]:
    return (X,) if y is None else (X, y)


def _params(estimator: Any) -> dict[str, Any]:
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


def _continuation(estimator: Any) -> str:
    """Return the keyword of ``fit`` that continues a booster, "" for other classes."""
    bases = type(estimator).__mro__
    if any(base.__name__.startswith("XGBRF") for base in bases):
        return ""  # a forest: n_estimators counts the trees of its only round
    modules = (base.__module__ for base in bases)
    return next((_CONTINUATION[m] for m in modules if m in _CONTINUATION), "")


def _check_parameters(estimator: Any, kind: Kind, params: dict[str, Any]) -> None:
    for parameter in _STOPPING[kind]:
        if params.get(parameter) not in (None, False, "auto"):
            advice = "the search decides when to stop, turn it off"
            raise _not_trainable(estimator, advice, parameter)
    if kind == "partial_fit" and params.get("class_weight") == "balanced":
        advice = "partial_fit cannot count the classes, use a dict of weights"
        raise _not_trainable(estimator, advice, "class_weight")
    bagging = isinstance(estimator, (BaggingClassifier, BaggingRegressor))
    if bagging and params.get("oob_score"):
        advice = "it has no warm start with out-of-bag scores, turn them off"
        raise _not_trainable(estimator, advice, "oob_score")
    if kind == "boosting":
        for parameter in ("boosting_type", "boosting", "boost"):
            if params.get(parameter) in ("rf", "random_forest"):
                advice = "a random forest cannot be continued, use 'gbdt'"
                raise _not_trainable(estimator, advice, parameter)
        for parameter in sorted(_ROUNDS & params.keys()):
            advice = "it counts the epochs, which the search decides, set max_epochs"
            raise _not_trainable(estimator, advice, parameter)


def _no_method(estimator: Any, params: dict[str, Any]) -> NotTrainableError:
    if hasattr(type(estimator), "partial_fit"):
        if "solver" in params:
            return _not_trainable(estimator, "use 'adam' or 'sgd'", "solver")
        if "estimator" in params:
            return _not_trainable(estimator, "use one with partial_fit", "estimator")
    return _not_trainable(
        estimator,
        "it has neither partial_fit nor a warm_start that n_estimators counts, "
        "use an estimator that has one of them",
    )


def _not_trainable(
    estimator: Any, advice: str, parameter: str | None = None
) -> NotTrainableError:
    setting = f"{parameter}={estimator.get_params()[parameter]!r}" if parameter else ""
    name = f"{type(estimator).__name__}({setting})"
    return NotTrainableError(f"{name} cannot be trained one epoch at a time: {advice}")
