"""What a search promises its configurations, and when it ends early."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn import RisingSearchCV

X, y = load_iris(return_X_y=True)
SPACE = {"alpha": loguniform(1e-6, 1e-1), "penalty": ["l2", "l1"]}
KNOWN = {"alpha": 0.003, "penalty": "elasticnet"}


def search(**options):
    made = {"budget": 40, "max_epochs": 10, "cv": 0.25, "random_state": 0}
    return RisingSearchCV(SGDClassifier(), SPACE, **made | options)


def test_known_configurations_are_opened_first():
    fitted = search(enqueue=[KNOWN, {"alpha": 5.0}], min_epochs=3).fit(X, y)
    params = fitted.cv_results_["params"]
    first = list(dict.fromkeys(fitted.history_["arm"]))[:2]
    assert [params[arm] for arm in first] == [KNOWN, {"alpha": 5.0}]
    assert fitted.n_candidates_ == len(params)
    assert fitted.n_candidates_ == search(min_epochs=3).fit(X, y).n_candidates_
    opened = fitted.cv_results_["epochs"][fitted.cv_results_["epochs"] > 0]
    assert opened.min() >= 3


def test_one_that_is_a_candidate_is_not_counted_twice():
    configurations = [{"alpha": 0.1**k} for k in range(1, 7)]
    grid = RisingSearchCV(
        SGDClassifier(), configurations, budget=12, enqueue=configurations[4:], cv=0.25
    ).fit(X, y)
    assert grid.n_candidates_ == 6
    assert list(dict.fromkeys(grid.history_["arm"]))[:2] == [4, 5]


def test_a_search_ends_early_and_goes_on():
    fitted = search(patience=4).fit(X, y)
    assert fitted.n_epochs_ < 40
    assert fitted.stop_reason_ == (
        "the patience of 4 epochs without a new best is exhausted, "
        f"{40 - fitted.n_epochs_} of 40 epochs left"
    )
    longer = fitted.set_params(patience=None).continue_search(5)
    assert longer.n_epochs_ == 45


def test_a_search_goes_on_by_other_rules(tmp_path):
    search(patience=4, run_dir=tmp_path).fit(X, y)
    again = search(run_dir=tmp_path).fit(X, y)
    assert len(again.history_) == 40


def test_a_search_ends_at_its_target():
    fitted = search(target_score=0.5).fit(X, y)
    assert fitted.best_score_ >= 0.5
    assert fitted.stop_reason_.startswith("the target_score of 0.5 is reached, ")
    assert fitted.n_epochs_ < 40


def test_a_failed_configuration_is_tried_again():
    def fitted(max_failures):
        calls = []

        def broken_at_first(estimator, X, y):
            calls.append(estimator)
            return estimator.score(X, y) if len(calls) > 1 else np.nan

        return RisingSearchCV(
            SGDClassifier(),
            [{"alpha": 1e-3}, {"alpha": 1e-2}],
            budget=14,
            max_epochs=7,
            cv=0.25,
            random_state=0,
            scoring=broken_at_first,
            max_failures=max_failures,
        ).fit(X, y)

    with pytest.warns(UserWarning, match="they were retired"):
        assert fitted(max_failures=0).n_epochs_ < 14
    with pytest.warns(UserWarning, match="were tried again, 1 of 1 with success"):
        assert fitted(max_failures=1).n_epochs_ == 14


def test_clones_keep_the_knobs():
    knobs = {"enqueue": [KNOWN], "min_epochs": 3, "patience": 5, "target_score": 0.9}
    assert {
        name: value
        for name, value in clone(search(**knobs)).get_params(deep=False).items()
        if name in knobs
    } == knobs


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"enqueue": [{"alhpa": 1}]}, InvalidParameterError, "names 'alhpa', which no"),
        ({"enqueue": KNOWN}, InvalidParameterError, "enqueue is a list of"),
        ({"min_epochs": 11}, InvalidParameterError, "at most max_epochs, which is 10"),
        ({"min_epochs": 0}, InvalidParameterError, "min_epochs must be a whole number"),
        ({"patience": 0}, InvalidParameterError, "patience must be a whole number"),
        ({"target_score": np.nan}, InvalidParameterError, "target_score must be a fin"),
        ({"max_failures": -1}, InvalidParameterError, "max_failures must be a whole"),
    ],
)
def test_what_cannot_be_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        search(**options).fit(X, y)
