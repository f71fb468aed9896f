"""``RisingSearchCV`` with all kinds of estimators, data and policies."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from scipy.sparse import csr_array
from sklearn import config_context, ensemble
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_regression
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from xgboost import XGBRegressor

from risingsearch.errors import InvalidParameterError, NotTrainableError
from tests.integrations.sklearn.test_search_cv import SPACE, X, Y, rising

LABELS = np.array(["no", "yes"])[Y]


ROWS = np.column_stack([np.arange(40), np.ones(40)])
HALVES = np.arange(40) % 2


class Doubler(BaseEstimator):
    """Resamples as imbalanced-learn does: every row twice."""

    def fit_resample(self, X, y):
        return np.repeat(X, 2, axis=0), np.repeat(y, 2)


TARGETS = make_regression(120, 4, noise=1.0, random_state=0)
TRANSFORMED = [
    (TransformedTargetRegressor(SGDRegressor(), transformer=StandardScaler()), ""),
    (
        make_pipeline(
            StandardScaler(),
            TransformedTargetRegressor(SGDRegressor(), transformer=MinMaxScaler()),
        ),
        "transformedtargetregressor__",
    ),
]


class TestTransformedTargets:
    @pytest.mark.parametrize(("estimator", "prefix"), TRANSFORMED)
    @pytest.mark.parametrize("refit", [True, "best"])
    def test_train_in_epochs(self, estimator, prefix, refit):
        space = {f"{prefix}regressor__alpha": [1e-4, 1e-2]}
        search = rising(estimator, space, refit=refit, budget=12).fit(*TARGETS)
        assert search.n_epochs_ == 12
        assert search.best_score_ > 0.5
        best = search.best_estimator_
        model = best if isinstance(best, TransformedTargetRegressor) else best[-1]
        assert type(model) is TransformedTargetRegressor
        assert type(model.regressor_) is SGDRegressor
        assert not hasattr(model.regressor, "coef_")

    def test_trees_are_those_of_one_fit(self):
        forest = ensemble.RandomForestRegressor(random_state=0)
        one = TransformedTargetRegressor(forest, func=np.cbrt, inverse_func=cubed)
        space = {"regressor__max_depth": [3]}
        best = rising(one, space, budget=6).fit(*TARGETS).best_estimator_
        again = clone(best).fit(*TARGETS)
        assert len(again.regressor_.estimators_) == best.regressor.n_estimators
        np.testing.assert_array_equal(
            again.predict(TARGETS[0]), best.predict(TARGETS[0])
        )


def cubed(x):
    return x**3


def test_resampling_pipelines_are_trained_by_rows():
    class Resampling(Pipeline):
        def fit(self, X, y):
            X, y = self.steps[0][1].fit_resample(X, y)
            self.steps[-1][1].fit(X, y)
            return self

        def predict(self, X):
            return self.steps[-1][1].predict(X)

        def score(self, X, y):
            return self.steps[-1][1].score(X, y)

    pipeline = Resampling([("twice", Doubler()), ("sgd", SGDClassifier())])
    space = {"sgd__alpha": [1e-4, 1e-2]}
    with pytest.raises(NotTrainableError, match="resource='n_samples'"):
        rising(pipeline, space).fit(X, Y)
    search = rising(pipeline, space, resource="n_samples").fit(X, Y)
    assert search.best_score_ > 0.4


def test_naive_bayes_has_one_epoch():
    search = rising(GaussianNB(), {"var_smoothing": [1e-9, 1e-1]}, max_epochs=None)
    assert search.fit(X, Y).n_epochs_ == 2
    whole = clone(search.best_estimator_).fit(X, Y)
    np.testing.assert_array_equal(whole.var_, search.best_estimator_.var_)


class TestEstimators:
    @pytest.mark.parametrize(
        ("estimator", "space"),
        [
            (SGDClassifier(), SPACE),
            (MLPClassifier((5,)), {"learning_rate_init": [1e-3, 1e-2]}),
            (
                ensemble.HistGradientBoostingClassifier(max_depth=2),
                {"learning_rate": [0.1, 1]},
            ),
            (ensemble.RandomForestClassifier(), {"max_depth": [1, 3]}),
            (LGBMClassifier(verbose=-1, n_jobs=1), {"num_leaves": [3, 7]}),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_classifiers(self, estimator, space):
        search = rising(estimator, space, budget=8).fit(X, LABELS)
        assert search.n_epochs_ == 8
        assert search.classes_.tolist() == ["no", "yes"]
        assert set(search.predict(X)) <= {"no", "yes"}
        assert search.best_score_ > 0.4

    @pytest.mark.parametrize(
        ("estimator", "space"),
        [
            (SGDRegressor(), SPACE),
            (XGBRegressor(n_jobs=1, max_depth=2), {"learning_rate": [0.1, 0.5]}),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_regressors(self, estimator, space):
        X, y = make_regression(120, 5, random_state=0)
        search = rising(estimator, space, scoring="r2").fit(X, y / y.std())
        assert search.best_score_ > 0.2
        assert search.predict(X).shape == (120,)
        assert not hasattr(search, "classes_")

    def test_pipeline_steps_as_values(self):
        # The first configuration takes no classes, the others must be told them.
        y = np.repeat([0, 1, 2], 40)
        steps = [ensemble.GradientBoostingClassifier(), SGDClassifier(), Perceptron()]
        space = [
            {"scale": scale, "model": step}
            for step in steps
            for scale in (StandardScaler(), MinMaxScaler(), "passthrough")
        ]
        pipeline = Pipeline([("scale", StandardScaler()), ("model", SGDClassifier())])
        search = rising(
            pipeline, space, budget=18, max_epochs=2, policy="round-robin", cv=KFold(3)
        ).fit(X, y)
        assert (search.cv_results_["epochs"] == 2).all()
        assert search.best_params_["model"] is space[search.best_index_]["model"]
        assert not hasattr(search.best_params_["model"], "classes_")

    @pytest.mark.parametrize(
        ("estimator", "space", "words"),
        [
            (LogisticRegression(), {"C": [1.0]}, "LogisticRegression"),
            (MLPClassifier(), {"solver": ["adam", "lbfgs"]}, "solver='lbfgs'"),
            (SGDClassifier(early_stopping=True), SPACE, "early_stopping=True"),
            (
                SGDClassifier(),
                [{"alpha": 0.1}, {"alpha": 0.2, "early_stopping": True}],
                "early_stopping=True",
            ),
        ],
    )
    def test_capability_is_checked_per_configuration(self, estimator, space, words):
        with pytest.raises(NotTrainableError, match=words) as caught:
            rising(estimator, space).fit(X, Y)
        assert "in the configuration {" in caught.value.__notes__[0]


class TestData:
    @pytest.mark.parametrize("container", [pd.DataFrame, csr_array, list])
    def test_containers(self, container):
        space = {"hidden_layer_sizes": [(2,), (5,)]}
        expected = rising(MLPClassifier(), space).fit(X, Y)
        given = X.tolist() if container is list else container(X)
        search = rising(MLPClassifier(), space).fit(given, Y)
        assert search.history_["score"] == pytest.approx(expected.history_["score"])
        np.testing.assert_array_equal(search.predict(given), expected.predict(X))

    @pytest.mark.parametrize("container", [pd.Series, list])
    def test_targets(self, container):
        search = rising(SGDClassifier(), SPACE).fit(X, container(LABELS))
        assert set(search.predict(X)) <= {"no", "yes"}

    @pytest.mark.parametrize(
        "estimator", [SGDClassifier(), make_pipeline(SGDClassifier()), SGDRegressor()]
    )
    def test_missing_targets(self, estimator):
        with pytest.raises(InvalidParameterError, match="requires y to be passed"):
            rising(estimator, [{}]).fit(X)


class TestResults:
    def test_best_is_the_best_of_the_history(self):
        search = rising(SGDClassifier(), SPACE, cv=2, return_train_score=True)
        search.fit(X, Y)
        rows = search.history_
        best = max(rows, key=lambda row: row["score"])
        assert search.best_score_ == best["score"] == max(rows["score"])
        results = search.cv_results_
        assert results["mean_test_score"][search.best_index_] == search.best_score_
        assert results["rank_test_score"][search.best_index_] == 1
        assert results["best_epoch"][search.best_index_] == search.best_epoch_
        assert results["params"][search.best_index_] == search.best_params_
        assert best["score"] == np.mean(
            [best["split0_test_score"], best["split1_test_score"]]
        )

    def test_history_and_curves(self):
        search = rising(SGDClassifier(), SPACE).fit(X, Y)
        frame = search.history_.to_frame()
        assert len(frame) == 20
        assert {"arm", "epoch", "score", "seconds", "reason"} <= set(frame.columns)
        assert {"split0_fit_time", "split0_test_score"} <= set(frame.columns)
        for arm, curve in search.curves_.items():
            of_arm = frame[frame["arm"] == arm]
            assert of_arm["epoch"].tolist() == list(range(1, len(curve) + 1))
            assert of_arm["score"].tolist() == curve.tolist()

    def test_verbose_prints_lines_away_from_a_terminal(self, capsys):
        rising(SGDClassifier(), SPACE, verbose=1).fit(X, Y)
        out, err = capsys.readouterr()
        assert out == ""
        assert err.splitlines()[-1].startswith("20/20 epochs")

    def test_a_notebook_shows_the_diagram_and_then_what_was_found(self):
        search = rising(SGDClassifier(), SPACE)
        before = search._repr_html_()
        assert "SGDClassifier" in before
        assert "rs-chart" not in before
        fitted = pickle.loads(pickle.dumps(search.fit(X, Y)))
        for html in (fitted._repr_html_(), fitted._repr_mimebundle_()["text/html"]):
            assert "sk-container" in html
            assert f"<strong>{fitted.best_score_:.6g}</strong>" in html
            assert f"arm {fitted.best_index_}, epoch {fitted.best_epoch_}" in html
            assert "4 of 4 arms opened, 20 epochs used" in html
        with config_context(display="text"):
            assert "text/html" not in fitted._repr_mimebundle_()
