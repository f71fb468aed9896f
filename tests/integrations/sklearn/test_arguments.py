"""Arguments that are easily mistaken: one sentence says what to write instead."""

from __future__ import annotations

import inspect

import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier

from risingsearch import Budget, RisingSearchCV
from risingsearch.errors import InvalidParameterError

X, Y = make_classification(60, 6, random_state=0)
SPACE = {"alpha": [1e-4, 1e-2]}


def rising(**options):
    options = {"budget": 4, "cv": 0.25, "random_state": 0} | options
    return RisingSearchCV(SGDClassifier(), SPACE, **options)


def test_a_name_of_no_search():
    with pytest.raises(TypeError, match="unexpected keyword argument 'budgget'"):
        RisingSearchCV(SGDClassifier(), SPACE, budgget=3)


def test_the_signature_stays():
    names = list(inspect.signature(RisingSearchCV).parameters)
    assert names[:4] == ["estimator", "param_distributions", "policy", "budget"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_jobs", "2"),
        ("verbose", -1),
        ("refit", None),
        ("refit", ["accuracy"]),
        ("scoring", "acuracy"),
        ("return_train_score", "yes"),
        ("error_score", "warn"),
    ],
)
def test_arguments_are_checked_as_scikit_learn_does(name, value):
    with pytest.raises(InvalidParameterError, match=f"The {name!r} parameter of Risi"):
        rising(**{name: value}).fit(X, Y)


@pytest.mark.parametrize("steps", [0, 1.5, "2"])
def test_steps_per_epoch(steps):
    with pytest.raises(InvalidParameterError, match="steps_per_epoch must be a whole"):
        rising(budget=None, timeout=1, steps_per_epoch=steps).fit(X, Y)


@pytest.mark.parametrize("extra", [0, -1, 2.5, "5", None])
def test_extra_budget(extra):
    search = rising().fit(X, Y)
    with pytest.raises(InvalidParameterError, match="budget must be a whole"):
        search.continue_search(extra)
    assert search.n_epochs_ == 4


def test_extra_budget_in_its_unit():
    search = rising(budget=Budget(seconds=1e-9), max_epochs=2).fit(X, Y)
    with pytest.raises(InvalidParameterError, match=r"extend it by Budget\(seconds="):
        search.continue_search(5)
