"""An arm of a cross-validated search: one model per fold, trained in step."""

from __future__ import annotations

import math
import pickle
import threading
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from joblib import wrap_non_picklable_objects
from numpy.typing import ArrayLike
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from risingsearch.arms import Configuration, Params
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.integrations.sklearn import epoch_methods, scoring
from risingsearch.integrations.sklearn.estimators import EpochTrainer, class_labels
from risingsearch.integrations.sklearn.families import chosen
from risingsearch.integrations.sklearn.fitted_transformers import TRANSFORM_TIME
from risingsearch.integrations.sklearn.prefixes import (
    has_prefixes,
    predicting,
    prefixes_of_epoch,
    shortened,
)
from risingsearch.integrations.sklearn.resources import Resource, Retrainer
from risingsearch.integrations.sklearn.splits import (
    Rows,
    Split,
    Targets,
    class_numbers,
    given,
    nested_order,
)
from risingsearch.integrations.sklearn.transformers import LIMIT, RowCache
from risingsearch.policies.arrays import Floats, Ints
from risingsearch.search.examples import EXAMPLES, Values, in_blocks

Trainer: TypeAlias = EpochTrainer | Retrainer
N_TREES = "n_trees"  # of an epoch, that its score is of
MOST_JACKKNIFED = 50  # blocks of test rows, over all splits
FEWEST_JACKKNIFED = 5  # of a split


class Models(list[Trainer]):
    """The trainers of an arm, one per fold, pickled with classes of this process."""

    def __reduce__(self) -> tuple[object, ...]:
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


class _InProcess:
    """Rows and caches that a process keeps of the folds; a copy elsewhere has none."""

    def __init__(self) -> None:
        self.whole_folds: dict[int, tuple[Rows, Rows]] = {}
        self.caches: dict[int, RowCache] = {}
        self.shares: tuple[Ints, Floats] | None = None  # of test rows
        self.thread = threading.local()

    def __reduce__(self) -> tuple[object, ...]:
        return _InProcess, ()


