"""Scorers, several metrics, and the metadata that go to models and scorers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import (
    accuracy_score,
    check_scoring,
    get_scorer,
    log_loss,
    make_scorer,
)
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

import risingsearch.integrations.sklearn
from risingsearch import RisingSearch, RisingSearchCV
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.scoring import metric_name

SPACE = [{"alpha": 1e-6}, {"alpha": 1e-2}]
X, Y = make_classification(60, 6, random_state=0)
ROWS = np.column_stack([np.arange(60), X])
WEIGHTS = np.arange(60) / 60


def rising(estimator, space=SPACE, **options):
    options = {"budget": 4, "cv": 3, "random_state": 0, "refit": False} | options
    return RisingSearchCV(estimator, space, **options)


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers which rows came with which metadata; column 0 of X names the row."""

    seen: list = []  # noqa: RUF012

    def __init__(self, alpha=0.0):
        self.alpha = alpha

    def fit(self, X, y):
        raise AssertionError("the search trains by epochs")

    def partial_fit(self, X, y, classes=None, sample_weight=None, note=None):
        self.classes_ = classes
        self.seen.append(("trained", X[:, 0].astype(int), sample_weight, note))
        return self

    def score(self, X, y, sample_weight=None):
        self.seen.append(("scored", X[:, 0].astype(int), sample_weight, None))
        return self.alpha


@pytest.fixture
def seen():
    Recorder.seen.clear()
    return Recorder.seen


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def accuracy_and_loss(model, X, y):
    return {"accuracy": model.score(X, y), "loss": -log_loss(y, model.predict_proba(X))}


