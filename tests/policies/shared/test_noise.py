import math

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.policies.shared.noise import add_residual, checked_sigma, noise_scale


def test_sigma_is_estimated_from_second_differences(estimated_sigma):
    rng = np.random.default_rng(3)
    residual, last_two = np.zeros(2), np.zeros((2, 2))
    unknown = checked_sigma(None)
    assert noise_scale(unknown, residual) == 0.0
    rewards = 1e-4 * np.arange(2000) + rng.normal(0.0, 0.05, (2, 2000))
    for n in range(1, 2001):
        for arm in range(2):
            add_residual(residual, last_two[arm], n, rewards[arm, n - 1])
    sigma = noise_scale(unknown, residual)
    assert sigma == pytest.approx(estimated_sigma(rewards))
    assert sigma == pytest.approx(0.05, rel=0.05)


def test_sigma_is_what_is_given():
    assert noise_scale(checked_sigma(0.2), np.array([9.0, 1.0])) == 0.2


@pytest.mark.parametrize("sigma", [-0.1, math.nan, math.inf, "small"])
def test_sigma_outside_its_range_is_refused(sigma):
    with pytest.raises(InvalidParameterError, match="sigma must be a finite number"):
        checked_sigma(sigma)
