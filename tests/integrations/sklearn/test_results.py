from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.ma import MaskedArray
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from risingsearch import RisingSearchCV
from risingsearch.arms import Arm
from risingsearch.integrations.sklearn.results import format_results


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


class TestScores:
    def test_are_those_of_the_best_epoch(self):
        results = format_results(CANDIDATES, ARMS, HISTORY, 2)
        np.testing.assert_allclose(results["split0_test_score"][:2], [0.7, 0.4])
        np.testing.assert_allclose(results["mean_test_score"][:2], [0.8, 0.5])
        np.testing.assert_allclose(results["std_test_score"][:2], [0.1, 0.1])
        assert results["best_epoch"].tolist() == [2, 1, 0, 0]
        assert results["epochs"].tolist() == [2, 2, 0, 0]
        assert results["status"].tolist() == ["paused", "paused", "unopened", "failed"]

    def test_without_one_the_rank_is_the_worst(self):
        results = format_results(CANDIDATES, ARMS, HISTORY, 2)
        assert np.isnan(results["mean_test_score"][2:]).all()
        assert results["rank_test_score"].tolist() == [1, 2, 3, 3]

    def test_error_score_is_for_what_was_opened(self):
        results = format_results(CANDIDATES, ARMS, HISTORY, 2, error_score=-5.0)
        assert np.isnan(results["mean_test_score"][2])
        assert results["mean_test_score"][3] == results["split1_test_score"][3] == -5.0

    def test_times_are_totals_of_a_split(self):
        results = format_results(CANDIDATES, ARMS, HISTORY, 2)
        assert results["mean_fit_time"].tolist() == [3.0, 3.0, 0.0, 0.0]
        assert results["std_fit_time"].tolist() == [1.0, 1.0, 0.0, 0.0]


class TestParameterColumns:
    def columns(self, candidates):
        arms = [arm(i, 1, 1) for i in range(len(candidates))]
        history = [row(i, 1, [0.5]) for i in range(len(candidates))]
        return format_results(candidates, arms, history, 1)

    @pytest.mark.parametrize(
        ("values", "dtype"),
        [
            ([1, 2], np.int64),
            ([1, 2.5], np.float64),
            ([True, False], np.bool_),
            ([1, None], object),
            (["l1", "l2"], object),
            ([(10,), (10, 5)], object),
            ([(10, 2), (10, 5)], object),
            ([RandomForestClassifier(), SGDClassifier()], object),
            ([make_pipeline(SGDClassifier()), "passthrough"], object),
        ],
    )
    def test_types(self, values, dtype):
        results = self.columns([{"a": value} for value in values])
        assert results["param_a"].dtype == dtype
        assert list(results["param_a"]) == values

    def test_what_a_configuration_lacks_is_masked(self):
        results = self.columns([{"a": 1}, {"b": "x"}])
        assert results["param_a"].mask.tolist() == [False, True]
        assert results["param_b"].mask.tolist() == [True, False]


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
