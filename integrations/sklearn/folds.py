"""An arm of a cross-validated search: one model per fold, trained in step."""

from __future__ import annotations

import math
import pickle
import threading
import time
import warnings
from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from joblib import wrap_non_picklable_objects
from sklearn import config_context, get_config
from sklearn.base import clone, is_classifier
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedShuffleSplit,
    check_cv,
)
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_method_params, _num_samples

from risingsearch.arms import Configuration, Params
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.integrations.sklearn import epoch_methods, scoring
from risingsearch.integrations.sklearn.estimators import EpochTrainer, class_labels
from risingsearch.integrations.sklearn.resources import (
    Resource,
    Retrainer,
    nested_order,
)
from risingsearch.integrations.sklearn.transformers import LIMIT, RowCache

GROUP_DRAWS = 20  # of the groups that are held out, one of which is taken


def frozen_splits(
    cv: Any, estimator: Any, X: Any, y: Any, params: Configuration, random: Any
) -> list[tuple[Any, Any]]:
    """Return the splits that serve every epoch of every arm: at least one."""
    classifier = is_classifier(estimator)
    groups = params.get("groups")
    if isinstance(cv, Real) and not isinstance(cv, (Integral, bool)):
        share, seed = float(cv), random.randint(2**31 - 1)
        if not 0.0 < share < 1.0:
            msg = f"a float cv is the share held out, between 0 and 1; got {cv!r}"
            raise InvalidParameterError(msg)
        if groups is not None:
            return [_held_out_groups(share, _strata(classifier, y), groups, seed)]
        return [_held_out(share, classifier, X, y, seed)]
    splitter = check_cv(cv, y, classifier=classifier)
    if groups is not None and isinstance(cv, Integral | None):
        by_groups = GroupKFold if type(splitter) is KFold else StratifiedGroupKFold
        splitter = by_groups(splitter.get_n_splits())
    splits = list(splitter.split(X, y, **params))
    if not splits:
        raise InvalidParameterError(f"cv={cv!r} gives no split: use at least one")
    return splits


def _strata(classifier: bool, y: Any) -> Any:
    """Return the number of each row's class; None without classes."""
    if not classifier or type_of_target(y) not in ("binary", "multiclass"):
        return None
    return np.unique(np.asarray(y), return_inverse=True)[1].ravel()


def _held_out_groups(share: float, strata: Any, groups: Any, seed: int) -> Any:
    """Return row numbers to train and to test, all rows of a group on one side.

    Of several draws, the one with the share of rows, and of every class, is taken.
    """
    counted = np.zeros(len(groups), dtype=int) if strata is None else strata
    of_all = np.bincount(counted)

    def unevenness(split: Any) -> float:
        held_out = np.bincount(counted[split[1]], minlength=len(of_all))
        return float(np.abs(held_out / of_all - share).sum())

    splitter = GroupShuffleSplit(GROUP_DRAWS, test_size=share, random_state=seed)
    try:
        return min(splitter.split(counted, groups=groups), key=unevenness)
    except ValueError as error:
        n = len(np.unique(np.asarray(groups)))
        msg = f"cv={share} cannot hold out some of {n} groups and train on others"
        raise InvalidParameterError(f"{msg}: {error}") from error


def _held_out(share: float, classifier: bool, X: Any, y: Any, seed: int) -> Any:
    """Return row numbers to train and to test, of each class in proportion."""
    n = _num_samples(X)
    n_test = math.ceil(share * n)
    if n_test == n:
        msg = f"cv={share} holds out all n_samples={n} rows: give a smaller share"
        raise InvalidParameterError(msg)
    strata = _strata(classifier, y)
    if strata is None:
        split = ShuffleSplit(n_splits=1, test_size=share, random_state=seed)
        return next(split.split(X))
    counts = np.bincount(strata)
    if counts.min() > 1 and len(counts) <= min(n_test, n - n_test):
        stratified = StratifiedShuffleSplit(1, test_size=share, random_state=seed)
        return next(stratified.split(X, y))
    warnings.warn(
        f"cv={share} holds out {n_test} of {n} rows, which cannot have all of the "
        f"{len(counts)} classes, the rarest with {counts.min()} rows: of a rare class "
        "rows are trained on first",
        UserWarning,
        stacklevel=7,
    )
    order = nested_order(strata, np.random.default_rng(seed))
    return order[: n - n_test], order[n - n_test :]


