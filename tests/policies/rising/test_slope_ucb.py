"""The rising policies against direct sums over the raw rewards, and the papers."""

import math

import numpy as np
import pytest

from risingsearch.policies import explain, make_policy
from risingsearch.policies.rising.cure_ucb import CureUCB
from risingsearch.policies.rising.r_ed_ucb import REdUCB


def windows(rewards, eps):
    """Return the last h rewards and the h before them, with their numbers from 1."""
    n = len(rewards)
    h = max(1, math.floor(eps * n))
    numbered = list(enumerate(rewards, start=1))
    return numbered[n - h :], numbered[n - 2 * h : n - h], h


def cure_index(rewards, t, *, horizon, eps, sigma):
    """Eq. 6 of the CURE-UCB paper, by direct sums."""
    last, before, h = windows(rewards, eps)
    a = sum(x for _, x in last)
    b = sum(x for _, x in before)
    rest = horizon - t
    bonus = sigma * math.sqrt(6 * math.log(t) * (3 * rest**2 + 8 * h**2) / (4 * h**3))
    return a / h + rest / 2 * (a - b) / h**2 + bonus


def projection(rewards, t, eps):
    """Return the mean of the window's rewards, each projected to round ``t``."""
    last, before, h = windows(rewards, eps)
    projections = [
        x + (t - number) * (x - x_before) / h
        for (number, x), (_, x_before) in zip(last, before, strict=True)
    ]
    return sum(projections) / h


def r_ed_index(rewards, t, *, horizon, eps, sigma, delta=0.001, alpha=None):
    """Eq. 7-8 of the R-ed-UCB paper."""
    n, (_, _, h) = len(rewards), windows(rewards, eps)
    confidence = math.log(1 / delta) if alpha is None else alpha * math.log(t)
    bonus = sigma * (t - n + h - 1) * math.sqrt(10 * confidence / h**3)
    return projection(rewards, t, eps) + bonus


def r_ucbe_index(rewards, t, *, horizon, eps, sigma, exploration=69.0):
    """The index of R-UCBE, which does not look at the round."""
    n, (_, _, h) = len(rewards), windows(rewards, eps)
    bonus = sigma * (horizon - n + h - 1) * math.sqrt(exploration / h**3)
    return projection(rewards, horizon, eps) + bonus


@pytest.fixture
def direct_run(play_direct, estimated_sigma):
    """Return the arms of a whole run, with every index taken from the raw rewards."""

    def run(index, curves, horizon, *, sigma, first=2, **parameters):
        def values(t, seen, left, rng):
            scale = estimated_sigma(seen) if sigma is None else sigma
            options = {"horizon": horizon, "sigma": scale, **parameters}
            return {i: index(seen[i], t, **options) for i in left}

        return play_direct(values, curves, horizon, first=first)

    return run


EXACT = {"sigma": 0.0, "eps": 1e-9}
INDICES = {"cure-ucb": cure_index, "r-ed-ucb": r_ed_index}


@pytest.mark.parametrize("name", list(INDICES))
@pytest.mark.parametrize("eps", [0.05, 0.25, 0.5])
def test_index_equals_direct_sums(name, eps):
    rng = np.random.default_rng(1)
    policy = make_policy(name, 1, 300, eps=eps, sigma=0.3)
    rewards = rng.normal(0.5, 0.4, 200)
    for n, reward in enumerate(rewards, start=1):
        policy.update(n, 0, reward, rng)
        if n >= 2:
            value = sum(explain(policy, 0).values())
            direct = INDICES[name](rewards[:n], n + 1, horizon=300, eps=eps, sigma=0.3)
            assert value == pytest.approx(direct, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", list(INDICES))
@pytest.mark.parametrize("sigma", [0.0, 0.01, None])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1])
def test_whole_run_equals_the_direct_policy(
    name, sigma, noise, play, direct_run, concave
):
    for seed in range(2):
        curves = concave(4, 200, seed, noise)
        policy = make_policy(name, 4, 200, eps=0.2, sigma=sigma)
        direct = direct_run(INDICES[name], curves, 200, eps=0.2, sigma=sigma)
        assert play(policy, curves, 200) == direct


def test_delta_may_shrink_with_the_round(play, direct_run, concave):
    curves = concave(3, 150, seed=9)
    policy = REdUCB.create(3, 150, sigma=0.02, alpha=2.5)
    direct = direct_run(r_ed_index, curves, 150, eps=0.25, sigma=0.02, alpha=2.5)
    assert play(policy, curves, 150) == direct


