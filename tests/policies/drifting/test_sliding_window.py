"""The windowed policies against direct sums over the raw history of rewards."""

import math

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.drifting.sliding_window import ETSWGTS, SWKLUCB, SWTS, SWUCB

CLASSES = [SWUCB, SWKLUCB, SWTS, ETSWGTS]


def in_window(past, t, window):
    """Return an arm's rewards among the last ``window`` before round ``t``."""
    pairs = zip(past.rounds, past, strict=True)
    return [reward for k, reward in pairs if k >= t - window]


def by_windows(window, index):
    """Return the indices of arms by their rewards in a window, if they have any."""

    def values(t, seen, left, rng):
        rewards = {i: in_window(seen[i], t, window) for i in left}
        u = min(t - 1, window)
        return {i: index(x, u) if x else math.inf for i, x in rewards.items()}

    return values


def sw_ucb(window, xi, width=1.0):
    def index(x, u):
        return sum(x) / len(x) + width * math.sqrt(xi * math.log(u) / len(x))

    return by_windows(window, index)


def kl_bound(mean, level):
    """Return the bound of KL-UCB by bisection."""
    p = min(max(mean, 1e-9), 1 - 1e-9)
    low, high = p, 1.0
    for _ in range(100):
        q = (low + high) / 2
        rest = (1 - p) * math.log((1 - p) / (1 - q)) if q < 1 else math.inf
        if p * math.log(p / q) + rest <= level:
            low = q
        else:
            high = q
    return 1.0 if 1 - low < 1e-10 else low


def sw_kl_ucb(window, c):
    def index(x, u):
        right = math.log(u) + (c * math.log(math.log(u)) if u >= 3 else 0.0)
        return kl_bound(sum(x) / len(x), right / len(x))

    return by_windows(window, index)


def sw_ts(window):
    def values(t, seen, left, rng):
        theta = {}
        for i in left:
            x = in_window(seen[i], t, window)
            theta[i] = rng.beta(sum(x) + 1, len(x) - sum(x) + 1)
        return theta

    return values


def et_swgts(window, precision):
    """After the forced phase the arm seen longest ago comes first, then the draws."""

    def values(t, seen, left, rng):
        theta = {}
        for i in left:
            x = in_window(seen[i], t, window)
            if x:
                spread = math.sqrt(1 / (precision * len(x)))
                theta[i] = sum(x) / len(x) + spread * rng.standard_normal()
        forgotten = {i: -max(seen[i].rounds, default=0) for i in left if i not in theta}
        return forgotten or theta

    return values


@pytest.mark.parametrize("window", [3, 12, 60, 500])
@pytest.mark.parametrize("xi", [0.05, 1.5])
def test_sw_ucb_equals_the_direct_policy(window, xi, concave, agree):
    for seed in range(2):
        rewards = concave(5, 200, seed, noise=0.2)
        policy = SWUCB.create(5, 200, window=window, xi=xi)
        agree(policy, sw_ucb(window, xi), rewards, 200, first=0)


@pytest.mark.parametrize("window", [10, 400])
@pytest.mark.parametrize("c", [0.0, 3.0])
def test_sw_kl_ucb_equals_the_direct_policy(window, c, concave, agree):
    for seed in range(2):
        rewards = np.clip(concave(4, 150, seed, noise=0.2), 0.0, 1.0)
        policy = SWKLUCB.create(4, 150, window=window, c=c)
        agree(policy, sw_kl_ucb(window, c), rewards, 150, first=0)


@pytest.mark.parametrize("window", [1, 14, 400])
def test_sw_ts_equals_the_direct_policy(window, concave, agree):
    for seed in range(2):
        rewards = np.clip(concave(4, 200, seed, noise=0.2), 0.0, 1.0)
        policy = SWTS.create(4, 200, window=window)
        agree(
            policy,
            sw_ts(window),
            rewards,
            200,
            first=0,
            seed=seed,
            kept=lambda x, rng: x if x in (0.0, 1.0) else float(rng.random() < x),
        )


@pytest.mark.parametrize("window", [3, 20, 400])
@pytest.mark.parametrize("forced_pulls", [0, 1, 10])
def test_et_swgts_equals_the_direct_policy(window, forced_pulls, concave, agree):
    for seed in range(2):
        rewards = concave(4, 200, seed)
        policy = ETSWGTS.create(
            4, 200, window=window, forced_pulls=forced_pulls, precision=5.0
        )
        agree(
            policy, et_swgts(window, 5.0), rewards, 200, first=forced_pulls, seed=seed
        )


