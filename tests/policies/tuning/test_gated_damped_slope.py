"""The gated default against a direct implementation of its rules, and its corners."""

import math

import numpy as np
import pytest
from scipy import stats

from risingsearch.errors import InvalidParameterError
from risingsearch.policies import explain, recommended_arms
from risingsearch.policies.tuning.gated_damped_slope import (
    GatedDampedSlope,
    rank_correlation,
)


def mean(values):
    return sum(values) / len(values)


class DirectSearch:
    """One worker that follows the rules to the letter."""

    def __init__(self, rewards, horizon, late_arms=False):
        self.rewards = rewards
        self.n_arms, self.R = rewards.shape
        self.T = horizon
        self.r1 = max(1, self.R // 50)
        self.late_arms = late_arms
        self.seen = [[] for _ in range(self.n_arms)]
        self.parked = set()
        self.arms = []
        self.proposed = []

    def train(self, arm, n_epochs):
        for _ in range(n_epochs):
            seen = self.seen[arm]
            if len(self.arms) < self.T and len(seen) < self.R:
                seen.append(float(self.rewards[arm, len(seen)]))
                self.arms.append(arm)
                self.parked.discard(arm)

    def recent(self, arm, n=None):
        seen = self.seen[arm][:n]
        return mean(seen[-max(1, len(seen) // 4) :])

    def index(self, arm):
        seen = self.seen[arm]
        n = len(seen)
        h = max(1, n // 4)
        m = mean(seen[-h:])
        slope = max(0.0, (m - mean(seen[-2 * h : -h])) / h) if n > 1 else 0.0
        if arm in self.parked:
            slope = 0.0
        return m + slope * n * (1 - n / (n + min(self.R - n, self.T - len(self.arms))))

    def run(self):
        r1, looks = self.r1, self.T / self.r1
        n0 = min(max(6, int(0.1 * looks)), 24, max(2, int(looks / 4)), self.n_arms)
        for arm in range(n0):
            self.train(arm, 2 * r1)
        pairs = [(self.recent(i, r1), self.recent(i)) for i in range(n0)]
        rho = stats.spearmanr(*zip(*pairs, strict=True))[0] if n0 > 2 else 1.0
        trusted = rho >= 0.8
        share, promoted = (0.4, 0.2) if trusted else (0.25, 0.5)
        total = max(n0, min(self.n_arms, max(2, int(share * looks)), int(looks)))
        first = total
        if self.late_arms and trusted:
            first = max(n0, min(total, max(40, math.ceil(total / 2))))
        for arm in range(n0, first):
            self.train(arm, r1)
        opened = [arm for arm in range(first) if self.seen[arm]]
        ranked = sorted(opened, key=lambda i: -self.recent(i, r1))
        cut = math.ceil(promoted * len(opened))
        for arm in ranked[:cut]:
            self.train(arm, 2 * r1 - len(self.seen[arm]))
        self.parked = set(ranked[cut:])
        start = len(self.arms)
        while len(self.arms) < self.T:
            passed = (len(self.arms) - start) / max(1, 0.6 * self.T - start)
            due = first + int((total - first) * min(1, passed))
            live = [i for i in opened if len(self.seen[i]) < self.R]
            if len(opened) < due or not live:
                if len(opened) == self.n_arms:
                    break
                arm = len(opened)
                opened.append(arm)
                self.train(arm, r1)
                own = self.recent(arm, r1)
                better = sum(self.recent(i, r1) > own for i in opened)
                if better < promoted * len(opened):
                    self.train(arm, r1)
                continue
            key = {i: (-self.index(i), len(self.seen[i]), i) for i in live}
            arm = min(live, key=key.get)
            self.train(arm, 1 + len(self.seen[arm]) // 4)
        return self.arms


@pytest.mark.parametrize("late_arms", [False, True])
@pytest.mark.parametrize(
    ("n_arms", "max_pulls", "horizon"),
    [(200, 50, 250), (40, 27, 120), (150, 120, 600), (5, 100, 200), (30, 12, 250)],
)
@pytest.mark.parametrize("noise", [0.01, 0.2])
def test_run_equals_the_direct_rule(
    n_arms, max_pulls, horizon, noise, late_arms, play, concave
):
    for seed in range(3):
        rewards = concave(n_arms, max_pulls, seed, noise=noise)
        policy = GatedDampedSlope.create(
            n_arms, horizon, max_pulls, late_arms=late_arms
        )
        direct = DirectSearch(rewards, horizon, late_arms).run()
        assert play(policy, rewards, horizon) == direct
        assert len(direct) == min(horizon, n_arms * max_pulls)


def test_rank_correlation_is_spearmans():
    rng = np.random.default_rng(0)
    for n in (3, 8, 24):
        first, second = rng.integers(0, 6, (2, n)).astype(float)
        expected = stats.spearmanr(first, second)[0]
        assert rank_correlation(first, second, n) == pytest.approx(expected)
    assert rank_correlation(np.ones(5), np.arange(5.0), 5) == 0.0
    assert rank_correlation(np.arange(5.0), np.arange(5.0), 2) == 1.0
    with_nan = np.array([1.0, math.nan, 2.0, 3.0])
    assert rank_correlation(with_nan, np.array([1.0, 9.0, 2.0, 3.0]), 4) == 1.0


@pytest.mark.parametrize(("second_looks", "n_opened"), [(1, 40), (-1, 25)])
def test_the_pilot_decides_how_many_arms_are_opened(second_looks, n_opened, play):
    ends = np.linspace(0.2, 0.9, 60)
    rewards = np.tile(ends[:, None], (1, 50))
    rewards[:, 1:] = 0.5 + second_looks * (rewards[:, 1:] - 0.5)
    policy = GatedDampedSlope.create(60, 100, 50)
    arms = play(policy, rewards, 100)
    assert len(set(arms)) == n_opened
    assert explain(policy, 0)["rank_correlation"] == second_looks


def test_late_arms_are_left_to_proposals_once_the_gate_is_open(concave):
    rewards = concave(200, 50, seed=1, noise=0.0)
    policy = GatedDampedSlope.create(200, 500, 50, late_arms=True)
    asked = []
    for t in range(1, 501):
        arm = policy.select(t, None)
        if policy.pulls[arm] == 0:
            asked.append((t, policy.proposing()))
        policy.update(t, arm, float(rewards[arm, policy.pulls[arm]]), None)
        policy.pulls_left[arm] -= 1
        policy.available[arm] = policy.pulls_left[arm] > 0
    assert [proposed for _, proposed in asked] == [False] * 100 + [True] * 100
    assert 140 < asked[100][0] < asked[-1][0] <= 302


def test_a_larger_horizon_opens_more_arms(play, concave):
    rewards = concave(200, 50, seed=2, noise=0.0)
    policy = GatedDampedSlope.create(200, 50, 50)
    first = play(policy, rewards, 50)
    assert len(set(first)) == 20
    policy.horizon[:] = 250
    more = []
    for t in range(51, 251):
        arm = policy.select(t, None)
        more.append(arm)
        policy.update(t, arm, float(rewards[arm, policy.pulls[arm]]), None)
        policy.pulls_left[arm] -= 1
        policy.available[arm] = policy.pulls_left[arm] > 0
    assert len({*first, *more}) == 100


def test_workers_screen_without_waiting(concave):
    rewards = concave(60, 20, seed=3, noise=0.05)
    policy = GatedDampedSlope.create(60, 120, 20)
    in_flight, t = [], 0
    while policy.screened_until[0] == 0:
        while len(in_flight) < 4:
            t += 1
            arm = policy.select(t, None)
            assert policy.available[arm]
            policy.available[arm] = False
            in_flight.append((t, arm))
        asked, arm = in_flight.pop(0)
        policy.update(asked, arm, float(rewards[arm, policy.pulls[arm]]), None)
        policy.pulls_left[arm] -= 1
        policy.available[arm] = policy.pulls_left[arm] > 0
    assert np.sum(policy.pulls > 0) >= 30
    assert policy.pulls[rewards[:, -1].argmax()] > 1


def test_as_many_arms_as_an_open_gate_opens_are_recommended():
    assert recommended_arms("gated-damped-slope", 250, 50) == 100
    assert recommended_arms("gated-damped-slope", 300, 120) == 60
    assert recommended_arms("gated-damped-slope", 300, 120, late_arms=True) == 150


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"gate": 1.1}, "gate must be a finite number of at least -1 and at most 1"),
        ({"late_arms": 1}, "late_arms must be True or False; got 1"),
        ({"eps": 0.6}, "eps must be"),
        ({"reward_range": (1, 0)}, "reward_range must be"),
    ],
)
def test_bad_parameters_are_refused(params, message):
    with pytest.raises(InvalidParameterError, match=message):
        GatedDampedSlope.create(5, 10, **params)