@pytest.mark.parametrize("sigma", [0.0, 0.003, None])
@pytest.mark.parametrize(("eps", "first"), [(0.1, 10), (0.25, 4), (0.4, 3), (0.5, 2)])
def test_r_ucbe_equals_the_direct_policy(eps, first, sigma, play, direct_run, concave):
    for seed in range(2):
        curves = concave(4, 200, seed)
        policy = REdUCB.create_r_ucbe(4, 200, eps=eps, sigma=sigma, exploration=5.0)
        direct = direct_run(
            r_ucbe_index, curves, 200, first=first, eps=eps, sigma=sigma, exploration=5
        )
        assert play(policy, curves, 200) == direct


def test_r_ucbe_recommends_by_the_reward_it_expects_at_the_horizon(concave):
    rng = np.random.default_rng(0)
    policy = REdUCB.create_r_ucbe(1, 90, sigma=0.1)
    rewards = concave(1, 60, seed=8)[0]
    for n, reward in enumerate(rewards, start=1):
        policy.update(n, 0, reward, rng)
    parts = explain(policy, 0)
    index = r_ucbe_index(list(rewards), 61, horizon=90, eps=0.25, sigma=0.1)
    assert list(parts) == ["final_reward", "bonus"]
    assert parts["final_reward"] == pytest.approx(projection(list(rewards), 90, 0.25))
    assert sum(parts.values()) == pytest.approx(index)


def test_r_ucbe_projects_every_arm_to_its_own_horizon():
    rng = np.random.default_rng(0)
    policy = REdUCB.create_r_ucbe(2, 40, eps=0.5, sigma=0.0)
    for arm, reward in [(0, 0.5), (1, 0.1), (0, 0.6), (1, 0.3)]:
        policy.update(1, arm, reward, rng)
    assert policy.select(5, rng) == 1
    policy.horizon[1] = 3
    assert policy.select(5, rng) == 0


def test_r_ucbe_is_given_as_many_arms_as_it_can_pull_first_in_half_of_the_budget():
    assert REdUCB.recommended_arms_r_ucbe(400, 50) == 50
    assert REdUCB.recommended_arms_r_ucbe(400, 50, eps=0.1) == 20
    assert REdUCB.recommended_arms_r_ucbe(5, 5) == 2


def two_arms(horizon):
    """Fig. 1: a plateau at 0.4, and a line that reaches 1 after 20,000 pulls."""
    n = np.arange(1, horizon + 1)
    return np.stack([np.full(horizon, 0.4), np.minimum(1.0, n / 20_000)])


def policy_regret(arms, curves, horizon):
    """What the best single arm would have paid, minus what was paid."""
    best = curves[:, :horizon].sum(axis=1).max()
    pulls = np.bincount(arms[:horizon], minlength=len(curves))
    return best - sum(curves[i, :n].sum() for i, n in enumerate(pulls))


@pytest.mark.parametrize(
    ("horizon", "best", "regret"), [(5_000, 0, 0.8), (16_010, 1, 0.8), (20_000, 1, 1.2)]
)
def test_cure_loses_only_its_first_pulls_on_the_two_arms(horizon, best, regret, play):
    curves = two_arms(horizon)
    arms = play(CureUCB.create(2, horizon, **EXACT), curves, horizon)
    assert arms[:4] == [0, 1, 0, 1]
    assert set(arms[4:]) == {best}
    assert policy_regret(arms, curves, horizon) == pytest.approx(regret, abs=2e-3)


def test_cure_is_never_behind_r_ed_on_linear_then_flat_arms(play):
    """Theorem 5.2, for the noiseless forms."""
    horizon = 250
    rng = np.random.default_rng(0)
    n = np.arange(1, horizon + 1)
    for _ in range(50):
        n_arms = rng.integers(2, 6)
        top = rng.uniform(0.1, 1.0, size=(n_arms, 1))
        saturation = rng.uniform(0.05 * horizon, horizon, size=(n_arms, 1))
        curves = np.minimum(top, top / saturation * n)
        cure, r_ed = (
            policy_regret(
                play(make(n_arms, horizon, **EXACT), curves, horizon), curves, horizon
            )
            for make in (CureUCB.create, REdUCB.create)
        )
        assert cure <= r_ed + 1e-9
