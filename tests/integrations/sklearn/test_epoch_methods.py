from __future__ import annotations

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn import ensemble
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from xgboost import XGBClassifier, XGBRFClassifier

from risingsearch.errors import NotTrainableError
from risingsearch.integrations.sklearn import epoch_methods
from risingsearch.integrations.sklearn.estimators import EpochTrainer

LGBM = LGBMClassifier(n_jobs=1, verbosity=-1, min_child_samples=5)
XGB = XGBClassifier(n_jobs=1, max_depth=2)
SCALED_SGD = Pipeline(
    [("scale", StandardScaler()), ("sgd", SGDClassifier(random_state=0))]
)


class Counter(BaseEstimator):
    """Has only partial_fit and predict."""

    def partial_fit(self, X, y):
        self.calls_ = getattr(self, "calls_", 0) + 1

    def predict(self, X):
        return np.full(len(X), self.calls_)


class TestEpochMethod:
    @pytest.mark.parametrize(
        ("estimator", "kind"),
        [
            (SGDClassifier(), "partial_fit"),
            (MultiOutputClassifier(SGDClassifier()), "partial_fit"),
            (ensemble.RandomForestClassifier(), "n_estimators"),
            (ensemble.HistGradientBoostingClassifier(), "max_iter"),
            (XGB, "boosting"),
            (SCALED_SGD, "pipeline"),
            (Pipeline([("outer", Pipeline([("xgb", XGB)]))]), "pipeline"),
        ],
    )
    def test_method_of_an_estimator(self, estimator, kind):
        assert epoch_methods.epoch_method(estimator) == kind

    @pytest.mark.parametrize(
        ("estimator", "words"),
        [
            (MLPClassifier(solver="lbfgs"), r"MLPClassifier\(solver='lbfgs'\).*'adam'"),
            (SGDClassifier(early_stopping=True), r"\(early_stopping=True\).*turn it"),
            (
                MultiOutputClassifier(SGDClassifier(class_weight="balanced")),
                "class_weight='balanced'.*dict",
            ),
            (
                ensemble.GradientBoostingClassifier(n_iter_no_change=3),
                "n_iter_no_change=3",
            ),
            (XGBClassifier(early_stopping_rounds=3), "early_stopping_rounds=3"),
            (LGBMClassifier(boosting_type="rf"), "boosting_type='rf'.*'gbdt'"),
            (LGBMClassifier(num_iterations=3), "num_iterations"),
            (ensemble.BaggingClassifier(oob_score=True), "oob_score"),
            (XGBRFClassifier(), r"XGBRFClassifier\(\)"),
            (ensemble.VotingClassifier([]), r"VotingClassifier.*resource='n_samples'"),
            (TransformedTargetRegressor(), r"LinearReg.*resource='n_samples'"),
            (SVC(), r"SVC\(\).*neither partial_fit nor a warm_start"),
            (LogisticRegression(warm_start=True), "LogisticRegression.*warm_start"),
            (MultiOutputClassifier(SVC()), r"estimator=SVC\(\).*partial_fit"),
            (make_pipeline(StandardScaler(), SVC()), r"SVC\(\)"),
            (Pipeline([("end", "passthrough")]), "end='passthrough'"),
            (Pipeline([("sgd", SGDClassifier())], transform_input=["Z"]), "set it to"),
        ],
    )
    def test_refuses_what_cannot_be_trained_by_epochs(self, estimator, words):
        with pytest.raises(NotTrainableError, match=words):
            epoch_methods.epoch_method(estimator)
        with pytest.raises(NotTrainableError, match=words):
            EpochTrainer(estimator)

    def test_refuses_steps_that_resample(self):
        class Sampler(BaseEstimator):
            def fit_resample(self, X, y):
                return X, y

        with pytest.raises(
            NotTrainableError, match="resource='n_samples' with a Pipeline"
        ):
            epoch_methods.epoch_method(
                Pipeline([("over", Sampler()), ("sgd", SGDClassifier())])
            )


@pytest.mark.parametrize(
    ("estimator", "callee"),
    [
        (SGDClassifier(), "partial_fit"),
        (Counter(), "partial_fit"),
        (MLPClassifier(solver="lbfgs"), "partial_fit"),
        (ensemble.RandomForestClassifier(), "fit"),
        (XGB, "fit"),
        (SCALED_SGD, "fit"),
    ],
)
def test_routing_callee(estimator, callee):
    assert epoch_methods.routing_callee(estimator) == callee


@pytest.mark.parametrize(
    ("estimator", "steps_per_epoch", "epochs"),
    [
        (SGDClassifier(max_iter=1000), 1, 100),
        (SCALED_SGD, 5, 20),
        (ensemble.RandomForestClassifier(n_estimators=300), 1, 300),
        (ensemble.RandomForestClassifier(n_estimators=300), 50, 6),
        (ensemble.RandomForestClassifier(n_estimators=3), 5, 1),
        (XGB, 1, 100),
    ],
)
def test_epochs_of_a_full_training(estimator, steps_per_epoch, epochs):
    assert epoch_methods.epochs_in_full(estimator, steps_per_epoch) == epochs
