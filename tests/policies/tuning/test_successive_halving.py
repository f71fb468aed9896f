"""Successive halving against a slow reading of its papers."""

import math

import numpy as np
import pytest

from risingsearch.policies import WAIT
from risingsearch.policies.tuning.successive_halving import SuccessiveHalving


def pulls_of(arms, n_arms):
    return np.bincount(arms, minlength=n_arms).tolist()


def flat(values, max_pulls):
    """Return constant rewards, (n_arms, max_pulls)."""
    return np.tile(np.array(values, dtype=float)[:, None], (1, max_pulls))


def halving_run(rewards, horizon, eta):
    """Algorithm 1 of Karnin et al., by rungs; the winner trains with what is left."""
    n_arms, max_pulls = rewards.shape
    n_rungs = 0
    while eta**n_rungs < n_arms:
        n_rungs += 1
    pulls = [0] * n_arms
    arms = []
    alive = list(range(n_arms))
    for _ in range(n_rungs):
        share = max(1, horizon // (len(alive) * n_rungs))
        for arm in alive:
            n = min(share, max_pulls - pulls[arm])
            pulls[arm] += n
            arms += [arm] * n
        alive.sort(key=lambda i: (-rewards[i, pulls[i] - 1], i))
        alive = sorted(alive[: math.ceil(len(alive) / eta)])
    arms += [alive[0]] * (max_pulls - pulls[alive[0]])
    return arms[:horizon]


@pytest.mark.parametrize("eta", [2, 3, 4])
@pytest.mark.parametrize(
    ("n_arms", "max_pulls", "horizon"), [(8, 96, 96), (9, 30, 100), (16, 200, 331)]
)
def test_halving_equals_its_algorithm(n_arms, max_pulls, horizon, eta, play, concave):
    for seed in range(2):
        rewards = concave(n_arms, max_pulls, seed)
        policy = SuccessiveHalving.create(n_arms, horizon, max_pulls, eta=eta)
        assert play(policy, rewards, horizon) == halving_run(rewards, horizon, eta)


def test_halving_gives_each_rung_the_same_share_of_the_budget(play):
    rewards = flat([0.8, 0.1, 0.7, 0.2, 0.6, 0.3, 0.5, 0.4], 96)
    arms = play(SuccessiveHalving.create(8, 96), rewards, 96)
    assert pulls_of(arms, 8) == [28, 4, 28, 4, 12, 4, 12, 4]


def test_halving_looks_at_every_arm_even_where_the_budget_is_too_small(play):
    arms = play(SuccessiveHalving.create(8, 10), flat([0.1] * 8, 10), 10)
    assert arms == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]


def test_halving_never_asks_for_more_than_an_arm_can_give(play):
    policy = SuccessiveHalving.create(4, 100, 6)
    assert policy.target[:-1].tolist() == [6, 6]
    arms = play(policy, flat([0.4, 0.3, 0.2, 0.1], 6), 100)
    assert pulls_of(arms, 4) == [6, 6, 6, 6]


def test_halving_trains_the_winner_with_what_is_left_and_stops(play):
    policy = SuccessiveHalving.create(3, 50, 20)
    arms = play(policy, flat([0.1, 0.9, 0.5], 20), 50)
    # 50 // (3 * 2) = 8 each, then 50 // (2 * 2) = 12 more for two of them.
    assert pulls_of(arms, 3) == [8, 20, 20]
    assert policy.select(len(arms) + 1, None) == WAIT


def test_halving_waits_for_the_last_results_of_a_rung():
    policy = SuccessiveHalving.create(2, 8)
    for arm, reward in ((0, 0.1), (1, 0.2)):
        assert policy.select(1, None) == arm
        policy.available[arm] = False
        for _ in range(policy.slice_length(arm)):
            if arm == 0:
                policy.update(1, arm, reward, None)
    policy.available[0] = True
    assert policy.select(5, None) == WAIT
    for _ in range(4):
        policy.update(5, 1, 0.2, None)
    policy.available[1] = True
    assert policy.select(5, None) == 1


def test_halving_drops_arms_without_a_single_reward_first():
    policy = SuccessiveHalving.create(4, 16)
    for arm in (1, 3):
        for _ in range(2):
            policy.update(1, arm, -5.0, None)
    for arm in (0, 2):  # failed before they gave anything
        policy.available[arm] = False
        policy.pulls_left[arm] = 0
    assert policy.select(5, None) == 1
    policy.started(5, 1)
    assert policy.member.tolist() == [False, True, False, True]


def test_halving_keeps_the_best_of_many_arms():
    rng = np.random.default_rng(0)
    for n_arms in (2, 3, 10, 101):
        policy = SuccessiveHalving.create(n_arms, 10_000, eta=3)
        score = rng.integers(0, n_arms // 2 + 1, n_arms) / 8.0  # with ties
        failed = rng.random(n_arms) < 0.3
        failed[-1] = False
        policy.pulls_left[failed] = 0
        policy.available[failed] = False
        for arm in np.argsort(~failed, kind="stable"):
            for _ in range(policy.slice_length(arm)):
                policy.update(1, arm, score[arm], None)
        ranked = sorted(range(n_arms), key=lambda i: (failed[i], -score[i], i))
        kept = math.ceil(n_arms / 3)
        assert np.flatnonzero(policy.member).tolist() == sorted(ranked[:kept])