@pytest.mark.parametrize(
    ("weights", "reaches"),
    [(compute_sample_weight({0: 1, 1: 9}, Y), False), (WEIGHTS, True)],
)
def test_weights_of_classes_are_for_the_training_alone(seen, weights, reaches):
    rising(Recorder()).fit(ROWS, Y, sample_weight=weights)
    given = {
        who: [w is not None for name, _, w, _ in seen if name == who]
        for who in ("trained", "scored")
    }
    assert set(given["trained"]) == {True}
    assert set(given["scored"]) == {reaches}


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("groups", [{}, {"groups": np.arange(60) // 6}])
def test_routing_without_metadata_of_the_steps(groups):
    pipeline = make_pipeline(
        "passthrough", make_pipeline(StandardScaler(), SGDClassifier(random_state=0))
    )
    space = [{"pipeline__sgdclassifier__alpha": 1e-3}]
    splitter = GroupKFold(3) if groups else 3
    search = rising(pipeline, space, cv=splitter).fit(X, Y, **groups)
    assert search.best_score_ > 0.5


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("cv", [0.25, 3, None])
def test_groups_stay_together_with_routing_too(seen, cv):
    groups = np.arange(60) % 10
    rising(Recorder(), cv=cv).fit(ROWS, Y, groups=groups)
    assert {who for who, *_ in seen} == {"trained", "scored"}
    for (_, train, *_), (_, test, *_) in zip(seen[::2], seen[1::2], strict=True):
        assert not {*groups[train]} & {*groups[test]}


class TestSingleMetric:
    @pytest.mark.parametrize("labels", [int, bool, str])
    @pytest.mark.parametrize(
        "scoring",
        [
            *(None, "accuracy", "balanced_accuracy"),
            make_scorer(accuracy_score, normalize=False),
            make_scorer(accuracy_score, greater_is_better=False),
            lambda model, X, y: np.float32(model.score(X, y)),
        ],
    )
    def test_kinds(self, scoring, labels):
        y, train, test = Y.astype(labels), np.arange(41), np.arange(41, 60)
        search = rising(SGDClassifier(), cv=[(train, test)], refit="best")
        search.set_params(scoring=scoring).fit(X, y)
        model = search.best_estimator_
        expected = check_scoring(model, scoring)(model, X[test], y[test])
        assert search.score(X[test], y[test]) == search.best_score_ == expected
        assert not search.multimetric_

    def test_scores_are_better_when_higher(self):
        search = rising(SGDRegressor(), scoring="neg_mean_squared_error").fit(X, Y)
        assert search.best_score_ < 0
        assert search.best_score_ == max(search.history_["score"])

    @pytest.mark.parametrize("refit", ["accuracy", "ful", "Best"])
    @pytest.mark.parametrize("scoring", [None, "accuracy", Recorder.score])
    def test_refit_cannot_name_a_metric(self, seen, scoring, refit):
        search = rising(Recorder(), scoring=scoring, refit=refit)
        allowed = "True, False, 'full', 'best' or a callable; got " + repr(refit)
        with pytest.raises(InvalidParameterError, match=allowed):
            search.fit(ROWS, Y)
        assert len(seen) == 2 * callable(scoring)  # whose scores are known by then

    def test_no_private_module_of_scorers_is_imported(self):
        sources = Path(risingsearch.integrations.sklearn.__file__).parent.glob("*.py")
        text = "".join(path.read_text() for path in sources)
        assert "sklearn.metrics import" in text
        assert "sklearn.metrics._" not in text


class TestSeveralMetrics:
    @pytest.mark.parametrize(
        "scoring",
        [
            ["accuracy", "neg_log_loss"],
            ("accuracy", "neg_log_loss"),
            {"accuracy": "accuracy", "neg_log_loss": get_scorer("neg_log_loss")},
        ],
    )
    def test_refit_names_the_one_that_schedules(self, scoring):
        search = rising(
            SGDClassifier(loss="log_loss", alpha=0.1),
            [{"penalty": "l1"}, {"penalty": "l2"}],
            scoring=scoring,
            refit="neg_log_loss",
            return_train_score=True,
        ).fit(X / 100, Y)
        results = search.cv_results_
        assert search.multimetric_
        assert set(search.scorer_) == {"accuracy", "neg_log_loss"}
        for name in ("accuracy", "neg_log_loss"):
            assert results[f"mean_test_{name}"].shape == (2,)
            assert results[f"split2_train_{name}"].shape == (2,)
        assert "mean_test_score" not in results
        assert search.best_score_ == max(search.history_["score"])
        assert search.best_score_ == results["mean_test_neg_log_loss"].max()
        expected = get_scorer("neg_log_loss")(search.best_estimator_, X, Y)
        assert search.score(X, Y) == expected

    def test_callable_that_returns_a_dict(self):
        search = rising(
            SGDClassifier(loss="log_loss", alpha=0.1),
            [{"penalty": "l1"}, {"penalty": "l2"}],
            scoring=accuracy_and_loss,
            refit="loss",
        ).fit(X / 100, Y)
        assert search.multimetric_
        assert search.best_score_ == search.cv_results_["mean_test_loss"].max()
        assert search.score(X, Y) == accuracy_and_loss(search, X, Y)["loss"]

    @pytest.mark.parametrize(
        "scoring", [["f1", "accuracy"], {"f1": "f1", "a": "accuracy"}]
    )
    def test_without_refit_the_first_schedules(self, scoring):
        search = rising(SGDClassifier(), scoring=scoring, refit=False).fit(X, Y)
        grid = GridSearchCV(SGDClassifier(), {"alpha": [1.0]}, scoring=scoring, cv=3)
        grid.set_params(refit=False).fit(X, Y)
        assert search.multimetric_
        for name in ("best_index_", "best_params_", "best_score_", "best_estimator_"):
            assert not hasattr(grid, name)
            assert not hasattr(search, name)
        ours, theirs = (
            {name for name in results if name.startswith("mean_test")}
            for results in (search.cv_results_, grid.cv_results_)
        )
        assert ours == theirs
        assert search.plot_curves().get_ylabel() == "f1"
        best = search.cv_results_["mean_test_f1"].max()
        assert best == max(search.history_["score"])

    def test_a_callable_chooses_among_several(self):
        def by_accuracy(results):
            return int(np.argmax(results["mean_test_accuracy"]))

        scoring = ["f1", "accuracy"]
        search = rising(SGDClassifier(), scoring=scoring, refit=by_accuracy).fit(X, Y)
        assert search.best_index_ == by_accuracy(search.cv_results_)
        assert not hasattr(search, "best_score_")
        assert search.predict(X).shape == (60,)

    @pytest.mark.parametrize("refit", [True, "best", "auc"])
    @pytest.mark.parametrize(
        ("scoring", "said"),
        [
            (["accuracy", "f1"], r"one of \['accuracy', 'f1'\]"),
            (accuracy_and_loss, r"'loss'\]: set refit to the"),
        ],
    )
    def test_refit_must_name_one(self, scoring, said, refit):
        model = SGDClassifier(loss="log_loss")
        search = rising(model, scoring=scoring, refit=refit, cv=0.3)
        with pytest.raises(InvalidParameterError, match=said):
            search.fit(X / 100, Y)


class TestMetadata:
    def test_weights_are_sliced_for_every_fold(self, seen):
        rising(Recorder()).fit(ROWS, Y, sample_weight=WEIGHTS)
        assert len(seen) == 4 * 3 * 2
        for _, rows, weights, _ in seen:
            np.testing.assert_array_equal(weights, WEIGHTS[rows])

    def test_refit_gets_them_whole(self, seen):
        rising(Recorder(), refit=True).fit(ROWS, Y, sample_weight=WEIGHTS)
        np.testing.assert_array_equal(seen[-1][2], WEIGHTS)

    def test_other_parameters_pass_as_they_are(self, seen):
        rising(Recorder()).fit(ROWS, Y, note="as it is")
        assert {note for kind, *_, note in seen if kind == "trained"} == {"as it is"}

    def test_a_scorer_without_weights_is_warned_of(self, seen):
        search = rising(Recorder(), scoring=lambda model, X, y: model.score(X, y))
        with pytest.warns(UserWarning, match="does not support sample_weight"):
            search.fit(ROWS, Y, sample_weight=WEIGHTS)
        assert all(weights is None for kind, _, weights, _ in seen if kind == "scored")

    def test_of_a_pipeline_by_prefix(self):
        pipeline = make_pipeline(StandardScaler(), SGDClassifier())
        space = [{"sgdclassifier__alpha": 1e-4}]
        weights = 1e-9 + (X[:, 0] > 0)
        search = rising(pipeline, space, refit=True)
        search.fit(X, Y, sgdclassifier__sample_weight=weights)
        by_hand = SGDClassifier(
            alpha=1e-4,
            random_state=search.best_params_.get("random_state")
            or search.best_estimator_[-1].random_state,
        )
        scaled = StandardScaler().fit_transform(X)
        for _ in range(search.best_epoch_):
            by_hand.partial_fit(scaled, Y, classes=[0, 1], sample_weight=weights)
        np.testing.assert_allclose(search.best_estimator_[-1].coef_, by_hand.coef_)

    def test_a_wrong_prefix_is_an_error_at_once(self):
        search = rising(make_pipeline(SGDClassifier()), [{}])
        with pytest.raises(InvalidParameterError, match="prefixed with a step"):
            search.fit(X, Y, sample_weight=WEIGHTS)


@pytest.mark.usefixtures("routing")
class TestRouting:
    def test_the_request_for_partial_fit_decides(self, seen):
        model = Recorder().set_partial_fit_request(sample_weight=True, note=True)
        model.set_score_request(sample_weight=False)
        rising(model).fit(ROWS, Y, sample_weight=WEIGHTS, note="routed")
        for kind, rows, weights, note in seen:
            if kind == "trained":
                np.testing.assert_array_equal(weights, WEIGHTS[rows])
                assert note == "routed"
            else:
                assert weights is None

    def test_the_scorers_request_decides(self, seen):
        model = Recorder().set_partial_fit_request(sample_weight=False)
        model.set_score_request(sample_weight="importance")
        search = rising(model, refit=True)
        search.fit(ROWS, Y, importance=WEIGHTS)
        for kind, rows, weights, _ in seen:
            if kind == "trained":
                assert weights is None
            else:
                np.testing.assert_array_equal(weights, WEIGHTS[rows])
        search.score(ROWS, Y, importance=WEIGHTS)
        np.testing.assert_array_equal(seen[-1][2], WEIGHTS)

    def test_groups_go_to_the_splitter(self, seen):
        groups = np.arange(60) // 5
        rising(Recorder(), cv=GroupKFold(3)).fit(ROWS, Y, groups=groups)
        for (_, train, *_), (_, test, *_) in zip(seen[::2], seen[1::2], strict=True):
            assert set(groups[train]).isdisjoint(groups[test])

    def test_what_nobody_requested_is_an_error(self):
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            rising(SGDClassifier()).fit(X, Y, sample_weight=WEIGHTS)
        with pytest.raises(TypeError, match=r"unexpected argument.*nonsense"):
            rising(SGDClassifier()).fit(X, Y, nonsense=1)


@pytest.mark.parametrize(
    ("scoring", "called"),
    [
        (None, "score"),
        ("f1_macro", "f1_macro"),
        (accuracy_score, "accuracy_score"),
        (make_scorer(log_loss, greater_is_better=False), "neg_log_loss"),
        (lambda model, X, y: 0.5, "score"),
    ],
)
def test_the_score_goes_by_the_name_of_its_metric(scoring, called):
    assert metric_name(scoring) == called


def test_a_run_directory_keeps_the_name(tmp_path):
    options = {"scoring": ["accuracy", "f1"], "refit": "f1", "random_state": 0}
    search = rising(SGDClassifier(), run_dir=tmp_path / "run", **options).fit(X, Y)
    result = RisingSearch.saved_result(tmp_path / "run")
    assert result.metric == "f1"
    assert "split0_test_accuracy" in result.other_metrics
    assert search.plot_curves().get_ylabel() == "f1"
