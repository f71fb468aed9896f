"""Targets of all kinds, their scores, and what else other searches take."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from risingsearch import RisingSearchCV
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.search_run import _threads

X, LABELS = make_multilabel_classification(80, 5, n_classes=3, random_state=0)
Y = LABELS[:, 0]
LOGISTIC = SGDClassifier(loss="log_loss", random_state=0)


def rising(estimator, space=({},), y=Y, **options):
    options = {"budget": 2, "max_epochs": 2, "cv": 0.25, "random_state": 0} | options
    return RisingSearchCV(estimator, list(space), **options).fit(X, y)


RARE = {
    "one row": np.where(np.arange(80) == 3, 2, Y),
    "names": np.where(np.arange(80) == 3, "rare", "often"),
    "many classes": np.arange(80) // 2,
    "only single rows": np.arange(80),
    "column": np.arange(80)[:, None] // 2,
}


@pytest.mark.parametrize("y", RARE.values(), ids=RARE)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_a_share_is_held_out_where_a_class_is_rare(y):
    with pytest.warns(UserWarning, match=r"cv=0.25 holds out 20 of 80 rows, which ca"):
        search = rising(SGDClassifier(), y=y, refit="best")
    assert search.best_estimator_.classes_.tolist() == np.unique(y).tolist()


@pytest.mark.parametrize("share", [0.99, 0.999])
def test_a_share_that_leaves_no_row_is_refused(share):
    with pytest.raises(InvalidParameterError, match="holds out all n_samples=80 rows"):
        rising(SGDClassifier(), cv=share)


@pytest.mark.parametrize("targets", [np.asarray, csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("estimator", "scoring"),
    [
        (OneVsRestClassifier(LOGISTIC), None),
        (OneVsRestClassifier(LOGISTIC), "f1_micro"),
        (make_pipeline(StandardScaler(), OneVsRestClassifier(LOGISTIC)), "f1_macro"),
    ],
)
def test_one_versus_the_rest_with_several_labels(estimator, scoring, targets):
    search = rising(estimator, y=targets(LABELS), scoring=scoring)
    assert search.predict(X).shape == (80, 3)
    alone = SGDClassifier(loss="log_loss", random_state=0)
    model = search.best_estimator_
    if scoring is None:
        for _ in range(search.best_epoch_):
            alone.partial_fit(X, LABELS[:, 1], classes=[0, 1])
        of_label = model.estimators_[1]
        np.testing.assert_array_equal(of_label.predict(X), alone.predict(X))


@pytest.mark.parametrize("scoring", ["f1_macro", "roc_auc", ["accuracy", "f1_micro"]])
@pytest.mark.parametrize("prefix", [(), (StandardScaler(),)])
def test_several_outputs_with_named_scorers(prefix, scoring):
    model = make_pipeline(*prefix, MultiOutputClassifier(LOGISTIC))
    refit = "f1_micro" if isinstance(scoring, list) else True
    search = rising(model, y=LABELS, scoring=scoring, refit=refit)
    assert search.best_score_ > 0.3
    assert [labels.tolist() for labels in search.classes_] == [[0, 1]] * 3


def two(model, X, y):
    return {"share": model.score(X, y), "constant": 1.0}


@pytest.mark.parametrize("refit", [False, lambda results: 1])
def test_a_scorer_that_returns_a_dict_schedules_by_its_first_metric(refit):
    space = [{"alpha": 1e-4}, {"alpha": 1e-2}]
    options = {"refit": refit, "policy": "round-robin", "max_epochs": 1}
    search = rising(SGDClassifier(), space, scoring=two, **options)
    assert search.multimetric_
    shares = search.cv_results_["mean_test_share"]
    assert search.history_["score"] == [shares[row["arm"]] for row in search.history_]
    assert hasattr(search, "best_index_") == bool(refit)
    one = rising(SGDClassifier(), space, scoring=lambda *_: 0.5, **options)
    assert not one.multimetric_


def test_a_scorer_that_returns_a_dict_needs_a_name_to_refit():
    with pytest.raises(
        InvalidParameterError, match=r"set refit to the name .* or to Fa"
    ):
        rising(SGDClassifier(), scoring=two)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (SGDClassifier(), Y[:, None]),
        (make_pipeline(StandardScaler(), SGDClassifier()), pd.DataFrame(Y)),
        (SGDClassifier(), Y[:, None].tolist()),
        (SGDRegressor(), Y[:, None] + 0.5),
    ],
)
def test_one_column_is_warned_of_once(estimator, y):
    with pytest.warns(DataConversionWarning) as caught:
        search = rising(estimator, y=y)
    assert len(caught) == 1
    assert search.predict(X).shape == (80,)


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (MultiOutputRegressor(SGDRegressor()), {}),
        (KNeighborsRegressor(), {"resource": "n_samples", "budget": 5}),
    ],
)
def test_one_column_stays_one_where_it_may_be(estimator, options):
    search = rising(estimator, y=Y[:, None] * 1.0, **options)
    assert search.predict(X).shape == (80, 1)


def test_nan_among_the_candidates_is_the_same_value():
    class Filling(SGDClassifier):
        def __init__(self, missing=0.0):
            super().__init__()
            self.missing = missing

    space = [{"missing": float("nan")}, {"missing": 1.0}]
    search = rising(Filling(), space, enqueue=[{"missing": float("nan")}])
    assert search.n_candidates_ == 2


class Recorder(SGDClassifier):
    """Counts the calls in this process."""

    calls = 0

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        type(self).calls += 1
        return super().partial_fit(X, y, classes, sample_weight)


def test_threads_are_used_where_joblib_says_so():
    Recorder.calls = 0
    with joblib.parallel_config(backend="threading", n_jobs=2):
        search = rising(Recorder(), refit=False, max_epochs=3)
    assert Recorder.calls == 2
    assert search.continue_search(1).n_epochs_ == 3


def test_backends_that_are_not_followed_are_said():
    class Elsewhere(joblib._parallel_backends.ThreadingBackend):
        pass

    joblib.register_parallel_backend("elsewhere", Elsewhere)
    with (
        joblib.parallel_config(backend="elsewhere", n_jobs=2),
        pytest.warns(UserWarning, match="Elsewhere of joblib's parallel_config is not"),
    ):
        assert _threads(2) is None
