"""An arm of a cross-validated search: one model per fold, trained in step."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.estimators import EpochTrainer


@dataclass
class Folds:
    """The trainable behind ``RisingSearchCV``: an epoch trains and scores every fold.

    Parameters
    ----------
    estimator : estimator
        Cloned for every arm and fold.
    X, y : array-like
        The data; ``y`` may be None.
    splits : list of (train, test)
        Row numbers, the same for every arm.
    scorer : callable
        ``scorer(estimator, X, y) -> float`` or a dict of floats.
    metric : str or None
        Which of several metrics schedules; None for the only one.
    classes : array-like or None
        All classes of ``y``, for estimators that must know them at the start.
    steps_per_epoch : int
        Passes, trees or boosting rounds of an epoch.
    seeded : bool
        Give parameters ``random_state`` that are None a seed of the arm's own.
    train_scores : bool
        Score the training rows too.
    fit_params, score_params : dict
        Metadata, sliced by rows for every fold.
    """

    estimator: Any
    X: Any
    y: Any
    splits: list[tuple[Any, Any]]
    scorer: Any
    metric: str | None
    classes: Any
    steps_per_epoch: int
    seeded: bool
    train_scores: bool
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    _sliced: dict[int, Any] = field(default_factory=dict, repr=False)
    _in_training: Any = field(default=None, repr=False)

    def start(self, params: Mapping[str, Any], seed: int) -> list[EpochTrainer]:
        """Return one trainer per fold."""
        return [self.trainer(params, seed) for _ in self.splits]

    def trainer(self, params: Mapping[str, Any], seed: int) -> EpochTrainer:
        """Return a trainer of a fresh clone with these parameters."""
        estimator = configured(self.estimator, params)
        if self.seeded:
            seed_where_none(estimator, seed)
        return EpochTrainer(
            estimator, steps_per_epoch=self.steps_per_epoch, classes=self.classes
        )

    def train(self, trainers: list[EpochTrainer]) -> dict[str, Any]:
        """Train and score every fold once; return the mean and all parts."""
        if self._in_training is not trainers:
            for trainer in self._in_training or ():
                trainer.forget_rows()
            self._in_training = trainers
        parts: dict[str, Any] = {}
        for i, trainer in enumerate(trainers):
            fold = self._fold(i)
            begin = time.perf_counter()
            trainer.train(fold.X_train, fold.y_train, **fold.fit_params)
            trained = time.perf_counter()
            scores = self._scores(
                trainer.estimator, fold.X_test, fold.y_test, fold.score_params
            )
            parts[f"split{i}_fit_time"] = trained - begin
            parts[f"split{i}_score_time"] = time.perf_counter() - trained
            for name, score in scores.items():
                parts[f"split{i}_test_{name}"] = score
            if self.train_scores:
                scores = self._scores(
                    trainer.estimator,
                    fold.X_train,
                    fold.y_train,
                    fold.train_score_params,
                )
                for name, score in scores.items():
                    parts[f"split{i}_train_{name}"] = score
        metric = self.metric or "score"
        means = [parts[f"split{i}_test_{metric}"] for i in range(len(trainers))]
        return {"score": float(np.mean(means)), **parts}

    def refit(self, params: Mapping[str, Any], seed: int, n_epochs: int) -> Any:
        """Return a fresh estimator, trained for some epochs on all rows."""
        trainer = self.trainer(params, seed)
        for _ in range(n_epochs):
            trainer.train(self.X, self.y, **self.fit_params)
        return trainer.estimator

    def _scores(self, estimator: Any, X: Any, y: Any, params: Any) -> dict[str, float]:
        scores = (
            self.scorer(estimator, X, **params)
            if y is None
            else self.scorer(estimator, X, y, **params)
        )
        if not isinstance(scores, dict):
            scores = {"score": scores}
        elif (self.metric or "score") not in scores:
            msg = (
                f"scoring gives {sorted(scores)}: set refit to the name of the metric "
                f"that schedules; got refit={self.metric!r}"
            )
            raise InvalidParameterError(msg)
        return {name: _number(name, score) for name, score in scores.items()}

    def _fold(self, i: int) -> _Fold:
        if i not in self._sliced:
            train, test = self.splits[i]
            X_train, y_train = _safe_split(self.estimator, self.X, self.y, train)
            X_test, y_test = _safe_split(self.estimator, self.X, self.y, test, train)
            self._sliced[i] = _Fold(
                X_train,
                y_train,
                X_test,
                y_test,
                _check_method_params(self.X, self.fit_params, train),
                _check_method_params(self.X, self.score_params, test),
                _check_method_params(self.X, self.score_params, train),
            )
        fold: _Fold = self._sliced[i]
        return fold

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sliced": {}, "_in_training": None}


@dataclass(frozen=True)
class _Fold:
    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    train_score_params: dict[str, Any]


def configured(estimator: Any, params: Mapping[str, Any]) -> Any:
    """Return a clone of the estimator with these parameters, cloned too."""
    return clone(estimator).set_params(**clone(dict(params), safe=False))


def seed_where_none(estimator: Any, seed: int) -> None:
    """Give every parameter ``random_state`` that is None a seed of its own."""
    names = [
        name
        for name, value in sorted(estimator.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]
    seeds = np.random.SeedSequence(seed).generate_state(len(names))
    if names:
        values = (int(value) % 2**31 for value in seeds)
        estimator.set_params(**dict(zip(names, values, strict=True)))


def _number(name: str, score: Any) -> float:
    if hasattr(score, "item"):
        score = score.item()
    try:
        return float(score)
    except (TypeError, ValueError) as error:
        msg = f"scoring must return a number for {name!r}; got {score!r}"
        raise InvalidParameterError(msg) from error
