"""The best number of trees, known to one under a budget in time."""

from __future__ import annotations

import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_regression
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier, XGBRegressor

from risingsearch import RisingSearchCV
from risingsearch.integrations.sklearn import epoch_length, folds, preparation
from risingsearch.integrations.sklearn.prefixes import predicting, shortened

X, Y = make_regression(80, 5, noise=5.0, random_state=0)
CLASSES = np.digitize(Y, [-50.0, 50.0])
POSITIVE = np.abs(Y)
NOISY = Y + 150.0 * np.random.default_rng(0).normal(size=len(Y))
N_TREES = 20


def light(kind=LGBMRegressor, **params):
    given = {"n_jobs": 1, "verbose": -1, "random_state": 0, "min_child_samples": 2}
    return kind(n_estimators=N_TREES, **given, **params)


def extreme(kind=XGBRegressor, **params):
    return kind(n_estimators=N_TREES, n_jobs=1, random_state=0, **params)


def hist(kind=HistGradientBoostingRegressor, **params):
    return kind(max_iter=N_TREES, early_stopping=False, min_samples_leaf=5, **params)


def gradient(kind=GradientBoostingRegressor, **params):
    return kind(n_estimators=N_TREES, random_state=0, **params)


def n_trees(model):
    """Return how many rounds a fitted model has, by itself and not by a parameter."""
    if hasattr(model, "steps"):
        return n_trees(model.steps[-1][1])
    if hasattr(model, "regressor_"):
        return n_trees(model.regressor_)
    if hasattr(model, "booster_"):
        return model.booster_.current_iteration()
    if hasattr(model, "get_booster"):
        return model.get_booster().num_boosted_rounds()
    if hasattr(model, "n_iter_"):
        return model.n_iter_
    return len(model.estimators_)


@pytest.fixture
def clock(clock, monkeypatch):
    for module in (folds, preparation, epoch_length):
        monkeypatch.setattr(module, "time", clock)
    return clock


def timed(clock, model, best=13, **options):
    """Return a search whose every score takes a second, the best with so many trees."""

    def score(model, X, y):
        clock.now += 1.0
        return -abs(n_trees(model) - best)

    options = {"timeout": 120, "cv": 0.5, "random_state": 0, "scoring": score} | options
    space = options.pop("space", {"learning_rate": [0.1, 0.2]})
    return RisingSearchCV(model, space, steps_per_epoch=5, **options)


@pytest.mark.parametrize(
    ("model", "prefix"),
    [
        (light(), ""),
        (extreme(), ""),
        (hist(), ""),
        (gradient(), ""),
        (make_pipeline(StandardScaler(), light()), "lgbmregressor__"),
        (TransformedTargetRegressor(hist()), "regressor__"),
    ],
    ids=lambda given: type(given).__name__,
)
@pytest.mark.parametrize("refit", [True, "best"])
def test_the_trees_with_the_best_score_are_handed_over(clock, model, prefix, refit):
    space = {f"{prefix}learning_rate": [0.1, 0.2]}
    search = timed(clock, model, space=space, refit=refit).fit(X, Y)
    assert search.best_score_ == 0.0
    assert search.best_epoch_ == 3
    assert search.cv_results_["n_trees"][search.best_index_] == 13
    assert n_trees(search.best_estimator_) == 13
    again = clone(search.best_estimator_).fit(X, Y)
    assert n_trees(again) == 13


def test_folds_have_the_number_that_is_best_on_average(clock):
    def score(model, X, y):
        clock.now += 1.0
        return -((n_trees(model) - peaks[len(y)]) ** 2)

    peaks = {30: 6, 50: 12}
    parts = np.arange(30), np.arange(30, 80)
    cv = [parts, parts[::-1]]
    search = timed(clock, gradient(), cv=cv, scoring=score, timeout=300).fit(X, Y)
    assert set(search.cv_results_["n_trees"]) == {9}
    assert search.best_score_ == search.cv_results_["mean_test_score"].max() == -9.0


def test_an_epoch_is_scored_ten_times_if_that_is_cheap(clock):
    scored = []

    def score(model, X, y):
        clock.now += 1.0
        scored.append(n_trees(model))
        return 0.0

    space = {"learning_rate": [0.1]}
    model = light().set_params(n_estimators=100)
    search = timed(clock, model, space=space, scoring=score, refit=False)
    search.set_params(steps_per_epoch=50).fit(X, Y)
    assert scored == [*range(5, 101, 5)]


