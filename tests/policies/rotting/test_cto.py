"""The policies that know the models, against direct sums over the raw rewards."""

import math

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.rotting.cto import DCTOUCB
from risingsearch.policies.rotting.curve_models import plateau_models


def tables(n_pulls, seed):
    """Return two families of models: short plateaus that start alike, and any curves.

    Neither makes arms tie but for the pulls before the first step.
    """
    rng = np.random.default_rng(seed)
    curves = rng.uniform(0.2, 0.5, (4, 1)) * np.arange(n_pulls) ** rng.uniform(
        -0.5, 0.5, (4, 1)
    ).clip(0.05)
    return plateau_models(n_pulls, plateau=6), curves


def draw(models, n_arms, seed, noise, constants=False):
    """Return noisy rewards, each arm from a random model plus perhaps a constant."""
    rng = np.random.default_rng(seed)
    means = models[rng.integers(len(models), size=n_arms)]
    if constants:
        means = means + rng.uniform(0.0, 0.5, (n_arms, 1))
    return means + rng.normal(0.0, noise, means.shape)


def closest(models, distance):
    return min(range(len(models)), key=lambda k: (distance(models[k]), k))


def halves(x):
    """Return the first half of the values minus the second, the longer one if odd."""
    half = len(x) // 2
    return math.fsum(x[:half]) - math.fsum(x[half:])


def cto_index(x, t, models):
    n = len(x)
    total = math.fsum(x)
    return models[closest(models, lambda m: abs(total - math.fsum(m[:n])))][n]


def d_cto_index(x, t, models, sigma, m=None):
    """The index of D-CTO; the model fits the first ``m`` rewards, or all of them."""
    n = len(x)
    fit = n if m is None else m
    k = closest(models, lambda mu: abs(halves(x[:fit]) - halves(mu[:fit])))
    offset = (math.fsum(x) - math.fsum(models[k][:n])) / n
    return offset + models[k][n] + sigma * math.sqrt(8 * math.log(t) / n)


@pytest.mark.parametrize("n_arms", [1, 2, 5])
@pytest.mark.parametrize("max_pulls", [120, 40])
def test_cto_run_equals_direct_sums(n_arms, max_pulls, by_index, agree):
    for seed in range(2):
        for models in tables(max_pulls, seed):
            rewards = draw(models, n_arms, seed, noise=0.1)
            policy = DCTOUCB.create_cto_sim(n_arms, 120, max_pulls, models=models)
            agree(policy, by_index(cto_index, models=models), rewards, 120)


def test_cto_takes_the_first_of_models_that_fit_alike():
    policy = DCTOUCB.create_cto_sim(2, 10, models=[[0.5] * 10, [0.5] * 5 + [0.9] * 5])
    policy.update(1, 0, 0.5, np.random.default_rng(0))
    assert policy.model[0] == 0


@pytest.mark.parametrize("n_arms", [1, 2, 5])
@pytest.mark.parametrize("max_pulls", [120, 40])
def test_d_cto_sim_run_equals_direct_sums(n_arms, max_pulls, by_index, agree):
    for seed in range(2):
        for models in tables(max_pulls, seed):
            rewards = draw(models, n_arms, seed, noise=0.05, constants=True)
            policy = DCTOUCB.create_sim(
                n_arms, 120, max_pulls, models=models, sigma=0.05
            )
            values = by_index(d_cto_index, models=models, sigma=0.05)
            agree(policy, values, rewards, 120)


@pytest.mark.parametrize("n_arms", [1, 2, 5])
@pytest.mark.parametrize("explore_pulls", [2, 9, 20])
def test_d_cto_run_equals_direct_sums(n_arms, explore_pulls, by_index, agree):
    for seed in range(2):
        for models in tables(60, seed):
            rewards = draw(models, n_arms, seed, noise=0.05, constants=True)
            policy = DCTOUCB.create(
                n_arms, 120, 60, models=models, sigma=0.05, explore_pulls=explore_pulls
            )
            m = explore_pulls
            values = by_index(d_cto_index, models=models, sigma=0.05, m=m)
            agree(policy, values, rewards, 120, first=m)


@pytest.mark.parametrize("sigma", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("delta", [0.01, 0.5])
def test_exploration_ends_where_the_models_can_be_told_apart(sigma, delta):
    n_arms, n_pulls = 3, 400
    models = [np.arange(n_pulls) * -0.01 * k for k in range(3)]
    models.append(np.where(np.arange(n_pulls) < 30, 0.317, 0.0))

    def told_apart(n):
        gaps = [
            halves(a[:n]) - halves(b[:n])
            for i, a in enumerate(models)
            for b in models[:i]
        ]
        limit = 8 * math.log(2 * n_arms / delta)
        return all(abs(g) > 1e-9 and n * sigma**2 / g**2 <= 1 / limit for g in gaps)

    ends = [n for n in range(1, n_pulls + 1) if not told_apart(n)]
    last = ends[-1] + 1
    policy = DCTOUCB.create(n_arms, n_pulls, models=models, sigma=sigma, delta=delta)
    assert policy.explore_pulls == last + last % 2
    assert 2 < policy.explore_pulls < n_pulls


def test_on_the_papers_benchmark_exploration_never_ends(play):
    policy = DCTOUCB.create(4, 1_000)
    assert policy.explore_pulls > 1_000
    rewards = draw(plateau_models(1_000), 4, seed=0, noise=0.4)
    assert play(policy, rewards, 1_000) == [0, 1, 2, 3] * 250


@pytest.mark.parametrize("make", [DCTOUCB.create, DCTOUCB.create_sim])
def test_d_cto_explains_its_index(make):
    models = plateau_models(20, plateau=3)
    policy = make(1, 20, models=models, sigma=0.2)
    assert explain(policy, 0) == {"offset": 0.0, "forecast": 0.0, "bonus": math.inf}
    policy = DCTOUCB.create_sim(1, 20, models=models, sigma=0.2)
    rewards = draw(models, 1, seed=2, noise=0.2, constants=True)[0].tolist()
    for n in range(1, 20):
        policy.update(n, 0, rewards[n - 1], np.random.default_rng(0))
        direct = d_cto_index(rewards[:n], n + 1, models, 0.2)
        assert sum(explain(policy, 0).values()) == pytest.approx(direct)