@dataclass
class Folds:
    """The trainable of ``RisingSearchCV``: an epoch trains and scores every fold."""

    estimator: BaseEstimator  # cloned for every arm and fold
    X: ArrayLike
    y: Targets
    splits: list[Split]  # for every arm
    scorer: scoring.Scorer
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
    n_prefixes: int = 0  # of an epoch's trees that are scored; 0: all of them alone
    groups: Ints | None = None  # of the rows, which a split has kept together
    seconds_per_step: float = math.inf  # of training a fold; inf: not measured
    seconds_per_score: float = 0.0  # of a fold; 0: not measured
    # scikit-learn's configuration, which new threads and processes do not inherit
    config: Params = field(default_factory=get_config)
    _kept: _InProcess = field(default_factory=_InProcess, repr=False)

    @property
    def trains_anew(self) -> bool:
        """Return whether every epoch trains anew, on more of a resource."""
        return self.resource is not None

    @property
    def recomputes(self) -> bool:
        """Whether predictions determine the score."""
        metric = scoring.of_metric(self.scorer, self.metric)
        return metric is not None or scoring.asks_score(self.scorer)

    def start(self, params: Configuration, seed: int) -> Models:
        """Return one trainer per fold."""
        n = len(self.splits)
        with config_context(**self.config):
            estimator = self._seeded(params, seed)
            if self.resource is not None:
                settings = self.resource.settings
                return Models(Retrainer(estimator, settings) for _ in range(n))
            first = self._epoch_trainer(estimator, self.steps_per_epoch)
            return Models([first, *(deepcopy(first) for _ in range(n - 1))])

    def train(self, models: Models) -> Params:
        """Train and score every fold once; return the mean score and all details."""
        self._make_room(models)
        with config_context(**self.config):
            in_folds = [self.train_fold(i, model) for i, model in enumerate(models)]
            in_epoch = [
                {name: value for fold in scored for name, value in fold.items()}
                for scored in zip(*in_folds, strict=True)
            ]
            scores = [self._mean_score(details, len(models)) for details in in_epoch]
            best = int(np.argmax(np.nan_to_num(scores, nan=-np.inf)))
            prefixes = self._prefixes(models[0])
            details: Params = {"score": scores[best], **in_epoch[best]}
            of_rows = [details.pop(_values_of(i)) for i in range(len(models))]
            if prefixes:
                details[N_TREES] = prefixes[best]
            if self.train_scores:
                for i, model in enumerate(models):
                    details |= self._train_scores(i, model, prefixes[best : best + 1])
        if self.resource is not None:
            details["n_resources"] = self.resource.totals[models[0].epochs - 1]
        if any(values is None for values in of_rows):
            return details
        examples = self._examples(np.concatenate(of_rows))
        if len(examples) < 2:  # no resamples
            return details
        return details | {EXAMPLES: examples}

    def _mean_score(self, details: Configuration, n_folds: int) -> float:
        metric = self.metric or "score"
        if metric == scoring.FIRST:
            metric = scoring.tested_metrics(details)[0]
        scores = [details[f"split{i}_test_{metric}"] for i in range(n_folds)]
        return float(np.mean(scores))

    def _prefixes(self, trainer: Trainer) -> list[int]:
        """Return after how many trees the last epoch is scored; [] if at its end."""
        if not (self.n_prefixes and has_prefixes(trainer.estimator)):
            return []
        return prefixes_of_epoch(trainer.epochs, self.steps_per_epoch, self.n_prefixes)

    def _examples(self, values: scoring.RowValues) -> scoring.RowValues:
        """Return the scores of all test rows, whose mean is that of the folds.

        Rows that are tested twice, or belong to a group, make one example together.
        """
        if values.ndim == 2:
            return values
        if self._kept.shares is None:
            tests = [test for _, test in self.splits]
            weights = []
            for test in tests:
                params = _check_method_params(self.X, self.score_params, test)
                share = np.asarray(params.get("sample_weight", np.ones(len(test))))
                weights.append(share / share.sum() / len(tests))
            rows = np.concatenate(tests)
            members = rows if self.groups is None else self.groups[rows]
            _, example = np.unique(members, return_inverse=True)
            self._kept.shares = example, np.concatenate(weights)
        example, shares = self._kept.shares
        sums = np.bincount(example, values * shares).astype(float)
        return in_blocks(sums * len(sums))

    def scores_of(self, predictions: Values) -> Values:
        """Return scores of blocks of test rows, by the predictions for these.

        They are pseudo-values of the jackknife: what the score gains by each block.
        """
        tests = [
            test[scoring.sampled(len(test), predictions.shape[1])]
            for _, test in self.splits
        ]
        ends = np.cumsum([len(test) for test in tests])[:-1]
        of_folds = zip(tests, np.split(predictions, ends), strict=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a block with all rows of a class
            values = [self._jackknifed(test, predicted) for test, predicted in of_folds]
        return np.concatenate(values).astype(np.float32)

    def _jackknifed(self, test: Ints, predicted: Values) -> Floats:
        """Return pseudo-values of blocks of a fold's test rows; NaN without a score."""
        metric = scoring.of_metric(self.scorer, self.metric) or scoring.R2
        y = np.asarray(self.y)
        strata = class_numbers(self.estimator, self.X, self.y)[test]
        order = nested_order(strata, np.random.default_rng(0))
        most = max(MOST_JACKKNIFED // len(self.splits), FEWEST_JACKKNIFED)
        n = min(most, len(test))

        def score(kept: Ints) -> float:
            rows = test[kept]
            params = _check_method_params(self.X, self.score_params, rows)
            try:
                return scoring.recomputed(metric, y, rows, predicted[kept], params)
            except ValueError:  # such as too few classes
                return math.nan

        whole = score(order)
        without = [score(np.delete(order, slice(k, None, n))) for k in range(n)]
        gains = n * whole - (n - 1) * np.array(without)
        centred: Floats = gains - gains.mean() + whole
        return centred

    def refit(
        self,
        params: Configuration,
        seed: int,
        n_steps: int,
    ) -> BaseEstimator:
        """Return a fresh estimator, trained for some steps on all rows."""
        estimator = self._seeded(params, seed)
        if self.resource is not None:  # all of it, which its first epochs tell about
            estimator.fit(*given(self.X, self.y), **self.fit_params)
            return estimator
        trainer = self._epoch_trainer(estimator, n_steps)
        trainer.train(self.X, self.y, **self.fit_params)
        return estimator

    def in_full(self, params: Configuration) -> int:
        """Return the epochs of a full training."""
        return self.max_epochs or epoch_methods.epochs_in_full(
            configured(self.estimator, params),
            self.steps_per_epoch,
        )

    def trained_in_epoch(
        self,
        params: Configuration,
        seed: int,
        epoch: int,
    ) -> BaseEstimator:
        """Return the estimator of an epoch by a resource, of the first split."""
        trainer = self.start(params, seed)[0]
        trainer.epochs = epoch - 1
        rows, _ = self._fold(0, epoch)
        trainer.train(rows.X, rows.y, **rows.fit_params)
        return trainer.estimator

    def forget_rows(self) -> None:
        """Drop all transformed rows: a search that has ended needs them no more."""
        self._make_room(Models())
        self._kept.caches.clear()

    def _seeded(self, params: Configuration, seed: int) -> BaseEstimator:
        """Return an estimator of a configuration, with its seeds."""
        estimator = configured(self.estimator, params)
        shared = unseeded_of_transformers(estimator)
        estimator.set_params(**dict.fromkeys(shared, self.transformer_seed))
        if self.seeded:
            seed_where_none(estimator, seed)
        return estimator

    def _epoch_trainer(self, estimator: BaseEstimator, steps: int) -> EpochTrainer:
        # From all rows: a fold may lack a class.
        classes = None
        if self.y is not None:
            classes = class_labels(estimator, self.y)
        return EpochTrainer(estimator, steps, classes)

    def _make_room(self, models: Models) -> None:
        """Let the arm that this thread trained before forget its transformed rows."""
        before = getattr(self._kept.thread, "models", models)
        if before is not models:
            for trainer in before:
                if isinstance(trainer, EpochTrainer):
                    trainer.forget_rows()
        self._kept.thread.models = models

    def train_fold(self, i: int, trainer: Trainer) -> list[Params]:
        """Train and score the model of one fold once more; return details by prefix."""
        train, test = self._fold(i, trainer.epochs + 1)
        cache = self._cache(i)
        begin = time.perf_counter()
        trainer.train(train.X, train.y, cache, **train.fit_params)
        trained = time.perf_counter()
        scored = self._scores(trainer, test, "test", cache, self._prefixes(trainer))
        times = {
            f"split{i}_fit_time": trained - begin,
            f"split{i}_score_time": time.perf_counter() - trained,
        }
        if isinstance(trainer, EpochTrainer) and trainer.transform_seconds is not None:
            times[f"split{i}_{TRANSFORM_TIME}"] = trainer.transform_seconds
        return [
            times
            | {f"split{i}_test_{name}": score for name, score in scores.items()}
            | {_values_of(i): values}
            for scores, values in scored
        ]

    def _train_scores(
        self,
        i: int,
        trainer: Trainer,
        prefixes: Sequence[int],
    ) -> dict[str, float]:
        """Return the scores of a fold's training rows."""
        rows = self._fold(i, trainer.epochs)[0]
        [scored] = self._scores(trainer, rows, "train", self._cache(i), prefixes)
        return {f"split{i}_train_{name}": score for name, score in scored[0].items()}

    def _cache(self, i: int) -> RowCache:
        return self._kept.caches.setdefault(i, RowCache(LIMIT // len(self.splits)))

    def _scores(
        self,
        trainer: Trainer,
        rows: Rows,
        part: str,
        cache: RowCache,
        prefixes: Sequence[int],
    ) -> list[tuple[dict[str, float], scoring.RowValues | None]]:
        """Return the scores of a model, or of each prefix of it, and of its rows."""
        estimator = trainer.estimator
        models = [estimator]
        if isinstance(trainer, EpochTrainer) and self._scores_predictions:
            estimator = trainer.transformers.model
            X = trainer.transformers.transform(rows.X, part, cache)
            rows = rows._replace(X=X)
            models = [estimator]
            if prefixes:
                models = predicting(estimator, X, prefixes)
        elif prefixes:
            models = [shortened(estimator, n) for n in prefixes]
        return [self._scores_of(model, rows, part) for model in models]

    def _scores_of(
        self,
        estimator: BaseEstimator,
        rows: Rows,
        part: str,
    ) -> tuple[dict[str, float], scoring.RowValues | None]:
        """Return the scores by name, and the values of each row, if they are known.

        No scores where the training rows cannot be scored.
        """
        try:
            scores, values = scoring.scored(self.scorer, estimator, rows, self.metric)
            if hasattr(self.scorer, "_scorers"):
                self._replace_failed(scores, estimator, rows, part)
        except Exception as error:
            if part == "test" or self.score_of_failed is None:
                raise
            _warn_of_metric("scoring", part, error)
            return {}, None
        is_named = self.metric != scoring.FIRST
        if not isinstance(scores, dict):
            if is_named and self.metric is not None:
                raise InvalidParameterError(scoring.refit_of_one(self.metric))
            scores = {"score": scores}
        elif is_named and self.metric not in scores:
            got = "none of these"
            if self.metric is not None:
                got = repr(self.metric)
            raise InvalidParameterError(
                f"scoring gives {sorted(scores)}: set refit to the name of the one "
                f"that schedules, to a callable or to False; got {got}"
            )
        return {name: _number(name, score) for name, score in scores.items()}, values

    def _replace_failed(
        self,
        scores: Params,
        estimator: BaseEstimator,
        rows: Rows,
        part: str,
    ) -> None:
        """Replace tracebacks of metrics that failed; the scheduling one raises."""
        failed = {name: text for name, text in scores.items() if isinstance(text, str)}
        for name, text in failed.items():
            if part == "test" and name == self.metric:
                alone = type(self.scorer)(scorers={name: self.scorer._scorers[name]})
                scores |= scoring.scored(alone, estimator, rows)[0]
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

    def _fold(self, i: int, epoch: int) -> tuple[Rows, Rows]:
        """Return the rows to train on in an epoch, and those to test on."""
        train, test = self.splits[i]
        if self.resource is not None and self.resource.rows is not None:
            train = self.resource.rows[i][epoch - 1]
            return self._rows(train), self._rows(test, train)
        whole_folds = self._kept.whole_folds
        if i not in whole_folds:
            whole_folds[i] = self._rows(train), self._rows(test, train)
        return whole_folds[i]

    def _rows(self, rows: Ints, columns: Ints | None = None) -> Rows:
        X, y = _safe_split(self.estimator, self.X, self.y, rows, columns)
        return Rows(
            X,
            y,
            _check_method_params(self.X, self.fit_params, rows),
            _check_method_params(self.X, self.score_params, rows),
        )


def _values_of(i: int) -> str:
    """Return the name of the values of a fold's test rows."""
    return f"split{i}_{EXAMPLES}"


def configured(estimator: BaseEstimator, params: Configuration) -> BaseEstimator:
    """Return a clone of the estimator with these parameters, cloned too.

    Lists stand for the tuples that it has, as JSON knows no others.
    """
    twin = clone(estimator)
    values = clone(dict(params), safe=False)
    lists = [name for name, value in values.items() if isinstance(value, list)]
    if lists:
        before = twin.get_params()
        for name in lists:
            if isinstance(before.get(name), tuple):
                values[name] = tuple(values[name])
    return chosen(twin.set_params(**values))


def seed_where_none(estimator: BaseEstimator, seed: int) -> None:
    """Give each parameter ``random_state`` that is None a different seed."""
    names = _unseeded(estimator)
    seeds = np.random.SeedSequence(seed).generate_state(len(names)) % 2**31
    estimator.set_params(**dict(zip(names, seeds.tolist(), strict=True)))


def unseeded_of_transformers(estimator: BaseEstimator) -> list[str]:
    """Return each ``random_state`` that is None before a pipeline's model."""
    of_model = ""
    model = estimator
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        of_model += f"{name}__"
    names = _unseeded(estimator) if of_model else []
    return [name for name in names if not name.startswith(of_model)]


def _unseeded(estimator: BaseEstimator) -> list[str]:
    return [
        name
        for name, value in sorted(estimator.get_params(deep=True).items())
        if value is None and f"__{name}".endswith("__random_state")
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
        raise InvalidParameterError(
            f"scoring must return a number for {name!r}; got {score!r}"
        ) from error
