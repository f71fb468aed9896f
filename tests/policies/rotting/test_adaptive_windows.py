"""FEWA and RAW-UCB against direct means over the raw rewards."""

import math

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.rotting.adaptive_windows import FEWA, RAWUCB, window_lengths


def latest_windows(n, growth):
    """Return the slices of n rewards that the efficient versions average, by length.

    Written with the first reward of every window in place of sums: a window that is
    full begins anew where the next shorter one had begun.
    """
    lengths = window_lengths(growth, n)
    begin = [0] * len(lengths)
    full = {}
    for end in range(1, n + 1):
        before = list(begin)
        for j, length in enumerate(lengths):
            if end - before[j] == length:
                full[int(length)] = slice(before[j], end)
                begin[j] = before[j - 1] if j else end
    return full


def window_means(rewards, growth):
    """Return the mean of every window of an arm, by its length."""
    n = len(rewards)
    if growth == 1:
        return {h: np.mean(rewards[n - h :]) for h in range(1, n + 1)}
    slices = latest_windows(n, growth)
    return {h: np.mean(rewards[window]) for h, window in slices.items()}


def last_kept(t, seen, left, *, alpha, sigma, growth):
    """Return the arms among which FEWA pulls the least pulled one."""
    means = [window_means(x, growth) for x in seen]
    lengths = window_lengths(growth, max(len(x) for x in seen))
    kept = left
    for h, longer in zip(lengths, [*lengths[1:], math.inf], strict=True):
        tolerance = 2 * math.sqrt(2 * alpha * sigma**2 * math.log(t) / h)
        best = max(means[i][h] for i in kept)
        kept = [i for i in kept if means[i][h] >= best - tolerance]
        done = [i for i in kept if len(seen[i]) < longer]
        if done:
            return done
    raise AssertionError


def raw_ucb_index(t, rewards, *, alpha, sigma, growth):
    return min(
        mean + math.sqrt(2 * alpha * sigma**2 * math.log(t) / h)
        for h, mean in window_means(rewards, growth).items()
    )


def last_kept_by_fewa(t, seen, left, **options):
    return dict.fromkeys(last_kept(t, seen, left, **options), 0.0)


def raw_ucb_indices(t, seen, left, **options):
    return {i: raw_ucb_index(t, seen[i], **options) for i in left}


@pytest.mark.parametrize("growth", [1, 1.3, 2.0])
@pytest.mark.parametrize(
    ("kind", "direct", "alpha", "sigma"),
    [
        (FEWA, last_kept_by_fewa, 0.06, 0.1),
        (FEWA, last_kept_by_fewa, 1.0, 0.03),
        (FEWA, last_kept_by_fewa, 0.2, None),
        (RAWUCB, raw_ucb_indices, 1.4, 0.1),
        (RAWUCB, raw_ucb_indices, 4.0, 0.03),
        (RAWUCB, raw_ucb_indices, 1.4, None),
    ],
)
def test_runs_equal_the_direct_policies(
    growth, kind, direct, alpha, sigma, rotting, estimated_sigma, agree
):
    options = {"alpha": alpha, "growth": growth}

    def values(t, seen, left, rng):
        scale = estimated_sigma(seen) if sigma is None else sigma
        return direct(t, seen, left, sigma=scale, **options)

    for seed, (n_arms, max_pulls) in enumerate([(2, 150), (4, 50)]):
        rewards = rotting(n_arms, max_pulls, seed)
        policy = kind.create(n_arms, 150, max_pulls, sigma=sigma, **options)
        agree(policy, values, rewards, 150)


@pytest.mark.parametrize("growth", [1, 1.1, 2.0])
def test_raw_ucb_explains_its_index(growth, rotting):
    rng = np.random.default_rng(2)
    policy = RAWUCB.create(1, 120, sigma=0.2, growth=growth)
    assert explain(policy, 0) == {"recent_average": 0.0, "bonus": math.inf}
    rewards = rotting(1, 120, seed=3)[0]
    for n, reward in enumerate(rewards, start=1):
        policy.update(n, 0, reward, rng)
        direct = raw_ucb_index(n + 1, rewards[:n], alpha=1.4, sigma=0.2, growth=growth)
        assert sum(explain(policy, 0).values()) == pytest.approx(direct, rel=1e-12)


def test_windows_grow_by_a_factor_and_by_one_at_least():
    assert window_lengths(2.0, 30_000).tolist() == [2**j for j in range(16)]
    assert window_lengths(1.0, 5).tolist() == [1, 2, 3, 4, 5, 6]
    assert window_lengths(1.5, 10).tolist() == [1, 2, 3, 5, 8, 12]
