from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.splits import frozen_splits

X, Y = make_classification(60, 5, random_state=0)
RANDOM = np.random.RandomState(0)


def test_targets_of_many_values_are_held_out_as_they_come():
    y = np.arange(60.0)
    for estimator in (SGDRegressor(), SGDClassifier()):
        [(_, test)] = frozen_splits(0.25, estimator, X, y + 0.5, {}, RANDOM)
        assert len(test) == 15
    labels = np.eye(60, dtype=int)  # every row its own combination of labels
    [(_, test)] = frozen_splits(0.25, MLPClassifier(), X, labels, {}, RANDOM)
    assert len(test) == 15


def test_no_group_is_on_both_sides():
    groups = np.arange(60) // 5
    for estimator, y in ((SGDClassifier(), Y), (SGDRegressor(), Y + 0.5)):
        for cv in (0.25, 4, None):
            random = np.random.RandomState(0)
            params = {"groups": groups}
            for train, test in frozen_splits(cv, estimator, X, y, params, random):
                assert not {*groups[train]} & {*groups[test]}
                assert len(train) + len(test) == 60


def test_a_share_of_groups_has_its_share_of_rows_and_of_each_class():
    random = np.random.RandomState(0)
    groups = np.repeat(np.arange(30), np.arange(1, 31))
    y = (groups % 3 == 0).astype(int)
    rows, params = np.zeros((len(y), 1)), {"groups": groups}
    [(_, test)] = frozen_splits(0.3, SGDClassifier(), rows, y, params, random)
    held_out = np.bincount(y[test]) / np.bincount(y)
    np.testing.assert_allclose(held_out, 0.3, atol=0.1)


def test_groups_that_cannot_be_split_are_told():
    params = {"groups": np.zeros(60)}
    with pytest.raises(InvalidParameterError, match="hold out some of 1 groups"):
        frozen_splits(0.25, SGDClassifier(), X, Y, params, RANDOM)
