from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn import ensemble
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import Birch, MiniBatchKMeans
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import ComplementNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.epoch_methods import COUNTERS, epoch_method
from risingsearch.integrations.sklearn.estimators import EpochTrainer, class_labels
from risingsearch.integrations.sklearn.transformers import RowCache
from tests.integrations.sklearn.test_epoch_methods import LGBM, SCALED_SGD, XGB, Counter

X, Y = make_classification(120, n_features=8, n_informative=5, random_state=0)
WEIGHTS = np.linspace(0.1, 3.0, len(Y))


def trained(estimator, epochs=3, steps_per_epoch=1, X=X, y=Y, **fit_params):
    trainer = EpochTrainer(clone(estimator), steps_per_epoch)
    for _ in range(epochs):
        trainer.train(X, y, **fit_params)
    return trainer.estimator


def outputs(estimator, X=X):
    for method in ("predict_proba", "decision_function", "predict"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X)
    raise AssertionError


class CountingScaler(StandardScaler):
    fits = 0

    def fit(self, X, y=None, sample_weight=None):
        type(self).fits += 1
        return super().fit(X, y, sample_weight=sample_weight)


class Logged(MultinomialNB):
    """Adds to what one of scikit-learn's does, and trains no further either."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        return super().partial_fit(X, y, classes, sample_weight)


class Adding(BaseEstimator):
    """Adds ``n_estimators`` learners in every call, and notes each call."""

    def __init__(self, n_estimators=500):
        self.n_estimators = n_estimators

    def partial_fit(self, X, y):
        before = getattr(self, "learners_", [])
        self.learners_ = [*before, *range(self.n_estimators)]
        self.losses_ = [*getattr(self, "losses_", []), 0.0]
        return self


class Members(BaseEstimator):
    """Passes rows to ``n_estimators`` members, as incremental forests do."""

    def __init__(self, n_estimators=5):
        self.n_estimators = n_estimators

    def partial_fit(self, X, y):
        before = getattr(self, "passes_", [0] * self.n_estimators)
        self.passes_ = [n + 1 for n in before]
        return self


class Noise(TransformerMixin, BaseEstimator):
    """Gives training rows something that transform does not."""

    def fit(self, X, y=None):
        return self

    def fit_transform(self, X, y=None):
        return X + np.random.RandomState(0).normal(size=X.shape)

    def transform(self, X):
        return X

    def __sklearn_is_fitted__(self):
        return True


class TestClasses:
    def test_labels_of_all_rows_serve_a_fold_that_lacks_one(self):
        y = np.repeat(["a", "b", "c"], 40)
        labels = class_labels(SCALED_SGD, y)
        trainer = EpochTrainer(clone(SCALED_SGD), classes=labels)
        trainer.train(X[:80], y[:80])
        assert trainer.estimator.classes_.tolist() == ["a", "b", "c"]

    @pytest.mark.parametrize("estimator", [SGDRegressor(), XGB, Counter()])
    def test_none_where_training_takes_none(self, estimator):
        assert class_labels(estimator, Y) is None

    def test_one_array_for_each_output(self):
        y = np.column_stack([Y, np.where(X[:, 0] > 0, 5, 7)])
        estimator = trained(MultiOutputClassifier(GaussianNB()), y=y)
        labels = [output.classes_.tolist() for output in estimator.estimators_]
        assert labels == [[0, 1], [5, 7]]

    def test_multilabel_targets(self):
        y = np.column_stack([Y, X[:, 0] > 0]).astype(int)
        estimator = trained(MLPClassifier((5,), random_state=0), y=y)
        assert estimator.predict(X).shape == y.shape


class TestPartialFit:
    def test_an_epoch_is_so_many_passes(self):
        passes = SGDClassifier(random_state=0)
        for _ in range(6):
            passes.partial_fit(X, Y, classes=[0, 1])
        estimator = trained(SGDClassifier(random_state=0), epochs=2, steps_per_epoch=3)
        np.testing.assert_array_equal(estimator.coef_, passes.coef_)

    def test_a_single_pass_does_not_warn_of_convergence(self):
        # warnings are errors here
        trained(MLPClassifier((3,), max_iter=1, random_state=0))
        trained(SGDClassifier(max_iter=1, tol=1e-3, random_state=0))

    @pytest.mark.parametrize(
        "estimator",
        [
            MultinomialNB(alpha=100.0),
            Logged(alpha=100.0),
            ComplementNB(),
            Birch(n_clusters=2),
        ],
    )
    def test_one_pass_is_all_where_fit_makes_one(self, estimator):
        rows = X - X.min()
        whole = clone(estimator).fit(rows, Y)
        stepped = trained(estimator, epochs=4, steps_per_epoch=2, X=rows)
        np.testing.assert_array_equal(stepped.predict(rows), whole.predict(rows))
        if isinstance(estimator, MultinomialNB):
            probabilities = stepped.predict_proba(rows)
            np.testing.assert_allclose(probabilities, whole.predict_proba(rows))

    def test_one_with_fewer_parameters_than_its_library_class_trains_on(self):
        class Short(SGDClassifier):
            def __init__(self, alpha=1e-4):
                super().__init__(alpha=alpha, random_state=0)

        stepped = trained(Short(), epochs=3)
        assert stepped.t_ == 1 + 3 * len(X)

    @pytest.mark.parametrize("estimator", [SGDClassifier(), Perceptron()])
    def test_classes_are_balanced_by_the_rows_of_the_fold(self, estimator):
        counts = np.bincount(Y[:70])
        weights = {label: 70 / (2 * counts[label]) for label in (0, 1)}
        estimator.set_params(random_state=0, class_weight="balanced")
        by_hand = clone(estimator).set_params(class_weight=weights)
        balanced = trained(estimator, X=X[:70], y=Y[:70])
        by_hand = trained(by_hand, X=X[:70], y=Y[:70])
        np.testing.assert_array_equal(balanced.coef_, by_hand.coef_)
        assert balanced.class_weight == "balanced"

    def test_an_epoch_adds_one_learner_where_a_call_adds_n_estimators(self):
        boosted = trained(Adding(n_estimators=500), epochs=3, steps_per_epoch=2)
        assert len(boosted.learners_) == boosted.n_estimators == 6
        forest = trained(Members(n_estimators=5), epochs=3)
        assert forest.passes_ == [3] * 5

    def test_minimal_estimator(self):
        assert trained(Counter(), epochs=2, steps_per_epoch=2).predict(X[:1]) == [4]

    def test_without_targets(self):
        kmeans = MiniBatchKMeans(2, n_init=1, random_state=0)
        assert trained(kmeans, y=None).cluster_centers_.shape == (2, 8)

    def test_sample_weight(self):
        plain = trained(SGDClassifier(random_state=0))
        weighted = trained(SGDClassifier(random_state=0), sample_weight=WEIGHTS)
        assert not np.array_equal(plain.coef_, weighted.coef_)


@pytest.mark.parametrize(
    "container",
    [np.asarray, np.ndarray.tolist, pd.DataFrame, csr_array],
    ids=["numpy", "list", "pandas", "sparse"],
)
def test_containers(container):
    scaler = StandardScaler(with_mean=False)
    estimator = make_pipeline(scaler, SGDClassifier(random_state=0))
    rows = container(X)
    from_list = trained(estimator, X=rows, y=Y.tolist())
    from_series = trained(estimator, X=rows, y=pd.Series(Y))
    np.testing.assert_array_equal(outputs(from_list, rows), outputs(from_series, rows))


ENSEMBLES = [
    ensemble.RandomForestClassifier(random_state=0),
    ensemble.RandomForestClassifier(random_state=0, class_weight="balanced"),
    ensemble.ExtraTreesRegressor(random_state=0),
    ensemble.BaggingClassifier(random_state=0),
    ensemble.GradientBoostingClassifier(random_state=0, subsample=0.6),
    ensemble.HistGradientBoostingClassifier(random_state=0, max_features=0.5),
    ensemble.IsolationForest(random_state=0),
    XGB,
    LGBM,
]


class TestEnsembles:
    @pytest.mark.parametrize("estimator", ENSEMBLES)
    def test_epochs_equal_one_fit(self, estimator):
        count = COUNTERS[epoch_method(estimator)]
        whole = clone(estimator).set_params(**{count: 6})
        whole.fit(X, Y)
        stepped = trained(estimator, steps_per_epoch=2)
        np.testing.assert_array_equal(outputs(stepped), outputs(whole))
        assert stepped.get_params()[count] == 6

    def test_the_search_decides_when_hist_gradient_boosting_stops(self):
        estimator = trained(
            ensemble.HistGradientBoostingClassifier(early_stopping="auto")
        )
        assert estimator.do_early_stopping_ is False
        assert (estimator.early_stopping, estimator.n_iter_) == ("auto", 3)

    @pytest.mark.parametrize("estimator", ENSEMBLES[3:5])
    def test_sample_weight_reaches_every_epoch(self, estimator):
        whole = clone(estimator).set_params(n_estimators=3)
        whole.fit(X, Y, sample_weight=WEIGHTS)
        stepped = trained(estimator, sample_weight=WEIGHTS)
        np.testing.assert_array_equal(outputs(stepped), outputs(whole))


DRAWING = [
    clone(XGB).set_params(subsample=0.6, colsample_bytree=0.3),
    clone(LGBM).set_params(subsample=0.6, subsample_freq=1, colsample_bytree=0.3),
]


class TestBoosting:
    @pytest.mark.parametrize("random_state", [None, 3])
    @pytest.mark.parametrize("estimator", DRAWING)
    def test_draws_do_not_depend_on_other_boosters(self, estimator, random_state):
        estimator = clone(estimator).set_params(random_state=random_state)
        alone = trained(estimator, epochs=4)
        trainer = EpochTrainer(clone(estimator))
        for epoch in range(4):
            trainer.train(X, Y)
            clone(DRAWING[0]).set_params(n_estimators=epoch + 1).fit(X, Y)
        np.testing.assert_array_equal(outputs(trainer.estimator), outputs(alone))

    @pytest.mark.parametrize("estimator", DRAWING)
    def test_epochs_draw_different_columns(self, estimator):
        estimator = trained(clone(estimator).set_params(random_state=0), epochs=8)
        assert np.count_nonzero(estimator.feature_importances_) > 4


class TestPipeline:
    def test_equals_transforming_first(self):
        scaler = StandardScaler().fit(X)
        alone = trained(SGDClassifier(random_state=0), X=scaler.transform(X))
        pipeline = trained(SCALED_SGD)
        check_is_fitted(pipeline)
        np.testing.assert_array_equal(
            outputs(pipeline), alone.decision_function(scaler.transform(X))
        )

    def test_equals_its_own_fit(self):
        forest = ensemble.RandomForestClassifier(n_estimators=3, random_state=0)
        pipeline = make_pipeline(PCA(3), forest)
        whole = clone(pipeline).fit(X, Y)
        np.testing.assert_array_equal(outputs(trained(pipeline)), outputs(whole))

    def test_transformers_are_fitted_once(self):
        CountingScaler.fits, cache = 0, RowCache()
        trainer = EpochTrainer(make_pipeline(CountingScaler(), SGDClassifier()))
        trainer.train(X, Y, cache)
        trainer = pickle.loads(pickle.dumps(trainer))
        trainer.train(X, Y, cache)
        assert CountingScaler.fits == 1

    @pytest.mark.parametrize("nothing", [None, "passthrough"])
    def test_steps_that_do_nothing(self, nothing):
        pipeline = Pipeline([("a", nothing), ("sgd", SGDClassifier(random_state=0))])
        alone = trained(SGDClassifier(random_state=0))
        np.testing.assert_array_equal(outputs(trained(pipeline)), outputs(alone))

    @pytest.mark.parametrize("transformer", [MinMaxScaler(), Noise()])
    def test_rows_are_not_pickled(self, transformer):
        trainer = EpochTrainer(make_pipeline(transformer, GaussianNB()))
        trainer.train(X, Y)
        assert len(pickle.dumps(trainer)) < X.nbytes

    @pytest.mark.parametrize("transformer", [StandardScaler(), PCA(3), Noise()])
    def test_rows_can_be_forgotten_between_epochs(self, transformer):
        pipeline = make_pipeline(transformer, SGDClassifier(random_state=0))
        whole = trained(pipeline)
        trainer = EpochTrainer(clone(pipeline))
        for _ in range(3):
            trainer.transformers.forget_rows()
            trainer.train(X, Y)
        np.testing.assert_array_equal(outputs(trainer.estimator), outputs(whole))

    @pytest.mark.parametrize("name", ["sample_weight", "svm__sample_weight"])
    def test_refuses_parameters_of_no_step(self, name):
        with pytest.raises(InvalidParameterError, match="one of scale, sgd"):
            trained(SCALED_SGD, **{name: WEIGHTS})


class TestMetadataRouting:
    @pytest.fixture(autouse=True)
    def routing(self):
        with sklearn.config_context(enable_metadata_routing=True):
            yield

    def test_the_last_steps_request_for_fit_decides(self):
        sgd = SGDClassifier(random_state=0).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        alone = trained(
            SGDClassifier(random_state=0),
            X=StandardScaler().fit_transform(X),
            sample_weight=WEIGHTS,
        )
        pipeline = trained(make_pipeline(scaler, sgd), sample_weight=WEIGHTS)
        np.testing.assert_array_equal(pipeline[-1].coef_, alone.coef_)

    def test_transformers_by_alias_and_nested(self):
        scaler = StandardScaler().set_fit_request(sample_weight="scale_weight")
        sgd = SGDClassifier(random_state=0).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler(), make_pipeline(scaler, sgd))
        pipeline[0].set_fit_request(sample_weight=False)
        trainer = EpochTrainer(pipeline)
        for _ in range(2):
            trainer.train(X, Y, sample_weight=WEIGHTS, scale_weight=WEIGHTS[::-1])
            trainer = pickle.loads(pickle.dumps(trainer))
        scaled = StandardScaler().fit_transform(X)
        inner = StandardScaler().fit(scaled, sample_weight=WEIGHTS[::-1])
        alone = trained(
            SGDClassifier(random_state=0),
            epochs=2,
            X=inner.transform(scaled),
            sample_weight=WEIGHTS,
        )
        np.testing.assert_array_equal(trainer.estimator[-1][-1].coef_, alone.coef_)

    def test_unrequested_metadata_is_an_error(self):
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            trained(SCALED_SGD, sample_weight=WEIGHTS)


@pytest.mark.parametrize(
    "estimator",
    [
        SGDClassifier(random_state=0),
        MLPClassifier((5,), random_state=np.random.RandomState(0), batch_size=32),
        MultiOutputClassifier(SGDClassifier(random_state=0)),
        GaussianNB(),
        *ENSEMBLES,
        *DRAWING,
        SCALED_SGD,
        make_pipeline(StandardScaler(), SCALED_SGD),
        make_pipeline(Noise(), SGDClassifier(random_state=0)),
        make_pipeline(StandardScaler(), DRAWING[0]),
    ],
)
def test_pickling_between_epochs_changes_nothing(estimator):
    y = np.column_stack([Y, Y]) if isinstance(estimator, MultiOutputClassifier) else Y
    whole = trained(estimator, epochs=4, y=y)
    trainer = EpochTrainer(clone(estimator))
    for epoch in range(4):
        trainer.train(X, y)
        trainer = pickle.loads(pickle.dumps(trainer))
        assert trainer.epochs == epoch + 1
    np.testing.assert_array_equal(trainer.estimator.predict(X), whole.predict(X))
    np.testing.assert_array_equal(outputs(trainer.estimator), outputs(whole))


def test_a_partial_fit_that_takes_anything_gets_the_classes():
    class Wrapped(SGDClassifier):
        def partial_fit(self, *args, **kwargs):
            return super().partial_fit(*args, **kwargs)

    assert trained(Wrapped(random_state=0)).classes_.tolist() == [0, 1]
