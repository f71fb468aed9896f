"""``RisingSearchCV`` from the first epoch to the refit."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from scipy.sparse import csr_array
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import make_blobs, make_classification, make_regression
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from xgboost import XGBRegressor

from risingsearch import Budget, RisingSearchCV, list_policies, make_policy
from risingsearch.errors import (
    InvalidParameterError,
    NotTrainableError,
    SearchFailedError,
    UnknownNameError,
)

SPACE = {"alpha": [1e-6, 1e-4, 1e-2, 1.0]}
X, Y = make_classification(120, 8, n_informative=5, random_state=0)
LABELS = np.array(["no", "yes"])[Y]


def rising(estimator, space, **options):
    """A small search, so that a test names what it is about and nothing else."""
    options = {"budget": 20, "max_epochs": 8, "cv": 0.25, "random_state": 0} | options
    return RisingSearchCV(estimator, space, **options)


class Recorder(ClassifierMixin, BaseEstimator):
    """Learns nothing and remembers all calls; the first column of X names the row."""

    calls: list = []  # noqa: RUF012

    def __init__(self, quality=0.5, fault=None, random_state=None):
        self.quality = quality
        self.fault = fault
        self.random_state = random_state

    def partial_fit(self, X, y, classes=None, sample_weight=None, note=None):
        self.epochs_ = getattr(self, "epochs_", 0) + 1
        self.classes_ = classes
        rows = np.asarray(X)[:, 0].astype(int).tolist()
        self.calls.append(
            {
                "rows": rows,
                "quality": self.quality,
                "weights": sample_weight,
                "note": note,
                "classes": classes,
            }
        )
        if self.fault == "raises" or (self.fault == "late" and self.epochs_ == 2):
            raise ArithmeticError(f"quality {self.quality} overflows")
        return self

    def fit(self, X, y):
        raise AssertionError("the search trains by epochs")

    def score(self, X, y, sample_weight=None):
        self.calls.append({"scored": np.asarray(X)[:, 0].astype(int).tolist()})
        if self.fault == "nan":
            return math.nan
        return self.quality * (1 - 1 / (self.epochs_ + 1))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.fixture
def calls():
    Recorder.calls.clear()
    return Recorder.calls


def trained(calls):
    return [call for call in calls if "rows" in call]


ROWS = np.column_stack([np.arange(40), np.ones(40)])
HALVES = np.arange(40) % 2
QUALITIES = [{"quality": quality} for quality in (0.2, 0.4, 0.6, 0.8)]


class TestBudget:
    @pytest.mark.parametrize("policy", ["auto", *[p.name for p in list_policies()]])
    def test_epochs_are_counted_by_the_calls_made(self, calls, policy, live_params):
        params = live_params(policy)
        search = rising(
            Recorder(), QUALITIES, policy=policy, policy_params=params, refit=False
        )
        search.fit(ROWS, HALVES)
        assert search.n_epochs_ == len(trained(calls))
        assert search.n_epochs_ == len(search.history_)
        assert search.n_epochs_ == search.cv_results_["epochs"].sum()
        stops = {"median-stopping", "successive-halving"}
        assert search.n_epochs_ == 20 or (policy in stops and search.n_epochs_ < 20)

    def test_an_epoch_trains_every_fold(self, calls):
        search = rising(Recorder(), QUALITIES, cv=3, refit=False).fit(ROWS, HALVES)
        assert search.n_epochs_ == 20
        assert len(trained(calls)) == 20 * search.n_splits_ == 60

    def test_refit_costs_the_best_epochs_more(self, calls):
        search = rising(Recorder(), QUALITIES).fit(ROWS, HALVES)
        assert search.best_epoch_ == 8
        assert len(trained(calls)) == 20 + 8
        assert sorted(trained(calls)[-1]["rows"]) == list(range(40))

    def test_an_arm_can_have_no_more_than_max_epochs(self, calls):
        search = rising(Recorder(), QUALITIES, budget=100, max_epochs=7, refit=False)
        search.fit(ROWS, HALVES)
        assert search.n_epochs_ == len(trained(calls)) == 4 * 7
        assert "72 of 100 epochs left" in search.stop_reason_

    def test_steps_per_epoch(self, calls):
        search = rising(Recorder(), QUALITIES, steps_per_epoch=3, refit=False)
        assert search.fit(ROWS, HALVES).n_epochs_ == 20
        assert len(trained(calls)) == 60

    def test_by_name(self):
        search = rising(SGDClassifier(), SPACE, budget=Budget(epochs=9)).fit(X, Y)
        assert search.n_epochs_ == 9

    def test_in_seconds(self):
        search = rising(Recorder(), QUALITIES, budget=Budget(seconds=1e-9))
        search.fit(ROWS, HALVES)
        assert search.n_epochs_ == 1
        assert search.stop_reason_ == "the budget of 1e-09 seconds is spent"

    @pytest.mark.parametrize("budget", [0, -3, 2.5, True, "many", None])
    def test_is_a_whole_number_of_at_least_one(self, budget):
        with pytest.raises(InvalidParameterError, match="budget must be a whole"):
            rising(SGDClassifier(), SPACE, budget=budget).fit(X, Y)

    @pytest.mark.parametrize(
        ("space", "n_candidates"),
        [
            ({"alpha": loguniform(1e-5, 1)}, 4),
            ([{"alpha": v} for v in (1, 2, 3, 4)], 9),
        ],
    )
    def test_at_least_one_epoch_per_candidate(self, space, n_candidates):
        search = rising(SGDClassifier(), space, budget=3, n_candidates=n_candidates)
        with pytest.raises(InvalidParameterError, match="budget of 3 epochs is less"):
            search.fit(X, Y)
        assert search.set_params(budget=4).fit(X, Y).n_epochs_ == 4


class TestEstimators:
    @pytest.mark.parametrize(
        ("estimator", "space"),
        [
            (SGDClassifier(), SPACE),
            (GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}),
            (MLPClassifier((5,)), {"learning_rate_init": [1e-3, 1e-2]}),
            (HistGradientBoostingClassifier(max_depth=2), {"learning_rate": [0.1, 1]}),
            (GradientBoostingClassifier(), {"max_depth": [1, 2]}),
            (RandomForestClassifier(), {"max_depth": [1, 3]}),
            (BaggingClassifier(), {"max_features": [2, 5]}),
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
            (RandomForestRegressor(), {"max_depth": [1, 3]}),
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

    def test_clustering_without_targets(self):
        X, _ = make_blobs(120, centers=3, random_state=0)
        search = rising(
            MiniBatchKMeans(n_init=1),
            {"n_clusters": [2, 3, 4]},
            scoring=lambda model, X, y=None: -model.score(X) / len(X),
        ).fit(X)
        assert search.n_epochs_ == 20
        assert search.predict(X).shape == (120,)

    def test_transformers_see_training_rows_only_and_once_a_fold(self):
        seen = []

        class Seeing(TransformerMixin, BaseEstimator):
            def fit(self, X, y=None):
                seen.append(X[:, 0].astype(int).tolist())
                return self

            def transform(self, X):
                return X - X.mean(axis=0)

        splits = [(np.arange(30), np.arange(30, 40)), (np.arange(9, 40), np.arange(9))]
        search = rising(
            Pipeline([("see", Seeing()), ("sgd", SGDClassifier())]),
            {"sgd__alpha": [1e-4, 1e-2]},
            cv=splits,
            refit=False,
        ).fit(ROWS, HALVES)
        assert search.n_epochs_ == 16
        assert len(seen) == 2 * 2
        assert {tuple(rows) for rows in seen} == {
            tuple(train.tolist()) for train, _ in splits
        }

    def test_classes_that_a_fold_lacks_are_known(self, calls):
        y = np.repeat([0, 1, 2, 3], 10)
        search = rising(Recorder(), QUALITIES, cv=KFold(4)).fit(ROWS, y)
        assert all(c["classes"].tolist() == [0, 1, 2, 3] for c in trained(calls))
        assert search.n_splits_ == 4

    def test_pipeline_steps_as_values(self):
        # The first configuration takes no classes, the others must be told them.
        y = np.repeat([0, 1, 2], 40)
        steps = [GradientBoostingClassifier(), SGDClassifier(), Perceptron()]
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

    @pytest.mark.parametrize(
        ("estimator", "name"),
        [
            (SGDClassifier(), "max_iter"),
            (RandomForestClassifier(), "n_estimators"),
            (make_pipeline(SGDClassifier()), "sgdclassifier__max_iter"),
        ],
    )
    def test_the_search_counts_the_epochs(self, estimator, name):
        with pytest.raises(InvalidParameterError, match=f"{name} counts the epochs"):
            rising(estimator, {name: [10, 20]}).fit(X, Y)

    def test_unknown_parameter_of_the_estimator(self):
        with pytest.raises(ValueError, match="Invalid parameter 'alpa'"):
            rising(SGDClassifier(), {"alpa": [1.0]}).fit(X, Y)


class TestSpaces:
    @pytest.mark.parametrize(
        "space",
        [
            {"alpha": loguniform(1e-5, 1), "penalty": ["l1", "l2"]},
            [{"alpha": [1e-4, 1e-3]}, {"penalty": ["l1", "elasticnet"]}],
            [{"alpha": loguniform(1e-5, 1)}, {"eta0": loguniform(1e-2, 1)}],
        ],
    )
    def test_are_drawn_from(self, space):
        search = rising(SGDClassifier(), space, n_candidates=3).fit(X, Y)
        assert search.n_candidates_ == len(search.cv_results_["params"]) == 3

    def test_a_list_of_configurations_is_whole_and_in_order(self):
        space = [{"quality": q / 10} for q in range(8)]
        search = rising(Recorder(), space, policy="round-robin").fit(ROWS, HALVES)
        assert search.cv_results_["params"] == space
        opened = search.history_["arm"][:8]
        assert sorted(opened) == list(range(8))
        assert opened != list(range(8))

    def test_auto_follows_the_policy(self):
        space = {"alpha": loguniform(1e-5, 1)}
        assert rising(SGDClassifier(), space).fit(X, Y).n_candidates_ == 20
        search = rising(SGDClassifier(), space, policy="random-search")
        assert search.fit(X, Y).n_candidates_ == 3


class TestSplits:
    @pytest.mark.parametrize(
        ("cv", "n_splits"),
        [
            (None, 5),
            (3, 3),
            (0.2, 1),
            (ShuffleSplit(2, test_size=0.3), 2),
            ([(np.arange(30), np.arange(30, 40))], 1),
            (iter([(np.arange(30), np.arange(30, 40))]), 1),
        ],
    )
    def test_kinds(self, calls, cv, n_splits):
        search = rising(Recorder(), QUALITIES, cv=cv, refit=False).fit(ROWS, HALVES)
        assert search.n_splits_ == n_splits
        assert len(trained(calls)) == 20 * n_splits

    @pytest.mark.parametrize(
        "cv",
        [
            0.25,
            KFold(2, shuffle=True, random_state=np.random.RandomState(0)),
            ShuffleSplit(2, random_state=np.random.RandomState(0)),
            ShuffleSplit(2),
        ],
    )
    def test_no_row_is_ever_trained_on_and_validated_on(self, calls, cv):
        search = rising(Recorder(), QUALITIES, cv=cv, refit=False).fit(ROWS, HALVES)
        pairs = {
            (tuple(sorted(train["rows"])), tuple(sorted(test["scored"])))
            for train, test in zip(calls[::2], calls[1::2], strict=True)
        }
        assert len(pairs) == search.n_splits_
        assert all(set(train).isdisjoint(test) for train, test in pairs)

    def test_groups(self, calls):
        groups = np.repeat(np.arange(8), 5)
        search = rising(Recorder(), QUALITIES, cv=GroupKFold(4), refit=False)
        search.fit(ROWS, HALVES, groups=groups)
        for train, test in zip(calls[::2], calls[1::2], strict=True):
            assert set(groups[train["rows"]]).isdisjoint(groups[test["scored"]])
        with pytest.raises(ValueError, match="'groups' parameter should not be None"):
            search.fit(ROWS, HALVES)

    def test_a_share_holds_out_classes_evenly(self, calls):
        rising(Recorder(), QUALITIES, cv=0.25).fit(ROWS, HALVES)
        assert HALVES[calls[1]["scored"]].sum() == 5

    @pytest.mark.parametrize("cv", [1.5, 0.0, -0.25])
    def test_a_share_lies_between_0_and_1(self, cv):
        with pytest.raises(InvalidParameterError, match="share held out"):
            rising(SGDClassifier(), SPACE, cv=cv).fit(X, Y)

    def test_no_split(self):
        with pytest.raises(InvalidParameterError, match="gives no split"):
            rising(SGDClassifier(), SPACE, cv=[]).fit(X, Y)


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

    def test_rows_that_do_not_match(self):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            rising(SGDClassifier(), SPACE).fit(X, Y[:-1])


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

    def test_scheduler_explains(self):
        search = rising(SGDClassifier(), SPACE).fit(X, Y)
        arms = search.scheduler_.explain()
        assert [arm.epochs for arm in arms] == search.cv_results_["epochs"].tolist()
        assert all(arm.reason for arm in arms)
        assert search.stop_reason_ == "the budget of 20 epochs is spent"

    def test_results_are_a_table(self):
        frame = pd.DataFrame(rising(SGDClassifier(), SPACE).fit(X, Y).cv_results_)
        assert len(frame) == 4
        assert frame["param_alpha"].tolist() == [p["alpha"] for p in frame["params"]]
        assert set(frame["status"]) <= {"paused", "finished", "unopened"}

    def test_verbose_is_silent_away_from_a_terminal(self, capsys):
        rising(SGDClassifier(), SPACE, verbose=1).fit(X, Y)
        assert capsys.readouterr() == ("", "")

    def test_plots(self):
        search = rising(SGDClassifier(), SPACE).fit(X, Y)
        assert search.plot_allocation().get_figure() is not None
        assert search.plot_curves().get_figure() is not None


class TestRefit:
    def test_true_equals_training_by_hand(self):
        search = rising(SGDClassifier(random_state=3), SPACE).fit(X, Y)
        by_hand = SGDClassifier(random_state=3, **search.best_params_)
        for _ in range(search.best_epoch_):
            by_hand.partial_fit(X, Y, classes=[0, 1])
        np.testing.assert_array_equal(search.best_estimator_.coef_, by_hand.coef_)
        assert search.refit_time_ > 0

    def test_best_hands_over_the_warm_model(self, calls):
        search = rising(Recorder(), QUALITIES, refit="best").fit(ROWS, HALVES)
        assert len(trained(calls)) == search.n_epochs_ == 20
        assert search.best_estimator_.epochs_ == search.best_epoch_
        assert search.best_estimator_.quality == search.best_params_["quality"]

    def test_best_predicts_as_the_warm_model_did(self):
        splits = [(np.arange(90), np.arange(90, 120))]
        search = rising(SGDClassifier(random_state=3), SPACE, cv=splits, refit="best")
        search.fit(X, Y)
        by_hand = SGDClassifier(random_state=3, **search.best_params_)
        for _ in range(search.best_epoch_):
            by_hand.partial_fit(X[:90], Y[:90], classes=[0, 1])
        np.testing.assert_array_equal(search.best_estimator_.coef_, by_hand.coef_)
        assert search.score(X[90:], Y[90:]) == search.best_score_

    def test_best_needs_a_single_split(self):
        with pytest.raises(InvalidParameterError, match="but cv has 3 splits"):
            rising(SGDClassifier(), SPACE, cv=3, refit="best").fit(X, Y)

    def test_callable_chooses_the_row(self, calls):
        search = rising(
            Recorder(),
            QUALITIES,
            refit=lambda results: int(np.argmin(results["mean_test_score"])),
            policy="round-robin",
        ).fit(ROWS, HALVES)
        assert search.best_params_ == {"quality": 0.2}
        assert search.best_epoch_ == search.cv_results_["best_epoch"][0]
        assert search.best_estimator_.epochs_ == search.best_epoch_
        assert not hasattr(search, "best_score_")

    @pytest.mark.parametrize("index", [7, -1, 0.0, None])
    def test_callable_must_return_an_index(self, index):
        search = rising(SGDClassifier(), SPACE, refit=lambda results: index)
        with pytest.raises(InvalidParameterError, match="must return an index below 4"):
            search.fit(X, Y)

    def test_callable_must_choose_what_was_trained(self):
        search = rising(
            SGDClassifier(),
            [{"alpha": 1.0}, {"alpha": 2.0}],
            budget=2,
            policy="random-search",
            refit=lambda results: int(np.argmin(results["epochs"])),
        )
        with pytest.raises(InvalidParameterError, match="which has no score"):
            search.fit(X, Y)

    @pytest.mark.parametrize("go_on", [False, True])
    @pytest.mark.parametrize("refit", [False, lambda results: 0])
    def test_nothing_is_left_of_another_one(self, refit, go_on):
        search = rising(SGDClassifier(), SPACE).fit(X, Y)
        search.set_params(refit=refit)
        first = search.best_estimator_
        search.continue_search(3) if go_on else search.fit(X, Y)
        fresh = rising(SGDClassifier(), SPACE, refit=refit).fit(X, Y)
        assert hasattr(search, "best_score_") == hasattr(fresh, "best_score_")
        assert hasattr(search, "refit_time_") == hasattr(fresh, "refit_time_")
        assert getattr(search, "best_estimator_", None) is not first

    def test_nothing_is_left_after_a_fit_that_failed(self, calls):
        search = rising(Recorder(), QUALITIES).fit(ROWS, HALVES)
        search.set_params(param_distributions=[{"fault": "raises"}])
        with pytest.raises(SearchFailedError):
            search.fit(ROWS, HALVES)
        assert not hasattr(search, "best_score_")
        with pytest.raises(NotFittedError):
            search.predict(ROWS)

    @pytest.mark.parametrize("refit", [None, 1, ["accuracy"]])
    def test_anything_else_is_refused(self, refit):
        with pytest.raises(InvalidParameterError, match="refit must be True, False"):
            rising(SGDClassifier(), SPACE, refit=refit).fit(X, Y)


class TestRandomState:
    @pytest.mark.parametrize(
        "estimator",
        [SGDClassifier(), make_pipeline(StandardScaler(), MLPClassifier((3,)))],
    )
    def test_same_seed_same_run(self, estimator):
        name = {SGDClassifier: "alpha"}.get(type(estimator), "mlpclassifier__alpha")
        space = {name: loguniform(1e-5, 1)}
        runs = [
            rising(estimator, space, n_jobs=n_jobs, random_state=7).fit(X, Y)
            for n_jobs in (None, 1)
        ]
        assert runs[0].cv_results_["params"] == runs[1].cv_results_["params"]
        for column in ("arm", "score"):
            assert runs[0].history_[column] == runs[1].history_[column]
        np.testing.assert_array_equal(runs[0].predict(X), runs[1].predict(X))

    def test_other_seed_other_run(self):
        space = {"alpha": loguniform(1e-5, 1)}
        params = [
            rising(SGDClassifier(), space, random_state=seed).fit(X, Y).best_params_
            for seed in (0, 1)
        ]
        assert params[0] != params[1]

    def test_a_random_state_goes_on_from_fit_to_fit(self):
        def twice(random_state):
            search = rising(SGDClassifier(), SPACE, random_state=random_state)
            return [search.fit(X, Y).history_["score"] for _ in range(2)]

        first, second = twice(np.random.RandomState(0))
        assert first != second
        assert twice(np.random.RandomState(0)) == [first, second]

    def test_the_global_state_is_left_alone(self):
        before = np.random.get_state()[1:]  # noqa: NPY002
        rising(
            SGDClassifier(),
            {"alpha": loguniform(1e-5, 1)},
            cv=ShuffleSplit(1, random_state=0),
        ).fit(X, Y)
        after = np.random.get_state()[1:]  # noqa: NPY002
        np.testing.assert_array_equal(before[0], after[0])
        assert before[1:] == after[1:]

    def test_a_seed_of_the_estimator_is_kept(self, calls):
        search = rising(Recorder(random_state=5), QUALITIES).fit(ROWS, HALVES)
        assert search.best_estimator_.random_state == 5

    def test_without_a_seed_the_estimator_gets_none(self, calls):
        search = rising(Recorder(), QUALITIES, random_state=None).fit(ROWS, HALVES)
        assert search.best_estimator_.random_state is None


class TestContinue:
    @pytest.mark.parametrize("policy", ["auto", "cure-ucb", "asha", "round-robin"])
    @pytest.mark.parametrize("max_epochs", [8, None])
    def test_counts_go_on_and_nothing_is_trained_again(self, calls, policy, max_epochs):
        options = {"policy": policy, "max_epochs": max_epochs, "refit": False}
        search = rising(Recorder(), QUALITIES, **options)
        search.fit(ROWS, HALVES)
        first = list(search.history_)
        assert search.continue_search(5) is search
        assert search.n_epochs_ == len(trained(calls)) == 25
        assert search.history_[:20] == first
        for arm, curve in search.curves_.items():
            epochs = [row["epoch"] for row in search.history_ if row["arm"] == arm]
            assert epochs == list(range(1, len(curve) + 1))
        assert search.stop_reason_ == "the budget of 25 epochs is spent"

    def test_everything_is_renewed(self, calls):
        search = rising(Recorder(), QUALITIES, budget=6, max_epochs=20)
        before = search.fit(ROWS, HALVES).best_score_
        search.continue_search(20)
        assert search.best_score_ > before
        assert search.best_estimator_.epochs_ == search.best_epoch_
        assert search.cv_results_["epochs"].sum() == search.n_epochs_ == 26

    def test_before_fit(self):
        with pytest.raises(NotFittedError, match="call fit first"):
            rising(SGDClassifier(), SPACE).continue_search(3)

    @pytest.mark.parametrize("extra", [0, -1, 1.5, Budget(seconds=1.0)])
    def test_extra_is_of_the_budgets_kind(self, extra):
        search = rising(SGDClassifier(), SPACE).fit(X, Y)
        with pytest.raises(InvalidParameterError):
            search.continue_search(extra)
        assert search.continue_search(2).n_epochs_ == 22


class TestPolicy:
    def test_unknown_name(self):
        with pytest.raises(UnknownNameError, match="did you mean 'cure-ucb'"):
            rising(SGDClassifier(), SPACE, policy="cure-ubc").fit(X, Y)

    def test_unknown_parameter(self):
        search = rising(
            SGDClassifier(), SPACE, policy="cure-ucb", policy_params={"sigm": 1.0}
        )
        with pytest.raises(UnknownNameError, match="did you mean 'sigma'"):
            search.fit(X, Y)

    @pytest.mark.parametrize("eta", [0, 1, "3"])
    def test_parameter_out_of_range(self, eta):
        search = rising(
            SGDClassifier(),
            SPACE,
            policy="successive-halving",
            policy_params={"eta": eta},
        )
        with pytest.raises(InvalidParameterError, match="eta must be a whole number"):
            search.fit(X, Y)

    def test_objective_chooses_the_default(self):
        search = rising(SGDClassifier(), SPACE, objective="sum").fit(X, Y)
        assert search.scheduler_.policy_name == "cure-ucb"
        with pytest.raises(InvalidParameterError, match="objective must be one of"):
            rising(SGDClassifier(), SPACE, objective="most").fit(X, Y)

    def test_ready_made(self):
        policy = make_policy("round-robin", n_arms=4, horizon=20, max_pulls=8)
        search = rising(SGDClassifier(), SPACE, policy=policy).fit(X, Y)
        assert search.cv_results_["epochs"].tolist() == [5, 5, 5, 5]