def test_scores_of_prefixes_take_as_long_as_the_training_at_most(monkeypatch):
    folds = preparation.Folds(*[None] * 6, 100, True, False, {}, {})
    monkeypatch.setattr(folds, "seconds_per_step", 0.01)
    counts = []
    for seconds in (0.0, 0.01, 0.25, 2.0):
        folds.seconds_per_score = seconds
        counts.append(epoch_length.prefixes_within(folds, None))
    assert counts == [10, 10, 4, 1]


def test_a_killed_search_ends_as_one_that_was_not(clock, tmp_path):
    def search(folder, last=None):
        def tick(event):
            clock.now += 10.0
            if event.number == last:
                raise KeyboardInterrupt

        options = {"scoring": "r2", "callbacks": [tick], "run_dir": tmp_path / folder}
        return timed(clock, hist(), space={"learning_rate": [0.5, 0.9]}, **options)

    whole = search("whole").fit(X, NOISY)
    with pytest.raises(KeyboardInterrupt):
        search("killed", last=3).fit(X, NOISY)
    resumed = search("killed").fit(X, NOISY)
    best = resumed.cv_results_["n_trees"][resumed.best_index_]
    assert best % 5 > 0
    assert resumed.history_["n_trees"] == whole.history_["n_trees"]
    assert n_trees(resumed.best_estimator_) == best
    assert n_trees(search("killed").fit(X, NOISY).best_estimator_) == best


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr", None])
@pytest.mark.parametrize(
    "model",
    [
        light(LGBMClassifier),
        extreme(XGBClassifier),
        hist(HistGradientBoostingClassifier),
        gradient(GradientBoostingClassifier),
    ],
    ids=lambda given: type(given).__name__,
)
def test_scorers_score_prefixes_as_shorter_trainings(clock, model, scoring):
    def tick(event):
        clock.now += 10.0

    options = {"scoring": scoring, "refit": "best", "callbacks": [tick]}
    search = timed(clock, model, **options).fit(X, CLASSES)
    [(train, test)] = search._run.folds.splits
    model = clone(search.best_estimator_).fit(X[train], CLASSES[train])
    scorer = get_scorer(scoring) if scoring else type(model).score
    assert search.best_score_ == pytest.approx(scorer(model, X[test], CLASSES[test]))
    best = search.cv_results_["n_trees"][search.best_index_]
    assert n_trees(model) == n_trees(search.best_estimator_) == best


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (light(LGBMClassifier), CLASSES),
        (light(LGBMClassifier), CLASSES > 0),
        (light(LGBMClassifier, sigmoid=2.0), CLASSES > 0),
        (light(), Y),
        (light(objective="poisson"), POSITIVE),
        (light(reg_sqrt=True), POSITIVE),
        (extreme(XGBClassifier), CLASSES),
        (hist(HistGradientBoostingClassifier), CLASSES),
        (gradient(GradientBoostingClassifier), CLASSES > 0),
        (TransformedTargetRegressor(gradient()), Y),
    ],
)
def test_a_prefix_predicts_as_a_shorter_training(model, y):
    y = y.astype(float)
    whole = model.fit(X, y)
    counters = "n_estimators", "max_iter", "regressor__n_estimators"
    fewer = {name: 7 for name in counters if name in model.get_params()}
    short = clone(model).set_params(**fewer).fit(X, y)
    prefix = predicting(whole, X, [3, 7, 20])[1]
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(short, method):
            expected = getattr(short, method)(X)
            first = getattr(prefix, method)(X[:9])
            cut = shortened(whole, 7)
            np.testing.assert_allclose(getattr(prefix, method)(X), expected)
            np.testing.assert_allclose(getattr(cut, method)(X), expected)
            np.testing.assert_allclose(first, expected[:9])
    assert n_trees(whole) == N_TREES


def test_trees_that_are_weighed_anew_are_scored_at_the_end_of_an_epoch(clock):
    search = timed(clock, extreme(booster="dart")).fit(X, Y)
    assert "n_trees" not in search.cv_results_
    assert search.best_score_ == -2.0


def test_a_budget_in_epochs_scores_their_ends(clock):
    search = timed(clock, light(), timeout=None, budget=8, max_epochs=4).fit(X, Y)
    assert "n_trees" not in search.cv_results_
    assert search.best_score_ == -2.0
