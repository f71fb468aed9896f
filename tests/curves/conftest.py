import numpy as np
import pytest

from risingsearch.curves.base import fresh
from risingsearch.policies import make_policy
from risingsearch.simulation.engine import loop_for, new_record


def play(environment, compiled, rounds, seed):
    policy = make_policy("round-robin", environment.n_arms, rounds)
    environment = fresh(environment)
    loop = loop_for(policy, environment, compiled)
    rng = np.random.default_rng(seed)
    record = new_record(np.array([rounds]), environment.n_arms, rounds)
    loop(policy, environment, rounds, rng, record)
    return record.arms, record.rewards, record.reward[0], rng.random()


@pytest.fixture
def same_either_way():
    """Play round-robin interpreted and compiled; return arms, rewards, sum of means."""

    def check(environment, rounds=2_000, seed=0):
        interpreted = play(environment, False, rounds, seed)
        compiled = play(environment, True, rounds, seed)
        for own, other in zip(interpreted, compiled, strict=True):
            np.testing.assert_array_equal(own, other)
        return interpreted[:3]

    return check
