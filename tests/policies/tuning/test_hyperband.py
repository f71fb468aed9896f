"""Hyperband against a slow reading of its paper."""

import numpy as np
import pytest

from risingsearch.policies import WAIT, explain
from risingsearch.policies.tuning.hyperband import Hyperband
from tests.policies.tuning.test_successive_halving import flat


def pulls_of(arms, n_arms):
    return np.bincount(arms, minlength=n_arms).tolist()


def test_hyperband_brackets_are_those_of_the_paper():
    assert Hyperband.brackets(81, 3) == [(81, 1), (34, 3), (15, 9), (8, 27), (5, 81)]


def bracket_run(rewards, arms_of_bracket, first_level, n_rungs, eta):
    """One bracket on fresh arms: keep one in eta at every rung."""
    max_pulls = rewards.shape[1]
    n = len(arms_of_bracket)
    alive = list(arms_of_bracket)
    arms, before = [], 0
    for i in range(n_rungs):
        level = max(first_level, max_pulls // eta ** (n_rungs - 1 - i))
        for arm in alive:
            arms += [arm] * (level - before)
        alive.sort(key=lambda k: (-rewards[k, level - 1], k))
        alive = sorted(alive[: max(1, n // eta ** (i + 1))])
        before = level
    return arms


@pytest.mark.parametrize(("max_pulls", "eta"), [(81, 3), (20, 3), (16, 2)])
def test_hyperband_runs_bracket_after_bracket_on_new_arms(
    max_pulls, eta, play, concave
):
    brackets = Hyperband.brackets(max_pulls, eta)
    n_arms = sum(n for n, _ in brackets)
    rewards = concave(n_arms, max_pulls, seed=1, noise=0.05)
    direct, first = [], 0
    for i, (n, level) in enumerate(brackets):
        members = range(first, first + n)
        direct += bracket_run(rewards, members, level, len(brackets) - i, eta)
        first += n
    policy = Hyperband.create(n_arms, len(direct), max_pulls, eta=eta)
    assert play(policy, rewards, len(direct)) == direct


def test_hyperband_starts_over_until_every_arm_is_trained(play):
    # 9 + 5 + 3 arms: each round of brackets would begin with the same arms.
    policy = Hyperband.create(17, 1000, 20)
    arms = play(policy, flat(np.arange(17) / 17, 20), 1000)
    assert pulls_of(arms, 17) == [20] * 17


def test_hyperband_resumes_an_arm_that_comes_again(play):
    policy = Hyperband.create(2, 18, 9)
    arms = play(policy, flat([0.2, 0.4], 9), 18)
    # Up to 1, to 3, the better one to 9; the next bracket has only arm 0 to take on.
    assert arms == [0, 1, 0, 0, 1, 1, *[1] * 6, *[0] * 6]


def test_hyperband_waits_for_the_last_results_of_a_rung():
    policy = Hyperband.create(9, 100, 9)
    for arm in range(9):
        assert policy.select(1, None) == arm
        policy.available[arm] = False
    policy.available[0] = True
    policy.update(1, 0, 0.5, None)
    assert policy.select(10, None) == WAIT
    for arm in range(1, 9):
        policy.available[arm] = True
        policy.update(1, arm, 0.1 * arm, None)
    assert policy.select(10, None) == 6
    assert policy.slice_length(6) == 2
    assert explain(policy, 6) == {"bracket": 0.0, "rung": 1.0, "on_rung": 1.0}
