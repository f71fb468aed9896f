import numpy as np
import pytest

from risingsearch.policies.shared.rewards import (
    add_residual,
    append_reward,
    checked_sigma,
    noise_scale,
    prefix_sums,
    window_length,
)


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
    assert noise_scale(checked_sigma(0.2), residual) == 0.2


@pytest.mark.parametrize(("max_pulls", "columns"), [(None, 51), (20, 21)])
def test_any_window_is_a_difference_of_two_sums(max_pulls, columns):
    P, pulls = prefix_sums(2, 50, max_pulls), np.zeros(2, dtype=np.int64)
    assert P.shape == (2, columns)
    rewards = np.random.default_rng(0).normal(size=20)
    numbers = [append_reward(P, pulls, 1, reward) for reward in rewards]
    assert numbers == list(range(1, 21))
    assert pulls.tolist() == [0, 20]
    assert P[1, 20] - P[1, 13] == pytest.approx(rewards[13:].sum())
    assert not P[0].any()


def test_window_is_a_share_of_the_pulls_and_never_empty():
    assert [window_length(0.25, n) for n in (2, 7, 8, 11, 12)] == [1, 1, 2, 2, 3]
