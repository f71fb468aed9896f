"""What scikit-learn's scorers declare to the policies, and what nobody guesses at."""

from __future__ import annotations

import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import (
    accuracy_score,
    check_scoring,
    f1_score,
    get_scorer,
    make_scorer,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from risingsearch import RisingSearchCV
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.preparation import _with_range
from risingsearch.integrations.sklearn.scoring import range_of

X, Y = make_classification(60, 6, flip_y=0.3, random_state=0)
X_REAL, Y_REAL = make_regression(60, 6, noise=20, random_state=0)
SPACE = [{"alpha": 10.0**-k} for k in range(4)]


def rising(estimator, **options):
    options = {"budget": 8, "cv": 0.3, "random_state": 0, "refit": False} | options
    return RisingSearchCV(estimator, SPACE, **options)


def declared(search):
    run = search._run
    params = _with_range(run.folds, search.policy, search.policy_params)
    return (params or {}).get("reward_range")


class Lazy(SGDClassifier):
    def score(self, X, y):
        return 7.0


def seven(model, X, y):
    return 7.0


def test_their_scores_lie_in_the_range():
    names = ["accuracy", "balanced_accuracy", "f1", "roc_auc"]
    names += ["matthews_corrcoef", "average_precision"]
    for i in range(3):
        model = SGDClassifier(loss="log_loss", random_state=i).fit(X[:40], Y[:40])
        for name in names:
            low, high = range_of(get_scorer(name), None, model)
            assert low <= get_scorer(name)(model, X, Y) <= high


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (SGDClassifier(), (0.0, 1.0)),
        (make_pipeline(StandardScaler(), SGDClassifier()), (0.0, 1.0)),
        (SGDRegressor(), None),
        (Lazy(), None),
        (make_pipeline(StandardScaler(), Lazy()), None),
    ],
)
def test_the_own_score_of_an_estimator(estimator, expected):
    assert range_of(check_scoring(estimator, None), None, estimator) == expected


@pytest.mark.parametrize(
    ("scorer", "expected"),
    [
        (make_scorer(accuracy_score), (0.0, 1.0)),
        (make_scorer(accuracy_score, normalize=False), None),
        (make_scorer(accuracy_score, greater_is_better=False), None),
        (make_scorer(f1_score, pos_label=0), (0.0, 1.0)),
        (get_scorer("neg_log_loss"), None),
        (get_scorer("mutual_info_score"), None),
        (seven, None),
    ],
)
def test_what_is_not_known_is_not_guessed_at(scorer, expected):
    assert range_of(scorer, None, SGDClassifier()) == expected


def test_of_several_metrics_the_one_that_schedules():
    scoring = {"own": seven, "mcc": "matthews_corrcoef"}
    search = rising(SGDClassifier(), scoring=scoring, refit="mcc", policy="kl-ucb")
    search.fit(X, Y)
    assert declared(search) == (-1.0, 1.0)
    search = rising(SGDClassifier(), scoring=scoring, refit="own", policy="ucb1")
    search.fit(X, Y)
    assert declared(search) is None


def test_a_range_that_is_not_known_is_asked_for():
    with pytest.raises(InvalidParameterError, match="the lowest and the highest"):
        rising(SGDRegressor(), policy="kl-ucb").fit(X_REAL, Y_REAL)
    params = {"reward_range": (-1, 1)}
    search = rising(SGDRegressor(), policy="kl-ucb", policy_params=params)
    assert search.fit(X_REAL, Y_REAL).n_epochs_ == 8
