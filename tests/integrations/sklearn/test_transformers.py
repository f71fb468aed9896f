"""A pipeline's transformers are fitted once for all candidates that share them."""

import pickle
from contextlib import nullcontext
from functools import partial
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import (
    KFold,
    ParameterGrid,
    RandomizedSearchCV,
    StratifiedKFold,
)
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
    TargetEncoder,
)

from risingsearch.errors import SearchFailedError
from risingsearch.integrations.sklearn import RisingSearchCV, folds
from risingsearch.integrations.sklearn.estimators import EpochTrainer
from risingsearch.integrations.sklearn.transformers import Transformers

RANDOM = np.random.default_rng(0)
NUMBERS, WORDS = ["n0", "n1", "n2", "n3"], ["c0", "c1"]
FRAME = pd.DataFrame(
    {name: RANDOM.normal(3.0, 5.0, 150) for name in NUMBERS}
    | {name: RANDOM.integers(0, 5, 150).astype(str) for name in WORDS}
)
X = FRAME[NUMBERS].to_numpy()
Y = (X[:, 0] + X[:, 1] + 3 * (FRAME["c0"] > "2") > 7).to_numpy().astype(int)
SGD = SGDClassifier(random_state=0)
CV = StratifiedKFold(3)
SHUFFLED = KFold(3, shuffle=True, random_state=4)


class Probe(TransformerMixin, BaseEstimator):
    """Counts what a search makes it do."""

    counts: ClassVar[dict[str, int]] = {}

    def __init__(self, factor=1.0, fails=False):
        self.factor = factor
        self.fails = fails

    def fit(self, X, y=None):
        if self.fails:
            raise ValueError("a broken transformer")
        self.counts["fits"] += 1
        return self

    def transform(self, X):
        self.counts["transforms"] += 1
        self.counts["rows"] += len(X)
        return self.factor * X

    def __sklearn_is_fitted__(self):
        return True


@pytest.fixture(autouse=True)
def counts():
    Probe.counts.update(fits=0, transforms=0, rows=0)
    return Probe.counts


def probing(*more):
    return Pipeline([("probe", Probe()), *more, ("sgd", SGD)])


def rising(pipeline, grid, **options):
    defaults = {"budget": 30, "max_epochs": 6, "cv": CV, "refit": False}
    options = {**defaults, "random_state": 0, **options}
    return RisingSearchCV(pipeline, list(ParameterGrid(grid)), **options)


ALPHAS = {"sgd__alpha": [1e-4, 1e-2]}
FACTORS = {"probe__factor": [1.0, 2.0, 3.0]}


class TestCounts:
    def test_no_more_than_in_a_randomized_search(self, counts):
        grid = ALPHAS | FACTORS
        n = len(ParameterGrid(grid))
        options = {"cv": CV, "refit": False, "return_train_score": True}
        RandomizedSearchCV(probing(), grid, n_iter=n, **options).fit(X, Y)
        theirs = dict(counts)
        counts.update(fits=0, transforms=0, rows=0)
        options |= {"budget": 30, "max_epochs": 8}
        search = rising(probing(), grid, **options).fit(X, Y)
        assert (search.cv_results_["epochs"] > 0).all()
        assert search.n_epochs_ == 30
        assert all(counts[what] <= theirs[what] for what in counts)

    def test_once_a_fold_for_each_set_of_parameters(self, counts):
        grid = {**ALPHAS, "probe__factor": [1.0, 2.0]}
        scoring = ["accuracy", "roc_auc"]
        rising(probing(), grid, scoring=scoring, refit="roc_auc").fit(X, Y)
        # the refit is one more fit, on all rows
        rows = 2 * 3 * len(X) + len(X)
        assert counts == {"fits": 2 * 3 + 1, "transforms": 2 * 6 + 1, "rows": rows}

    def test_the_first_steps_are_shared_where_the_next_ones_differ(self, counts):
        grid = {"select__k": [1, 2, 3]}
        rising(probing(("select", SelectKBest())), grid).fit(X, Y)
        assert counts == {"fits": 3, "transforms": 3 + 9, "rows": 5 * len(X)}

    def test_what_no_module_knows_is_shared_too(self, counts):
        twice = FunctionTransformer(lambda X: Probe().transform(2 * X))
        pipeline = Pipeline([("twice", twice), ("sgd", SGD)])
        rising(pipeline, ALPHAS).fit(X, Y)
        assert counts["transforms"] == 6

    def test_nothing_is_kept_after_the_search(self):
        search = rising(probing(), ALPHAS, budget=10).fit(X, Y)
        assert not search._run.folds._kept.caches
        assert search.continue_search(2).n_epochs_ == 12


