import numpy as np
import pytest

from risingsearch.policies.stationary.baselines import RoundRobin, UniformRandom


def test_random_gives_every_available_arm_the_same_chance():
    policy = UniformRandom.create(n_arms=4, horizon=1)
    policy.available[1] = False
    rng = np.random.default_rng(0)
    chosen = np.bincount([policy.select(1, rng) for _ in range(6000)], minlength=4)
    assert chosen[1] == 0
    assert chosen[[0, 2, 3]] == pytest.approx(2000, abs=130)  # 3.5 deviations


def test_round_robin_lets_an_arm_that_was_busy_catch_up():
    policy = RoundRobin.create(n_arms=3, horizon=9)
    rng = np.random.default_rng(0)
    policy.available[0] = False
    for t, expected in enumerate([1, 2, 1], start=1):
        assert policy.select(t, rng) == expected
        policy.update(t, expected, 0.0, rng)
    policy.available[0] = True
    assert policy.select(4, rng) == 0
