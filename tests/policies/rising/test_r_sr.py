"""R-SR against the paper's two loops."""

import math

import numpy as np
import pytest

from risingsearch.policies import WAIT, explain, slice_length
from risingsearch.policies.rising.r_sr import RSR, phase_targets


def rejects_run(curves, horizon, eps):
    """The paper's two loops, with the leftover for the last arm."""
    n_arms = len(curves)
    log_bar = 0.5 + sum(1 / i for i in range(2, n_arms + 1))
    left = list(range(n_arms))
    arms = []

    def window_mean(i):
        n = arms.count(i)
        return np.mean(curves[i][:n][-max(1, math.floor(eps * n)) :])

    for j in range(1, n_arms):
        target = math.ceil((horizon - n_arms) / (log_bar * (n_arms + 1 - j)))
        for i in left:
            arms += [i] * (target - arms.count(i))
        left.remove(min(left, key=window_mean))
    return arms + left * (horizon - len(arms))


@pytest.mark.parametrize("n_arms", [2, 5, 9])
@pytest.mark.parametrize("eps", [0.1, 0.25, 0.5])
def test_whole_run_equals_the_direct_policy(n_arms, eps, play, concave):
    for seed in range(2):
        curves = concave(n_arms, 150, seed)
        policy = RSR.create(n_arms, 150, eps=eps)
        assert play(policy, curves, 150) == rejects_run(curves, 150, eps)


def test_never_plans_more_than_the_budget():
    for n_arms in range(2, 30):
        for horizon in range(n_arms, 300, 7):
            targets = phase_targets(n_arms, horizon)
            assert targets.sum() + targets[-1] <= max(horizon, n_arms + 1)
            assert (np.diff(targets) >= 0).all()


def test_takes_an_arm_to_the_end_of_its_phase_at_one_stretch():
    policy = RSR.create(3, 15)  # phases end at 3 and 5 pulls
    assert (policy.select(1, None), slice_length(policy, 0)) == (0, 3)
    policy.update(1, 0, 0.5, None)
    assert (policy.select(2, None), slice_length(policy, 0)) == (0, 2)


def test_waits_for_the_last_results_of_a_phase():
    policy = RSR.create(2, 9)  # the phase ends at 4 pulls
    for _ in range(4):
        policy.update(1, 0, 0.5, None)
    for _ in range(3):
        policy.update(1, 1, 0.7, None)
    policy.available[1] = False
    assert policy.select(9, None) == WAIT
    policy.update(8, 1, 0.7, None)
    policy.available[1] = True
    assert policy.select(9, None) == 1
    assert explain(policy, 0) == {"phase": 2, "in_race": False, "recent_average": 0.5}


def test_ranks_arms_that_have_ended_and_trains_the_best_of_the_others(play):
    # With at most 4 pulls each, all phases from the second on ask for no more.
    level = [0.3, 0.9, 0.5, 0.7]
    rewards = np.repeat(np.array(level)[:, None], 4, axis=1)
    policy = RSR.create(4, 20, 4)
    arms = play(policy, rewards, 20)
    assert policy.target.tolist() == [3, 4, 4]
    assert arms == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 1, 2, 3, 0]
    assert policy.alive.tolist() == [False, True, False, False]


def test_drops_an_arm_that_never_paid_anything_first():
    policy = RSR.create(3, 15)
    policy.pulls_left[0] = 0
    policy.available[0] = False
    for arm in (1, 1, 1, 2, 2, 2):
        policy.update(1, arm, -5.0 - arm, None)
    policy.select(7, None)
    assert policy.alive.tolist() == [False, True, True]
