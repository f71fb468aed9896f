"""The time of a whole ``fit``, on a clock that only training moves."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier

from risingsearch import Budget, RisingSearch, RisingSearchCV
from risingsearch.integrations.sklearn import epoch_length, folds, preparation
from tests.search.curve_search import AtOnce

X = np.ones((100, 1))
Y = np.arange(100) % 2
EPOCH = 0.01 * (100 + 100)  # each of three folds trains on two thirds, scores a third


@pytest.fixture
def clock(clock, monkeypatch):
    for module in (folds, preparation, epoch_length):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(Timed, "clock", clock)
    return clock


class Timed(ClassifierMixin, BaseEstimator):
    """Takes a hundredth of a second for a row, and rises for twenty epochs."""

    clock = None

    def __init__(self, quality=0.5):
        self.quality = quality

    def partial_fit(self, X, y, classes=None):
        self.clock.now += 0.01 * len(X)
        self.epochs_ = getattr(self, "epochs_", 0) + 1
        return self

    def fit(self, X, y):
        raise AssertionError("the search trains by epochs")

    def score(self, X, y):
        return self.quality * min(self.epochs_, 20) / 20


def timed(**options):
    space = {"quality": list(np.linspace(0.1, 0.9, 40))}
    return RisingSearchCV(Timed(), space, **{"cv": 3, "random_state": 0} | options)


@pytest.mark.parametrize("executor", [None, AtOnce()])
@pytest.mark.parametrize("refit", [True, "full", "best", False])
def test_fit_ends_in_time_with_its_refit(clock, executor, refit):
    timeout = 60
    jobs = {} if executor is None else {"executor": executor, "n_jobs": 1}
    cv = 0.25 if refit == "best" else 3
    jobs["max_epochs"] = 20 if refit == "full" else None
    search = timed(timeout=timeout, refit=refit, cv=cv, **jobs).fit(X, Y)
    assert 0.95 * timeout <= clock.now - 1000.0 <= timeout + EPOCH
    kept, over = timeout - search.scheduler_.spent, "60 wall-clock seconds is spent"
    if refit in (True, "full"):
        over += f" but for {kept:.3g}, kept for the refit"
    assert search.stop_reason_ == f"the budget of {over}"


def test_a_finished_timed_search_trains_nothing_when_it_is_called_again(
    clock, tmp_path
):
    def fitted():
        return timed(timeout=60, run_dir=tmp_path).fit(X, Y)

    first = fitted()
    assert [fitted().n_epochs_ for _ in range(3)] == [first.n_epochs_] * 3
    assert RisingSearch.saved_result(tmp_path).stop_reason == first.stop_reason_
    assert first.stop_reason_.endswith(", kept for the refit")
    assert fitted()._run._seconds_kept() == first._run._seconds_kept() > 0.0
    longer = fitted().continue_search(Budget(wall_seconds=60))
    assert longer.n_epochs_ > first.n_epochs_


@pytest.mark.parametrize("budget", [None, 10**6])
def test_what_comes_before_the_search_counts(clock, monkeypatch, budget):
    def slowly(*given):
        clock.now += 20
        return frozen_splits(*given)

    frozen_splits = preparation.frozen_splits
    monkeypatch.setattr(preparation, "frozen_splits", slowly)
    timed(budget=budget, max_epochs=30, timeout=60).fit(X, Y)
    assert 57 <= clock.now - 1000.0 <= 60 + EPOCH


@pytest.mark.parametrize("budget", [None, 1000])
def test_more_time_has_another_refit(clock, budget):
    search = timed(budget=budget, max_epochs=30, timeout=60).fit(X, Y)
    n_epochs = search.n_epochs_
    before = clock.now
    search.continue_search(Budget(wall_seconds=60) if budget is None else 10)
    assert search.n_epochs_ > n_epochs
    assert 57 <= clock.now - before <= 60 + EPOCH + search.best_epoch_


class Trees(ClassifierMixin, BaseEstimator):
    """Takes a tenth of a second for each fit, and a hundredth for each tree more."""

    def __init__(self, quality=0.5, n_estimators=100, warm_start=False):
        self.quality = quality
        self.n_estimators, self.warm_start = n_estimators, warm_start

    def fit(self, X, y):
        before = getattr(self, "epochs_", 0) if self.warm_start else 0
        self.epochs_ = self.n_estimators
        Timed.clock.now += 0.1 + 0.01 * (self.n_estimators - before)
        return self

    def score(self, X, y):
        return self.quality * min(self.epochs_, 20) / 20


def test_the_time_is_used_where_a_single_fit_has_all_trees(clock):
    space = {"quality": list(np.linspace(0.1, 0.9, 40))}
    search = RisingSearchCV(Trees(), space, cv=3, timeout=20, random_state=0)
    search.fit(X, Y)
    assert search.best_estimator_.n_estimators >= 96  # whole epochs
    assert 18.5 <= clock.now - 1000.0 <= 20.0


class Cheap(Timed):
    """Takes ``step`` for each pass and ``fixed`` for a score, whatever the rows."""

    def __init__(self, quality=0.5, step=1e-3, fixed=0.0):
        super().__init__(quality)
        self.step, self.fixed = step, fixed

    def partial_fit(self, X, y, classes=None):
        before = self.clock.now
        super().partial_fit(X, y)
        self.clock.now = before + self.step
        return self

    def score(self, X, y):
        self.clock.now += self.fixed
        return super().score(X, y)


@pytest.mark.parametrize(
    ("fixed", "options", "steps"),
    [
        (0.002, {"timeout": 10}, 8),  # a fifth of an epoch is not training
        (0.0, {"timeout": 10}, 1),
        (1.0, {"timeout": 10_000}, 10),  # a full training has ten epochs
        (0.002, {"timeout": 0.75}, 5),  # the time pays for a hundred epochs
        (0.0055, {"timeout": 1}, 6),  # or half of each is training
        (1.0, {"timeout": 10}, 1),
        (0.002, {"budget": Budget(seconds=10)}, 8),
        (0.002, {"budget": 20}, 1),
        (0.002, {"budget": 20, "timeout": 10}, 1),
        (0.002, {"timeout": 10, "steps_per_epoch": 3}, 3),
        (0.002, {"timeout": 10, "step": 0.0}, 10),  # or too little to be measured
        (1.0, {"timeout": 10_000, "max_epochs": 59}, 5),  # of which 55 passes are left
        (1.0, {"timeout": 10_000, "max_epochs": 59, "min_epochs": 20}, 2),
    ],
)
def test_the_length_of_an_epoch_under_a_budget_in_time(clock, fixed, options, steps):
    space = {"quality": [0.2, 0.4, 0.6, 0.8]}
    options = {"cv": 0.5, "random_state": 0, "refit": "best"} | options
    model = Cheap(fixed=fixed, step=options.pop("step", 1e-3))
    search = RisingSearchCV(model, space, **options).fit(X, Y)
    assert search.best_estimator_.epochs_ == steps * search.best_epoch_
    assert search.steps_per_epoch_ == steps
    assert steps * (search.scheduler_.max_epochs or 20) <= (search.max_epochs or 100)


@pytest.mark.parametrize(
    ("estimator", "step", "steps"),
    [
        (HistGradientBoostingClassifier(), 0.0137, 20),  # the time pays for 40 epochs
        (HistGradientBoostingClassifier(max_iter=50), 0.01, 12),  # all trees are four
        (SGDClassifier(), 0.01, 1),  # of which a fifth would train in any case
    ],
)
def test_epochs_of_trees_are_long_where_there_is_time(
    monkeypatch, estimator, step, steps
):
    monkeypatch.setattr(epoch_length, "_seconds", lambda *given: (step, step))
    folds = SimpleNamespace(estimator=estimator, splits=[None])
    folds.in_full = lambda params: estimator.max_iter
    assert epoch_length.steps_within(folds, Budget(seconds=10), None, 1) == steps


@pytest.mark.parametrize(("best", "trees"), [(15, 20), (5, 5)])
def test_a_timed_refit_has_all_trees_unless_the_winner_overfits(clock, best, trees):
    def score(forest, X, y):
        clock.now += 1.0
        n = len(forest.estimators_)
        return (min(n, best) - max(0, n - best)) / 20

    options = {"timeout": 60, "scoring": score, "cv": 0.5, "random_state": 0}
    forest = RandomForestClassifier(n_estimators=20)
    search = RisingSearchCV(forest, {"max_depth": [1, 2]}, **options).fit(X, Y)
    assert (search.steps_per_epoch_, 5 * search.best_epoch_) == (5, best)
    assert len(search.best_estimator_.estimators_) == trees


def test_a_timed_search_of_passes_takes_those_that_are_best_on_average(clock):
    def score(model, X, y):
        return model.score(X, y) + (model.epochs_ == 2)

    search = timed(timeout=600, scoring=score).fit(X, Y)
    assert 20 < search.best_epoch_ == search.best_estimator_.epochs_
    found, best = search.cv_results_, search.best_index_
    assert search.best_score_ == found["mean_test_score"][best]
    assert found["rank_test_score"][best] == 1


@pytest.mark.parametrize(
    ("busy", "seconds", "trees", "spent"),  # ten times as slow while it is busy
    [(0.0, 0.6, 20, 42), (14.0, 0.6, 20, 42), (0.0, 6.0, 5, 30)],
)
def test_a_timed_refit_of_trees_has_half_of_the_time_at_most(
    clock, monkeypatch, busy, seconds, trees, spent
):
    def slow(forest, X, y):
        n = forest.n_estimators - len(getattr(forest, "estimators_", []))
        clock.now += n * seconds * len(X) / 100 * (10 if clock.now < 1000 + busy else 1)
        return fit(forest, X, y)

    fit = RandomForestClassifier.fit
    monkeypatch.setattr(RandomForestClassifier, "fit", slow)
    options = {"timeout": 60, "cv": 0.5, "random_state": 0}
    options["scoring"] = lambda forest, X, y: len(forest.estimators_)
    forest = RandomForestClassifier(n_estimators=20)
    search = RisingSearchCV(forest, {"max_depth": [*range(1, 40)]}, **options).fit(X, Y)
    assert len(search.best_estimator_.estimators_) == trees
    assert spent <= search.scheduler_.spent < clock.now - 1000.0 <= 63


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({}, "99% of an epoch does not train.* and 91% with steps_per_epoch=10: set"),
        (
            {"fixed": 0.014},
            "58% of an epoch does not train.* 19% with steps_per_epoch=6",
        ),
        ({"fixed": 0.0}, ""),
        ({"budget": 20}, ""),
        ({"max_epochs": 9}, ""),  # there is too little to save
        ({"steps_per_epoch": 1}, ""),
        ({"verbose": 0}, ""),
    ],
)
def test_a_budget_in_epochs_is_advised_of_their_length(clock, capsys, options, advice):
    model = Cheap(None, step=0.01, fixed=options.get("fixed", 1.0))
    options = {"budget": 100, "random_state": 0, "cv": 0.5, "verbose": 1, **options}
    options.pop("fixed", None)
    RisingSearchCV(model, {"quality": [0.2, 0.8]}, refit=False, **options).fit(X, Y)
    told = [line for line in capsys.readouterr().err.splitlines() if "train" in line]
    assert len(told) == bool(advice)
    assert re.match(advice, "".join(told))


def test_what_cannot_train_as_it_is_given_has_short_epochs(clock):
    class Incomplete(Cheap):
        def score(self, X, y):
            return super().score(X, y) / (self.quality != 0.5)

    options = {"cv": 0.5, "random_state": 0, "refit": "best", "timeout": 1}
    search = RisingSearchCV(Incomplete(), {"quality": [0.2, 0.4]}, **options).fit(X, Y)
    assert search.best_estimator_.epochs_ == search.best_epoch_


def test_a_search_resumes_with_the_length_it_was_begun_with(
    clock, tmp_path, monkeypatch
):
    def fitted():
        space = {"quality": [0.2, 0.4, 0.6, 0.8]}
        options = {"cv": 0.5, "random_state": 0, "refit": "best", "timeout": 2}
        search = RisingSearchCV(Cheap(fixed=0.001), space, run_dir=tmp_path, **options)
        return search.fit(X, Y)

    n_epochs = fitted().n_epochs_
    monkeypatch.setattr(epoch_length, "FIXED", 0.01)
    again = fitted()
    assert again.n_epochs_ == n_epochs
    assert again.best_estimator_.epochs_ == 4 * again.best_epoch_
