"""Transformers that cost much are shared by more arms, and paid for in the refit."""

from __future__ import annotations

from typing import ClassVar

import pytest
from scipy.stats import loguniform, uniform
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.pipeline import make_pipeline

from risingsearch import RisingSearchCV
from risingsearch.integrations.sklearn import (
    epoch_length,
    estimators,
    folds,
    preparation,
)
from tests.integrations.sklearn.test_search_run import X, Y

PASS = 0.02


class Slow(TransformerMixin, BaseEstimator):
    """Takes ``seconds`` to be fitted."""

    clock: ClassVar = None
    fitted: ClassVar[list[float]] = []

    def __init__(self, seconds=3.0, width=0.5, fails=False):
        self.seconds = seconds
        self.width, self.fails = width, fails

    def fit(self, X, y=None):
        if self.fails:
            raise ValueError("it never works")
        self.clock.now += self.seconds
        self.fitted.append(self.width)
        return self

    def transform(self, X):
        return X * self.width


class Passes(ClassifierMixin, BaseEstimator):
    """Rises for twenty passes."""

    def __init__(self, quality=0.5):
        self.quality = quality

    def partial_fit(self, X, y, classes=None):
        Slow.clock.now += PASS
        self.epochs_ = getattr(self, "epochs_", 0) + 1
        return self

    def score(self, X, y):
        return self.quality * min(self.epochs_, 20) / 20


@pytest.fixture(autouse=True)
def clock(clock, monkeypatch):
    for module in (folds, preparation, epoch_length, estimators):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(Slow, "clock", clock)
    monkeypatch.setattr(Slow, "fitted", [])
    return clock


def timed(seconds, space=None, **options):
    space = space or {"slow__width": uniform(), "passes__quality": loguniform(0.1, 0.9)}
    pipeline = make_pipeline(Slow(seconds), Passes()).set_params(memory=None)
    options = {"timeout": 60, "cv": 0.5, "random_state": 0} | options
    return RisingSearchCV(pipeline, space, **options)


def opened(search):
    done = search.cv_results_["epochs"] > 0
    return [
        p
        for p, is_done in zip(search.cv_results_["params"], done, strict=True)
        if is_done
    ]


def widths(search):
    return {params["slow__width"] for params in opened(search)}


def test_many_arms_share_a_transformer_that_costs_much(clock):
    search = timed(3.0).fit(X, Y)
    assert 2 <= len(widths(search)) <= 10
    assert len(opened(search)) > 3 * len(widths(search))
    assert len({params["passes__quality"] for params in opened(search)}) > 20
    assert 55 <= clock.now - 1000.0 <= 60 + 3.0 + PASS


def test_every_arm_has_another_transformer_where_that_is_cheap():
    search = timed(0.001).fit(X, Y)
    assert len(widths(search)) > 0.8 * len(opened(search)) > 8


def test_a_budget_in_epochs_leaves_arms_as_they_are_drawn():
    search = timed(3.0, timeout=None, budget=20, max_epochs=5).fit(X, Y)
    assert len(widths(search)) == len(opened(search)) > 5


def test_the_time_of_the_refit_has_that_of_a_shared_transformer(clock):
    began = []

    def note(event):
        began.append(clock.now)

    timed(5.0, callbacks=[note]).fit(X, Y)
    assert clock.now - began[-1] >= 5.0  # it is fitted again, on all rows
    assert clock.now - 1000.0 <= 60 + PASS


@pytest.mark.filterwarnings("ignore:.* opened configurations failed")
def test_a_transformer_that_fails_is_not_shared():
    space = {
        "slow__width": uniform(),
        "slow__fails": [True, False],
        "passes__quality": loguniform(0.1, 0.9),
    }
    search = timed(3.0, space).fit(X, Y)
    failing = [params for params in opened(search) if params["slow__fails"]]
    assert len({params["slow__width"] for params in failing}) == len(failing)
    assert len(opened(search)) > 4 * len(failing)


def test_without_other_parameters_no_arm_is_trained_twice():
    search = timed(3.0, {"slow__width": uniform()}).fit(X, Y)
    assert len(widths(search)) == len(opened(search)) > 5
