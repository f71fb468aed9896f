"""The default policy against a direct implementation of its rules, and its corners."""

import math

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.policies import explain, recommended_arms
from risingsearch.policies.base import WAIT
from risingsearch.policies.tuning.gated_damped_slope import GatedDampedSlope
from risingsearch.policies.tuning.screened_damped_slope import ScreenedDampedSlope


def mean(values):
    return sum(values) / len(values)


class DirectSearch:
    """One worker that follows the recommended default to the letter."""

    def __init__(self, rewards, horizon, cap=math.inf):
        self.rewards = rewards
        self.n_arms, self.max_pulls = rewards.shape
        self.horizon = horizon
        self.cap = cap
        self.r1 = max(1, self.max_pulls // 50)
        self.planned = max(2, int(0.3 * horizon / self.r1))
        self.k = min(self.n_arms, self.planned)
        self.seen = [[] for _ in range(self.n_arms)]
        self.arms = []

    def train(self, arm, n_epochs):
        for _ in range(n_epochs):
            seen = self.seen[arm]
            if len(self.arms) < self.horizon and len(seen) < self.max_pulls:
                seen.append(float(self.rewards[arm, len(seen)]))
                self.arms.append(arm)

    def window(self, arm):
        n = len(self.seen[arm])
        return max(1, min(n // 4, n // 2))

    def index(self, arm):
        seen, h = self.seen[arm], self.window(arm)
        n, m = len(seen), mean(seen[-h:])
        slope = max(0.0, (m - mean(seen[-2 * h : -h])) / h) if n > 1 else 0.0
        end = n + min(self.max_pulls - n, self.horizon - len(self.arms))
        return min(self.cap, m + slope * n * (1 - n / end))

    def run(self):
        for arm in range(self.k):
            self.train(arm, self.r1)
        opened = [arm for arm in range(self.k) if self.seen[arm]]
        first_look = {i: mean(self.seen[i][-self.window(i) :]) for i in opened}
        ranked = sorted(opened, key=lambda i: (-first_look[i], i))
        for arm in ranked[: math.ceil(self.planned / 2)]:
            self.train(arm, self.r1)
        while len(self.arms) < self.horizon:
            live = [i for i in opened if len(self.seen[i]) < self.max_pulls]
            if not live:
                if len(opened) == self.n_arms:
                    break
                opened.append(len(opened))
                self.train(opened[-1], self.r1)
                continue
            key = {i: (-self.index(i), len(self.seen[i]), i) for i in live}
            arm = min(live, key=key.get)
            self.train(arm, 1 + len(self.seen[arm]) // 4)
        return self.arms


@pytest.mark.parametrize(
    ("n_arms", "max_pulls", "horizon"),
    [(60, 50, 150), (20, 27, 60), (40, 120, 300), (5, 100, 200), (30, 12, 250)],
)
def test_run_equals_the_direct_rule(n_arms, max_pulls, horizon, play, concave):
    for seed in range(4):
        rewards = concave(n_arms, max_pulls, seed, noise=0.03)
        policy = ScreenedDampedSlope.create(n_arms, horizon, max_pulls)
        direct = DirectSearch(rewards, horizon).run()
        assert play(policy, rewards, horizon) == direct
        assert len(direct) == min(horizon, n_arms * max_pulls)


def test_no_projection_exceeds_the_reward_range(play, concave):
    rewards = concave(30, 50, seed=3, noise=0.0)
    capped = ScreenedDampedSlope.create(30, 200, 50, reward_range=(0.0, 0.5))
    free = ScreenedDampedSlope.create(30, 200, 50)
    arms = play(capped, rewards, 200)
    assert arms == DirectSearch(rewards, 200, cap=0.5).run()
    assert arms != play(free, rewards, 200)


def test_promoted_share_decides_who_gets_a_second_look(play):
    rewards = np.tile(np.array([[0.4], [0.1], [0.3], [0.2]]), (1, 10))
    second_looks = {
        share: play(
            ScreenedDampedSlope.create(
                4, 13, 10, screening_share=0.31, promoted_share=share
            ),
            rewards,
            13,
        )[4:8]
        for share in (0.25, 0.5, 1.0)
    }
    assert second_looks == {
        0.25: [0, 0, 0, 0],
        0.5: [0, 2, 0, 0],
        1.0: [0, 2, 3, 1],
    }


def update(policy, arm, reward):
    policy.pulls_left[arm] -= 1
    policy.update(1, arm, reward, None)


def test_workers_screen_side_by_side():
    policy = ScreenedDampedSlope.create(4, 20, 8)
    for expected in range(4):
        assert policy.select(1, None) == expected
        policy.available[expected] = False
    for arm, reward in enumerate([0.1, 0.3, 0.2, 0.4]):
        update(policy, arm, reward)
        policy.available[arm] = True
    for expected in (3, 1):
        assert policy.select(5, None) == expected
        assert policy.slice_length(expected) == 1
        policy.available[expected] = False
    # The second looks are given; the third worker continues the best that is left.
    assert policy.select(7, None) == 2


@pytest.mark.parametrize("policy_class", [ScreenedDampedSlope, GatedDampedSlope])
@pytest.mark.parametrize(("horizon", "waits"), [(24, True), (25, False)])
def test_a_worker_waits_where_arms_in_flight_can_use_up_the_budget(
    policy_class, horizon, waits
):
    policy = policy_class.create(4, horizon, 10)
    for _ in range(8):
        update(policy, policy.select(int(policy.pulls.sum()) + 1, None), 0.5)
    assert policy.pulls.tolist() == [2, 2, 2, 2]  # two of them could get 16 more
    for _ in range(2):
        policy.available[policy.select(9, None)] = False
    assert (policy.select(9, None) == WAIT) == waits


def test_an_arm_that_ended_has_not_had_its_second_look():
    policy = ScreenedDampedSlope.create(4, 14, 10)
    for arm, reward in enumerate([0.5, 0.3, 0.2, 0.4]):
        update(policy, arm, reward)
    policy.available[0] = False
    policy.pulls_left[0] = 0
    assert policy.select(5, None) == 3
    update(policy, 3, 0.4)
    assert policy.select(6, None) == 1


def test_a_new_arm_is_opened_when_all_others_have_ended():
    policy = ScreenedDampedSlope.create(5, 4, 10)  # screens two arms
    for arm in range(2):
        update(policy, arm, 0.5)
        policy.available[arm] = False
        policy.pulls_left[arm] = 0
    assert policy.select(3, None) == 2


def test_slices_grow_with_the_arm():
    policy = ScreenedDampedSlope.create(2, 400, 200)
    assert policy.screening_pulls == 4
    assert policy.slice_length(0) == 4
    lengths = []
    for arm in (0, 1):
        for _ in range(4):
            update(policy, arm, 0.5 - 0.1 * arm)
    lengths.append(policy.slice_length(0))  # second look
    for _ in range(4):
        update(policy, 0, 0.5)
    lengths.append(policy.slice_length(0))
    for _ in range(8):
        update(policy, 0, 0.5)
    lengths.append(policy.slice_length(0))
    assert lengths == [4, 3, 5]


def test_expected_gain_is_that_of_the_curve_a_minus_b_over_n():
    policy = ScreenedDampedSlope.create(1, 100, 20)
    for n in range(1, 9):
        update(policy, 0, 0.1 * n)
    # slope 0.1, N = 8, n2 = 20: the damped end lies below the straight line's.
    parts = explain(policy, 0)
    assert parts["recent_average"] == pytest.approx(0.75)
    assert parts["expected_gain"] == pytest.approx(0.1 * 8 * (1 - 8 / 20))


def test_a_falling_arm_is_not_projected_below_its_average():
    policy = ScreenedDampedSlope.create(1, 100, 20)
    for n in range(8):
        update(policy, 0, 1.0 - 0.1 * n)
    assert explain(policy, 0)["expected_gain"] == 0.0


def test_budget_decides_how_many_arms_are_opened():
    assert recommended_arms("screened-damped-slope", 100, 50) == 30
    assert recommended_arms("screened-damped-slope", 100, 100) == 15
    assert recommended_arms("screened-damped-slope", 3, 50) == 2
    assert recommended_arms("screened-damped-slope", 100, 50, screening_share=0.1) == 10


@pytest.mark.parametrize(
    "parameters",
    [
        {"eps": 0.7},
        {"screening_share": 0.0},
        {"screening_share": 1.5},
        {"promoted_share": 0.0},
        {"promoted_share": 1.1},
        {"reward_range": (1.0, 0.0)},
        {"reward_range": 1.0},
        {"reward_range": ("low", "high")},
        {"reward_range": (0.0, math.nan)},
    ],
)
def test_parameters_outside_their_range_are_refused(parameters):
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        ScreenedDampedSlope.create(3, 10, **parameters)
