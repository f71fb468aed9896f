"""A search in a space by name, and the estimator's own configuration as first arm."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from risingsearch import RisingSearch, RisingSearchCV, space_of
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn import preparation
from risingsearch.space.by_name import starts_of

X, y = load_iris(return_X_y=True)
X = X / X.max(axis=0)
SPACE = {"alpha": loguniform(1e-6, 1e-1), "penalty": ["l2", "l1"]}
DEFAULT = {"alpha": 1e-4, "penalty": "l2"}


def searching(space=SPACE, estimator=None, **options):
    options = {"budget": 20, "max_epochs": 5, "cv": 0.3, "random_state": 0} | options
    return RisingSearchCV(estimator or SGDClassifier(), space, **options)


def opened(search):
    """Return the configurations in the order in which they were opened."""
    arms = dict.fromkeys(search.history_["arm"])
    return [search.cv_results_["params"][arm] for arm in arms]


class TestAuto:
    @pytest.mark.parametrize(
        ("estimator", "options"),
        [
            (SGDClassifier(alpha=0.3), {}),
            (MLPClassifier(hidden_layer_sizes=(7,)), {}),
            (HistGradientBoostingClassifier(), {}),
            (SVC(gamma=4.0), {"resource": "n_samples"}),
        ],
    )
    def test_begins_with_the_estimator_as_it_is(self, estimator, options):
        search = searching("auto", estimator, **options).fit(X, y)
        first = opened(search)[0]
        assert first == search.cv_results_["params"][0]
        assert set(first) <= set(space_of(estimator))
        alike = clone(estimator).set_params(**first)
        assert repr(alike) == repr(estimator)
        assert search.best_score_ >= search.cv_results_["mean_test_score"][0]
        assert search.n_candidates_ == 20

    def test_is_the_search_in_the_space_that_is_printed(self):
        auto = searching("auto").fit(X, y)
        edited = searching(space_of("SGDClassifier")).fit(X, y)
        assert edited.best_params_ == auto.best_params_
        assert edited.history_["score"] == auto.history_["score"]

    @pytest.mark.parametrize("pair", [list, tuple])
    def test_lists_stand_for_tuples(self, pair):
        texts = [f"good {k}" if k % 2 else f"bad {k}" for k in range(40)]
        model = make_pipeline(TfidfVectorizer(), SGDClassifier())
        space = {"tfidfvectorizer__ngram_range": [pair([1, 1]), pair([1, 2])]}
        search = searching(space, model, cv=2).fit(texts, [0, 1] * 20)
        assert search.cv_results_["status"].tolist() == ["finished"] * 2
        fitted = search.best_estimator_.get_params()["tfidfvectorizer__ngram_range"]
        assert isinstance(fitted, tuple)
        values = space_of(model)["tfidfvectorizer__ngram_range"]["values"]
        assert values == [(1, 1), (1, 2)]

    def test_an_unknown_estimator_is_named(self):
        class Mine(HistGradientBoostingClassifier):
            pass

        assert searching("auto", Mine(), budget=4).fit(X, y).n_candidates_ == 4
        with pytest.raises(InvalidParameterError, match="unknown estimator 'Perceptr"):
            searching("auto", Perceptron()).fit(X, y)


class TestOwnFirst:
    @pytest.mark.parametrize(
        "space",
        [
            SPACE,
            {"alpha": [1e-5, 1e-4, 1e-3], "penalty": ["l1", "l2"]},
            [{"penalty": ["elasticnet"]}, SPACE],
        ],
    )
    def test_in_a_space_that_holds_it(self, space):
        search = searching(space).fit(X, y)
        assert opened(search)[0] == search.cv_results_["params"][0] == DEFAULT

    @pytest.mark.parametrize(
        "space",
        [
            {"alpha": loguniform(1e-3, 1.0), "penalty": ["l2"]},
            {"alpha": [1e-4], "penalty": ["l1", "elasticnet"]},
            [{"alpha": 1e-3}, {"alpha": 1e-2}],
        ],
    )
    def test_in_no_space_that_does_not(self, space):
        search = searching(space).fit(X, y)
        assert DEFAULT not in list(search.cv_results_["params"])
        assert {"alpha": 1e-4} not in list(search.cv_results_["params"])

    def test_a_list_keeps_its_order(self):
        listed = [{"alpha": 1e-2}, {"alpha": 1e-4}, {"alpha": 1e-3}]
        search = searching(listed).fit(X, y)
        assert list(search.cv_results_["params"]) == listed
        assert opened(search)[0] == {"alpha": 1e-4}

    def test_is_opened_after_what_is_enqueued(self):
        known = {"alpha": 0.05, "penalty": "l1"}
        search = searching(enqueue=[known, DEFAULT]).fit(X, y)
        assert opened(search)[:2] == [known, DEFAULT]
        search = searching(enqueue=[known]).fit(X, y)
        assert opened(search)[:2] == [known, DEFAULT]

    def test_is_one_of_the_candidates_that_are_asked_for(self):
        search = searching(n_candidates=3).fit(X, y)
        assert search.n_candidates_ == 3
        assert searching(budget=1, refit=False).fit(X, y).n_candidates_ == 1


class TestRunDirectory:
    def test_a_search_continues_with_its_first_arms(self, tmp_path):
        first = searching("auto", run_dir=tmp_path / "run").fit(X, y)
        again = searching("auto", run_dir=tmp_path / "run").fit(X, y)
        assert again.history_ == first.history_
        assert (
            RisingSearch.saved_result(tmp_path / "run").candidates[0]
            == (first.cv_results_["params"][0])
        )

    def test_a_search_begun_before_gets_no_other_first_arm(self, tmp_path, monkeypatch):
        def none(*arguments, **options):
            return [], []

        with monkeypatch.context() as before:
            before.setattr(preparation, "first_configurations", none)
            first = searching(run_dir=tmp_path / "run").fit(X, y)
        again = searching(run_dir=tmp_path / "run").fit(X, y)
        assert DEFAULT not in list(first.cv_results_["params"])
        assert again.history_ == first.history_
        assert again.continue_search(5).n_epochs_ == 25


class TestPortfolio:
    def test_its_starts_come_after_the_estimator_itself(self):
        search = searching("auto", prior="package", estimator=SGDClassifier()).fit(X, y)
        starts = starts_of("SGDClassifier")
        assert opened(search)[1:9] == starts
        assert search.n_candidates_ == 20
        assert search.trust_in_prior_ == {}

    def test_in_a_space_of_yours_are_those_that_lie_in_it(self):
        space = {"alpha": loguniform(1e-7, 0.1), "average": [False, True]}
        search = searching(space, prior="package", budget=30).fit(X, y)
        starts = [
            {name: start[name] for name in space}
            for start in starts_of(SGDClassifier())
        ]
        assert all(start in opened(search) for start in starts)

    def test_of_an_estimator_without_any_is_refused(self):
        model = make_pipeline(TfidfVectorizer(), SVC(kernel="linear"))
        message = "prior='package' has no starts of "
        with pytest.raises(InvalidParameterError, match=message):
            searching({"svc__degree": [2, 3]}, model, prior="package").fit(X, y)


def test_the_defaults_are_never_missed_in_a_time():
    X, y = load_breast_cancer(return_X_y=True)
    search = RisingSearchCV(
        HistGradientBoostingClassifier(max_iter=20),
        "auto",
        budget=40,
        max_epochs=20,
        cv=0.3,
        scoring="neg_log_loss",
        random_state=0,
    ).fit(X[::3], y[::3])
    assert search.best_score_ >= np.nanmax(search.curves_[0])


def test_no_limit_that_was_chosen_stays_none():
    model = HistGradientBoostingClassifier(max_leaf_nodes=None, max_depth=2)
    search = searching("auto", model).fit(X, y)
    assert search.cv_results_["params"][0]["max_leaf_nodes"] is None


def test_a_value_may_be_an_array():
    model = MLPClassifier(np.array([5, 5]))
    assert searching("auto", model, max_epochs=3).fit(X, y).best_score_ > 0.0


def test_a_small_budget_opens_fewer_learnt_starts():
    search = searching("auto", budget=3, prior="package").fit(X, y)
    assert sum(search.cv_results_["epochs"]) == 3
