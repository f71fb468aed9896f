"""``tie_break`` hands over the cheapest of the candidates that are level."""

import time

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn import RisingSearchCV

X = np.random.default_rng(0).standard_normal((200, 2))
Y = (X[:, 0] + 0.8 * np.random.default_rng(1).standard_normal(200) > 0).astype(int)


class Threshold(ClassifierMixin, BaseEstimator):
    """Predicts by the sign of a column, slowly if asked."""

    def __init__(self, column=0, training=0.0, predicting=0.0):
        self.column = column
        self.training = training
        self.predicting = predicting

    def partial_fit(self, X, y, classes=None):
        time.sleep(self.training)
        self.classes_ = np.array([0, 1])
        return self

    def fit(self, X, y):
        return self.partial_fit(X, y)

    def predict(self, X):
        time.sleep(self.predicting)
        return (X[:, self.column] > 0).astype(int)


CANDIDATES = [
    {"column": 1, "training": 0.0, "predicting": 0.0},  # cheap, and worse
    {"column": 0, "training": 0.05, "predicting": 0.0},
    {"column": 0, "training": 0.0, "predicting": 0.05},
]


def searched(**more):
    arguments = {"budget": 6, "max_epochs": 2, "cv": 0.5, "random_state": 0, **more}
    search = RisingSearchCV(Threshold(), CANDIDATES, policy="round-robin", **arguments)
    return search.fit(X, Y)


@pytest.mark.parametrize(("tie_break", "best"), [("cheapest", 2), ("fastest", 1)])
def test_the_cheapest_of_those_that_are_level_is_handed_over(tie_break, best):
    search = searched(tie_break=tie_break)
    assert search.best_index_ == best
    assert search.tied_ == [3 - best]
    assert search.best_params_ == CANDIDATES[best]
    assert search.best_score_ == search.cv_results_["mean_test_score"][best]
    assert search.best_estimator_.get_params() == CANDIDATES[best]
    assert f"arm {best} is level with 1 other" in repr(search.explain())


def test_without_it_the_first_of_equals_stays():
    search = searched()
    first = search.result().best_arm
    assert search.best_index_ == first


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"tie_break": "quickest"}, "'tie_break' parameter of RisingSearchCV must be"),
        ({"tie_break": "cheapest", "refit": "best"}, "set refit to True, 'full'"),
        ({"tie_break": "fastest", "refit": lambda table: 0}, "set refit to True"),
    ],
)
def test_bad_ways_are_refused(more, message):
    with pytest.raises(InvalidParameterError, match=message):
        searched(**more)