class Models(list["EpochTrainer | Retrainer"]):
    """The trainers of an arm, one per fold, pickled with classes of this process."""

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            by_value = wrap_non_picklable_objects(list(self), keep_wrapper=False)
            return _models, (pickle.dumps(by_value),)
        except (pickle.PicklingError, TypeError) as error:
            with suppress(Exception):  # such as a lock, that a function uses: by name
                return _models, (pickle.dumps(list(self)),)
            raise NotTrainableError(
                f"the estimator cannot be pickled ({error}), and a search keeps its "
                "models so: have it and its functions at the top level of a module, "
                "and what cannot be pickled outside its attributes"
            ) from error


def _models(as_bytes: bytes) -> Models:
    return Models(pickle.loads(as_bytes))


@dataclass
class Folds:
    """The trainable of ``RisingSearchCV``: an epoch trains and scores every fold."""

    estimator: Any  # cloned for every arm and fold
    X: Any
    y: Any  # None for estimators that learn without
    splits: list[tuple[Any, Any]]  # row numbers to train and to test, for every arm
    scorer: Any  # scorer(estimator, X, y) -> float or a dict of floats
    metric: str | None  # which of several schedules, or FIRST
    steps_per_epoch: int  # passes, trees or boosting rounds
    seeded: bool  # give every random_state that is None a seed of the arm's own
    train_scores: bool  # score the training rows too
    fit_params: Params  # metadata, sliced by rows for every fold
    score_params: Params
    score_of_failed: float | None = None  # of what only informs; None: it raises
    transformer_seed: int = 0  # of a pipeline's transformers that have none
    resource: Resource | None = None  # of which every epoch has more, trained anew
    max_epochs: int | None = None  # of an arm, if they are given
    seconds_per_step: float = math.inf  # of training a fold; inf: not measured
    # scikit-learn's configuration, which new threads and processes do not inherit
    config: dict[str, Any] = field(default_factory=get_config)
    _sliced: dict[int, tuple[_Rows, _Rows]] = field(default_factory=dict, repr=False)
    _caches: dict[int, RowCache] = field(default_factory=dict, repr=False)
    _thread: Any = field(default_factory=threading.local, repr=False)

    @property
    def trains_anew(self) -> bool:
        """Return whether every epoch trains anew, on more of a resource."""
        return self.resource is not None

    def start(self, params: Configuration, seed: int) -> Models:
        """Return one trainer per fold."""
        with config_context(**self.config):
            return Models(self._trainers(params, seed, len(self.splits)))

    def train(self, models: Models) -> dict[str, Any]:
        """Train and score every fold once; return the mean score and all details."""
        self._make_room(models)
        with config_context(**self.config):
            details: dict[str, Any] = {}
            for i, trainer in enumerate(models):
                details |= self.train_fold(i, trainer)
        if self.resource is not None:
            details["n_resources"] = self.resource.totals[models[0].epochs - 1]
        metric = self.metric or "score"
        if metric == scoring.FIRST:
            metric = next(n[12:] for n in details if n.startswith("split0_test_"))
        scores = [details[f"split{i}_test_{metric}"] for i in range(len(models))]
        return {"score": float(np.mean(scores)), **details}

    def refit(self, params: Configuration, seed: int, n_epochs: int) -> Any:
        """Return a fresh estimator, trained for some epochs on all rows."""
        at_once = 1
        if self.resource is not None:  # all of it, which its first epochs tell about
            n_epochs = 1
        elif epoch_methods.trains_in_one_fit(configured(self.estimator, params)):
            n_epochs, at_once = 1, n_epochs
        [trainer] = self._trainers(params, seed, 1, in_full=True, at_once=at_once)
        for _ in range(n_epochs):
            trainer.train(self.X, self.y, **self.fit_params)
        return trainer.estimator

    def in_full(self, params: Configuration) -> int:
        """Return the epochs of a full training."""
        return self.max_epochs or epoch_methods.epochs_in_full(
            configured(self.estimator, params), self.steps_per_epoch
        )

    def trained_in_epoch(self, params: Configuration, seed: int, epoch: int) -> Any:
        """Return the estimator of an epoch by a resource, of the first split."""
        trainer = self._trainers(params, seed, len(self.splits))[0]
        trainer.epochs = epoch - 1
        rows, _ = self._fold(0, epoch)
        trainer.train(rows.X, rows.y, **rows.fit_params)
        return trainer.estimator

    def forget_rows(self) -> None:
        """Drop all transformed rows: a search that has ended needs them no more."""
        self._make_room(Models())
        self._caches.clear()

    def _trainers(
        self,
        params: Configuration,
        seed: int,
        n: int,
        *,
        in_full: bool = False,
        at_once: int = 1,  # epochs
    ) -> list[EpochTrainer | Retrainer]:
        estimator = configured(self.estimator, params)
        shared = unseeded_of_transformers(estimator)
        estimator.set_params(**dict.fromkeys(shared, self.transformer_seed))
        if self.seeded:
            seed_where_none(estimator, seed)
        if self.resource is not None:
            settings = [{}] if in_full else self.resource.settings
            return [Retrainer(clone(estimator), settings) for _ in range(n)]
        # From all rows: a fold may lack a class.
        classes = None if self.y is None else class_labels(estimator, self.y)
        first = EpochTrainer(estimator, self.steps_per_epoch * at_once, classes)
        return [first, *(deepcopy(first) for _ in range(n - 1))]

    def _make_room(self, models: Models) -> None:
        """Let the arm that this thread trained before forget its transformed rows."""
        before = getattr(self._thread, "models", models)
        if before is not models:
            for trainer in before:
                if isinstance(trainer, EpochTrainer):
                    trainer.forget_rows()
        self._thread.models = models

    def train_fold(self, i: int, trainer: EpochTrainer | Retrainer) -> dict[str, Any]:
        """Train and score the model of one fold once more; return the details."""
        train, test = self._fold(i, trainer.epochs + 1)
        cache = self._caches.setdefault(i, RowCache(LIMIT // len(self.splits)))
        begin = time.perf_counter()
        trainer.train(train.X, train.y, cache, **train.fit_params)
        trained = time.perf_counter()
        scores = self._scores(trainer, test, "test", cache)
        details: dict[str, Any] = {
            f"split{i}_fit_time": trained - begin,
            f"split{i}_score_time": time.perf_counter() - trained,
        }
        details |= {f"split{i}_test_{name}": score for name, score in scores.items()}
        if self.train_scores:
            scores = self._scores(trainer, train, "train", cache)
            details |= {f"split{i}_train_{name}": s for name, s in scores.items()}
        return details

    def _scores(
        self, trainer: Any, rows: _Rows, part: str, cache: RowCache
    ) -> dict[str, float]:
        estimator, X = trainer.estimator, rows.X
        if isinstance(trainer, EpochTrainer) and self._scores_predictions:
            estimator = trainer.transformers.model
            X = trainer.transformers.transform(X, part, cache)
        try:
            scores = scoring.scored(
                self.scorer, estimator, X, rows.y, rows.score_params
            )
            if hasattr(self.scorer, "_scorers"):
                self._fill_failed(scores, estimator, X, rows, part)
        except Exception as error:
            if part == "test" or self.score_of_failed is None:
                raise
            _warn_of_metric("scoring", part, error)
            return {}
        if not isinstance(scores, dict):
            scores = {"score": scores}
            if self.metric is not None and self.metric != scoring.FIRST:
                raise InvalidParameterError(scoring.refit_of_one(self.metric))
        elif self.metric not in scores and self.metric != scoring.FIRST:
            got = "none of these" if self.metric is None else repr(self.metric)
            raise InvalidParameterError(
                f"scoring gives {sorted(scores)}: set refit to the name of the one "
                f"that schedules, to a callable or to False; got {got}"
            )
        return {name: _number(name, score) for name, score in scores.items()}

    def _fill_failed(
        self, scores: dict[str, Any], estimator: Any, X: Any, rows: _Rows, part: str
    ) -> None:
        """Replace tracebacks of metrics that failed; the scheduling one raises."""
        for name, text in scores.items():
            if not isinstance(text, str):
                continue
            if part == "test" and name == self.metric:
                alone = copy(self.scorer)
                alone._scorers, alone._raise_exc = {name: self.scorer._scorers[name]}, 1
                scores |= scoring.scored(alone, estimator, X, rows.y, rows.score_params)
            else:
                _warn_of_metric(name, part, text.strip().splitlines()[-1])
                scores[name] = self.score_of_failed

    @property
    def _scores_predictions(self) -> bool:
        """Whether the scorer can be given the last step and rows made for it."""
        scorers = getattr(self.scorer, "_scorers", {"score": self.scorer}).values()
        # a callable of the user may look into the pipeline; so may routed metadata
        routed = self.score_params and self.config["enable_metadata_routing"]
        return not routed and all(map(scoring.is_of_sklearn, scorers))

    def _fold(self, i: int, epoch: int) -> tuple[_Rows, _Rows]:
        """Return the rows to train on in an epoch, and those to test on."""
        train, test = self.splits[i]
        rows = self.resource and self.resource.rows
        if self.resource and rows and epoch < self.resource.max_epochs:
            part = rows[i][epoch - 1]
            return self._rows(part), self._rows(test, part)
        if i not in self._sliced:
            self._sliced[i] = self._rows(train), self._rows(test, train)
        return self._sliced[i]

    def _rows(self, rows: Any, columns: Any = None) -> _Rows:
        X, y = _safe_split(self.estimator, self.X, self.y, rows, columns)
        return _Rows(
            X,
            y,
            _check_method_params(self.X, self.fit_params, rows),
            _check_method_params(self.X, self.score_params, rows),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("_sliced", "_caches", "_thread")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _sliced={}, _caches={}, _thread=threading.local())


class _Rows(NamedTuple):
    X: Any
    y: Any
    fit_params: Params
    score_params: Params


def configured(estimator: Any, params: Configuration) -> Any:
    """Return a clone of the estimator with these parameters, cloned too."""
    return clone(estimator).set_params(**clone(dict(params), safe=False))


def seed_where_none(estimator: Any, seed: int) -> None:
    """Give each parameter ``random_state`` that is None a different seed."""
    names = _unseeded(estimator)
    seeds = np.random.SeedSequence(seed).generate_state(len(names))
    if names:
        values = (int(value) % 2**31 for value in seeds)
        estimator.set_params(**dict(zip(names, values, strict=True)))


def unseeded_of_transformers(estimator: Any) -> list[str]:
    """Return each ``random_state`` that is None before a pipeline's model."""
    of_model = ""
    model = estimator
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        of_model += f"{name}__"
    names = _unseeded(estimator) if of_model else []
    return [name for name in names if not name.startswith(of_model)]


def _unseeded(estimator: Any) -> list[str]:
    return [
        name
        for name, value in sorted(estimator.get_params(deep=True).items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    ]


def _warn_of_metric(name: str, part: str, why: object) -> None:
    warnings.warn(
        f"{name} failed on {part} rows and counts as error_score there: {why}",
        UserWarning,
        stacklevel=2,
    )


def _number(name: str, score: Any) -> float:
    try:
        return float(score.item() if hasattr(score, "item") else score)
    except (TypeError, ValueError) as error:
        msg = f"scoring must return a number for {name!r}; got {score!r}"
        raise InvalidParameterError(msg) from error
