"""The rotting policies against direct means over the raw rewards."""

import math

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.policies import explain
from risingsearch.policies.rotting import (
    FEWA,
    RAWUCB,
    SWA,
    WSWA,
    swa_window,
    window_lengths,
)
from risingsearch.testing import check_policy


def rotting(n_arms, max_pulls, seed, noise=0.1):
    """Return noisy falling rewards, (n_arms, max_pulls), each arm with one drop."""
    rng = np.random.default_rng(seed)
    start = rng.uniform(0.4, 1.0, (n_arms, 1))
    fall = rng.uniform(0.0, 0.8, (n_arms, 1)) / max_pulls
    drop_at = rng.integers(0, max_pulls, (n_arms, 1))
    n = np.arange(max_pulls)
    means = start - fall * n - 0.2 * (n > drop_at)
    return means + rng.normal(0.0, noise, (n_arms, max_pulls))


def best_arm(values, pulls):
    """Return the argmax of a dict, by the tie rule: fewer pulls, then lower index."""
    return min(values, key=lambda i: (-values[i], pulls[i], i))


def direct_run(choose, rewards, horizon):
    """Play ``choose(t, seen, alive)`` on lists of raw rewards; return the arms."""
    seen = [[] for _ in rewards]
    arms = []
    for t in range(1, horizon + 1):
        alive = [i for i, x in enumerate(seen) if len(x) < len(rewards[i])]
        if not alive:
            break
        arm = choose(t, seen, alive)
        seen[arm].append(float(rewards[arm][len(seen[arm])]))
        arms.append(arm)
    return arms


def unpulled(seen, alive, limit):
    """Return the least pulled arm below ``limit`` pulls, or None."""
    short = [i for i in alive if len(seen[i]) < limit]
    return min(short, key=lambda i: (len(seen[i]), i)) if short else None


def estimated_sigma(seen):
    bends = np.concatenate([np.diff(x, n=2) for x in seen if len(x) > 2] or [[]])
    return math.sqrt(np.mean(bends**2) / 6) if len(bends) else 0.0


# --------------------------------------------------------------------- SWA and wSWA


@pytest.mark.parametrize(
    ("n_arms", "horizon", "window"),
    [(2, 16_384, 259), (10, 16_384, 89), (2, 30_000, 395), (10, 30_000, 135)],
)
def test_window_is_that_of_the_paper(n_arms, horizon, window):
    sigma = math.sqrt(0.2)
    assert SWA.create(n_arms, horizon, sigma=sigma).window == window
    assert swa_window(0.2, sigma, n_arms, horizon) == window


def test_window_is_at_least_one_reward_and_at_most_the_horizon():
    assert SWA.create(3, 100, sigma=0.0).window == 1
    assert SWA.create(3, 100, alpha=1e300).window == 100
    assert SWA.create(1, 1).window == 1


def swa_choice(seen, alive, window):
    first = unpulled(seen, alive, window)
    if first is not None:
        return first
    means = {i: np.mean(seen[i][-window:]) for i in alive}
    return best_arm(means, [len(x) for x in seen])


@pytest.mark.parametrize("n_arms", [1, 2, 5])
@pytest.mark.parametrize("max_pulls", [300, 80])
def test_swa_run_equals_direct_means(n_arms, max_pulls, play):
    for seed in range(4):
        rewards = rotting(n_arms, max_pulls, seed)
        policy = SWA.create(n_arms, 300, max_pulls, sigma=0.3)
        window = policy.window
        direct = direct_run(lambda t, *a, w=window: swa_choice(*a, w), rewards, 300)
        assert play(policy, rewards, 300) == direct


@pytest.mark.parametrize("n_arms", [1, 2, 5])
@pytest.mark.parametrize("max_pulls", [300, 80])
def test_wswa_run_equals_one_swa_after_another(n_arms, max_pulls, play):
    for seed in range(4):
        rewards = rotting(n_arms, max_pulls, seed)
        past = [0] * n_arms
        arms = []
        epoch = 1
        while epoch <= 300:
            length = min(epoch, 301 - epoch)
            left = [x[done:] for x, done in zip(rewards, past, strict=True)]
            window = SWA.create(n_arms, epoch, sigma=0.3).window
            chosen = direct_run(lambda t, *a, w=window: swa_choice(*a, w), left, length)
            past += np.bincount(chosen, minlength=n_arms) if chosen else 0
            arms += chosen
            epoch *= 2
        policy = WSWA.create(n_arms, 300, max_pulls, sigma=0.3)
        assert play(policy, rewards, 300) == arms


def test_swa_pulls_round_robin_where_its_ramp_up_is_longer_than_the_horizon(play):
    policy = SWA.create(3, 30, alpha=100.0)
    assert play(policy, rotting(3, 30, seed=0), 30) == [0, 1, 2] * 10


def test_wswa_forgets_a_reward_that_comes_back_in_a_later_epoch():
    rng = np.random.default_rng(0)
    policy = WSWA.create(n_arms=2, horizon=15)
    for t in range(1, 7):
        policy.update(t, t % 2, 0.5, rng)
    assert policy.select(8, rng) == 0
    policy.update(7, 0, 9.0, rng)  # in flight while the epoch ended
    assert policy.select(8, rng) == 0
    policy.update(8, 0, 0.5, rng)
    assert policy.pulls.tolist() == [5, 3]
    assert explain(policy, 0) == {"recent_average": 0.5}


