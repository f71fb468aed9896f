"""What a search promises its configurations, and when it ends early."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier

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


def test_a_search_ends_early_and_goes_on():
    fitted = search(patience=4).fit(X, y)
    assert fitted.n_epochs_ < 40
    assert fitted.stop_reason_ == (
        "the patience of 4 epochs without a new best is exhausted, "
        f"{40 - fitted.n_epochs_} of 40 epochs left"
    )
    assert fitted.set_params(patience=None).continue_search(5).n_epochs_ == 45


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
