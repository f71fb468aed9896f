"""``corrected_score_``, ``corrected_interval_`` and ``tied_``, from predictions."""

import pickle

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import scale

from risingsearch import RisingSearch
from risingsearch.integrations.sklearn import RisingSearchCV, scoring

X, Y = load_breast_cancer(return_X_y=True)
X = scale(X)[:, :4]
SPACE = {"alpha": [1e-4, 1e-3, 1e-2, 0.1, 1.0], "penalty": ["l2", "l1"]}


def searched(X=X, y=Y, estimator=None, **more):
    arguments = {"budget": 30, "max_epochs": 6, "cv": 0.3, "random_state": 0, **more}
    estimator = estimator or SGDClassifier(loss="log_loss")
    return RisingSearchCV(estimator, SPACE, **arguments).fit(X, y)


def kept(search):
    """What is kept of the test rows of the winner."""
    return search._evidence_.examples[search.best_index_]


@pytest.mark.parametrize("scoring", [None, "accuracy", "neg_log_loss"])
@pytest.mark.parametrize("cv", [0.3, 4, ShuffleSplit(3, test_size=0.4, random_state=0)])
def test_the_mean_of_the_rows_is_the_score(scoring, cv):
    search = searched(scoring=scoring, cv=cv)
    assert kept(search).mean() == pytest.approx(search.best_score_, rel=1e-5)
    n = len(np.unique(np.concatenate([test for _, test in search._run.folds.splits])))
    assert search.corrected_source_ == f"bootstrap of {n} examples"
    low, high = search.corrected_interval_
    assert low < search.corrected_score_ < high
    assert search.best_index_ not in search.tied_


@pytest.mark.parametrize(
    "scoring", ["roc_auc", "f1", "balanced_accuracy", "average_precision"]
)
@pytest.mark.parametrize("cv", [0.3, 3])
def test_other_metrics_are_computed_anew_from_predictions(scoring, cv):
    search = searched(scoring=scoring, cv=cv)
    of_blocks = search._run.folds.scores_of(kept(search))
    assert of_blocks.mean() == pytest.approx(search.best_score_, rel=1e-5)
    assert search.corrected_source_.startswith("bootstrap of ")
    low, high = search.corrected_interval_
    assert low < search.corrected_score_ < high
    assert 0.01 < high - low < 0.2


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc"])
def test_of_boosted_trees_those_with_the_best_score_are_corrected(scoring):
    space = {"learning_rate": [0.5, 1.0]}
    trees = HistGradientBoostingClassifier(max_iter=20, early_stopping=False)
    search = RisingSearchCV(
        trees,
        space,
        budget="1h",  # more than all of them take
        steps_per_epoch=5,
        scoring=scoring,
        cv=3,
        random_state=0,
    ).fit(X, Y)
    assert search.cv_results_["n_trees"][search.best_index_] % 5 > 0
    values = kept(search)
    if values.ndim == 2:
        values = search._run.folds.scores_of(values)
    assert values.mean() == pytest.approx(search.best_score_, rel=1e-5)
    assert search.corrected_source_.startswith("bootstrap of ")


def test_labels_may_be_text():
    numbers = searched(scoring="f1_macro", cv=3)
    words = searched(y=np.array(["no", "yes"])[Y], scoring="f1_macro", cv=3)
    assert words.corrected_interval_ == pytest.approx(numbers.corrected_interval_)


@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "neg_mean_squared_error",
        "neg_root_mean_squared_error",
        make_scorer(mean_absolute_error, greater_is_better=False),
    ],
)
def test_regressors_are_corrected_too(scoring):
    rows, targets = load_diabetes(return_X_y=True)
    search = searched(scale(rows), targets, SGDRegressor(), scoring=scoring)
    assert search.corrected_source_.startswith("bootstrap of ")
    low, high = search.corrected_interval_
    assert low < search.corrected_score_ < high


def test_of_several_metrics_the_one_that_schedules_is_corrected():
    search = searched(scoring=["roc_auc", "accuracy"], refit="accuracy")
    assert kept(search).mean() == pytest.approx(search.best_score_)
    assert search.corrected_source_ == "bootstrap of 171 examples"


