"""Searches by training rows, or by a parameter, of what cannot be trained further."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import loguniform, randint
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, RANSACRegressor, SGDClassifier
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from risingsearch import Budget, RisingSearch, RisingSearchCV
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.integrations.sklearn.resources import halved, training_rows

X, Y = make_classification(200, 6, n_informative=4, weights=[0.7], random_state=0)
LABELS = np.array(["no", "yes"])[Y]
SPACE = {"C": loguniform(1e-3, 1e3)}
FITS: list[dict] = []


class Recording(LogisticRegression):
    """Keeps what every fit is given."""

    def fit(self, X, y, sample_weight=None):
        fit = {"X": X, "y": y, "weight": sample_weight, "max_iter": self.max_iter}
        FITS.append(fit)
        return super().fit(X, y, sample_weight)


@pytest.fixture(autouse=True)
def no_fits():
    FITS.clear()


def by_rows(estimator=None, space=SPACE, **options):
    options = {"budget": 20, "cv": 3, "random_state": 0, **options}
    options = {"resource": "n_samples"} | options
    estimator = Recording() if estimator is None else estimator
    return RisingSearchCV(estimator, space, **options)


class TestAmounts:
    @pytest.mark.parametrize("n", [1, 2, 5, 29])
    def test_they_rise_to_all_of_it(self, n):
        amounts = halved(40, n, 3)
        assert len(amounts) == n
        assert amounts[-1] == 40
        assert all(np.diff(amounts) > 0)

    def test_the_first_rows_are_those_of_every_later_epoch(self):
        train = np.arange(100, 300)
        strata = np.repeat([0, 1, 2], [350, 30, 20])
        resource = training_rows([(train, None)], strata, 5, seed=1)
        seen = set()
        for epoch in range(1, 6):
            rows = resource.rows[0][epoch - 1]
            assert len(rows) == len(set(rows)) == resource.totals[epoch - 1]
            assert seen < set(rows)
            assert all(np.diff(rows) > 0)  # in their own order
            seen = set(rows)
        assert seen == set(train)

    def test_classes_keep_their_shares_and_the_rarest_is_there(self):
        strata = np.repeat([0, 1, 2], [700, 298, 2])
        resource = training_rows([(np.arange(1000), None)], strata, 5, seed=0)
        counts = np.bincount(strata[resource.rows[0][0]])
        n = resource.totals[0]
        np.testing.assert_allclose(counts / n, [0.7, 0.298, 0.002], atol=2 / n)
        assert counts[2] == 1


class TestPrice:
    def test_the_budget_is_charged_the_rows_that_are_fitted(self):
        search = by_rows(refit=False).fit(X, Y)
        fitted = sum(len(fit["y"]) for fit in FITS)
        in_full = 2 * len(Y)  # of three folds
        assert search.cv_results_["n_resources_fitted"].sum() == fitted
        assert search.scheduler_.spent == pytest.approx(5 * fitted / in_full)
        assert search.scheduler_.spent <= 20
        assert search.n_epochs_ * 3 == len(FITS)

    def test_the_budget_is_charged_the_iterations_that_are_allowed(self):
        search = by_rows(
            Recording(max_iter=80, tol=10.0), resource="max_iter", refit=False
        ).fit(X, Y)
        allowed = sum(fit["max_iter"] for fit in FITS)
        assert search.n_resources_ == [5, 10, 20, 40, 80]
        assert search.cv_results_["n_resources_fitted"].sum() == allowed
        assert search.scheduler_.spent == pytest.approx(5 * allowed / 240)

    def test_a_search_that_goes_on_pays_as_before(self):
        search = by_rows(refit=False).fit(X, Y).continue_search(10)
        fitted = sum(len(fit["y"]) for fit in FITS)
        assert search.scheduler_.spent == pytest.approx(5 * fitted / (2 * len(Y)))
        assert 20 < search.scheduler_.spent <= 30


class TestEstimators:
    @pytest.mark.parametrize(
        ("estimator", "space"),
        [
            (SVC(), {"C": [0.1, 1.0, 10.0]}),
            (KNeighborsClassifier(), {"n_neighbors": [1, 5, 15]}),
            (make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1.0, 10.0]}),
            (SGDClassifier(), {"alpha": [1e-4, 1e-2]}),  # could train further, too
            (VotingClassifier([("svc", SVC())]), {"svc__C": [0.1, 1.0]}),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_classifiers(self, estimator, space):
        search = by_rows(estimator, space, error_score="raise").fit(X, LABELS)
        assert search.best_score_ > 0.7
        assert set(search.predict(X)) <= {"no", "yes"}

    def test_a_regressor(self):
        data = make_regression(150, 5, noise=5, random_state=0)
        space = {"n_neighbors": [1, 4, 16]}
        search = by_rows(KNeighborsRegressor(), space).fit(*data)
        assert search.best_params_["n_neighbors"] == 4

    def test_one_without_targets(self):
        search = by_rows(KMeans(n_init=1), {"n_clusters": [2, 3]}).fit(X)
        assert search.predict(X).shape == (200,)

    def test_the_last_epoch_is_a_plain_fit(self):
        search = by_rows(SVC(), {"C": [1.0]}).fit(X, Y)
        assert search.curves_[0][-1] == cross_val_score(SVC(), X, Y, cv=3).mean()

    def test_sample_weights_are_cut_along(self):
        weight = X[:, 0] ** 2
        by_rows(refit=False).fit(X, Y, sample_weight=weight)
        for fit in FITS:
            np.testing.assert_array_equal(fit["weight"], fit["X"][:, 0] ** 2)
            assert len(np.unique(fit["y"])) == 2

    def test_few_rows_make_fewer_epochs(self):
        search = by_rows(SVC(), max_epochs=200, budget=600).fit(X[:60], Y[:60])
        assert search.n_resources_ == [10, 20, 40]
        assert search.scheduler_.epoch_costs == (50, 100, 200)

    @pytest.mark.parametrize(
        ("estimator", "space", "fewest"),
        [
            (KNeighborsClassifier(), {"n_neighbors": [1, 25]}, 25),
            (KNeighborsClassifier(), {"n_neighbors": randint(1, 40)}, 39),
            (KNeighborsClassifier(), {"n_neighbors": [30], "p": [1, 2]}, 30),
            (
                RANSACRegressor(min_samples=21, residual_threshold=9.0),
                {"max_trials": [9]},
                21,
            ),
            (make_pipeline(PCA(5), SVC()), {"svc__C": [0.1, 1.0]}, 5),
            (CalibratedClassifierCV(SVC(), cv=5), {"estimator__C": [1.0]}, 15),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_the_first_has_as_many_rows_as_the_most_demanding_needs(
        self, estimator, space, fewest
    ):
        search = by_rows(estimator, space, error_score="raise").fit(X, Y)
        assert search.n_resources_[0] >= fewest
        assert search.n_resources_[0] < 2 * max(fewest, 10)
        assert search.n_resources_[-1] == pytest.approx(2 * len(X) / 3)

    @pytest.mark.parametrize(
        ("space", "fewest"),
        [
            ([{"n_neighbors": 25}, {"n_neighbors": 25, "metric": "no such"}], 25),
            ({"n_neighbors": [1, 25, 150, 1000]}, 25),  # of 133 rows
            ({"n_neighbors": [1, 1000]}, 10),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*configurations failed")
    def test_one_that_fails_on_all_rows_says_nothing_about_the_others(
        self, space, fewest
    ):
        search = by_rows(KNeighborsClassifier(), space).fit(X, Y)
        assert fewest <= search.n_resources_[0] < 2 * max(fewest, 10)
        assert len(search.n_resources_) > 1

    def test_groups_stay_apart(self):
        groups = np.arange(200) % 7
        data = np.column_stack([X, groups])
        search = by_rows(cv=GroupKFold(3), refit=False).fit(data, Y, groups=groups)
        held_out = [{0, 1, 2, 3, 4, 5, 6} - set(fit["X"][:, -1]) for fit in FITS]
        assert all(held_out)
        assert search.n_splits_ == 3


class TestParameter:
    def test_the_estimator_says_what_a_full_training_is(self):
        forest = RandomForestClassifier(n_estimators=32)
        space = {"max_depth": [1, 3, None]}
        search = by_rows(forest, space, resource="n_estimators").fit(X, Y)
        assert search.n_resources_ == [2, 4, 8, 16, 32]
        assert search.best_estimator_.n_estimators == 32

    def test_a_step_of_a_pipeline(self):
        pipeline = make_pipeline(StandardScaler(), Recording(max_iter=64))
        space = {"recording__C": [0.1, 1.0, 10.0]}
        search = by_rows(
            pipeline, space, resource="recording__max_iter", max_epochs=3
        ).fit(X, Y)
        assert {fit["max_iter"] for fit in FITS} == {16, 32, 64}
        assert search.best_estimator_[-1].max_iter == 64

    def test_it_is_not_searched(self):
        search = by_rows(space={"max_iter": [10, 20]}, resource="max_iter")
        with pytest.raises(InvalidParameterError, match="max_iter is the resource"):
            search.fit(X, Y)

    @pytest.mark.parametrize("value", [None, 0, 0.5, True])
    def test_its_value_is_a_whole_number(self, value):
        knn = KNeighborsClassifier(leaf_size=value)
        search = by_rows(knn, {"p": [1, 2]}, resource="leaf_size")
        with pytest.raises(InvalidParameterError, match=f"it is {value!r}"):
            search.fit(X, Y)

    def test_it_has_as_many_values_as_there_are_epochs(self):
        search = by_rows(Recording(max_iter=3), resource="max_iter")
        message = "max_epochs=5 is more than max_iter=3"
        with pytest.raises(InvalidParameterError, match=message):
            search.fit(X, Y)


class TestSearch:
    def test_the_results_say_how_much_was_used(self):
        search = by_rows().fit(X, Y)
        results = search.cv_results_
        row = search.best_index_
        assert results["n_resources"][row] == pytest.approx(
            search.n_resources_[search.best_epoch_ - 1]
        )
        opened = results["epochs"] > 0
        assert (results["n_resources_fitted"][opened] > 0).all()
        assert (results["n_resources_fitted"][~opened] == 0).all()
        assert np.isnan(results["n_resources"][~opened]).all()

    def test_the_best_is_trained_on_all_rows_whatever_its_best_epoch(self):
        search = by_rows(SVC(), SPACE, budget=3, n_candidates=2).fit(X, Y)
        assert search.best_epoch_ < 5
        whole = SVC(**search.best_params_).fit(X, Y)
        np.testing.assert_array_equal(
            search.best_estimator_.decision_function(X), whole.decision_function(X)
        )

    def test_a_saved_search_begins_where_it_began(self, tmp_path, monkeypatch):
        space = {"n_neighbors": [1, 25]}
        first = by_rows(KNeighborsClassifier(), space, run_dir=tmp_path).fit(X, Y)
        fits = []
        fit = KNeighborsClassifier.fit
        monkeypatch.setattr(
            KNeighborsClassifier, "fit", lambda *rows: fits.append(rows) or fit(*rows)
        )
        again = by_rows(KNeighborsClassifier(), space, run_dir=tmp_path).fit(X, Y)
        assert again.n_resources_ == first.n_resources_
        assert len(fits) == 1  # the refit

    def test_a_saved_search_names_the_same_winner(self, tmp_path):
        space = [{"scores": (0.9, 0.5, 0.4)}, {"scores": (0.1, 0.6, 0.7)}]
        options = {"policy": "round-robin", "max_epochs": 3, "cv": 0.25}
        search = by_rows(
            Scripted(), space, resource="amount", run_dir=tmp_path, **options
        ).fit(X, Y)
        saved = RisingSearch.saved_result(tmp_path)
        assert (saved.best_arm, saved.best_epoch, saved.best_score) == (1, 3, 0.7)
        assert (search.best_index_, search.best_score_) == (1, 0.7)

    def test_several_metrics_and_training_scores(self):
        search = by_rows(
            scoring=["accuracy", "f1"], refit="f1", return_train_score=True
        ).fit(X, Y)
        assert search.cv_results_["mean_test_f1"][search.best_index_] > 0.5
        assert search.cv_results_["mean_train_accuracy"][search.best_index_] > 0.5

    @pytest.mark.parametrize(
        "budget", [{"budget": Budget(seconds=0.3)}, {"timeout": 0.5, "budget": None}]
    )
    def test_time_is_a_budget_too(self, budget):
        search = by_rows(SVC(), **budget).fit(X, Y)
        assert search.n_epochs_ >= 1
        assert max(search.cv_results_["epochs"]) <= 5


class Scripted(BaseEstimator):
    """Has its ``scores`` with amounts 1, 2 and 4; None is a failure."""

    def __init__(self, scores=None, amount=4):
        self.scores, self.amount = scores, amount

    def fit(self, X, y):
        if self.scores[self.amount // 2] is None and len(X) < len(Y):
            raise ArithmeticError
        self.fitted_ = True

    def score(self, X, y):
        return self.scores[self.amount // 2]

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize("refit", [True, "best", lambda results: 1])
@pytest.mark.parametrize(
    ("curves", "ranks", "epoch"),
    [
        ([(0.9, 0.5, 0.5), (0.1, 0.2, 0.8)], [2, 1], 3),
        ([(0.9, 0.5, None), (0.1, 0.6, 0.2)], [2, 1], 3),
        ([(0.9, None, None), (0.1, 0.6, 0.7), (0.8, 0.7, None)], [2, 1, 2], 3),
        ([(0.9, 0.3, 0.3), (0.7, 0.7, 0.4), (0.99, None, 0)], [2, 1, 3], 3),
        ([(None, 0, 0), (0.2, 0.6, 0.5)], [2, 1], 3),
    ],
)
@pytest.mark.filterwarnings("ignore:.*configurations failed")
def test_the_winner_has_the_best_score_on_the_most_that_each_has_had(
    curves, ranks, epoch, refit
):
    space = [{"scores": scores} for scores in curves]
    options = {"policy": "round-robin", "max_epochs": 3, "cv": 0.25, "refit": refit}
    search = by_rows(Scripted(), space, resource="amount", **options).fit(X, Y)
    results = search.cv_results_
    assert (search.best_index_, search.best_epoch_) == (1, epoch)
    assert results["rank_test_score"].tolist() == ranks
    assert results["mean_test_score"][1] == curves[1][epoch - 1]
    amount = 2 ** (epoch - 1) if refit == "best" else 4
    assert search.best_estimator_.amount == amount


class TestRefusals:
    def test_what_cannot_be_trained_further_is_told_of_the_rows(self):
        with pytest.raises(NotTrainableError, match="resource='n_samples'"):
            by_rows(SVC(), resource=None).fit(X, Y)

    @pytest.mark.parametrize("resource", ["rows", 3, "svc__C"])
    def test_a_resource_is_rows_or_a_parameter(self, resource):
        message = "resource must be None, 'n_samples' or the name of a whole-number"
        with pytest.raises(InvalidParameterError, match=message):
            by_rows(SVC(), resource=resource).fit(X, Y)

    def test_an_epoch_that_trains_anew_has_no_steps(self):
        with pytest.raises(
            InvalidParameterError, match="steps_per_epoch must be 1 with"
        ):
            by_rows(steps_per_epoch=2).fit(X, Y)

    def test_the_budget_has_to_pay_for_a_first_epoch(self):
        message = "a budget of 1 epochs is less than the 1.25 that min_epochs=1"
        with pytest.raises(InvalidParameterError, match=message):
            by_rows(budget=1).fit(X[:60], Y[:60])