ONE_HOT = OneHotEncoder(handle_unknown="ignore")
COLUMNS = ColumnTransformer(
    [("numbers", make_pipeline(SimpleImputer()), NUMBERS), ("words", ONE_HOT, WORDS)]
)
PREPARATIONS = {
    "columns": (COLUMNS, FRAME, {"numbers__simpleimputer__strategy": ["median"]}),
    "union": (make_union(StandardScaler(), MinMaxScaler()), X, {}),
    "passthrough": ("passthrough", X, {}),
    "learns from y": (TargetEncoder(cv=KFold(5)), FRAME[WORDS], {}),
    "rounds otherwise": (PCA(2, random_state=0), X, {"n_components": [1, 2, 3]}),
    "in place": (StandardScaler(copy=False), X, {}),
    "sparse": (ONE_HOT, FRAME[WORDS], {}),
    "pandas": (clone(COLUMNS).set_output(transform="pandas"), FRAME, {}),
    "generator": (PCA(2, random_state=np.random.RandomState(3)), X, {}),
}
PREPARATIONS["pandas"][0].set_params(words__sparse_output=False)


def by_hand(pipeline, params, rows, n_epochs):
    """Return the test and training scores of every fold, epoch by epoch."""
    scores = []
    for train, test in CV.split(rows, Y):
        model = clone(pipeline).set_params(**params)
        rows_of = rows.iloc if isinstance(rows, pd.DataFrame) else rows
        before = Pipeline([*model.steps[:-1], ("end", "passthrough")])
        prepared = before.fit_transform(rows_of[train].copy(), Y[train])
        for _ in range(n_epochs):
            model[-1].partial_fit(prepared, Y[train], classes=[0, 1])
            for part in (test, train):
                seen = before.transform(rows_of[part].copy())
                scores.append(model[-1].score(seen, Y[part]))
    return np.reshape(scores, (3, n_epochs, 2))


@pytest.mark.parametrize("kind", PREPARATIONS)
def test_scores_are_those_of_transforming_by_hand(kind):
    transformer, rows, choices = PREPARATIONS[kind]
    pipeline = Pipeline([("first", transformer), ("sgd", SGD)])
    grid = ALPHAS | {f"first__{name}": values for name, values in choices.items()}
    search = rising(
        pipeline, grid, budget=8, max_epochs=2, return_train_score=True
    ).fit(rows, Y)
    params = search.cv_results_["params"]
    opened = {row["arm"] for row in search.history_}
    scores = {arm: by_hand(pipeline, params[arm], rows, 2) for arm in opened}
    for row in search.history_:
        for fold, part in product(range(3), (0, 1)):
            name = f"split{fold}_{('test', 'train')[part]}_score"
            assert row[name] == scores[row["arm"]][fold, row["epoch"] - 1, part]


