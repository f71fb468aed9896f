"""Transformers of a pipeline: fitted once for all candidates that share them.

The rows after each step are kept in a ``RowCache`` by a hash of that step and all
before it. A trained pipeline is pickled without rows; where no other candidate of the
process has made them, its transformers are fitted again.
"""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence, Sized
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import NamedTuple, TypeVar

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.pipeline import Pipeline, _fit_transform_one
from sklearn.utils.validation import check_memory

from risingsearch.arms import Configuration
from risingsearch.errors import InvalidParameterError
from risingsearch.identity.fingerprint import digest
from risingsearch.integrations.sklearn.epoch_methods import HIST_GRADIENT_BOOSTING
from risingsearch.integrations.sklearn.splits import Targets
from risingsearch.json_values import Json

T = TypeVar("T")

LIMIT = 2**30  # bytes of rows that a process keeps, over all folds of a search


class RowCache:
    """Keeps rows up to ``limit`` bytes, the last used; threads make them once."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.size = 0  # bytes
        self._limit = limit
        self._kept: OrderedDict[Hashable, tuple[Prepared, int]] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], Prepared]) -> Prepared:
        """Rows that are kept under the key, or else those that ``make`` returns."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            made = make()
            self._kept[key] = made, size_of(made.rows)
            self.size += self._kept[key][1]
            while self.size > self._limit:
                _, (_, size) = self._kept.popitem(last=False)
                self.size -= size
            return made


def size_of(rows: object) -> int:
    """Bytes that rows take, in any container; large buffers are not copied."""
    parts: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(rows, protocol=5, buffer_callback=parts.append)
    return len(rest) + sum(part.raw().nbytes for part in parts)


class Prepared(NamedTuple):
    """Rows, and the fitted transformers that made them."""

    transformers: tuple[TransformerMixin, ...]
    rows: ArrayLike


class _Step(NamedTuple):
    pipeline: Pipeline  # that it is a step of
    place: int
    name: str
    transformer: TransformerMixin  # not fitted
    key: str  # hash of it and of all steps before it


class Transformers:
    """All steps before the model of a pipeline, or of nested ones, for one fold."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self.model = estimator
        self._pipelines: list[Pipeline] = []
        self._steps: list[_Step] = []
        key = ""
        while isinstance(self.model, Pipeline):
            pipeline = self.model
            for place, (name, step) in enumerate(pipeline.steps[:-1]):
                if step is not None and not isinstance(step, str):
                    key = digest((key, name, step), in_process=True)
                    self._steps.append(_Step(pipeline, place, name, step, key))
            self._pipelines.append(pipeline)
            self.model = pipeline.steps[-1][1]
        self._rows: dict[str, ArrayLike] = {}  # by the part of the fold

    def fit_transform(
        self,
        X: ArrayLike,
        y: Targets,
        params: Configuration,
        cache: RowCache,
    ) -> tuple[ArrayLike, Configuration]:
        """Rows and parameters to train the model with; X, y and params never change."""
        routed, params = self._routed(params)
        if "fitted" not in self._rows:
            prepared = self._prepared(len(self._steps), X, y, routed, cache)
            for step, fitted in zip(self._steps, prepared.transformers, strict=True):
                step.pipeline.steps[step.place] = step.name, fitted
            self._rows["fitted"] = prepared.rows
        return self._rows["fitted"], params

    def transform(
        self,
        X: ArrayLike,
        part: str,
        cache: RowCache,
    ) -> ArrayLike:
        """Rows X of a ``part`` of the fold, always the same, as the model sees them."""
        if not self._steps:
            return X
        if part not in self._rows:

            def make() -> Prepared:
                rows = X
                for step in self._steps:
                    rows = step.pipeline.steps[step.place][1].transform(_copied(rows))
                return Prepared((), rows)

            self._rows[part] = cache.get((part, self._steps[-1].key), make).rows
        return self._rows[part]

    @contextmanager
    def binning_once(self, cache: RowCache) -> Iterator[None]:
        """Let a HistGradientBoosting take the binned rows of a fold from the cache."""
        model = self.model  # that it bins by this method, no documentation says
        bins = isinstance(model, HIST_GRADIENT_BOOSTING) and hasattr(model, "_bin_data")
        if bins:
            model._bin_data = partial(self._binned, cache, model._bin_data)
        try:
            yield
        finally:
            if bins:
                del model._bin_data

    def _binned(
        self,
        cache: RowCache,
        bin_rows: Callable[..., ArrayLike],
        X: Sized,
        *weights: object,
        **named: object,
    ) -> ArrayLike:
        mapper = self.model._bin_mapper
        by = mapper.get_params() | {"categories": self.model.is_categorical_}
        if len(X) <= by["subsample"]:
            by["random_state"] = None  # of so few no sample is drawn
        [self.model._bin_mapper], rows = cache.get(
            digest(([step.key for step in self._steps], by, weights, named)),
            lambda: Prepared((mapper,), bin_rows(X, *weights, **named)),
        )
        return rows

    def forget_rows(self) -> None:
        """Drop the rows, unless the cache keeps them."""
        self._rows = {}

    def __getstate__(self) -> Json:
        return self.__dict__ | {"_rows": {}}

    def _prepared(
        self,
        n: int,
        X: ArrayLike,
        y: Targets,
        routed: Sequence[Configuration],
        cache: RowCache,
    ) -> Prepared:
        """Rows after the first ``n`` steps, as these return them while being fitted."""
        if n == 0:
            return Prepared((), X)
        step = self._steps[n - 1]

        def make() -> Prepared:
            before = self._prepared(n - 1, X, y, routed, cache)
            fit = check_memory(step.pipeline.memory).cache(_fit_transform_one)
            unfitted = clone(step.transformer, safe=False)
            rows, fitted = fit(
                unfitted,
                _copied(before.rows),
                y,
                None,
                params=routed[n - 1],
            )
            return Prepared((*before.transformers, fitted), rows)

        return cache.get(step.key, make)

    def _routed(
        self,
        params: Configuration,
    ) -> tuple[list[Configuration], Configuration]:
        """Parameters of each transformer by method, and those of the model."""
        of_transformers = []
        for pipeline in self._pipelines:
            try:
                routed = pipeline._check_method_params("fit", dict(params))
            except UnsetMetadataPassedError:
                raise
            except (KeyError, ValueError) as error:
                names = ", ".join(name for name, _ in pipeline.steps)
                raise InvalidParameterError(
                    f"training got {sorted(params)}; parameters for a Pipeline are "
                    f"prefixed with a step and __, one of {names}"
                ) from error
            steps = [step for step in self._steps if step.pipeline is pipeline]
            of_transformers += [routed[step.name] for step in steps]
            params = routed[pipeline.steps[-1][0]]["fit"]
        return of_transformers, params


def _copied(X: T) -> T:
    """Copy of rows, for a transformer that may work in place."""
    return X.copy() if hasattr(X, "copy") else deepcopy(X)
