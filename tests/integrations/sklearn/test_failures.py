"""Configurations that fail, scores that are not finite, and what is left then."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import SGDClassifier

from risingsearch import Budget, RisingSearchCV
from risingsearch.errors import InvalidParameterError, SearchFailedError

X, Y = np.zeros((40, 2)), np.arange(40) % 2
GOOD = [{"quality": 0.2}, {"quality": 0.4}, {"quality": 0.6}]


class Faulty(ClassifierMixin, BaseEstimator):
    """Fails at epoch ``at`` in the way that ``fault`` says."""

    n_calls = 0

    def __init__(self, quality=0.9, fault=None, at=1):
        self.quality = quality
        self.fault = fault
        self.at = at

    def fit(self, X, y):
        raise AssertionError("the search trains by epochs")

    def partial_fit(self, X, y, classes=None):
        Faulty.n_calls += 1
        self.epochs_ = getattr(self, "epochs_", 0) + 1
        if self.fault == "raises" and self.epochs_ == self.at:
            raise ArithmeticError(f"quality {self.quality} overflows")
        return self

    def score(self, X, y):
        if self.fault == "nan" and self.epochs_ == self.at:
            return math.nan
        if self.fault == "scorer" and self.epochs_ == self.at:
            raise LookupError("no such score")
        return self.quality * (1 - 1 / (self.epochs_ + 1))


@pytest.fixture(autouse=True)
def _count_from_zero():
    Faulty.n_calls = 0


def rising(space, **options):
    options = {
        "policy": "round-robin",
        "budget": 12,
        "cv": 0.25,
        "random_state": 0,
        "refit": False,
    } | options
    return RisingSearchCV(Faulty(), space, **options)


class TestOneFails:
    @pytest.mark.parametrize(
        ("fault", "words"),
        [("raises", "ArithmeticError.*overflows"), ("scorer", "LookupError")],
    )
    def test_it_is_retired_and_the_search_goes_on(self, fault, words):
        search = rising([*GOOD, {"quality": 0.9, "fault": fault}])
        with pytest.warns(FitFailedWarning, match=words) as caught:
            search.fit(X, Y)
        assert "1 of 4 opened configurations failed and w" in str(caught[0].message)
        assert caught[0].filename == __file__
        results = search.cv_results_
        assert results["status"].tolist() == ["paused", "paused", "paused", "failed"]
        assert np.isnan(results["mean_test_score"][3])
        assert results["rank_test_score"].tolist() == [3, 2, 1, 4]
        assert results["epochs"].sum() == 11
        assert search.n_epochs_ == Faulty.n_calls == 12
        assert search.best_params_ == GOOD[2]
        assert "retired: " in search.scheduler_.explain()[3].reason

    def test_a_late_failure_keeps_the_scores_before(self):
        late = {"quality": 0.9, "fault": "raises", "at": 3}
        search = rising([*GOOD, late], refit="best")
        with pytest.warns(FitFailedWarning):
            search.fit(X, Y)
        assert search.best_params_ == late
        assert search.best_epoch_ == search.best_estimator_.epochs_ == 2
        assert search.cv_results_["epochs"][3] == 2
        assert search.cv_results_["mean_test_score"][3] == search.best_score_

    def test_nan_scores(self):
        late = {"quality": 2.0, "fault": "nan", "at": 2}
        search = rising([*GOOD, late], cv=2)
        with pytest.warns(UserWarning, match=r"not finite, for candidates \[3\]"):
            search.fit(X, Y)
        assert search.cv_results_["status"][3] == "failed"
        assert search.best_params_ == late
        assert search.best_score_ == 1.0
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_error_score_is_what_it_counts_as(self):
        search = rising([*GOOD, {"fault": "raises"}], error_score=-1)
        with pytest.warns(FitFailedWarning):
            search.fit(X, Y)
        assert search.cv_results_["mean_test_score"][3] == -1
        assert search.cv_results_["split0_test_score"][3] == -1
        assert search.cv_results_["rank_test_score"][3] == 4

    def test_raise(self):
        search = rising([*GOOD, {"fault": "raises", "at": 2}], error_score="raise")
        with pytest.raises(ArithmeticError, match="overflows"):
            search.fit(X, Y)
        assert Faulty.n_calls <= 8

    @pytest.mark.parametrize("error_score", ["ignore", math.inf, None])
    def test_anything_else_is_refused(self, error_score):
        search = rising(GOOD, error_score=error_score)
        with pytest.raises(InvalidParameterError, match="error_score"):
            search.fit(X, Y)
        assert Faulty.n_calls == 0


class TestAllFail:
    def test_the_first_failure_is_the_cause(self):
        search = rising([{"quality": q, "fault": "raises"} for q in (1, 2, 3)])
        with pytest.raises(SearchFailedError, match="overflows") as caught:
            search.fit(X, Y)
        assert isinstance(caught.value.__cause__, ArithmeticError)
        assert not hasattr(search, "cv_results_")

    def test_what_the_data_cause_can_be_caught_as_scikit_learn_raises_it(self):
        bad = np.array([[{}, 1.0]] * 40, dtype=object)
        search = RisingSearchCV(SGDClassifier(), {"alpha": [0.1]}, budget=2)
        with pytest.raises(TypeError, match="must be a string or a real number"):
            search.fit(bad, Y)
        bad = np.full((40, 2), math.inf)
        with pytest.raises(ValueError, match="contains infinity"):
            search.fit(bad, Y)


def test_an_interrupt_keeps_the_results_so_far():
    class Interrupted(SGDClassifier):
        n_calls = 0

        def partial_fit(self, X, y, classes=None, sample_weight=None):
            Interrupted.n_calls += 1
            if Interrupted.n_calls == 6:
                raise KeyboardInterrupt
            return super().partial_fit(X, y, classes, sample_weight)

    X, y = make_classification(80, 6, random_state=0)
    search = RisingSearchCV(
        Interrupted(random_state=0),
        {"alpha": [1e-4, 1e-3, 1e-2]},
        budget=12,
        max_epochs=6,
        cv=0.25,
        random_state=0,
    )
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert search.best_params_["alpha"] in (1e-4, 1e-3, 1e-2)
    assert sum(search.cv_results_["epochs"]) == 5
    with pytest.raises(NotFittedError, match=r"call continue_search\(extra_budget\)"):
        search.predict(X)
    assert search.continue_search(2).predict(X).shape == (80,)


def test_a_scorer_that_only_gives_nan_is_named():
    X, y = make_classification(80, 6, random_state=0)
    search = RisingSearchCV(
        SGDClassifier(),
        {"alpha": [1e-4, 1e-3]},
        budget=4,
        scoring=lambda estimator, X, y: float("nan"),
    )
    with pytest.raises(SearchFailedError, match="gave no finite number"):
        search.fit(X, y)


class Mended(Faulty):
    """Fails where its fault says so, until that is mended."""

    is_mended = False

    def partial_fit(self, X, y, classes=None):
        if self.fault == "raises" and not Mended.is_mended:
            raise ArithmeticError("a driver is missing")
        self.epochs_ = getattr(self, "epochs_", 0) + 1
        return self

    def score(self, X, y):
        return self.quality * (1 - 1 / (self.epochs_ + 1))


def test_what_has_failed_is_tried_again(monkeypatch):
    monkeypatch.setattr(Mended, "is_mended", False)
    candidates = [*GOOD, {"quality": 0.9, "fault": "raises"}]
    search = RisingSearchCV(
        Mended(), [{k: [v] for k, v in one.items()} for one in candidates], budget=16
    )
    search.set_params(max_epochs=6, cv=0.25, random_state=0)
    with pytest.warns(FitFailedWarning, match="a driver is missing"):
        search.fit(X, Y)
    assert search.best_params_["quality"] == 0.6
    Mended.is_mended = True
    with pytest.warns(FitFailedWarning, match="a driver is missing"):
        search.continue_search(6, retry_failed=True)
    assert search.best_params_["quality"] == 0.9
    assert search.n_epochs_ == 22


def test_a_budget_in_cost_is_refused():
    search = RisingSearchCV(Faulty(), {"quality": [0.1, 0.2]}, budget=Budget(cost=3))
    with pytest.raises(InvalidParameterError, match="measures no cost"):
        search.set_params(max_epochs=2).fit(X, Y)


class Named:
    """Scores by the quality, and by a metric that fails or is missing at times."""

    def __init__(self, when, fault):
        self.when, self.fault, self.n_calls = when, fault, 0

    def __call__(self, estimator, X, y):
        self.n_calls += 1
        scores = {"main": estimator.score(X, y), "other": 1.0}
        if self.when(self.n_calls, len(y)) and self.fault == "missing":
            del scores["other"]
        return scores


@pytest.mark.parametrize(
    "when",
    [
        lambda n, rows: n == 1,
        lambda n, rows: n % 2,
        lambda n, rows: n > 3,
        lambda n, rows: rows > 20,
        lambda n, rows: True,
    ],
)
@pytest.mark.parametrize("train", [False, True])
def test_a_metric_that_is_missing_at_times_is_nan_there(when, train):
    search = rising(GOOD, scoring=Named(when, "missing"), refit="main", cv=3)
    search.set_params(return_train_score=train, error_score=0.0).fit(X, Y)
    table = search.cv_results_
    assert list(table["rank_test_main"]) == [3, 2, 1]
    assert len(table.get("mean_test_other", GOOD)) == 3
    search.history_.to_frame()


@pytest.mark.parametrize("error_score", [math.nan, -1.0])
def test_a_metric_that_fails_counts_as_error_score_and_stops_nothing(error_score):
    def broken(estimator, X, y):
        if estimator.quality < 0.5:
            raise LookupError("no such score")
        return 1.0

    search = rising(
        GOOD,
        scoring={"main": Faulty.score, "other": broken},
        refit="main",
        error_score=error_score,
    )
    with pytest.warns(UserWarning, match="other failed on test rows .* no such score"):
        search.fit(X, Y)
    table = search.cv_results_
    assert set(table["status"]) == {"paused"}
    np.testing.assert_array_equal(table["mean_test_other"], [error_score] * 2 + [1.0])
    with pytest.raises(LookupError, match="no such score"):
        search.set_params(error_score="raise").fit(X, Y)


def test_scores_of_training_rows_only_inform():
    def on_few_rows(estimator, X, y):
        if len(y) > 20:
            raise LookupError("too many rows")
        return estimator.quality

    search = rising(GOOD, scoring=on_few_rows, return_train_score=True)
    with pytest.warns(UserWarning, match="failed on train rows"):
        search.fit(X, Y)
    assert list(search.cv_results_["rank_test_score"]) == [3, 2, 1]
    assert np.isnan(search.cv_results_["mean_train_score"]).all()


def test_what_failed_has_the_last_rank_by_any_error_score():
    search = rising([*GOOD, {"fault": "raises"}], error_score=7.0)
    with pytest.warns(FitFailedWarning):
        search.fit(X, Y)
    assert list(search.cv_results_["rank_test_score"]) == [3, 2, 1, 4]
    assert search.cv_results_["mean_test_score"][3] == 7.0


def test_seconds_are_added_to_a_budget_of_seconds():
    search = rising(GOOD, budget=None, timeout=0.2, max_epochs=3).fit(X, Y)
    assert search.continue_search(timeout=600).scheduler_.budget == 600.2
    search = rising(GOOD).fit(X, Y)
    with pytest.raises(InvalidParameterError, match=r"write continue_search\(10\)"):
        search.continue_search(timeout=1)


def test_the_cause_comes_first_where_all_fail():
    with pytest.raises(SearchFailedError) as raised:
        rising([{"quality": q, "fault": "raises"} for q in (0.1, 0.2)]).fit(X, Y)
    assert str(raised.value).startswith("ArithmeticError: quality 0.")
    assert str(raised.value).endswith("correct the cause, and run the search again")