@pytest.mark.parametrize("subsample", [50, 200_000])
def test_rows_are_binned_once_a_fold_as_each_model_would(subsample, monkeypatch):
    binned, bin_rows = [], HistGradientBoostingRegressor._bin_data
    mapper = partial(gradient_boosting._BinMapper, subsample=subsample)
    monkeypatch.setattr(gradient_boosting, "_BinMapper", mapper)
    monkeypatch.setattr(
        HistGradientBoostingRegressor,
        "_bin_data",
        lambda *given, **more: binned.append(1) or bin_rows(*given, **more),
    )
    model = make_pipeline(
        COLUMNS, HistGradientBoostingRegressor(categorical_features=[4], max_bins=9)
    )
    name = "histgradientboostingregressor__"
    grid = {f"{name}max_bins": [9, 60], f"{name}learning_rate": [0.1, 0.3]}
    weights = {f"{name}sample_weight": np.linspace(0.0, 2.0, len(X))}

    def scores():
        search = rising(model, grid, refit=True, budget=8, max_epochs=2, cv=2)
        search.fit(FRAME, Y, **weights)
        assert "_bin_data" not in vars(search.best_estimator_[-1])
        return [*search.history_["score"], *search.predict(FRAME)]

    shared, n_shared = scores(), len(binned)
    assert n_shared == (2 * 4 + 1 if subsample == 50 else 2 * 2 + 1)
    monkeypatch.setattr(Transformers, "binning_once", lambda *given: nullcontext())
    assert shared == scores()
    assert len(binned) == n_shared + 2 * 8 + 1


def test_rows_are_binned_anew_for_other_categories(monkeypatch):
    categories = np.random.default_rng(0).integers(0, 3, (len(X), 2))
    model = HistGradientBoostingRegressor(random_state=0, min_samples_leaf=2)
    grid = {"categorical_features": [[[0]], [[1]]]}

    def scores():
        search = rising(model, grid, refit=False, budget=6, policy="round-robin")
        return [*search.fit(categories, Y).history_["score"]]

    shared = scores()
    monkeypatch.setattr(Transformers, "binning_once", lambda *given: nullcontext())
    assert shared == scores()


class TestInPlace:
    def test_steps_of_an_inner_pipeline_leave_the_rows_before_it_alone(self):
        def scores(copy):
            inner = make_pipeline(MinMaxScaler(copy=copy), StandardScaler(copy=copy))
            pipeline = make_pipeline(StandardScaler(), make_pipeline(inner, SGD))
            alpha = "pipeline__sgdclassifier__alpha"
            return rising(pipeline, {alpha: [1e-4, 1e-2]}).fit(X, Y).history_["score"]

        assert scores(copy=False) == scores(copy=True)


def test_a_callable_is_given_the_pipeline_and_the_rows_as_they_are():
    def scorer(model, rows, y):
        scaled = (rows - model["scale"].mean_) / model["scale"].scale_
        np.testing.assert_allclose(model["scale"].transform(rows), scaled)
        clone(model).fit(rows, y)
        return model.score(rows, y)

    pipeline = Pipeline([("scale", StandardScaler()), ("sgd", SGD)])
    search = rising(pipeline, ALPHAS, scoring=scorer, error_score="raise").fit(X, Y)
    assert (
        search.history_["score"] == rising(pipeline, ALPHAS).fit(X, Y).history_["score"]
    )


class TestBound:
    def test_changes_no_score(self, counts, monkeypatch):
        grid = ALPHAS | FACTORS
        whole = rising(probing(), grid).fit(X, Y)
        made_once = counts["transforms"]
        monkeypatch.setattr(folds, "LIMIT", 0)
        search = rising(probing(), grid).fit(X, Y)
        assert search.history_["score"] == whole.history_["score"]
        assert counts["transforms"] > 2 * made_once


class TestMemory:
    def test_of_the_pipeline_keeps_fits_for_other_searches(self, counts, tmp_path):
        inner = Pipeline([("inner", Probe(2.0)), ("sgd", SGD)], memory=str(tmp_path))
        pipeline = Pipeline([("probe", Probe()), ("last", inner)], memory=str(tmp_path))
        grid = {"last__sgd__alpha": [1e-4, 1e-2]}
        first = rising(pipeline, grid).fit(X, Y)
        assert counts["fits"] == 2 * 3
        again = rising(pipeline, grid).fit(X, Y)
        assert counts["fits"] == 2 * 3
        assert again.history_["score"] == first.history_["score"]


def fitted_to(rows):
    return FrozenEstimator(PCA(1).fit(X[rows]))


