import copy

import numpy as np
import pytest
from sklearn.datasets import load_digits

from benchmarks.shared.late_bloomers import WarmedNetwork

X, Y = load_digits(return_X_y=True)
X = X / 16.0
CLASSES = np.arange(10)


def trained(network, n_epochs):
    for _ in range(n_epochs):
        network.partial_fit(X, Y, CLASSES)
    return network


def rate(network):
    return network.optimizer.param_groups[0]["lr"]


def test_rate_rises_and_then_falls_to_zero():
    network = WarmedNetwork("shallow", 0.01, 2, 4, 0)
    rates = [rate(trained(network, 1)) for _ in range(5)]
    assert rates == pytest.approx([0.005, 0.01, 0.005, 0.0, 0.0])


def test_copy_goes_on_as_the_original_would():
    network = trained(WarmedNetwork("deep", 0.01, 1, 4, 3), 2)
    other = trained(copy.deepcopy(network), 1)
    assert np.array_equal(other.predict(X), trained(network, 1).predict(X))
