"""The confidence bounds against their formulas on the raw rewards."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

from risingsearch.errors import InvalidParameterError
from risingsearch.policies import explain
from risingsearch.policies.ucb import CCB, KLUCB, UCB1, UCBV, RavenUCB
from risingsearch.testing import check_policy

POLICIES = [UCB1, UCBV, KLUCB, CCB, RavenUCB]


# -------------------------------------------------- direct indices of one arm's rewards


def ucb1_index(x, t, *, c=2.0, extra=0, width=1.0):
    return np.mean(x) + width * math.sqrt(c * math.log(t) / (len(x) + extra))


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


def raven_index(x, t, *, alpha0=0.5, beta0=1.0, eps=1e-6, variance=unbiased_variance):
    n = len(x)
    return (
        np.mean(x)
        + alpha0 / math.log(t + eps) * math.sqrt(math.log(t + 1) / (n + 1))
        + beta0 * math.sqrt(variance(x) / (n + 1) + eps)
    )


def direct_run(index, rewards, horizon, max_pulls, **parameters):
    """Return the arms of a whole run, with every index taken from the raw rewards."""
    seen = [[] for _ in rewards]
    arms = []
    for t in range(1, horizon + 1):
        choice = [i for i, x in enumerate(seen) if len(x) < max_pulls]
        fresh = [i for i in choice if not seen[i]]
        value = {i: index(seen[i], t, **parameters) for i in choice if not fresh}
        arm = (
            fresh[0] if fresh else min(choice, key=lambda i: (-value[i], len(seen[i])))
        )
        seen[arm].append(float(rewards[arm][len(seen[arm])]))
        arms.append(arm)
    return arms


def noisy_rewards(n_arms, horizon, seed):
    rng = np.random.default_rng(seed)
    means = rng.uniform(0.3, 0.7, (n_arms, 1))
    return rng.normal(means, rng.uniform(0.02, 0.2, (n_arms, 1)), (n_arms, horizon))


@pytest.mark.parametrize(
    ("policy", "parameters", "index", "direct"),
    [
        (UCB1, {}, ucb1_index, {}),
        (UCB1, {"c": 0.1}, ucb1_index, {"c": 0.1}),
        (UCB1, {"denominator": "n+1"}, ucb1_index, {"extra": 1}),
        (UCB1, {"reward_range": (0.3, 0.7)}, ucb1_index, {"width": 0.4}),
        (UCBV, {}, ucb_v_index, {}),
        (UCBV, {"zeta": 0.2, "c": 0.3}, ucb_v_index, {"zeta": 0.2, "c": 0.3}),
        (
            UCBV,
            {"zeta": 1.0, "variance": "table4", "denominator": "n+1"},
            ucb_v_index,
            {"zeta": 1.0, "variance": growing_variance, "extra": 1},
        ),
        (UCBV, {"reward_range": (0.4, 0.6)}, ucb_v_index, {"width": 0.2}),
        (KLUCB, {}, kl_index, {}),
        (KLUCB, {"c": 3.0}, kl_index, {"c": 3.0}),
        (KLUCB, {"reward_range": (0.4, 0.6)}, kl_index, {"low": 0.4, "high": 0.6}),
        (RavenUCB, {}, raven_index, {}),
        (
            RavenUCB,
            {"alpha0": 2.0, "beta0": 0.3, "eps": 0.1},
            raven_index,
            {"alpha0": 2.0, "beta0": 0.3, "eps": 0.1},
        ),
        (
            RavenUCB,
            {"variance": "table4"},
            raven_index,
            {"variance": growing_variance},
        ),
        (
            RavenUCB,
            {"variance": "alg1"},
            raven_index,
            {"variance": shrinking_variance},
        ),
    ],
)
def test_whole_run_equals_the_direct_policy(policy, parameters, index, direct, play):
    for seed, (n_arms, max_pulls) in enumerate([(2, 150), (5, 150), (7, 40)]):
        rewards = noisy_rewards(n_arms, 150, seed)
        arms = play(policy.create(n_arms, 150, max_pulls, **parameters), rewards, 150)
        assert arms == direct_run(index, rewards, 150, max_pulls, **direct)


# --------------------------------------------------------------- CCB, which has a state


def direct_ccb_run(rewards, horizon, width=1.0):
    seen = [[] for _ in rewards]
    gaps = [1.0]
    enough = 0
    arms = []
    for _ in range(horizon):
        fresh = [i for i, x in enumerate(seen) if not x]
        key = [
            (-np.mean(x) - width * gaps[-1] / 2 * (horizon / len(x)) ** 0.25, len(x))
            if x
            else (0.0, 0)
            for x in seen
        ]
        arm = fresh[0] if fresh else min(range(len(seen)), key=lambda i: key[i])
        seen[arm].append(float(rewards[arm][len(seen[arm])]))
        arms.append(arm)
        if len(seen[arm]) >= enough and horizon * (gaps[-1] / 2) ** 2 > math.e:
            gaps.append(gaps[-1] / 2)
            enough += math.ceil(2 * math.log(horizon * gaps[-1] ** 2) / gaps[-1] ** 2)
    return arms, gaps[-1]


@pytest.mark.parametrize("horizon", [5, 60, 700])
@pytest.mark.parametrize("width", [1.0, 0.3])
def test_ccb_equals_the_direct_policy(horizon, width, play):
    for seed in range(3):
        rewards = noisy_rewards(4, horizon, seed)
        policy = CCB.create(4, horizon, reward_range=(0.5, 0.5 + width))
        arms, gap = direct_ccb_run(rewards, horizon, width)
        assert play(policy, rewards, horizon) == arms
        assert policy.gap[0] == gap


def test_ccb_never_halves_its_gap_below_what_the_horizon_resolves(play):
    horizon = 3000
    policy = CCB.create(1, horizon)
    play(policy, np.full((1, horizon), 0.5), horizon)
    assert horizon * policy.gap[0] ** 2 > math.e
    assert policy.gap[0] == 1 / 32


# ------------------------------------------------------------------------- the variance


@pytest.mark.parametrize(
    ("variance", "direct"),
    [
        ("eq5", unbiased_variance),
        ("alg1", shrinking_variance),
        ("table4", growing_variance),
    ],
)
def test_raven_variance_follows_its_recursion(variance, direct):
    rng = np.random.default_rng(0)
    rewards = list(rng.normal(0.5, 0.2, 300))
    policy = RavenUCB.create(1, 300, variance=variance)
    for n, reward in enumerate(rewards, start=1):
        policy.update(n, 0, reward, rng)
        if n < 30 or n % 50 == 0:
            assert policy.variance[0] == pytest.approx(direct(rewards[:n]), rel=1e-9)


@pytest.mark.parametrize("variance", ["eq5", "alg1", "table4"])
def test_one_reward_has_no_variance(variance):
    policy = RavenUCB.create(1, 9, variance=variance)
    policy.update(1, 0, 0.7, None)
    assert policy.variance[0] == 0.0


def test_ucb_v_explores_noisy_arms_more():
    policy = UCBV.create(2, 50)
    for t in range(1, 21):
        policy.update(t, 0, 0.5, None)
        policy.update(t, 1, 0.4 + 0.2 * (t % 2), None)
    assert explain(policy, 0)["variance_bonus"] == 0.0
    assert explain(policy, 1)["variance_bonus"] > 0.05


# ----------------------------------------------------------------- what all have alike


@pytest.mark.parametrize("policy", POLICIES)
def test_every_arm_is_pulled_once_first(policy, play, concave):
    assert play(policy.create(5, 5), concave(5, 5, seed=0), 5) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_busy_arm_gets_its_first_pull_when_it_is_free(policy):
    bandit = policy.create(2, 9)
    bandit.available[0] = False
    assert bandit.select(1, None) == 1
    bandit.update(1, 1, 1.0, None)
    assert bandit.select(2, None) == 1
    bandit.available[0] = True
    assert bandit.select(2, None) == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_equal_arms_take_turns(policy, play):
    arms = play(policy.create(3, 12), np.full((3, 12), 0.5), 12)
    assert arms == [0, 1, 2] * 4


@pytest.mark.parametrize("policy", POLICIES)
def test_one_arm_gets_everything(policy, play):
    assert play(policy.create(1, 20), np.full((1, 20), 0.5), 20) == [0] * 20


@pytest.mark.parametrize("policy", POLICIES)
def test_the_better_arm_is_found(policy, play):
    rng = np.random.default_rng(1)
    rewards = rng.normal([[0.2], [0.8]], 0.05, (2, 500))
    arms = play(policy.create(2, 500), rewards, 500)
    assert np.mean(arms[250:]) > 0.9


@pytest.mark.parametrize(
    ("policy", "index", "unpulled"),
    [
        (UCB1, ucb1_index, "bonus"),
        (UCBV, ucb_v_index, "range_bonus"),
        (KLUCB, kl_index, "bonus"),
        (RavenUCB, raven_index, "bonus"),
        (CCB, lambda x, t: np.mean(x) + 0.5 * (9 / len(x)) ** 0.25, "bonus"),
    ],
)
def test_explain_gives_the_parts_of_the_index(policy, index, unpulled):
    bandit = policy.create(2, 9)
    for t, reward in enumerate([0.5, 0.4, 0.6], start=1):
        bandit.update(t, 0, reward, None)
    parts = explain(bandit, 0)
    assert parts["mean"] == pytest.approx(0.5)
    assert sum(parts.values()) == pytest.approx(index([0.5, 0.4, 0.6], 4))
    assert explain(bandit, 1)[unpulled] == math.inf


@pytest.mark.parametrize(
    ("policy", "parameters"),
    [
        (UCB1, {"c": -1.0}),
        (UCB1, {"denominator": "n-1"}),
        (UCB1, {"reward_range": (0.0, math.inf)}),
        (UCB1, {"reward_range": (1.0, 0.0)}),
        (UCBV, {"zeta": -0.1}),
        (UCBV, {"c": math.nan}),
        (UCBV, {"variance": "eq5"}),
        (UCBV, {"denominator": 1}),
        (UCBV, {"reward_range": 1.0}),
        (KLUCB, {"c": -0.1}),
        (KLUCB, {"reward_range": (-math.inf, 1.0)}),
        (CCB, {"reward_range": (0.5, 0.5)}),
        (RavenUCB, {"alpha0": -0.5}),
        (RavenUCB, {"beta0": "much"}),
        (RavenUCB, {"eps": -1e-6}),
        (RavenUCB, {"variance": "biased"}),
    ],
)
def test_parameters_outside_their_range_are_refused(policy, parameters):
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        policy.create(2, 10, **parameters)


@pytest.mark.parametrize(
    ("policy", "parameters"),
    [
        (UCB1, {}),
        (UCB1, {"denominator": "n+1", "reward_range": (-2.0, 5.0)}),
        (UCBV, {}),
        (UCBV, {"zeta": 1.0, "variance": "table4", "denominator": "n+1"}),
        (KLUCB, {}),
        (KLUCB, {"c": 3.0, "reward_range": (-1.0, 0.5)}),
        (CCB, {}),
        (CCB, {"reward_range": (-100.0, 0.0)}),
        (RavenUCB, {}),
        (RavenUCB, {"variance": "alg1"}),
        (RavenUCB, {"variance": "table4", "alpha0": 5.0}),
    ],
)
def test_the_contract_is_kept(policy, parameters):
    check_policy(policy.create, **parameters)
