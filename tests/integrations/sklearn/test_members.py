"""Estimators around others, trained by epochs where these are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_regression
from sklearn.ensemble import (
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import Ridge, SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from risingsearch import RisingSearchCV
from risingsearch.errors import InvalidParameterError, NotTrainableError
from risingsearch.integrations.sklearn.epoch_methods import epochs_in_full
from risingsearch.integrations.sklearn.estimators import EpochTrainer

X, Z = make_regression(120, 5, noise=3, random_state=0)
Y = np.digitize(Z, np.quantile(Z, [0.3, 0.7]))
LABELS = np.array(["a", "b", "c"])[Y]


def trained(estimator, y, epochs=3, **options):
    """Train by epochs, and through a pickle after each."""
    trainer = EpochTrainer(estimator, **options)
    for _ in range(epochs):
        trainer.train(X, y)
        trainer = pickle.loads(pickle.dumps(trainer))
    return trainer.estimator


def transformed_forest(n_estimators=100):
    forest = RandomForestRegressor(n_estimators, random_state=0)
    return TransformedTargetRegressor(forest, func=np.cbrt, inverse_func=cubed)


def cubed(values):
    return values**3


def votes(n_estimators=100, **options):
    members = [
        ("forest", RandomForestClassifier(n_estimators, random_state=0)),
        ("trees", ExtraTreesClassifier(n_estimators, random_state=1)),
        ("none", "drop"),
    ]
    return VotingClassifier(members, **options)


def test_a_transformed_target_ends_as_after_one_fit():
    by_epochs = trained(transformed_forest(), Z, steps_per_epoch=4)
    at_once = transformed_forest(12).fit(X, Z)
    np.testing.assert_array_equal(by_epochs.predict(X), at_once.predict(X))
    assert by_epochs.regressor_.n_estimators == 12
    assert by_epochs.regressor.n_estimators == 100  # a parameter, as it was given


@pytest.mark.parametrize("voting", ["soft", "hard"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_votes_end_as_after_one_fit(voting, n_jobs):
    options = {"voting": voting, "weights": [1, 2, 3], "n_jobs": n_jobs}
    by_epochs = trained(votes(**options), LABELS, steps_per_epoch=4)
    at_once = votes(12, **options).fit(X, LABELS)
    np.testing.assert_array_equal(by_epochs.predict(X), at_once.predict(X))
    assert by_epochs.named_estimators_["forest"] is by_epochs.estimators_[0]
    assert by_epochs.named_estimators_["none"] == "drop"
    assert type(by_epochs.estimators[0][1]) is RandomForestClassifier


def test_votes_of_regressors():
    members = [("sgd", SGDRegressor(random_state=0)), ("forest", transformed_forest())]
    by_epochs = trained(VotingRegressor(members), Z, epochs=20)
    assert by_epochs.score(X, Z) > 0.8


def test_a_member_may_be_a_pipeline_and_the_whole_the_last_step_of_one():
    model = make_pipeline(StandardScaler(), SGDRegressor(random_state=0))
    target = TransformedTargetRegressor(model, transformer=StandardScaler())
    whole = make_pipeline(StandardScaler(), target)
    by_epochs = trained(whole, Z, epochs=20)
    assert by_epochs.score(X, Z) > 0.9


def test_weights_reach_the_members():
    weight = (LABELS != "a").astype(float)
    trainer = EpochTrainer(votes())
    trainer.train(X, LABELS, sample_weight=weight)
    assert "a" not in trainer.estimator.predict(X[weight > 0])


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_of_them(n_jobs):
    search = RisingSearchCV(
        votes(voting="soft"),
        {"forest__max_depth": [1, 3, None], "trees__max_features": [1, 3]},
        budget=24,
        max_epochs=8,
        cv=0.25,
        random_state=0,
        n_jobs=n_jobs,
    ).fit(X, LABELS)
    counts = [member.n_estimators for member in search.best_estimator_.estimators_]
    assert counts == [search.best_epoch_] * 2
    assert search.classes_.tolist() == ["a", "b", "c"]


def test_the_epochs_of_a_full_training_are_the_most_of_a_member():
    assert epochs_in_full(votes(30), steps_per_epoch=1) == 30
    assert epochs_in_full(transformed_forest(60), steps_per_epoch=2) == 30


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (votes(), "trees__n_estimators"),
        (transformed_forest(), "regressor__n_estimators"),
    ],
)
def test_what_counts_the_epochs_of_a_member_is_not_searched(estimator, name):
    search = RisingSearchCV(estimator, {name: [5, 10]}, budget=4)
    with pytest.raises(InvalidParameterError, match=f"{name} counts the epochs"):
        search.fit(X, LABELS if is_classifier(estimator) else Z)


@pytest.mark.parametrize(
    "estimator",
    [
        StackingClassifier([("sgd", SGDClassifier())]),
        StackingRegressor([("sgd", SGDRegressor())]),
        CalibratedClassifierCV(SGDClassifier()),
        TransformedTargetRegressor(),
        TransformedTargetRegressor(Ridge()),
        VotingRegressor([("sgd", SGDRegressor()), ("ridge", Ridge())]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_go_on_is_told_of_the_rows(estimator):
    with pytest.raises(NotTrainableError, match=r"\(resource='n_samples'\)"):
        EpochTrainer(estimator)
