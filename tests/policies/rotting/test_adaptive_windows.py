"""FEWA and RAW-UCB against direct means over the raw rewards."""

import math

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
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


SIZES = [(2, 150), (4, 50)]


@pytest.mark.parametrize("growth", [1, 1.3, 2.0])
@pytest.mark.parametrize(("alpha", "sigma"), [(0.06, 0.1), (1.0, 0.03), (0.2, None)])
def test_fewa_run_equals_the_direct_filters(
    growth, alpha, sigma, play, play_direct, rotting, estimated_sigma
):
    def values(t, seen, left, rng):
        scale = estimated_sigma(seen) if sigma is None else sigma
        kept = last_kept(t, seen, left, alpha=alpha, sigma=scale, growth=growth)
        return dict.fromkeys(kept, 0.0)

    for seed, (n_arms, max_pulls) in enumerate(SIZES):
        rewards = rotting(n_arms, max_pulls, seed)
        policy = FEWA.create(
            n_arms, 150, max_pulls, alpha=alpha, sigma=sigma, growth=growth
        )
        assert play(policy, rewards, 150) == play_direct(values, rewards, 150)


@pytest.mark.parametrize("growth", [1, 1.3, 2.0])
@pytest.mark.parametrize(("alpha", "sigma"), [(1.4, 0.1), (4.0, 0.03), (1.4, None)])
def test_raw_ucb_run_equals_the_direct_index(
    growth, alpha, sigma, play, play_direct, rotting, estimated_sigma
):
    def values(t, seen, left, rng):
        scale = estimated_sigma(seen) if sigma is None else sigma
        options = {"alpha": alpha, "sigma": scale, "growth": growth}
        return {i: raw_ucb_index(t, seen[i], **options) for i in left}

    for seed, (n_arms, max_pulls) in enumerate(SIZES):
        rewards = rotting(n_arms, max_pulls, seed)
        policy = RAWUCB.create(
            n_arms, 150, max_pulls, alpha=alpha, sigma=sigma, growth=growth
        )
        assert play(policy, rewards, 150) == play_direct(values, rewards, 150)


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


@pytest.mark.parametrize("growth", [1.05, 1.5, 2.0])
def test_efficient_windows_lag_behind_by_less_than_their_length(growth):
    rng = np.random.default_rng(4)
    rewards = rng.normal(size=120)
    policy = RAWUCB.create(1, 120, growth=growth)
    for n, reward in enumerate(rewards, start=1):
        policy.update(n, 0, reward, rng)
        slices = latest_windows(n, growth)
        assert all(n - window.stop < h for h, window in slices.items())
        means = [np.mean(rewards[window]) for window in slices.values()]
        assert policy.mean[0, : policy.n_full[0]] == pytest.approx(means)


def test_windows_grow_by_a_factor_and_by_one_at_least():
    assert window_lengths(2.0, 30_000).tolist() == [2**j for j in range(16)]
    assert window_lengths(1.0, 5).tolist() == [1, 2, 3, 4, 5, 6]
    assert window_lengths(1.5, 10).tolist() == [1, 2, 3, 5, 8, 12]


@pytest.mark.parametrize("policy_class", [FEWA, RAWUCB])
@pytest.mark.parametrize("growth", [1, 2.0])
def test_a_worn_out_arm_is_left_although_its_past_was_good(policy_class, growth, play):
    rewards = np.full((2, 400), 0.5)
    rewards[1] = np.where(np.arange(400) < 150, 0.9, 0.2)
    policy = policy_class.create(2, 400, sigma=0.05, growth=growth)
    arms = play(policy, rewards, 400)
    assert 150 <= arms.count(1) < 175
    assert arms[-50:].count(0) >= 48


@pytest.mark.parametrize("policy_class", [FEWA, RAWUCB])
def test_ties_go_to_fewer_pulls_then_to_the_lower_index(policy_class):
    rng = np.random.default_rng(0)
    policy = policy_class.create(n_arms=3, horizon=50, sigma=0.0)
    for t, arm in enumerate([0, 0, 1, 2], start=1):
        policy.update(t, arm, 0.5, rng)
    assert policy.select(5, rng) == 1
    policy.available[1] = False
    assert policy.select(5, rng) == 2


@pytest.mark.parametrize("policy_class", [FEWA, RAWUCB])
def test_memory_of_the_efficient_versions_is_logarithmic(policy_class):
    policy = policy_class.create(n_arms=10, horizon=1_000_000)
    assert sum(x.nbytes for x in policy if isinstance(x, np.ndarray)) < 60_000


@pytest.mark.parametrize(
    ("policy_class", "parameters"),
    [
        (FEWA, {"alpha": 0.0}),
        (FEWA, {"sigma": math.nan}),
        (FEWA, {"growth": 0.9}),
        (RAWUCB, {"alpha": -1.0}),
        (RAWUCB, {"sigma": -0.1}),
        (RAWUCB, {"growth": 2.1}),
    ],
)
def test_parameters_outside_their_range_are_refused(policy_class, parameters):
    (name,) = parameters
    with pytest.raises(InvalidParameterError, match=f"{name} must be a finite number"):
        policy_class.create(2, 10, **parameters)
