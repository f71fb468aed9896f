"""Training one estimator, one epoch after the other, in the way that it allows."""

from __future__ import annotations

import contextlib
import inspect
import time
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.multiclass import unique_labels

from risingsearch.arms import Configuration, Params
from risingsearch.integrations.sklearn.boosting import Rounds, temporarily
from risingsearch.integrations.sklearn.epoch_methods import (
    COUNTERS,
    HIST_GRADIENT_BOOSTING,
    Kind,
    epoch_method,
    last_step,
    makes_one_pass,
    of_scikit_learn,
    params_of,
    passes,
)
from risingsearch.integrations.sklearn.splits import Targets, given
from risingsearch.integrations.sklearn.transformers import RowCache, Transformers


def class_labels(estimator: BaseEstimator, y: ArrayLike) -> object:
    """Return the ``classes`` that ``partial_fit`` takes, of all outputs; or None."""
    estimator = last_step(estimator)
    if not _takes_classes(estimator):
        return None
    if isinstance(estimator, MultiOutputClassifier):
        return [np.unique(column) for column in np.asarray(y).T]
    return unique_labels(y)


class EpochTrainer:
    """Trains an estimator in place, an epoch at a time, always on the same rows."""

    # Of the class, as checkpoints of earlier versions lack it.
    transform_seconds: float | None = None  # of the last epoch, of a pipeline

    def __init__(
        self,
        estimator: BaseEstimator,
        steps: int = 1,
        classes: object = None,
    ) -> None:
        epoch_method(estimator)  # raises where it cannot be trained by epochs
        self.estimator = estimator
        self.epochs = 0  # that it has been trained
        self.transformers = Transformers(estimator)
        model = self.transformers.model
        self._stepper = _STEPPERS[epoch_method(model)](model, steps, classes)

    def train(
        self,
        X: ArrayLike,
        y: Targets = None,
        cache: RowCache | None = None,
        /,
        **fit_params: object,
    ) -> None:
        """Train one more epoch; trainers with one ``cache`` share transformed rows."""
        if cache is None:
            cache = RowCache()
        begin = time.perf_counter()
        X, params = self.transformers.fit_transform(X, y, fit_params, cache)
        if self.transformers.model is not self.estimator:
            self.transform_seconds = time.perf_counter() - begin
        with self.transformers.binning_once(cache):
            self._stepper.train(X, y, params)
        self.epochs += 1

    def forget_rows(self) -> None:
        """Drop transformed rows, unless a cache keeps them."""
        self.transformers.forget_rows()
        self._stepper.forget_rows()


@dataclass(eq=False)
class _Stepper(ABC):
    """One way of training, and its state between epochs."""

    estimator: BaseEstimator
    steps: int
    classes: Any
    trained: int = 0  # passes, trees or boosting rounds

    @abstractmethod
    def train(
        self,
        X: ArrayLike,
        y: Targets,
        params: Configuration,
    ) -> None:
        """Train one epoch more."""

    def forget_rows(self) -> None:  # noqa: B027, most keep none
        """Drop transformed rows."""


class _PartialFit(_Stepper):
    adds_learners = False  # as many as n_estimators, in every call

    def train(
        self,
        X: ArrayLike,
        y: Targets,
        params: Configuration,
    ) -> None:
        estimator = self.estimator
        takes_classes = _takes_classes(estimator)
        # scikit-learn's remember the classes, and would compare them in each call
        is_told = self.trained and of_scikit_learn(estimator)
        if takes_classes and not is_told:
            if self.classes is None:
                self.classes = class_labels(estimator, y)
            params = {"classes": self.classes, **params}
        if hasattr(y, "toarray"):  # labels of each row, in a sparse matrix
            y = y.toarray()
        if not self.trained:
            if isinstance(estimator, OneVsRestClassifier):
                self._give_labels(y)
            self.adds_learners = _adds_learners(estimator, X, y, params)
        train = estimator.partial_fit
        n_calls = self.steps
        if makes_one_pass(estimator):
            n_calls = 0 if self.trained else 1
            if not takes_classes:
                train = estimator.fit
        with temporarily(estimator, **self._settings(y)):
            for _ in range(n_calls):
                train(*given(X, y), **params)
        self.trained += self.steps
        if self.adds_learners:
            estimator.set_params(n_estimators=self.trained)
        if isinstance(estimator, MultiOutputClassifier):  # as its fit does
            estimator.classes_ = [output.classes_ for output in estimator.estimators_]

    def _give_labels(self, y: Targets) -> None:
        """Give several labels per row to one that lacks them in its first call."""
        binarizer = LabelBinarizer(sparse_output=True).fit(y)
        if binarizer.y_type_.startswith("multilabel"):
            model = self.estimator
            model.classes_ = self.classes
            model.label_binarizer_ = binarizer
            model.estimators_ = [clone(model.estimator) for _ in model.classes_]

    def _settings(self, y: Targets) -> Params:
        """Return the parameters that the estimator has during a call."""
        settings: Params = dict.fromkeys(passes(self.estimator), 1)
        if params_of(self.estimator).get("class_weight") == "balanced":
            labels = np.unique(y)
            weights = compute_class_weight("balanced", classes=labels, y=y)
            settings["class_weight"] = dict(zip(labels, weights, strict=True))
        if self.adds_learners:
            settings["n_estimators"] = 1
        return settings


