from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import check_scoring
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.folds import Folds, seed_where_none

X, Y = make_classification(60, 5, random_state=0)


def folds(estimator, **options):
    return Folds(
        **{
            "estimator": estimator,
            "X": X,
            "y": Y,
            "splits": [(np.arange(20, 60), np.arange(20)), (np.arange(40), [40, 41])],
            "scorer": check_scoring(estimator),
            "metric": None,
            "steps_per_epoch": 1,
            "seeded": True,
            "transformer_seed": 0,
            "train_scores": False,
            "fit_params": {},
            "score_params": {},
        }
        | options
    )


class TestTraining:
    def test_an_epoch_is_the_mean_of_its_folds(self):
        trainable = folds(SGDClassifier(), train_scores=True)
        models = trainable.start({"alpha": 0.01}, seed=3)
        result = trainable.train(models)
        scores = [result["split0_test_score"], result["split1_test_score"]]
        assert result["score"] == np.mean(scores)
        assert [trainer.epochs for trainer in models] == [1, 1]
        assert result["split1_train_score"] > 0.4
        assert result["split0_fit_time"] > 0

    def test_pickling_between_epochs_changes_nothing(self):
        trainable = folds(MLPClassifier((3,)))
        plain, moved = trainable.start({}, seed=3), trainable.start({}, seed=3)
        for _ in range(3):
            trainable = pickle.loads(pickle.dumps(trainable))
            moved = pickle.loads(pickle.dumps(moved))
            assert trainable.train(moved)["score"] == trainable.train(plain)["score"]


class TestScores:
    @pytest.mark.parametrize(
        "score", [0.5, np.float32(0.5), np.array(0.5), np.array([0.5])]
    )
    def test_are_numbers(self, score):
        trainable = folds(SGDClassifier(), scorer=lambda model, X, y: score)
        assert trainable.train(trainable.start({}, seed=3))["score"] == 0.5

    @pytest.mark.parametrize("score", ["good", None, [0.5, 0.6]])
    def test_or_an_error(self, score):
        trainable = folds(SGDClassifier(), scorer=lambda model, X, y: score)
        with pytest.raises(InvalidParameterError, match="must return a number for"):
            trainable.train(trainable.start({}, seed=3))

    def test_of_a_fold_that_is_nan_make_the_mean_nan(self):
        scores = iter([0.5, np.nan])
        trainable = folds(SGDClassifier(), scorer=lambda model, X, y: next(scores))
        assert np.isnan(trainable.train(trainable.start({}, seed=3))["score"])


class TestConfigured:
    def test_only_seeds_that_are_none_are_set(self):
        model = make_pipeline(MLPClassifier(random_state=5), SGDClassifier())
        seed_where_none(model, 7)
        assert model[0].random_state == 5
        assert 0 <= model[1].random_state < 2**31
        again = make_pipeline(MLPClassifier(random_state=5), SGDClassifier())
        seed_where_none(again, 7)
        assert again[1].random_state == model[1].random_state


def test_the_data_are_not_sliced_for_the_journey():
    trainable = folds(SGDClassifier(), X=np.zeros((60, 1000)))
    trainable.train(trainable.start({}, seed=3))
    assert len(pickle.dumps(trainable)) < 1.2 * sys.getsizeof(trainable.X)
