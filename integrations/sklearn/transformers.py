"""The transformers of a pipeline: fitted once for all candidates that share them.

Each step is known by what it is and by the steps before it, so candidates share the
rows after every step that they have in common. Rows are kept in a ``RowCache``; a
trained pipeline is pickled with its fitted transformers and without rows.
"""

from __future__ import annotations

import contextlib
import pickle
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from copy import copy, deepcopy
from functools import partial
from typing import Any, NamedTuple

import joblib
import numpy as np
import sklearn
from joblib import wrap_non_picklable_objects
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import check_memory

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.row_cache import Prepared, RowCache

_GLOBAL_GENERATOR = threading.RLock()
_METHODS = ("fit", "fit_transform", "transform")


class Transformers:
    """All that comes before the model in a pipeline, for the rows of one fold.

    A pipeline as the last step of another goes on with its own transformers; ``model``
    is what is left at the end. An estimator that is no pipeline has no transformers.
    NumPy's global generator is seeded with ``seed`` while they are fitted.
    """

    def __init__(self, estimator: Any, seed: int = 0) -> None:
        self._estimator = estimator
        self._seed = seed
        self._steps = list(_steps(estimator))
        self._keys = list(_keys(self._steps))
        self._fitted: tuple[Any, ...] = ()
        self._digest: str | None = None  # of the rows that the model is trained on
        self._rows: Any = None
        self._knowing: dict[str, Any] = {}

    @property
    def model(self) -> Any:
        """Return the estimator that learns from the transformed rows."""
        model = self._estimator
        while isinstance(model, Pipeline):
            model = model.steps[-1][1]
        return model

    def fit_transform(
        self, X: Any, y: Any, params: Mapping[str, Any], cache: RowCache
    ) -> tuple[Any, Mapping[str, Any]]:
        """Return the rows and the parameters to train the model with.

        X, y and params are the same in every call.
        """
        if not isinstance(self._estimator, Pipeline):
            return X, params
        params_of_steps, params_of_model = _routed(self._estimator, params)
        if not self._steps:
            return X, params_of_model
        if self._rows is None:
            source = _Source(X, y, params_of_steps, cache)
            self._rows = self._prepared(source).rows
        return self._rows, params_of_model

    def knowing(self, X: Any, part: str, cache: RowCache) -> Any:
        """Return the pipeline as a scorer sees it: transforming X costs nothing.

        ``part`` tells the rows of a fold apart. Other rows than X are transformed as
        ever.
        """
        if not self._steps:
            return self._estimator
        if part not in self._knowing:
            steps = []
            rows = X
            for key, fitted in zip(self._keys, self._fitted, strict=True):
                make = partial(_transformed, fitted, rows)
                after = cache.get((part, key), make).rows
                steps.append(_Knowing(fitted, rows, after))
                rows = after
            self._knowing[part] = _with_steps(self._estimator, iter(steps))
        return self._knowing[part]

    def forget_rows(self) -> None:
        """Drop the rows, unless the cache keeps them."""
        self._rows = None
        self._knowing = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_rows": None, "_knowing": {}}

    def _prepared(self, source: _Source) -> Prepared:
        if self._digest is None:
            prepared = self._after(len(self._steps), source)
            self._fitted = prepared.transformers
            self._digest = prepared.digest
            fitted = iter(self._fitted)
            self._estimator.steps = _with_steps(self._estimator, fitted).steps
            return prepared
        make = partial(self._again, source)
        prepared = source.cache.get(self._keys[-1], make)
        if prepared.digest != self._digest:
            # A transformer draws from a generator of its own: these rows are another
            # fit's, and the model goes on with what its own transformers make.
            self._keys = [f"{key} {self._digest}" for key in self._keys]
            prepared = source.cache.get(self._keys[-1], make)
        return prepared

    def _after(self, n_steps: int, source: _Source) -> Prepared:
        """Return what the first steps make of the rows."""
        if n_steps == 0:
            return Prepared((), source.X)
        make = partial(self._fit_last_of, n_steps, source)
        return source.cache.get(self._keys[n_steps - 1], make)

    def _fit_last_of(self, n_steps: int, source: _Source) -> Prepared:
        before = self._after(n_steps - 1, source)
        step = self._steps[n_steps - 1]
        fit = check_memory(step.memory).cache(fitted_transformer)
        params = source.params[n_steps - 1]
        with _seeded(self._seed):
            fitted, rows = fit(step.transformer, before.rows, source.y, params)
        return Prepared((*before.transformers, fitted), rows)

    def _again(self, source: _Source) -> Prepared:
        """Return once more the rows that the model is trained on.

        Some transformers do not transform as they did while they were fitted (PCA
        rounds otherwise, TargetEncoder fits across folds) and are fitted again.
        """
        rows = source.X
        for fitted, params in zip(self._fitted, source.params, strict=True):
            rows = fitted.transform(_own(rows), **params["transform"])
        transformed = Prepared(self._fitted, rows)
        if transformed.digest == self._digest:
            return transformed
        fitted_again = self._fit_last_of(len(self._steps), source)
        same = fitted_again.digest == self._digest
        return fitted_again if same else transformed


