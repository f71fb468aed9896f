"""``RisingSearchCV`` from the first epoch to the refit."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.stats import loguniform, uniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from risingsearch import RisingSearchCV
from risingsearch.errors import InvalidParameterError, SearchFailedError

SPACE = {"alpha": [1e-6, 1e-4, 1e-2, 1.0]}
X, Y = make_classification(120, 8, n_informative=5, random_state=0)


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
    @pytest.mark.parametrize(
        "policy",
        [*("auto", "asha", "successive-halving", "median-stopping", "random-search")],
    )
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
        assert rising(Recorder(), QUALITIES).fit(ROWS, HALVES).best_epoch_ == 8
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

    def test_a_timeout_needs_nothing_else(self):
        space = {"alpha": loguniform(1e-6, 1e-1)}
        search = RisingSearchCV(SGDClassifier(), space, timeout=0.2).fit(X, Y)
        assert "budget of 0.2 wall-clock seconds is spent" in search.stop_reason_
        assert search.n_candidates_ == 500
        passes = search.scheduler_.max_epochs * search.steps_per_epoch_
        assert passes == 100  # however fast an epoch is here

    def test_without_both_it_says_what_to_write(self):
        with pytest.raises(InvalidParameterError, match="timeout=600 for 600 seconds"):
            RisingSearchCV(SGDClassifier(), SPACE).fit(X, Y)

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


class TestSpaces:
    def test_a_list_of_configurations_is_whole_and_in_order(self):
        space = [{"quality": q / 10} for q in range(8)]
        search = rising(Recorder(), space, policy="round-robin").fit(ROWS, HALVES)
        assert search.cv_results_["params"] == space
        opened = search.history_["arm"][:8]
        assert sorted(opened) == list(range(8))
        assert opened != list(range(8))


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

    @pytest.mark.parametrize("cv", [0.25, ShuffleSplit(2)])
    def test_no_row_is_ever_trained_on_and_validated_on(self, calls, cv):
        search = rising(Recorder(), QUALITIES, cv=cv, refit=False).fit(ROWS, HALVES)
        pairs = {
            (tuple(sorted(train["rows"])), tuple(sorted(test["scored"])))
            for train, test in zip(calls[::2], calls[1::2], strict=True)
        }
        assert len(pairs) == search.n_splits_
        assert all(set(train).isdisjoint(test) for train, test in pairs)

    def test_classes_that_a_fold_lacks_are_known(self, calls):
        y = np.repeat([0, 1, 2, 3], 10)
        search = rising(Recorder(), QUALITIES, cv=KFold(4)).fit(ROWS, y)
        assert all(c["classes"].tolist() == [0, 1, 2, 3] for c in trained(calls))
        assert search.n_splits_ == 4

    def test_groups(self, calls):
        groups = np.repeat(np.arange(8), 5)
        search = rising(Recorder(), QUALITIES, cv=GroupKFold(4), refit=False)
        search.fit(ROWS, HALVES, groups=groups)
        for train, test in zip(calls[::2], calls[1::2], strict=True):
            assert set(groups[train["rows"]]).isdisjoint(groups[test["scored"]])
        with pytest.raises(ValueError, match="'groups' parameter should not be None"):
            search.fit(ROWS, HALVES)

    @pytest.mark.parametrize(
        ("cv", "message"),
        [*((share, "share held out") for share in (1.5, 0.0, -0.25)), ([], "no split")],
    )
    def test_what_splits_nothing(self, cv, message):
        with pytest.raises(InvalidParameterError, match=message):
            rising(SGDClassifier(), SPACE, cv=cv).fit(X, Y)


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

    def test_best_needs_a_single_split(self):
        with pytest.raises(InvalidParameterError, match="cv has 3"):
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

    @pytest.mark.parametrize("index", [7, 0.0])
    def test_callable_must_return_an_index(self, index):
        search = rising(SGDClassifier(), SPACE, refit=lambda results: index)
        with pytest.raises((IndexError, TypeError), match="best_index_"):
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


class TestRandomState:
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
    @pytest.mark.parametrize(
        ("policy", "max_epochs"), [("auto", 8), ("asha", None), ("round-robin", 8)]
    )
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


def test_a_timed_search_of_a_pipeline_is_pickled():
    model = make_pipeline(Normalizer(), SGDClassifier())
    space = {"normalizer__norm": ["l1", "l2"], "sgdclassifier__alpha": uniform(0.1, 1)}
    search = RisingSearchCV(model, space, timeout=1, cv=0.25, random_state=0)
    search.fit(X, Y)
    copy = pickle.loads(pickle.dumps(search))
    assert (copy.predict(X) == search.predict(X)).all()