def test_runs_equal_the_direct_policies_where_arms_come_to_an_end(
    play, play_direct, concave
):
    rewards = np.clip(concave(5, 30, seed=1, noise=0.2), 0.0, 1.0)
    sizes = (5, 200, 30)
    cases = [
        (SWUCB.create(*sizes, window=25, xi=0.5), sw_ucb(25, 0.5), 0),
        (SWKLUCB.create(*sizes, window=25), sw_kl_ucb(25, 0.0), 0),
        (ETSWGTS.create(*sizes, window=25, forced_pulls=2), et_swgts(25, 1.0), 2),
    ]
    for policy, values, first in cases:
        arms = play(policy, rewards, 200)
        assert arms == play_direct(values, rewards, 200, first=first)
        assert len(arms) == 150


def test_the_window_is_filled_in_the_order_in_which_rewards_come_back():
    rng = np.random.default_rng(0)
    policy = SWUCB.create(3, 20, window=2)
    for t, arm, reward in [(2, 1, 0.5), (3, 2, 0.7), (1, 0, 0.9)]:
        policy.update(t, arm, reward, rng)
    assert policy.window_pulls.tolist() == [1, 0, 1]
    assert explain(policy, 0)["recent_mean"] == 0.9
    assert explain(policy, 1) == {"recent_mean": 0.0, "bonus": math.inf}


@pytest.mark.parametrize("policy_class", [SWUCB, ETSWGTS])
def test_a_huge_reward_is_forgotten_to_the_last_digit(policy_class):
    rng = np.random.default_rng(0)
    policy = policy_class.create(2, 100, window=8)
    for t in range(1, 40):
        policy.update(t, t % 2, 1e30 if t == 10 else 0.1, rng)
    for arm in range(2):
        assert explain(policy, arm)["recent_mean"] == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize("policy_class", [SWUCB, SWKLUCB, ETSWGTS])
def test_an_arm_outside_the_window_comes_first(policy_class):
    rng = np.random.default_rng(0)
    policy = policy_class.create(3, 100, window=5)
    for t in range(1, 41):
        policy.update(t, 0 if t % 2 else 2, 1.0, rng)
    policy.pulls[1] = 40
    assert policy.select(41, rng) == 1
    policy.available[1] = False
    assert policy.select(41, rng) in (0, 2)


@pytest.mark.parametrize(
    ("policy_class", "n_arms", "horizon", "window"),
    [
        (SWUCB, 5, 10_000, 606),  # 2 sqrt(T ln T)
        (SWUCB, 5, 50_000, 1471),
        (SWUCB, 81, 270, 81),
        (SWUCB, 3, 1, 3),
        (SWKLUCB, 5, 10_000, 252),  # 0.001^(-4/5)
        (SWKLUCB, 300, 10_000, 300),
        (SWTS, 5, 10_000, 100),  # sqrt(T)
        (SWTS, 5, 10_001, 101),
        (SWTS, 5, 1, 1),
        (ETSWGTS, 5, 10_000, 1000),
    ],
)
def test_the_default_window(policy_class, n_arms, horizon, window):
    assert len(policy_class.create(n_arms, horizon).window_arms) == window


def test_the_bonus_grows_with_the_width_of_the_reward_range(play, concave):
    rewards = concave(3, 100, seed=2, noise=0.2)
    unit = SWUCB.create(3, 100, window=30)
    percent = SWUCB.create(3, 100, window=30, reward_range=(-50, 50))
    assert play(unit, rewards, 100) == play(percent, 100 * rewards - 50, 100)


@pytest.mark.parametrize("policy_class", [SWKLUCB, SWTS])
def test_rewards_are_mapped_from_their_range(policy_class, play, concave):
    rewards = np.round(np.clip(concave(3, 80, seed=2, noise=0.2), 0.0, 1.0), 1)
    unit = policy_class.create(3, 80)
    wide = policy_class.create(3, 80, reward_range=(-8, 8))
    assert play(unit, rewards, 80) == play(wide, 16 * rewards - 8, 80)


def test_sw_ucb_explains_mean_and_bonus():
    rng = np.random.default_rng(0)
    policy = SWUCB.create(2, 100, window=4, xi=2.0)
    for t, reward in enumerate([0.9, 0.2, 0.4, 0.5, 0.6], start=1):
        policy.update(t, t % 2, reward, rng)
    bonus = math.sqrt(2.0 * math.log(4) / 2)
    assert explain(policy, 1) == pytest.approx({"recent_mean": 0.5, "bonus": bonus})
    assert explain(policy, 0) == pytest.approx({"recent_mean": 0.35, "bonus": bonus})


def test_sw_ts_explains_the_posterior_mean():
    rng = np.random.default_rng(4)
    policy = SWTS.create(2, 100, window=3)
    for t, (arm, reward) in enumerate([(0, 0.0), (0, 1.0), (1, 0.0), (0, 1.0)], 1):
        policy.update(t, arm, reward, rng)
    assert explain(policy, 0) == pytest.approx({"posterior_mean": (2 + 1) / (2 + 2)})
    assert explain(policy, 1) == pytest.approx({"posterior_mean": 1 / 3})
