"""Thompson sampling against posteriors of the raw rewards, draw by draw."""

import math

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.stationary.thompson import ThompsonBeta, ThompsonGaussian


def beta_values(t, seen, left, rng):
    return {
        i: rng.beta(1 + sum(seen[i]), 1 + len(seen[i]) - sum(seen[i])) for i in left
    }


@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (0.2, 0.6)])
@pytest.mark.parametrize("fractional", [False, True])
def test_beta_run_equals_the_direct_policy(reward_range, fractional, agree):
    low, high = reward_range

    def kept(reward, rng):
        share = float(np.clip((reward - low) / (high - low), 0.0, 1.0))
        if fractional or share in (0.0, 1.0):
            return share
        return float(rng.random() < share)

    for seed, (n_arms, max_pulls) in enumerate([(2, 200), (4, 200), (6, 50)]):
        rewards = np.random.default_rng(seed).normal(0.5, 0.2, (n_arms, max_pulls))
        policy = ThompsonBeta.create(
            n_arms, 200, max_pulls, reward_range=reward_range, fractional=fractional
        )
        agree(policy, beta_values, rewards, 200, first=0, kept=kept)


@pytest.mark.parametrize("sigma", [0.05, 0.5])
def test_gaussian_run_equals_the_direct_policy(sigma, agree):
    def values(t, seen, left, rng):
        return {
            i: np.mean(seen[i])
            + sigma / math.sqrt(len(seen[i])) * rng.standard_normal()
            for i in left
        }

    for seed, (n_arms, max_pulls) in enumerate([(2, 200), (4, 200), (6, 50)]):
        rewards = np.random.default_rng(seed).normal(0.5, 0.2, (n_arms, max_pulls))
        policy = ThompsonGaussian.create(n_arms, 200, max_pulls, sigma=sigma)
        agree(policy, values, rewards, 200)


def test_explain_gives_the_posterior():
    beta = ThompsonBeta.create(2, 9)
    gaussian = ThompsonGaussian.create(2, 9, sigma=0.3)
    for t, reward in enumerate([1.0, 1.0, 0.0], start=1):
        beta.update(t, 0, reward, None)
        gaussian.update(t, 0, reward, None)
    # Beta(3, 2): mean 3/5, variance 6 / (25 * 6)
    parts = {"posterior_mean": 0.6, "posterior_deviation": 0.2}
    assert explain(beta, 0) == pytest.approx(parts)
    parts = {"posterior_mean": 2 / 3, "posterior_deviation": 0.3 / math.sqrt(3)}
    assert explain(gaussian, 0) == pytest.approx(parts)
    assert explain(beta, 1)["posterior_mean"] == 0.5
    assert explain(gaussian, 1)["posterior_deviation"] == math.inf
