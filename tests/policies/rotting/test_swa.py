"""The rotting policies against direct means over the raw rewards."""

import math

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.rotting.swa import SWA, swa_window


@pytest.mark.parametrize(
    ("n_arms", "horizon", "window"),
    [(2, 16_384, 259), (10, 16_384, 89), (2, 30_000, 395), (10, 30_000, 135)],
)
def test_window_is_that_of_the_paper(n_arms, horizon, window):
    sigma = math.sqrt(0.2)
    assert SWA.create(n_arms, horizon, sigma=sigma).windows == [window]
    assert swa_window(0.2, sigma, n_arms, horizon) == window


def test_window_is_at_least_one_reward_and_at_most_the_horizon():
    assert SWA.create(3, 100, sigma=0.0).windows == [1]
    assert SWA.create(3, 100, alpha=1e300).windows == [100]
    assert SWA.create(1, 1).windows == [1]


def recent_means(window):
    return lambda t, seen, left, rng: {i: np.mean(seen[i][-window:]) for i in left}


@pytest.mark.parametrize("n_arms", [1, 2, 5])
@pytest.mark.parametrize("max_pulls", [300, 80])
def test_swa_run_equals_direct_means(n_arms, max_pulls, rotting, agree):
    for seed in range(2):
        rewards = rotting(n_arms, max_pulls, seed)
        policy = SWA.create(n_arms, 300, max_pulls, sigma=0.3)
        [M] = policy.windows
        agree(policy, recent_means(M), rewards, 300, first=M)


@pytest.mark.parametrize("n_arms", [1, 2, 5])
@pytest.mark.parametrize("max_pulls", [300, 80])
def test_wswa_run_equals_one_swa_after_another(
    n_arms, max_pulls, play, play_direct, rotting
):
    for seed in range(2):
        rewards = rotting(n_arms, max_pulls, seed)
        past = [0] * n_arms
        arms = []
        epoch = 1
        while epoch <= 300:
            length = min(epoch, 301 - epoch)
            left = [x[done:] for x, done in zip(rewards, past, strict=True)]
            [M] = SWA.create(n_arms, epoch, sigma=0.3).windows
            chosen = play_direct(recent_means(M), left, length, first=M)
            past += np.bincount(chosen, minlength=n_arms) if chosen else 0
            arms += chosen
            epoch *= 2
        policy = SWA.create_wswa(n_arms, 300, max_pulls, sigma=0.3)
        assert play(policy, rewards, 300) == arms


def test_wswa_forgets_a_reward_that_comes_back_in_a_later_epoch():
    rng = np.random.default_rng(0)
    policy = SWA.create_wswa(n_arms=2, horizon=15)
    for t in range(1, 7):
        policy.update(t, t % 2, 0.5, rng)
    assert policy.select(8, rng) == 0
    policy.update(7, 0, 9.0, rng)  # in flight while the epoch ended
    assert policy.select(8, rng) == 0
    policy.update(8, 0, 0.5, rng)
    assert policy.pulls.tolist() == [5, 3]
    assert explain(policy, 0) == {"recent_average": 0.5}
