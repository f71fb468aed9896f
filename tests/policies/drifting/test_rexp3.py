import math

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.drifting.rexp3 import Rexp3


def rexp3_run(rewards, horizon, batch_length, seed):
    """Rexp3 batch by batch, with plain weights; returns the arms and the weights."""
    rng = np.random.default_rng(seed)
    K = len(rewards)
    gamma = min(1.0, math.sqrt(K * math.log(K) / ((math.e - 1) * batch_length)))
    taken = [0] * K
    arms = []
    for start in range(0, horizon, batch_length):
        w = np.ones(K)
        for _ in range(start, min(start + batch_length, horizon)):
            p = (1 - gamma) * w / w.sum() + gamma / K
            arm = int(np.searchsorted(np.cumsum(p), rng.random(), side="right"))
            x = rewards[arm][taken[arm]]
            w[arm] *= math.exp(gamma * (x / p[arm]) / K)
            taken[arm] += 1
            arms.append(arm)
    return arms, w


@pytest.mark.parametrize("n_arms", [2, 3, 10])
@pytest.mark.parametrize("variation", [None, 0.05, 40.0])
def test_run_equals_the_direct_policy(n_arms, variation, play, concave):
    for seed in range(2):
        rewards = np.clip(concave(n_arms, 500, seed, noise=0.2), 0.0, 1.0)
        policy = Rexp3.create(n_arms, 500, variation=variation)
        arms, weights = rexp3_run(rewards, 500, policy.batch_length, seed)
        assert play(policy, rewards, 500, seed=seed) == arms
        shares = [explain(policy, i)["weight_share"] for i in range(n_arms)]
        assert shares == pytest.approx(weights / weights.sum())


@pytest.mark.parametrize(
    ("n_arms", "horizon", "variation", "batch_rule", "batch_length"),
    [
        (20, 2_700, 0.05, "besbes", 5_591),
        (20, 86_400, 0.05, "besbes", 56_348),
        (20, 2_700, 0.05, "printed", 41_191),
        (20, 86_400, 0.05, "printed", 415_171),
        (5, 10_000, None, "besbes", math.ceil((5 * math.log(5) * 2000**2) ** (1 / 3))),
        (2, 1, 1e9, "besbes", 1),
        (1, 100, None, "besbes", 1),
    ],
)
def test_batch_length(n_arms, horizon, variation, batch_rule, batch_length):
    policy = Rexp3.create(n_arms, horizon, variation=variation, batch_rule=batch_rule)
    assert policy.batch_length == batch_length


def test_weights_are_right_beyond_the_range_of_numbers():
    rng = np.random.default_rng(2)
    policy = Rexp3.create(3, 10**7, variation=0.01)
    assert policy.batch_length > 10_000
    log_weights = np.zeros(3)
    for t in range(1, 6001):
        arm = t % 3
        policy.probability[arm] = policy.gamma / 3  # the least there is: gain 1
        policy.update(t, arm, [0.5, 1.0, 0.99][arm], rng)
        log_weights[arm] += [0.5, 1.0, 0.99][arm]
    assert log_weights.max() > 1500
    shares = np.exp(log_weights - log_weights.max())
    shares /= shares.sum()
    for arm in range(3):
        share = explain(policy, arm)["weight_share"]
        assert share == pytest.approx(shares[arm], rel=1e-9)
    assert np.all(np.isfinite(policy.weight))


def test_a_busy_arm_leaves_its_chance_to_the_others():
    policy = Rexp3.create(3, 1000)
    policy.weight[:] = [5.0, 3.0, 1.0]
    policy.available[0] = False
    rng = np.random.default_rng(0)
    chosen = np.array([policy.select(1, rng) for _ in range(4000)])
    p = (1 - policy.gamma) * 3 / 4 + policy.gamma / 2
    assert np.mean(chosen == 1) == pytest.approx(p, abs=0.025)
    policy.started(1, 1)
    assert policy.probability[1] == pytest.approx(p)


def test_the_chance_at_the_decision_counts_whatever_came_back_since():
    rng = np.random.default_rng(0)
    policy = Rexp3.create(2, 1000)
    first = policy.select(1, rng)
    policy.started(1, first)
    policy.available[first] = False
    second = policy.select(2, rng)
    policy.started(2, second)
    policy.update(2, second, 1.0, rng)
    policy.update(1, first, 1.0, rng)
    gains = policy.log_weight[[first, second]]
    assert gains == pytest.approx([policy.gamma, policy.gamma / 2])  # p = 1/2 and 1


def test_a_reward_of_a_batch_that_is_over_does_not_count():
    rng = np.random.default_rng(0)
    policy = Rexp3.create(2, 1000)
    late = policy.select(policy.batch_length, rng)
    policy.started(policy.batch_length, late)
    policy.started(policy.batch_length + 1, 1 - late)
    policy.update(policy.batch_length, late, 1.0, rng)
    assert policy.log_weight.tolist() == [0.0, 0.0]
    assert policy.pulls[late] == 1


def test_rewards_are_mapped_from_their_range_and_clipped(play, concave):
    rewards = concave(3, 200, seed=2, noise=0.5)
    clipped = np.clip(rewards, 0.0, 1.0)
    unit = play(Rexp3.create(3, 200), clipped, 200)
    assert play(Rexp3.create(3, 200), rewards, 200) == unit
    percent = Rexp3.create(3, 200, reward_range=(-64, 64))
    assert play(percent, 128 * clipped - 64, 200) == unit
