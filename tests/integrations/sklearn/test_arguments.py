"""Arguments that are easily mistaken: one sentence says what to write instead."""

from __future__ import annotations

import inspect
import re

import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from risingsearch import Budget, RisingSearchCV
from risingsearch.errors import InvalidParameterError

X, Y = make_classification(60, 6, random_state=0)
SPACE = {"alpha": [1e-4, 1e-2]}


def rising(**options):
    options = {"budget": 4, "cv": 0.25, "random_state": 0} | options
    return RisingSearchCV(SGDClassifier(), SPACE, **options)


@pytest.mark.parametrize(
    ("estimator", "options", "told"),
    [
        (RandomForestClassifier(300), {"max_epochs": 4}, "n_estimators=300.*4 at most"),
        (RandomForestClassifier(4), {"max_epochs": 4}, None),
        (RandomForestClassifier(), {"max_epochs": 4}, None),  # not the user's number
        (
            HistGradientBoostingClassifier(max_iter=50),
            {"max_epochs": 8},
            "=50.*8 at most",
        ),
        (HistGradientBoostingClassifier(max_iter=50), {}, None),
        (make_pipeline(MLPClassifier(max_iter=90)), {"max_epochs": 8}, "=90.*8 at mo"),
        (RandomForestClassifier(8), {"max_epochs": 4, "steps_per_epoch": 2}, None),
    ],
)
@pytest.mark.filterwarnings("error")
def test_own_counts_above_the_epochs_are_told(estimator, options, told):
    search = RisingSearchCV(
        estimator, [{}], budget=8, cv=0.25, random_state=0, refit=False, **options
    )
    if told is None:
        search.fit(X, Y)
    else:
        with pytest.warns(UserWarning, match=told):
            search.fit(X, Y)


@pytest.mark.filterwarnings("error")
def test_own_counts_of_any_configuration_are_told():
    steps = [{"model": SGDClassifier()}, {"model": RandomForestClassifier(300)}]
    pipeline = Pipeline([("model", SGDClassifier())])
    search = RisingSearchCV(pipeline, steps, budget=8, max_epochs=4, cv=0.25)
    with pytest.warns(UserWarning, match="n_estimators=300.*4 at most"):
        search.fit(X, Y)


@pytest.mark.filterwarnings("error")
def test_epochs_after_the_only_pass_are_told():
    space = {"var_smoothing": [1e-9, 1e-2]}
    options = {"budget": 8, "cv": 0.25, "random_state": 0}
    search = RisingSearchCV(GaussianNB(), space, **options).fit(X, Y)
    assert search.n_epochs_ == 2
    with pytest.warns(UserWarning, match="GaussianNB is one pass, and .*=4.*to 1"):
        search.set_params(max_epochs=4).fit(X, Y)


def test_the_longest_training_of_all_counts_under_a_timeout():
    steps = [{"model": GaussianNB()}, {"model": RandomForestClassifier(12)}]
    pipeline = Pipeline([("model", SGDClassifier())])
    search = RisingSearchCV(pipeline, steps, timeout=60, cv=0.25, steps_per_epoch=3)
    assert search.fit(X, Y).scheduler_.max_epochs == 4


def test_a_name_of_no_search():
    with pytest.raises(TypeError, match="unexpected keyword argument 'budgget'"):
        RisingSearchCV(SGDClassifier(), SPACE, budgget=3)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("param_grid", "param_distributions"),
        ("search_spaces", "param_distributions"),
        ("n_iter", "n_candidates, and budget or timeout"),
        ("n_trials", "n_candidates, and budget or timeout"),
        ("max_resources", "max_epochs"),
        ("min_resources", "min_epochs"),
        ("factor", "policy='asha' with policy_params={'eta': 3}"),
        ("max_iter", "max_epochs"),
        ("seed", "random_state"),
        ("pre_dispatch", "n_jobs alone"),
    ],
)
def test_names_of_other_searches(name, instead):
    said = f"RisingSearchCV has no argument {name!r}: write {instead}"
    with pytest.raises(InvalidParameterError, match=said):
        RisingSearchCV(SGDClassifier(), **{name: SPACE})


def test_the_signature_stays():
    names = list(inspect.signature(RisingSearchCV).parameters)
    assert names[:4] == ["estimator", "param_distributions", "policy", "budget"]
    assert clone(rising(budget=7)).get_params().keys() == rising().get_params().keys()
    assert clone(rising(budget=7)).set_params(patience=2).get_params()["budget"] == 7


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_jobs", "2"),
        ("verbose", -1),
        ("refit", None),
        ("refit", ["accuracy"]),
        ("scoring", 3),
        ("return_train_score", "yes"),
        ("error_score", "warn"),
    ],
)
def test_arguments_are_checked_as_scikit_learn_does(name, value):
    with pytest.raises(InvalidParameterError, match=f"The {name!r} parameter of Risi"):
        rising(**{name: value}).fit(X, Y)


def test_an_unknown_scoring_is_answered_with_the_closest_name():
    with pytest.raises(InvalidParameterError, match="acuracy'; did you mean 'accuracy"):
        rising(scoring="acuracy").fit(X, Y)


@pytest.mark.parametrize("steps", [0, 1.5, "2"])
def test_steps_per_epoch(steps):
    with pytest.raises(InvalidParameterError, match="if not 'auto', must be a whole"):
        rising(budget=None, timeout=1, steps_per_epoch=steps).fit(X, Y)


@pytest.mark.parametrize("extra", [0, -1, 2.5, "5", None])
def test_extra_budget(extra):
    search = rising().fit(X, Y)
    with pytest.raises(InvalidParameterError, match="budget must be a whole"):
        search.continue_search(extra)
    assert search.n_epochs_ == 4


@pytest.mark.parametrize(
    ("unit", "more"), [("seconds", "Budget(seconds=10)"), ("wall_hours", "timeout=10")]
)
def test_extra_budget_in_its_unit(unit, more):
    search = rising(budget=Budget(**{unit: 1e-9}), max_epochs=2).fit(X, Y)
    for time in (None, 7.0):
        said = f"write continue_search({more}); got extra_budget=5, timeout={time}"
        with pytest.raises(InvalidParameterError, match=re.escape(said)):
            search.continue_search(5, timeout=time)


@pytest.mark.parametrize("name", ["sample_weight", "groups", "sgd__sample_weight"])
def test_entries_per_row_are_as_many_as_rows(name):
    said = f"{name} must have one entry per row of X, 60 in all"
    with pytest.raises(InvalidParameterError, match=said):
        rising().fit(X, Y, **{name: Y[:-1]})
