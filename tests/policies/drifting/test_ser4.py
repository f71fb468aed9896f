import math

import numpy as np
import pytest

from risingsearch.policies.drifting.ser4 import SER4


def ser4_run(rewards, horizon, *, delta, eps, phi, seed):
    """SER4 sweep by sweep, as written down; returns the arms and how many dropped."""
    rng = np.random.default_rng(seed)
    K = len(rewards)
    taken = [0] * K
    arms = []
    n_dropped = 0
    while len(arms) < horizon:
        S, tau, m = list(range(K)), 1, [0.0] * K
        restarted = False
        while not restarted and len(arms) < horizon:
            owed = list(S)
            while owed and not restarted and len(arms) < horizon:
                arm = owed.pop(int(rng.random() * len(owed)))
                m[arm] += (rewards[arm][taken[arm]] - m[arm]) / tau
                taken[arm] += 1
                arms.append(arm)
                restarted = rng.random() < phi
            if not owed:
                best = max(S, key=lambda i: m[i])
                radius = 2 * math.sqrt(math.log(4 * K * tau**2 / delta) / (2 * tau))
                kept = [i for i in S if i == best or m[best] - m[i] + eps < radius]
                n_dropped += len(S) - len(kept)
                S = kept
                tau += 1
    return arms, n_dropped


@pytest.mark.parametrize("n_arms", [2, 3, 6])
@pytest.mark.parametrize("switches", [0.0, 1.0, 30.0])
def test_run_equals_the_direct_policy(n_arms, switches, play):
    T = 1200
    n_dropped = 0
    for seed in range(2):
        means = np.linspace(0.0, 1.0, n_arms)[:, None]
        noise = np.random.default_rng(seed).normal(0.0, 0.1, (n_arms, T))
        rewards = np.clip(means + noise, 0.0, 1.0)
        policy = SER4.create(n_arms, T, switches=switches, delta=0.5)
        phi = math.sqrt(switches / (T * n_arms * math.log(n_arms * T)))
        eps = 1 / (n_arms * T)
        arms, dropped = ser4_run(rewards, T, delta=0.5, eps=eps, phi=phi, seed=seed)
        assert play(policy, rewards, T, seed=seed) == arms
        n_dropped += dropped
    assert n_dropped > 0


def test_a_sweep_does_not_wait_for_an_arm_that_has_ended():
    rng = np.random.default_rng(0)
    policy = SER4.create(3, 100, delta=1.0, eps=10.0, switches=0)
    policy.update(1, 0, 0.9, rng)
    policy.available[1] = False
    policy.pulls_left[1] = 0
    policy.update(2, 2, 0.1, rng)
    assert policy.active.tolist() == [True, False, False]


def test_an_arm_that_has_ended_is_no_measure_for_the_others():
    rng = np.random.default_rng(0)
    policy = SER4.create(3, 100, delta=1.0, eps=2.0, switches=0)
    policy.update(1, 0, 1.0, rng)
    policy.available[0] = False
    policy.pulls_left[0] = 0
    policy.update(2, 1, 0.3, rng)
    policy.update(3, 2, 0.2, rng)
    assert policy.active[1]
    assert policy.select(4, rng) == 1


def test_the_best_of_the_others_is_pulled_while_the_winner_is_busy():
    rng = np.random.default_rng(0)
    policy = SER4.create(3, 100, delta=1.0, eps=10.0, switches=0)
    for t, (arm, reward) in enumerate([(0, 0.9), (1, 0.2), (2, 0.4)], start=1):
        policy.update(t, arm, reward, rng)
    assert policy.select(4, rng) == 0
    policy.available[0] = False
    assert policy.select(4, rng) == 2


def test_the_probability_of_a_restart():
    policy = SER4.create(5, 1000)
    expected = math.sqrt(1 / (5000 * math.log(5000)))
    assert policy.restart_probability == pytest.approx(expected)
    assert SER4.create(5, 1000, switches=0).restart_probability == 0.0
    assert SER4.create(1, 1).restart_probability == 0.0


def test_rewards_are_mapped_from_their_range_and_clipped():
    rng = np.random.default_rng(0)
    policy = SER4.create(2, 100, reward_range=(-10.0, 10.0), switches=0)
    policy.update(1, 0, 5.0, rng)
    policy.update(2, 1, 50.0, rng)
    assert policy.mean.tolist() == [0.75, 1.0]
