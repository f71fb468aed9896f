"""The bounds that follow the variance against their formulas on the raw rewards."""

import math

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.stationary.raven_ucb import RavenUCB
from risingsearch.policies.stationary.ucb_v import UCBV


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


@pytest.mark.parametrize(
    ("policy", "index", "unpulled"),
    [(UCBV, ucb_v_index, "range_bonus"), (RavenUCB, raven_index, "bonus")],
)
def test_explain_gives_the_parts_of_the_index(policy, index, unpulled):
    bandit = policy.create(2, 9)
    for t, reward in enumerate([0.5, 0.4, 0.6], start=1):
        bandit.update(t, 0, reward, None)
    parts = explain(bandit, 0)
    assert parts["mean"] == pytest.approx(0.5)
    assert sum(parts.values()) == pytest.approx(index([0.5, 0.4, 0.6], 4))
    assert explain(bandit, 1)[unpulled] == math.inf
