"""Training one estimator, one epoch after the other, in the way that it allows."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from copy import deepcopy
from numbers import Integral
from typing import Any

import joblib
import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import unique_labels

from risingsearch.checks import checked_int
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.epoch_methods import (
    HIST_GRADIENT_BOOSTING,
    Kind,
    continuation,
    epoch_method,
    params_of,
)


def class_labels(estimator: Any, y: Any) -> Any:
    """Return what the estimator's ``partial_fit`` takes as ``classes``.

    Call it with all of ``y`` before the data are split: a fold may lack a class. The
    labels are sorted; there is one array for each output of a
    ``MultiOutputClassifier``, and None where training takes no ``classes``.

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

    The estimator now belongs to the trainer, so pass a clone, configured and unfitted:
    it is fitted in place, and parameters that count epochs or would stop it are set.
    ``steps_per_epoch`` counts the passes, trees or boosting rounds of an epoch;
    ``classes`` is what ``class_labels`` returns, by default read from the first ``y``.
    docs/scikit-learn.md says what differs from one ``fit`` over all epochs.

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
        self.epochs = 0  # that it has been trained
        self._stepper = _stepper(estimator, steps, classes)

    def train(self, X: Any, y: Any = None, /, **fit_params: Any) -> None:
        """Train one more epoch; X may be None while ``needs_rows`` is False.

        ``fit_params`` are passed on to the estimator's training method; to the steps of
        a ``Pipeline`` as its ``fit`` does: by the prefix ``step__``, or, where metadata
        routing is enabled, by the steps' requests for ``fit``.
        """
        self._stepper.train(X, y, fit_params)
        self.epochs += 1

    @property
    def needs_rows(self) -> bool:
        """Whether the next epoch reads X: not where a pipeline keeps its rows."""
        return self._stepper.needs_rows

    def forget_rows(self) -> None:
        """Drop the transformed rows that a pipeline keeps between epochs.

        A paused arm needs them no more; the next epoch transforms them again.
        """
        self._stepper.forget_rows()


class _Stepper(ABC):
    """One way of training, and what it must remember between epochs."""

    def __init__(self, estimator: Any, steps: int, classes: Any) -> None:
        self.estimator = estimator
        self.steps = steps
        self.classes = classes
        self.trained = 0  # trees or boosting rounds

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
        estimator.set_params(warm_start=True)
        if isinstance(estimator, HIST_GRADIENT_BOOSTING):
            estimator.set_params(early_stopping=False)

    def train(self, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        trained = self.trained + self.steps
        counter = str(epoch_method(self.estimator).parameter)
        self.estimator.set_params(**{counter: trained})
        with contextlib.ExitStack() as stack:
            if isinstance(params_of(self.estimator).get("class_weight"), str):
                # A forest warns that the next fit may see other rows, which would
                # change the weights. Here the rows stay the same.
                stack.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", "class_weight presets", UserWarning)
            self.estimator.fit(*_data(X, y), **params)
        self.trained = trained


class _Boosting(_Stepper):
    def __init__(self, estimator: Any, steps: int, classes: Any) -> None:
        super().__init__(estimator, steps, classes)
        # Not from get_params: there xgboost draws a number from a RandomState.
        self.random_state = estimator.random_state

    def train(self, X: Any, y: Any, params: Mapping[str, Any]) -> None:
        # With one and the same seed lightgbm would draw the same columns for ever, and
        # xgboost go on with generator numbers that other boosters have used up.
        seed = self.random_state
        if seed is None or isinstance(seed, Integral):
            seed = (int(seed or 0) + self.trained) % 2**31
        self.estimator.set_params(n_estimators=self.steps, random_state=seed)
        if self.trained:
            params = {**params, continuation(self.estimator): self.estimator}
        self.estimator.fit(*_data(X, y), **params)
        self.trained += self.steps
        self.estimator.set_params(
            n_estimators=self.trained, random_state=self.random_state
        )


class _Pipeline(_Stepper):
    """Keeps the transformed rows; pickles them where transform cannot repeat them."""

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