def test_a_callable_without_predictions_is_said_to_be_one():
    search = searched(scoring=lambda estimator, X, y: estimator.score(X, y))
    assert search.corrected_source_.startswith("scoring gives no predictions: ")


def test_groups_are_drawn_as_a_whole():
    groups = np.arange(len(Y)) // 10
    search = RisingSearchCV(
        SGDClassifier(), SPACE, budget=30, max_epochs=6, cv=3, random_state=0
    ).fit(X, Y, groups=groups)
    assert search.corrected_source_ == "bootstrap of 57 examples"
    assert kept(search).mean() == pytest.approx(search.best_score_, rel=1e-5)


def test_weighted_rows_have_the_weighted_mean():
    weights = np.random.default_rng(0).random(len(Y))
    search = RisingSearchCV(
        SGDClassifier(loss="log_loss"),
        SPACE,
        budget=30,
        max_epochs=6,
        cv=3,
        random_state=0,
        scoring="neg_log_loss",
    ).fit(X, Y, sample_weight=weights)
    assert kept(search).mean() == pytest.approx(search.best_score_, rel=1e-5)


def test_threads_keep_the_same_examples():
    alone = searched()
    with parallel_config("threading", n_jobs=2):
        together = searched(n_jobs=2, deterministic=True, budget=30)
    assert together.corrected_source_ == alone.corrected_source_


def test_a_search_that_is_opened_again_has_the_same_verdict(tmp_path):
    whole = searched(scoring="roc_auc")

    def stop_early(epoch):
        if epoch.number == 11:
            epoch.stop()

    arguments = {"scoring": "roc_auc", "run_dir": tmp_path}
    searched(callbacks=[stop_early], **arguments)
    resumed = searched(**arguments)
    again = searched(**arguments)
    for search in (resumed, again):
        assert search.n_epochs_ == 30
        assert search._verdict == whole._verdict


def test_the_command_line_reads_the_verdict_of_a_mean(tmp_path):
    search = searched(run_dir=tmp_path)
    saved = RisingSearch.saved_result(tmp_path)
    assert saved.corrected_interval == search.corrected_interval_
    assert saved.tied == search.tied_ == search.result().tied


def test_the_verdict_is_in_the_table_of_arms_the_notebook_and_a_pickle():
    search = searched()
    assert repr(search.explain()).endswith(search._verdict.text)
    assert search._verdict.text in search._repr_html_()
    copy = pickle.loads(pickle.dumps(search))
    assert copy.corrected_interval_ == search.corrected_interval_


def test_a_sample_of_many_predictions_is_kept(monkeypatch):
    monkeypatch.setattr(scoring, "MOST_PREDICTIONS", 60)
    search = searched(scoring="roc_auc", cv=3)
    assert kept(search).shape == (180, 1)
    low, high = search.corrected_interval_
    assert low < search.corrected_score_ < high


def test_a_metric_that_needs_all_rows_of_a_class_leaves_the_curves():
    rare = np.r_[np.flatnonzero(Y)[:100], np.flatnonzero(Y == 0)[:3]]
    search = searched(X[rare], Y[rare], scoring="roc_auc", cv=3)
    assert "from epoch to epoch" in search.corrected_source_


def test_before_fit_there_is_none():
    search = RisingSearchCV(SGDClassifier(), SPACE, budget=30)
    assert not hasattr(search, "tied_")
    with pytest.raises(NotFittedError):
        search.corrected_score_  # noqa: B018


def test_an_interval_lies_within_the_range_of_the_metric():
    search = searched(X[:80], Y[:80], scoring="roc_auc")
    assert search.corrected_interval_[1] <= 1.0


def test_weights_are_no_reason_to_guess():
    fitted = RisingSearchCV(
        SGDClassifier(), SPACE, budget=30, max_epochs=6, cv=0.3, random_state=0
    ).fit(X, Y, sample_weight=np.where(Y, 1.0, 3.0))
    assert "bootstrap" in fitted.corrected_source_


def test_test_rows_of_a_single_group_are_scored_all_the_same():
    fitted = RisingSearchCV(
        SGDClassifier(), SPACE, budget=30, max_epochs=6, cv=0.25, random_state=0
    ).fit(X, Y, groups=np.arange(len(X)) // (len(X) // 4 + 1))
    assert fitted.best_score_ > 0.5
