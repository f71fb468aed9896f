"""What scikit-learn asks of any estimator, and of its searches."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_clusterer, is_regressor
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import make_classification
from sklearn.decomposition import IncrementalPCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge, SGDClassifier, SGDRegressor
from sklearn.model_selection import RandomizedSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from risingsearch import RisingSearchCV

SPACE = {"alpha": [1e-4, 1e-3]}


def rising(estimator, space, **options):
    options = {"budget": 6, "max_epochs": 4, "cv": 2, "random_state": 0} | options
    return RisingSearchCV(estimator, space, **options)


@pytest.fixture(scope="module")
def data():
    return make_classification(90, 6, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return rising(SGDClassifier(loss="log_loss"), SPACE).fit(*data)


# scikit-learn's checks warn of what they provoke.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "search",
    [
        RisingSearchCV(SGDClassifier(), SPACE, budget=4, cv=2),
        pytest.param(
            rising(Ridge(), {"alpha": [0.1, 1.0]}, resource="n_samples"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["classifier", "rows"],
)
def test_scikit_learn_checks(search):
    results = check_estimator(search, on_fail=None)
    assert len(results) > 40
    assert [result for result in results if result["status"] == "failed"] == []


class TestFace:
    def test_tags_are_those_of_the_estimator(self):
        assert is_classifier(rising(SGDClassifier(), SPACE))
        assert is_regressor(rising(SGDRegressor(), SPACE))
        assert is_clusterer(rising(MiniBatchKMeans(), SPACE))
        tags = get_tags(rising(MiniBatchKMeans(), SPACE))
        assert tags.input_tags.sparse
        assert not tags.target_tags.required
        assert tags.transformer_tags is not None

    def test_methods_are_those_of_the_estimator(self, data):
        search = rising(SGDClassifier(), SPACE)
        assert hasattr(search, "decision_function")
        for name in ("predict_proba", "transform", "score_samples"):
            assert not hasattr(search, name)
        assert hasattr(rising(MiniBatchKMeans(), SPACE), "transform")

    def test_methods_delegate_to_the_best_estimator(self, fitted, data):
        X, _ = data
        best = fitted.best_estimator_
        for name in (
            "predict",
            "predict_proba",
            "predict_log_proba",
            "decision_function",
        ):
            expected = getattr(best, name)(X / 100)
            np.testing.assert_array_equal(getattr(fitted, name)(X / 100), expected)
        assert fitted.n_features_in_ == 6
        assert fitted.classes_.tolist() == [0, 1]

    def test_transformers_delegate_too(self, data):
        X, _ = data
        search = rising(
            IncrementalPCA(),
            {"n_components": [2, 3]},
            scoring=lambda model, X, y=None: -model.noise_variance_,
            max_epochs=1,
            budget=2,
        ).fit(X)
        reduced = search.transform(X)
        assert reduced.shape == (90, search.best_params_["n_components"])
        assert search.inverse_transform(reduced).shape == X.shape

    def test_without_refit_the_error_says_why(self, data):
        search = rising(SGDClassifier(), SPACE, refit=False).fit(*data)
        assert not hasattr(search, "best_estimator_")
        assert not hasattr(search, "predict")
        for name in ("predict", "classes_", "n_features_in_"):
            with pytest.raises(AttributeError) as caught:
                getattr(search, name)
            reason = f"{caught.value} {caught.value.__cause__}"
            assert "refit=False" in reason or name == "n_features_in_"
        with pytest.raises(AttributeError, match="refit=False"):
            search.score(*data)

    def test_same_fitted_attributes_as_randomized_search(self, fitted, data):
        theirs = RandomizedSearchCV(SGDClassifier(), SPACE, n_iter=2, cv=2).fit(*data)
        names = {name for name in vars(theirs) if name[-1] == "_" and name[0] != "_"}
        assert [name for name in names if not hasattr(fitted, name)] == []


class TestCopies:
    def test_a_pickled_search_predicts_and_keeps_its_results(self, fitted, data):
        copy = pickle.loads(pickle.dumps(fitted))
        np.testing.assert_array_equal(copy.predict(data[0]), fitted.predict(data[0]))
        assert copy.score(*data) == fitted.score(*data)
        assert copy.history_ == fitted.history_
        assert copy.scheduler_.n_epochs == fitted.n_epochs_
        assert copy.cv_results_.keys() == fitted.cv_results_.keys()

    def test_a_pickled_search_leaves_data_and_executor_behind(self, data):
        X = np.random.default_rng(0).normal(size=(10_000, 20))
        y = X[:, 0] > 0
        with ThreadPoolExecutor(1) as executor:
            options = {"executor": executor, "max_epochs": 1, "budget": 1}
            search = rising(GaussianNB(), {"var_smoothing": [1e-9]}, **options)
            copy = pickle.loads(pickle.dumps(search.fit(X, y)))
        assert copy.executor is None
        assert len(pickle.dumps(copy)) < X.nbytes / 4

    @pytest.mark.parametrize("copied", [clone, lambda s: pickle.loads(pickle.dumps(s))])
    def test_a_copy_cannot_continue_and_has_no_result(self, fitted, copied):
        assert fitted.result().history == fitted.history_
        for call in (lambda: copied(fitted).continue_search(3), copied(fitted).result):
            with pytest.raises(NotFittedError, match="copies lack: call fit first"):
                call()

    def test_clones_share_the_executor(self, data):
        with ThreadPoolExecutor(1) as executor:
            search = rising(SGDClassifier(), SPACE, executor=executor)
            copy = clone(search)
            assert copy.executor is executor
            assert copy.estimator is not search.estimator
            assert copy.fit(*data).n_epochs_ == 6