def adjusted(by):
    def scale(X):
        return X * scale.by

    scale.by = by
    return FunctionTransformer(scale)


def counted(by):
    n_calls = 0

    def scale(X):
        nonlocal n_calls
        n_calls += 1
        return X * by

    return FunctionTransformer(scale)


def made(by):
    class Scaler(Probe):
        def transform(self, X):
            return super().transform(X) * by

    return Scaler()


def without_source(by):
    known = {"BY": by, "__name__": __name__}
    exec("def scale(X): return X * BY", known)
    return FunctionTransformer(known["scale"])


def named_columns(container):
    return make_pipeline(
        StandardScaler().set_output(transform=container),
        FunctionTransformer(lambda X: X[:, :1] if isinstance(X, np.ndarray) else X),
    )


@pytest.mark.parametrize(
    ("make", "one", "other"),
    [
        (fitted_to, slice(0, 5), slice(50, 150)),
        (
            lambda rows: FunctionTransformer(PCA(1).fit(X[rows]).transform),
            slice(0, 5),
            slice(50, 150),
        ),
        (adjusted, 0.0, 1.0),
        (counted, 0.0, 1.0),
        (made, 0.0, 1.0),
        (without_source, 0.0, 1.0),
        (named_columns, "default", "pandas"),
    ],
)
def test_what_differs_beside_the_parameters_shares_no_rows(make, one, other):
    Probe.counts.update(fits=0, transforms=0, rows=0)

    def curves(*values):
        search = RisingSearchCV(
            Pipeline([("t", "passthrough"), ("sgd", SGD)]),
            [{"t": [make(value)]} for value in values],
            budget=4,
            max_epochs=2,
            cv=CV,
            random_state=0,
            refit=False,
        )
        return [list(curve) for _, curve in sorted(search.fit(X, Y).curves_.items())]

    both = curves(one, other)
    assert both == curves(one) + curves(other)
    assert both[0] != both[1]


class TestRandomTransformers:
    def test_get_one_seed_of_the_search(self):
        seeds = set()

        def scorer(model, X, y):
            seeds.add((model[0].random_state, model[-1].random_state))
            return model.score(X, y)

        pipeline = Pipeline([("pca", PCA(2)), ("sgd", SGDClassifier())])
        for random_state in (0, 1, None):
            rising(pipeline, ALPHAS, random_state=random_state, scoring=scorer).fit(
                X, Y
            )
        # each of two models has its own, and None stays where the search has none
        assert len({before for before, _ in seeds}) == 3
        assert len(seeds) == 5
        assert {before for before, model in seeds if model is None} != {None}

    def test_draw_the_same_when_their_rows_were_dropped(self):
        def model(drops):
            trainer = EpochTrainer(clone(pipeline))
            for _ in range(3):
                trainer.train(FRAME[WORDS], Y)
                if drops:
                    trainer = pickle.loads(pickle.dumps(trainer))
            return trainer.estimator["sgd"].coef_

        pipeline = Pipeline([("encode", TargetEncoder(cv=SHUFFLED)), ("sgd", SGD)])
        np.testing.assert_array_equal(model(drops=True), model(drops=False))

    def test_with_a_seed_keep_it(self):
        pipeline = Pipeline([("pca", PCA(2, random_state=5)), ("sgd", SGD)])
        search = rising(pipeline, ALPHAS, refit=True).fit(X, Y)
        assert search.best_estimator_["pca"].random_state == 5


class TestFailures:
    def test_of_a_transformer_retire_its_candidates_only(self):
        grid = ALPHAS | {"probe__fails": [False, True]}
        with pytest.warns(match="a broken transformer"):
            search = rising(probing(), grid).fit(X, Y)
        assert sorted(search.cv_results_["status"]) == ["failed"] * 2 + ["finished"] * 2

    def test_of_all_transformers_end_the_search(self):
        with pytest.raises(SearchFailedError):
            rising(probing(), {"probe__fails": [True]}).fit(X, Y)
