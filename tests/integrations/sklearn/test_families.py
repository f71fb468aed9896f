"""Several estimators are searched under one budget."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import Ridge, SGDClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from risingsearch import RisingSearchCV, space_of
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.integrations.sklearn.results import best_half

X, y = load_iris(return_X_y=True)
LINEAR = make_pipeline(StandardScaler(), SGDClassifier())
FAMILIES = [RandomForestClassifier(), ("linear", LINEAR)]


def searching(estimators=FAMILIES, space="auto", **options):
    options = {"budget": 30, "max_epochs": 5, "cv": 0.3, "random_state": 0} | options
    return RisingSearchCV(estimators, space, **options)


def test_every_family_begins_with_its_own_configuration():
    search = searching().fit(X, y)
    arms = list(dict.fromkeys(search.history_["arm"]))
    first = [search.cv_results_["params"][arm] for arm in arms[:2]]
    assert [params["estimator"] for params in first] == [
        "RandomForestClassifier",
        "linear",
    ]
    assert first[0]["RandomForestClassifier__max_features"] == "sqrt"
    assert first[1]["linear__sgdclassifier__alpha"] == 1e-4
    families = search.cv_results_["param_estimator"]
    assert set(families) == {"RandomForestClassifier", "linear"}
    of_one = search.cv_results_["param_linear__sgdclassifier__alpha"]
    assert (np.ma.getmaskarray(of_one) == (families != "linear")).all()
    assert search.n_epochs_ == 30


def test_the_winner_is_an_estimator_of_its_family():
    search = searching().fit(X, y)
    kinds = {"RandomForestClassifier": RandomForestClassifier, "linear": Pipeline}
    assert type(search.best_estimator_) is kinds[search.best_params_["estimator"]]
    assert search.score(X, y) > 0.8
    assert search.predict_proba(X).shape == (150, 3)
    only = [{"estimator": ["linear"]} | space_of([("linear", LINEAR)])[0]]
    edited = searching(space=only).fit(X, y)
    assert type(edited.best_estimator_) is Pipeline


def test_by_rows_in_time_and_in_a_directory(tmp_path):
    models = [SVC(), RandomForestClassifier(n_estimators=10)]
    by_rows = searching(models, resource="n_samples").fit(X, y)
    assert set(by_rows.cv_results_["param_estimator"]) == {
        "SVC",
        "RandomForestClassifier",
    }
    timed = searching([HistGradientBoostingClassifier(max_iter=9), FAMILIES[1]])
    timed.set_params(budget=None, timeout=1.0, max_epochs=None).fit(X, y)
    assert timed.best_estimator_.score(X, y) > 0.6
    for arm, params in enumerate(timed.cv_results_["params"]):
        curve = timed.curves_.get(arm, [])
        if len(curve) > 1 and params["estimator"] == "linear":
            mean, _ = best_half(list(curve))  # passes count by their best half
            assert timed.cv_results_["mean_test_score"][arm] == pytest.approx(mean)
        elif len(curve) > 0:
            assert timed.cv_results_["mean_test_score"][arm] == max(curve)
    first = searching(run_dir=tmp_path / "run").fit(X, y)
    assert searching(run_dir=tmp_path / "run").fit(X, y).history_ == first.history_


def test_it_is_cloned_printed_and_asked_for_its_parameters():
    search = searching()
    assert clone(search).get_params()["estimator"][1][0] == "linear"
    assert "RandomForestClassifier" in repr(search)
    assert "RandomForestClassifier" in search._repr_html_()
    assert search.__sklearn_tags__().estimator_type == "classifier"


@pytest.mark.parametrize(
    ("estimators", "error", "message"),
    [
        ([], InvalidParameterError, "no estimators: give at least one"),
        ([SVC(), SVC()], InvalidParameterError, "give pairs"),
        ([SVC(), Ridge()], InvalidParameterError, "SVC, Ridge are of several types"),
        (
            [RandomForestClassifier(), SVC()],
            NotTrainableError,
            r"SVC\(\) cannot .* \(resource='n_samples'\)",
        ),
    ],
)
def test_lists_that_cannot_be_searched(estimators, error, message):
    with pytest.raises(error, match=message):
        searching(estimators).fit(X, y)


@pytest.mark.parametrize(
    ("estimators", "message"),
    [
        ([("estimator", SVC())], "may be named 'estimator'"),
        ([(1, SVC())], "pairs of a name and an estimator; got"),
        ([("a", SVC(), 3)], "pairs of a name and an estimator; got"),
        ([3, SVC()], "pairs of a name and an estimator; got 3"),
        (("a", SVC()), "a list of estimators has estimators; got 'a'"),
    ],
)
def test_what_is_no_list_of_estimators_is_refused(estimators, message):
    with pytest.raises(InvalidParameterError, match=message):
        searching(estimators).fit(X, y)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"linear__sgdclassifier__alpha": [0.1, 0.2]}, "add 'estimator'"),
        ({"estimator": ["tree"], "linear__sgdclassifier__alpha": [0.1]}, "'tree'"),
    ],
)
def test_a_space_says_which_estimator_it_is_of(space, message):
    with pytest.raises(InvalidParameterError, match=message):
        searching(space=[space]).fit(X, y)
