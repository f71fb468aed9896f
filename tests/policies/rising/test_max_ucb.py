"""MaxUCB against the authors' own way: all rewards rescaled before every decision."""

import math

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.rising.max_ucb import MaxUCB


def indices(seen, t, alpha):
    """Return every arm's stretched maximum and bonus, from the raw rewards."""
    everything = np.concatenate(seen)
    width = np.ptp(everything) or 1.0
    return [
        (
            max(0.01 + 0.98 * (np.array(x) - everything.min()) / width),
            (alpha * math.log(t) / len(x)) ** 2,
        )
        for x in seen
    ]


@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("n_arms", "max_pulls"), [(2, 150), (5, 40)])
def test_whole_run_equals_the_direct_policy(alpha, n_arms, max_pulls, agree):
    def values(t, seen, left, rng):
        parts = indices(seen, t, alpha)
        return {i: sum(parts[i]) for i in left}

    for seed in range(2):
        rng = np.random.default_rng(seed)
        rewards = rng.normal(rng.normal(size=(n_arms, 1)), 0.5, (n_arms, max_pulls))
        policy = MaxUCB.create(n_arms, 150, max_pulls, alpha=alpha)
        agree(policy, values, rewards, 150)


def test_explain_gives_the_two_terms():
    rng = np.random.default_rng(0)
    rewards = rng.normal(5.0, 3.0, (3, 10))
    policy = MaxUCB.create(3, 100)
    for t in range(30):
        policy.update(t + 1, t % 3, rewards[t % 3, t // 3], None)
    for arm, (highest, bonus) in enumerate(indices(rewards, 31, alpha=0.5)):
        assert explain(policy, arm) == pytest.approx(
            {"best_reward": highest, "bonus": bonus}
        )


def test_the_scale_of_the_rewards_does_not_matter(play):
    rewards = np.random.default_rng(1).normal(0.0, 1.0, (4, 60))
    arms = play(MaxUCB.create(4, 60), rewards, 60)
    assert play(MaxUCB.create(4, 60), 1000.0 * rewards - 7.0, 60) == arms
