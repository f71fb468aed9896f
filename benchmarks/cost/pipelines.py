"""What a search of a pipeline costs above training its model on prepared rows."""

from __future__ import annotations

import statistics
import time
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import ParameterGrid, RandomizedSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.shared.problems import load
from risingsearch import RisingSearchCV

MOST_TRANSFORMS = 1.0  # of those of RandomizedSearchCV
MOST_SECONDS = 1.1  # of those of the bare loop

CV = StratifiedKFold(3)
MAX_EPOCHS = 27
SPACES = {
    "all share their transformers": {"sgd__alpha": np.logspace(-6, -1, 6)},
    "three sets of transformers": {
        "sgd__alpha": [1e-5, 1e-3],
        "probe__factor": [0.5, 1.0, 2.0],
    },
    "no two share theirs": {"probe__factor": np.linspace(0.5, 2.0, 6)},
}


class Probe(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Counts its fits and transforms, and the rows that it transforms."""

    counts: ClassVar[dict[str, int]] = {}

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def fit(self, X: Any, y: Any = None) -> Probe:
        """Count a fit."""
        self.counts["fits"] += 1
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        """Count the rows, and multiply them."""
        self.counts["transforms"] += 1
        self.counts["rows transformed"] += len(X)
        return self.factor * X


def counted(budget: int, seed: int) -> list[dict[str, Any]]:
    """Compare what transformers do with what they do in ``RandomizedSearchCV``."""
    X, y, _ = load("digits")
    pipeline = Pipeline([("probe", Probe()), ("sgd", SGDClassifier())])
    rows = []
    for shared, space in SPACES.items():
        candidates = list(ParameterGrid(space))
        ours = _counts(_search(pipeline, candidates, budget, seed), X, y)
        options = {"n_iter": len(candidates), "cv": CV, "refit": False}
        theirs = _counts(RandomizedSearchCV(pipeline, space, **options), X, y)
        rows += [
            {
                "what": f"a Pipeline, {budget} epochs, cv=3, {shared}",
                "measure": f"{name} / {theirs[name]:,} of RandomizedSearchCV",
                "value": ours[name] / theirs[name],
                "bar": MOST_TRANSFORMS,
            }
            for name in ours
        ]
    return rows


def beside_prepared(
    n_rows: int, budget: int, repeats: int, seed: int
) -> dict[str, Any]:
    """Compare a search with a bare loop over rows that were prepared before."""
    X, y = mixed_rows(n_rows, seed)
    pipeline = Pipeline([("columns", columns(X)), ("sgd", SGDClassifier())])
    candidates = [{"sgd__alpha": alpha} for alpha in np.logspace(-6, -1, 30)]
    ratios = []
    for k in range(repeats):
        search = _search(pipeline, candidates, budget, seed + k)
        begin = time.perf_counter()
        search.fit(X, y)
        ratios.append((time.perf_counter() - begin) / bare_loop(search, X, y))
    return {
        "what": f"a Pipeline of mixed columns, {n_rows:,} rows, {budget} epochs, cv=3",
        "measure": "search / bare loop on prepared rows",
        "value": statistics.median(ratios),
        "bar": MOST_SECONDS,
    }


def mixed_rows(n_rows: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Return rows of numbers, some of them missing, and of words."""
    X, y, _ = load("synth")
    X, y = X[:n_rows].copy(), y[:n_rows]
    words = np.floor(4 * X[:, 40:]).astype(int).astype(str).astype(object)
    X[np.random.default_rng(seed).random(X.shape) < 0.05] = np.nan
    frame = pd.DataFrame(X[:, :40]).add_prefix("number_")
    return frame.join(pd.DataFrame(words).add_prefix("word_")), y


def columns(X: pd.DataFrame) -> ColumnTransformer:
    """Return what prepares mixed rows."""
    numbers = [name for name in X if name.startswith("number")]
    words = [name for name in X if name.startswith("word")]
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore")
    return ColumnTransformer([("numbers", scaled, numbers), ("words", one_hot, words)])


def bare_loop(search: RisingSearchCV, X: Any, y: Any) -> float:
    """Return the seconds of the same epochs, without those of preparing the rows."""
    folds = []
    for train, test in CV.split(X, y):
        before = clone(search.estimator[:-1])
        rows = before.fit_transform(X.iloc[train], y[train])
        folds.append((rows, y[train], before.transform(X.iloc[test]), y[test]))
    classes = np.unique(y)
    models: dict[int, list[Any]] = {}
    begin = time.perf_counter()
    for arm in search.history_["arm"]:
        if arm not in models:
            model = clone(search.estimator).set_params(
                **search.cv_results_["params"][arm]
            )[-1]
            models[arm] = [clone(model) for _ in folds]
        for model, (X_train, y_train, X_test, y_test) in zip(
            models[arm], folds, strict=True
        ):
            model.partial_fit(X_train, y_train, classes=classes)
            model.score(X_test, y_test)
    return time.perf_counter() - begin


def _search(
    pipeline: Any, candidates: list[dict[str, Any]], budget: int, seed: int
) -> RisingSearchCV:
    return RisingSearchCV(
        pipeline,
        candidates,
        budget=budget,
        max_epochs=MAX_EPOCHS,
        cv=CV,
        refit=False,
        random_state=seed,
    )


def _counts(search: Any, X: Any, y: Any) -> dict[str, int]:
    Probe.counts.update(dict.fromkeys(("fits", "transforms", "rows transformed"), 0))
    search.fit(X, y)
    return dict(Probe.counts)
