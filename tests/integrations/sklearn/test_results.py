from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.ma import MaskedArray
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from risingsearch import RisingSearchCV
from risingsearch.arms import Arm
from risingsearch.integrations.sklearn.results import cv_results


def arm(number, epochs, best_epoch, status="paused"):
    return Arm(
        arm=number,
        status=status,
        epochs=epochs,
        charged=epochs + (status == "failed"),
        last_score=0.0,
        best_score=0.0,
        best_epoch=best_epoch,
        failures=int(status == "failed"),
    )


def row(number, epoch, scores):
    parts = {f"split{i}_test_score": score for i, score in enumerate(scores)}
    times = {f"split{i}_fit_time": 1.0 + i for i in range(len(scores))}
    return {"arm": number, "epoch": epoch, "score": np.mean(scores)} | parts | times


HISTORY = [
    row(0, 1, [0.1, 0.3]),
    row(1, 1, [0.4, 0.6]),
    row(0, 2, [0.7, 0.9]),
    row(1, 2, [0.3, 0.3]),
    {"arm": 3, "epoch": 1, "score": np.nan, "failure": "overflow"},
]
ARMS = [arm(0, 2, 2), arm(1, 2, 1), arm(2, 0, 0, "unopened"), arm(3, 0, 0, "failed")]
CANDIDATES = [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}]


def table(candidates=CANDIDATES, arms=ARMS, history=HISTORY, n_splits=2, **options):
    search = RisingSearchCV(SGDClassifier(), candidates, **options)
    search.n_splits_ = n_splits
    result = SimpleNamespace(candidates=candidates, arms=arms, history=history)
    return cv_results(search, result)


class TestScores:
    def test_are_those_of_the_best_epoch(self):
        results = table()
        np.testing.assert_allclose(results["split0_test_score"][:2], [0.7, 0.4])
        np.testing.assert_allclose(results["mean_test_score"][:2], [0.8, 0.5])
        np.testing.assert_allclose(results["std_test_score"][:2], [0.1, 0.1])
        assert results["best_epoch"].tolist() == [2, 1, 0, 0]
        assert results["epochs"].tolist() == [2, 2, 0, 0]
        assert results["status"].tolist() == ["paused", "paused", "unopened", "failed"]

    def test_without_one_the_rank_is_the_worst(self):
        results = table()
        assert np.isnan(results["mean_test_score"][2:]).all()
        assert results["rank_test_score"].tolist() == [1, 2, 3, 3]

    def test_error_score_is_for_what_was_opened(self):
        results = table(error_score=-5.0)
        assert np.isnan(results["mean_test_score"][2])
        assert results["mean_test_score"][3] == results["split1_test_score"][3] == -5.0

    def test_times_are_totals_of_a_split(self):
        results = table()
        assert results["mean_fit_time"].tolist() == [3.0, 3.0, 0.0, 0.0]
        assert results["std_fit_time"].tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("several", [False, True])
def test_same_keys_and_types_as_scikit_learns(several):
    X, y = make_classification(60, 5, random_state=0)
    space = [
        {"sgd__alpha": [0.1], "sgd__penalty": ["l1", None]},
        {"sgd": [SGDClassifier(alpha=1e-3)], "sgd__average": [True, 5]},
    ]
    pipeline = Pipeline([("sgd", SGDClassifier(random_state=0, max_iter=5, tol=None))])
    options = {
        "cv": 2,
        "return_train_score": True,
        "scoring": ["accuracy", "f1"] if several else "accuracy",
        "refit": "f1" if several else True,
    }
    theirs = GridSearchCV(pipeline, space, **options).fit(X, y).cv_results_
    candidates = [dict(params) for params in theirs["params"]]
    search = RisingSearchCV(pipeline, candidates, budget=4, **options)
    ours = search.set_params(policy="round-robin").fit(X, y).cv_results_
    assert ours.keys() - theirs.keys() == {"epochs", "best_epoch", "status"}
    assert theirs.keys() <= ours.keys()
    for key, value in theirs.items():
        assert type(ours[key]) is type(value), key
        if isinstance(value, MaskedArray):
            assert ours[key].mask.tolist() == value.mask.tolist(), key
        if isinstance(value, np.ndarray):
            assert ours[key].dtype == value.dtype, key
            assert ours[key].shape == value.shape, key
    assert len(pd.DataFrame(ours)) == 4