@pytest.mark.parametrize("policy_class", [SWA, WSWA])
def test_windowed_means_break_ties_by_fewer_pulls_then_by_lower_index(policy_class):
    rng = np.random.default_rng(0)
    policy = policy_class.create(n_arms=3, horizon=50, sigma=0.0)
    for arm in [0, 0, 1, 2]:
        policy.update(8, arm, 0.5, rng)
    assert policy.select(9, rng) == 1


# ------------------------------------------------------------------ FEWA and RAW-UCB


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


def fewa_choice(t, seen, alive, *, alpha, sigma, growth):
    first = unpulled(seen, alive, 1)
    if first is not None:
        return first
    sigma = estimated_sigma(seen) if sigma is None else sigma
    means = [window_means(x, growth) for x in seen]
    lengths = window_lengths(growth, max(len(x) for x in seen))
    kept = alive
    for h, longer in zip(lengths, [*lengths[1:], math.inf], strict=True):
        tolerance = 2 * math.sqrt(2 * alpha * sigma**2 * math.log(t) / h)
        best = max(means[i][h] for i in kept)
        kept = [i for i in kept if means[i][h] >= best - tolerance]
        done = [i for i in kept if len(seen[i]) < longer]
        if done:
            return min(done, key=lambda i: (len(seen[i]), i))
    raise AssertionError


def raw_ucb_index(t, rewards, *, alpha, sigma, growth):
    return min(
        mean + math.sqrt(2 * alpha * sigma**2 * math.log(t) / h)
        for h, mean in window_means(rewards, growth).items()
    )


def raw_ucb_choice(t, seen, alive, *, alpha, sigma, growth):
    first = unpulled(seen, alive, 1)
    if first is not None:
        return first
    sigma = estimated_sigma(seen) if sigma is None else sigma
    indices = {
        i: raw_ucb_index(t, seen[i], alpha=alpha, sigma=sigma, growth=growth)
        for i in alive
    }
    return best_arm(indices, [len(x) for x in seen])


@pytest.mark.parametrize("growth", [1, 1.3, 2.0])
@pytest.mark.parametrize(("alpha", "sigma"), [(0.06, 0.1), (1.0, 0.03), (0.2, None)])
def test_fewa_run_equals_the_direct_filters(growth, alpha, sigma, play):
    parameters = {"alpha": alpha, "sigma": sigma, "growth": growth}
    for seed, (n_arms, max_pulls) in enumerate([(2, 150), (4, 50)]):
        rewards = rotting(n_arms, max_pulls, seed)
        policy = FEWA.create(n_arms, 150, max_pulls, **parameters)
        direct = direct_run(
            lambda t, *a, p=parameters: fewa_choice(t, *a, **p), rewards, 150
        )
        assert play(policy, rewards, 150) == direct


@pytest.mark.parametrize("growth", [1, 1.3, 2.0])
@pytest.mark.parametrize(("alpha", "sigma"), [(1.4, 0.1), (4.0, 0.03), (1.4, None)])
def test_raw_ucb_run_equals_the_direct_index(growth, alpha, sigma, play):
    parameters = {"alpha": alpha, "sigma": sigma, "growth": growth}
    for seed, (n_arms, max_pulls) in enumerate([(2, 150), (4, 50)]):
        rewards = rotting(n_arms, max_pulls, seed)
        policy = RAWUCB.create(n_arms, 150, max_pulls, **parameters)
        direct = direct_run(
            lambda t, *a, p=parameters: raw_ucb_choice(t, *a, **p), rewards, 150
        )
        assert play(policy, rewards, 150) == direct


@pytest.mark.parametrize("growth", [1, 1.1, 2.0])
def test_raw_ucb_explains_its_index(growth):
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
def test_confident_policies_break_ties_by_fewer_pulls_then_by_lower_index(policy_class):
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


# -------------------------------------------------------------------- for all of them


@pytest.mark.parametrize(
    ("policy_class", "parameters"),
    [
        (SWA, {"alpha": 0.0}),
        (SWA, {"alpha": math.inf}),
        (SWA, {"sigma": -0.1}),
        (WSWA, {"alpha": "small"}),
        (WSWA, {"sigma": None}),
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


@pytest.mark.parametrize(
    ("policy_class", "parameters"),
    [
        (SWA, {}),
        (SWA, {"sigma": 0.01}),
        (SWA, {"alpha": 5.0}),
        (WSWA, {}),
        (WSWA, {"sigma": 0.0}),
        (WSWA, {"alpha": 1.0}),
        (FEWA, {}),
        (FEWA, {"growth": 1, "sigma": 0.02}),
        (FEWA, {"growth": 1.2, "alpha": 4.0}),
        (RAWUCB, {}),
        (RAWUCB, {"growth": 1, "sigma": 0.02}),
        (RAWUCB, {"growth": 2, "alpha": 4.0}),
    ],
)
def test_the_contract_is_kept(policy_class, parameters):
    check_policy(policy_class.create, **parameters)
