"""The discounted policies against weights written out for every reward of the past."""

import math

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.drifting.discounted import DUCB, FDSWTS, beta_draw


def faded(past, t, discount):
    """Return an arm's pulls and rewards, discounted by their age before round ``t``."""
    weights = [discount ** (t - 1 - k) for k in past.rounds]
    return sum(weights), sum(w * x for w, x in zip(weights, past, strict=True))


def d_ucb(discount, xi, width=1.0):
    def values(t, seen, left, rng):
        n_all = sum(discount**age for age in range(t - 1))
        index = {}
        for i in left:
            n, total = faded(seen[i], t, discount)
            index[i] = math.inf
            if n > 0:
                bonus = 2 * width * math.sqrt(xi * math.log(n_all) / n)
                index[i] = total / n + bonus
        return index

    return values


def f_dsw_ts(discount, window, combine):
    def values(t, seen, left, rng):
        theta = {}
        for i in left:
            n, s = faded(seen[i], t, discount)
            own = seen[i][-window:]
            theta[i] = combine(
                [
                    rng.beta(s + 1, n - s + 1),
                    rng.beta(sum(own) + 1, len(own) - sum(own) + 1),
                ]
            )
        return theta

    return values


def raven_f_dsw_ts(discount):
    """Both draws from one pair that began at (1, 1) and fades with all of it."""

    def values(t, seen, left, rng):
        theta = {}
        for i in left:
            n, s = faded(seen[i], t, discount)
            prior = discount ** (t - 1)
            a, b = prior + discount * s, prior + discount * (n - s)
            theta[i] = min(beta_draw(a, b, rng), beta_draw(a, b, rng))
        return theta

    return values


def bit(x, rng):
    return float(rng.random() < x) if 0 < x < 1 else x


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.995, 1.0])
@pytest.mark.parametrize("xi", [0.01, 0.5])
def test_d_ucb_equals_the_direct_policy(discount, xi, concave, agree):
    for seed in range(2):
        rewards = concave(4, 300, seed, noise=0.2)
        policy = DUCB.create(4, 300, discount=discount, xi=xi)
        agree(policy, d_ucb(discount, xi), rewards, 300, first=0)


def test_d_ucb_equals_the_direct_policy_where_arms_come_to_an_end(concave, agree):
    rewards = concave(5, 40, seed=1, noise=0.2)
    policy = DUCB.create(5, 200, 40, discount=0.95, xi=0.1)
    agree(policy, d_ucb(0.95, 0.1), rewards, 200, first=0)


@pytest.mark.parametrize(
    ("combine", "function"), [("min", min), ("max", max), ("mean", np.mean)]
)
@pytest.mark.parametrize(("discount", "window"), [(0.9, 30), (0.99, 5), (0.6, 1)])
def test_f_dsw_ts_equals_the_direct_policy(
    combine, function, discount, window, concave, agree
):
    rewards = np.clip(concave(3, 200, seed=6, noise=0.3), 0.0, 1.0)
    policy = FDSWTS.create(3, 200, combine=combine, discount=discount, window=window)
    values = f_dsw_ts(discount, window, function)
    agree(policy, values, rewards, 200, first=0, seed=1, kept=bit)


@pytest.mark.parametrize("discount", [0.99, 0.8])
def test_f_dsw_ts_without_a_window_is_the_script_of_the_raven_paper(
    discount, concave, agree
):
    for seed in range(2):
        rewards = np.clip(concave(4, 200, seed, noise=0.3), 0.0, 1.0)
        policy = FDSWTS.create(4, 200, discount=discount, window=None)
        agree(policy, raven_f_dsw_ts(discount), rewards, 200, seed=seed)


@pytest.mark.parametrize("discount", [1e-300, 0.3])
def test_an_arm_whose_past_has_faded_away_is_pulled_again(discount):
    rng = np.random.default_rng(0)
    policy = DUCB.create(3, 3000, discount=discount)
    for t in range(1, 2001):
        policy.update(t, 1 if t == 1 else 0, 1.0, rng)
    policy.pulls[2] = 5000
    assert explain(policy, 1)["bonus"] == math.inf
    assert policy.select(2001, rng) == 1


def test_the_default_discount_is_that_of_the_paper():
    assert DUCB.create(2, 10_000).discount == pytest.approx(1 - 1 / 400)
    assert DUCB.create(2, 1).discount == 0.75


@pytest.mark.parametrize("window", [5, None])
def test_rewards_are_mapped_from_their_range(window, play, concave):
    rewards = np.round(np.clip(concave(3, 80, seed=2, noise=0.2), 0.0, 1.0), 1)
    unit = FDSWTS.create(3, 80, window=window)
    wide = FDSWTS.create(3, 80, window=window, reward_range=(-8, 8))
    assert play(unit, rewards, 80) == play(wide, 16 * rewards - 8, 80)


def test_d_ucb_explains_mean_and_bonus():
    rng = np.random.default_rng(0)
    policy = DUCB.create(3, 100, discount=0.5, xi=0.5)
    for t, (arm, reward) in enumerate([(0, 0.2), (1, 0.6), (0, 0.8)], start=1):
        policy.update(t, arm, reward, rng)
    bonus = 2 * math.sqrt(0.5 * math.log(1.75) / 1.25)
    mean = (0.25 * 0.2 + 0.8) / 1.25
    assert explain(policy, 0) == pytest.approx({"recent_mean": mean, "bonus": bonus})
    assert explain(policy, 2) == {"recent_mean": 0.0, "bonus": math.inf}