def _adds_learners(
    estimator: BaseEstimator,
    X: ArrayLike,
    y: Targets,
    params: Configuration,
) -> bool:
    """Return whether each ``partial_fit`` adds ``n_estimators``, as that of NGBoost.

    A copy that is told to have two is asked: has it two more after a second call?
    """
    if of_scikit_learn(estimator) or "n_estimators" not in params_of(estimator):
        return False
    copy = clone(estimator).set_params(n_estimators=2)
    lengths = []
    for _ in range(2):
        copy.partial_fit(*given(X, y), **params)
        values = vars(copy).items()
        lengths.append({name: len(v) for name, v in values if isinstance(v, list)})
    first, second = lengths
    return any(first.get(name) == n - 2 for name, n in second.items())


class _WarmStart(_Stepper):
    def train(
        self,
        X: ArrayLike,
        y: Targets,
        params: Configuration,
    ) -> None:
        trained = self.trained + self.steps
        self.estimator.set_params(**{COUNTERS[epoch_method(self.estimator)]: trained})
        settings = {"warm_start": True}
        if isinstance(self.estimator, HIST_GRADIENT_BOOSTING):
            settings["early_stopping"] = False
        with contextlib.ExitStack() as stack:
            stack.enter_context(temporarily(self.estimator, **settings))
            if isinstance(params_of(self.estimator).get("class_weight"), str):
                # A forest warns that the next fit may see other rows, which would
                # change the weights. Here the rows stay the same.
                stack.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", "class_weight presets", UserWarning)
            self.estimator.fit(*given(X, y), **params)
        self.trained = trained


@dataclass(eq=False)
class _Boosting(_Stepper):
    rounds: Rounds = field(default_factory=Rounds)

    def train(
        self,
        X: ArrayLike,
        y: Targets,
        params: Configuration,
    ) -> None:
        setup = self.rounds.next(self.estimator, self.trained, self.steps, params)
        with setup as params:
            self.estimator.fit(*given(X, y), **params)
        self.trained += self.steps
        self.estimator.set_params(n_estimators=self.trained)


class _InEpochs(BaseEstimator):  # type: ignore[misc]
    """The regressor of a transformed target, of which a fit is an epoch."""

    def __init__(self, trainer: EpochTrainer) -> None:
        self.trainer = trainer

    def __sklearn_clone__(self) -> _InEpochs:
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        return get_routing_for_object(self.trainer.estimator)

    def fit(
        self,
        X: ArrayLike,
        y: Targets,
        **params: object,
    ) -> _InEpochs:
        self.trainer.train(X, y, **params)
        return self

    def predict(self, X: ArrayLike) -> object:
        return self.trainer.estimator.predict(X)


@dataclass(eq=False)
class _TransformedTarget(_Stepper):
    regressor: _InEpochs = field(init=False)

    def __post_init__(self) -> None:
        regressor = clone(self.estimator.regressor)
        self.regressor = _InEpochs(EpochTrainer(regressor, self.steps))

    def train(
        self,
        X: ArrayLike,
        y: Targets,
        params: Configuration,
    ) -> None:
        before = self.estimator.regressor
        self.estimator.regressor = self.regressor
        try:
            self.estimator.fit(X, y, **params)
        finally:
            self.estimator.regressor = before
        trained = self.regressor.trainer.estimator
        self.estimator.regressor_ = trained
        self.estimator.regressor = clone(trained)  # with the trees of so many epochs

    def forget_rows(self) -> None:
        self.regressor.trainer.forget_rows()


_STEPPERS: dict[Kind, type[_Stepper]] = {
    "target": _TransformedTarget,
    "partial_fit": _PartialFit,
    "n_estimators": _WarmStart,
    "max_iter": _WarmStart,
    "boosting": _Boosting,
}


def _takes_classes(estimator: BaseEstimator) -> bool:
    method = getattr(estimator, "partial_fit", None)
    if method is None:
        return False
    parameters = inspect.signature(method).parameters
    if "classes" in parameters:
        return True
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return takes_any and bool(is_classifier(estimator))
