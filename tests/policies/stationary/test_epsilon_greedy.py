import numpy as np
import pytest

from risingsearch.policies.stationary.epsilon_greedy import EpsilonGreedy


def greedy_run(rewards, horizon):
    """Return the arms of a greedy run with every mean taken from the raw rewards."""
    seen = [[] for _ in rewards]
    arms = []
    for _ in range(horizon):
        fresh = [i for i, x in enumerate(seen) if not x]
        key = [(-np.mean(x) if x else 0.0, len(x), i) for i, x in enumerate(seen)]
        arm = fresh[0] if fresh else min(key)[2]
        seen[arm].append(rewards[arm][len(seen[arm])])
        arms.append(arm)
    return arms


def test_greedy_pulls_the_highest_mean(play):
    for seed in range(5):
        rewards = np.random.default_rng(seed).normal(0.5, 0.3, (4, 100))
        policy = EpsilonGreedy.create(4, 100, epsilon=0.0)
        assert play(policy, rewards, 100) == greedy_run(rewards, 100)


def test_epsilon_is_the_share_of_random_pulls():
    policy = EpsilonGreedy.create(n_arms=4, horizon=10, epsilon=0.2)
    rng = np.random.default_rng(1)
    for arm in range(4):
        policy.update(1, arm, float(arm), rng)
    chosen = np.bincount([policy.select(5, rng) for _ in range(8000)])
    assert chosen[:3] == pytest.approx(8000 * 0.2 / 4, abs=70)  # 3.5 deviations


def test_every_arm_is_pulled_once_before_any_draw(play, concave):
    policy = EpsilonGreedy.create(5, 5, epsilon=1.0)
    assert play(policy, concave(5, 5, seed=0), 5) == [0, 1, 2, 3, 4]
