import numpy as np
import pytest

from risingsearch.policies import recommended_arms
from risingsearch.policies.stationary.baselines import RoundRobin, UniformRandom


def test_random_gives_every_available_arm_the_same_chance():
    policy = UniformRandom.create(n_arms=4, horizon=1)
    policy.available[1] = False
    rng = np.random.default_rng(0)
    chosen = np.bincount([policy.select(1, rng) for _ in range(6000)], minlength=4)
    assert chosen[1] == 0
    assert chosen[[0, 2, 3]] == pytest.approx(2000, abs=130)  # 3.5 deviations


def test_round_robin_is_fair_whatever_is_paid(play, concave):
    arms = play(RoundRobin.create(3, 20, 5), concave(3, 5, seed=0), 20)
    assert arms == [0, 1, 2] * 5


def test_round_robin_lets_an_arm_that_was_busy_catch_up():
    policy = RoundRobin.create(n_arms=3, horizon=9)
    rng = np.random.default_rng(0)
    policy.available[0] = False
    for t, expected in enumerate([1, 2, 1], start=1):
        assert policy.select(t, rng) == expected
        policy.update(t, expected, 0.0, rng)
    policy.available[0] = True
    assert policy.select(4, rng) == 0


@pytest.mark.parametrize("name", ["random", "round-robin"])
def test_baselines_are_given_the_arms_that_the_budget_trains_in_full(name):
    assert recommended_arms(name, 100, 20) == 5
    assert recommended_arms(name, 10, 20) == 2