def fitted_transformer(
    transformer: Any, X: Any, y: Any, params: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Return a fitted clone, and the rows as it gives them while it is fitted.

    It is what the ``memory`` of a pipeline remembers.
    """
    transformer = clone(transformer, safe=False)
    X = _own(X)
    if hasattr(transformer, "fit_transform"):
        rows = transformer.fit_transform(X, y, **params["fit_transform"])
    else:
        transformer.fit(X, y, **params["fit"])
        rows = transformer.transform(X, **params["transform"])
    return transformer, rows


class _Step(NamedTuple):
    name: str
    transformer: Any  # not fitted
    memory: Any  # of the pipeline that it is a step of


class _Source(NamedTuple):
    X: Any
    y: Any
    params: list[dict[str, Any]]  # of each transformer, by method
    cache: RowCache


class _Knowing:
    """Stands for a fitted transformer, and knows some rows before and after it."""

    def __init__(self, transformer: Any, before: Any, after: Any) -> None:
        self._transformer = transformer
        self._before = before
        self._after = after

    def transform(self, X: Any, **params: Any) -> Any:
        if X is self._before and not params:
            return self._after
        return self._transformer.transform(_own(X), **params)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transformer, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # isinstance tells a scorer what the transformer is
        return type(self._transformer)

    def __reduce__(self) -> Any:  # a copy is one of the transformer
        return copy, (self._transformer,)


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Let those that draw from NumPy's global generator draw the same every time.

    So what was dropped can be made again: ``TargetEncoder`` has no seed of its own.
    """
    with _GLOBAL_GENERATOR:
        state = np.random.get_state()  # noqa: NPY002
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002


def _transformed(fitted: Any, X: Any) -> Prepared:
    return Prepared((fitted,), fitted.transform(_own(X)))


def _own(X: Any) -> Any:
    """Return a copy of rows, for a transformer that may work in place."""
    return X.copy() if hasattr(X, "copy") else deepcopy(X)


def _is_transformer(step: Any) -> bool:
    return step is not None and not isinstance(step, str)


def _steps(estimator: Any) -> Iterator[_Step]:
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps[:-1]:
            if _is_transformer(step):
                yield _Step(name, step, estimator.memory)
        yield from _steps(estimator.steps[-1][1])


def _keys(steps: list[_Step]) -> Iterator[str]:
    """Iterate over what each step and all before it are known by."""
    key = ""
    for step in steps:
        known_by = (key, step.name, step.transformer)
        try:
            key = joblib.hash(known_by)
        except pickle.PicklingError:  # a lambda, or a class of this process only
            key = joblib.hash(wrap_non_picklable_objects(known_by, False))
        yield key


def _with_steps(pipeline: Any, transformers: Iterator[Any]) -> Any:
    """Return the pipeline around the same model, with other transformers."""
    *before, (name, last) = pipeline.steps
    steps = [
        (name, next(transformers) if _is_transformer(step) else step)
        for name, step in before
    ]
    if isinstance(last, Pipeline):
        last = _with_steps(last, transformers)
    twin = copy(pipeline)
    twin.steps = [*steps, (name, last)]
    return twin


def _routed(
    pipeline: Any, params: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """Return the parameters of each transformer by method, and those of the model."""
    by_step = _by_step(pipeline, params)
    *before, (name, last) = pipeline.steps
    own = [
        {method: dict(by_step[its_name].get(method, {})) for method in _METHODS}
        for its_name, step in before
        if _is_transformer(step)
    ]
    params_of_last = by_step[name]["fit"]
    if not isinstance(last, Pipeline):
        return own, params_of_last
    inner, params_of_model = _routed(last, params_of_last)
    return own + inner, params_of_model


def _by_step(pipeline: Any, params: Mapping[str, Any]) -> Any:
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
