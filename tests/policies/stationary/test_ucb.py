"""The confidence bounds against their formulas on the raw rewards."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

from risingsearch.policies import explain
from risingsearch.policies.stationary.ccb import CCB
from risingsearch.policies.stationary.kl_ucb import KLUCB
from risingsearch.policies.stationary.raven_ucb import RavenUCB
from risingsearch.policies.stationary.ucb1 import UCB1
from risingsearch.policies.stationary.ucb_v import UCBV

POLICIES = [UCB1, KLUCB, CCB]


def ucb1_index(x, t, *, c=2.0, extra=0, width=1.0):
    return np.mean(x) + width * math.sqrt(c * math.log(t) / (len(x) + extra))


def kl_index(x, t, *, c=0.0, low=0.0, high=1.0):
    mean = np.mean(np.clip((np.array(x) - low) / (high - low), 0.0, 1.0))
    level = math.log(t)
    if t >= 3:
        level += c * math.log(math.log(t))
    level /= len(x)
    if mean == 1.0 or level == 0.0:
        return mean

    def excess(q):
        return rel_entr(mean, q) + rel_entr(1 - mean, 1 - q) - level

    top = 1.0 - 1e-10  # closer than that is taken as 1
    return brentq(excess, mean, top, xtol=1e-14) if excess(top) > 0.0 else 1.0


def squares(x):
    """Return the products of the distances to the old and the new mean, from n = 2."""
    means = np.cumsum(x) / np.arange(1, len(x) + 1)
    return (x[1:] - means[:-1]) * (x[1:] - means[1:])


def growing_variance(x):
    """The recursion of the public script: its sum is never averaged down."""
    return sum(d / k for k, d in enumerate(squares(x), start=1))


def shrinking_variance(x):
    """The recursion as printed in Algorithm 1: it forgets all but the newest."""
    variance = 0.0
    for k, d in enumerate(squares(x), start=1):
        variance = (variance + d) / k
    return variance


def unbiased_variance(x):
    return np.var(x, ddof=1) if len(x) > 1 else 0.0


def ucb_v_index(x, t, *, zeta=1.2, c=1.0, variance=np.var, extra=0, width=1.0):
    n = len(x) + extra
    exploration = zeta * math.log(t)
    return (
        np.mean(x)
        + math.sqrt(2 * variance(x) * exploration / n)
        + 3 * c * width * exploration / n
    )


def raven_index(x, t, *, alpha0=0.5, beta0=1.0, eps=1e-6, variance=unbiased_variance):
    n = len(x)
    return (
        np.mean(x)
        + alpha0 / math.log(t + eps) * math.sqrt(math.log(t + 1) / (n + 1))
        + beta0 * math.sqrt(variance(x) / (n + 1) + eps)
    )


@pytest.mark.parametrize(
    ("policy", "parameters", "index", "direct"),
    [
        (UCB1, {}, ucb1_index, {}),
        (UCB1, {"c": 0.1}, ucb1_index, {"c": 0.1}),
        (UCB1, {"denominator": "n+1"}, ucb1_index, {"extra": 1}),
        (UCB1, {"reward_range": (0.3, 0.7)}, ucb1_index, {"width": 0.4}),
        (KLUCB, {}, kl_index, {}),
        (KLUCB, {"c": 3.0}, kl_index, {"c": 3.0}),
        (KLUCB, {"reward_range": (0.4, 0.6)}, kl_index, {"low": 0.4, "high": 0.6}),
        (UCBV, {}, ucb_v_index, {}),
        (UCBV, {"zeta": 0.2, "c": 0.3}, ucb_v_index, {"zeta": 0.2, "c": 0.3}),
        (
            UCBV,
            {"zeta": 1.0, "variance": "table4", "denominator": "n+1"},
            ucb_v_index,
            {"zeta": 1.0, "variance": growing_variance, "extra": 1},
        ),
        (UCBV, {"reward_range": (0.4, 0.6)}, ucb_v_index, {"width": 0.2}),
        (RavenUCB, {}, raven_index, {}),
        (
            RavenUCB,
            {"alpha0": 2.0, "beta0": 0.3, "eps": 0.1},
            raven_index,
            {"alpha0": 2.0, "beta0": 0.3, "eps": 0.1},
        ),
        (RavenUCB, {"variance": "table4"}, raven_index, {"variance": growing_variance}),
        (RavenUCB, {"variance": "alg1"}, raven_index, {"variance": shrinking_variance}),
    ],
)
def test_whole_run_equals_the_direct_policy(
    policy, parameters, index, direct, play, play_direct, by_index, noisy
):
    for seed, (n_arms, max_pulls) in enumerate([(2, 150), (5, 150), (7, 40)]):
        rewards = noisy(n_arms, max_pulls, seed)
        arms = play(policy.create(n_arms, 150, max_pulls, **parameters), rewards, 150)
        assert arms == play_direct(by_index(index, **direct), rewards, 150)


def last_gap(pulls, horizon):
    """Return the gap of CCB; ``pulls`` has how often each pull's arm was pulled."""
    gap, enough = 1.0, 0
    for n in pulls:
        if n >= enough and horizon * (gap / 2) ** 2 > math.e:
            gap /= 2
            enough += math.ceil(2 * math.log(horizon * gap**2) / gap**2)
    return gap


def ccb_values(horizon, width):
    def values(t, seen, left, rng):
        pulls = sorted((k, n) for x in seen for n, k in enumerate(x.rounds, start=1))
        half = width * last_gap([n for _, n in pulls], horizon) / 2
        return {
            i: np.mean(seen[i]) + half * (horizon / len(seen[i])) ** 0.25 for i in left
        }

    return values


@pytest.mark.parametrize("horizon", [5, 60, 400])
@pytest.mark.parametrize("width", [1.0, 0.3])
def test_ccb_equals_the_direct_policy(horizon, width, noisy, agree):
    for seed in range(2):
        rewards = noisy(4, horizon, seed)
        policy = CCB.create(4, horizon, reward_range=(0.5, 0.5 + width))
        agree(policy, ccb_values(horizon, width), rewards, horizon)


def test_ccb_never_halves_its_gap_below_what_the_horizon_resolves(play):
    horizon = 3000
    policy = CCB.create(1, horizon)
    play(policy, np.full((1, horizon), 0.5), horizon)
    assert horizon * policy.gap[0] ** 2 > math.e
    assert policy.gap[0] == 1 / 32


@pytest.mark.parametrize(
    ("policy", "index"),
    [
        (UCB1, ucb1_index),
        (KLUCB, kl_index),
        (CCB, lambda x, t: np.mean(x) + 0.5 * (9 / len(x)) ** 0.25),
        (UCBV, ucb_v_index),
        (RavenUCB, raven_index),
    ],
)
def test_explain_gives_the_parts_of_the_index(policy, index):
    bandit = policy.create(2, 9)
    for t, reward in enumerate([0.5, 0.4, 0.6], start=1):
        bandit.update(t, 0, reward, None)
    parts = explain(bandit, 0)
    assert parts["mean"] == pytest.approx(0.5)
    assert sum(parts.values()) == pytest.approx(index([0.5, 0.4, 0.6], 4))
    unpulled = "range_bonus" if policy is UCBV else "bonus"
    assert explain(bandit, 1)[unpulled] == math.inf
