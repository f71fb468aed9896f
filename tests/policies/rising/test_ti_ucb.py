"""TI-UCB against lines fitted by numpy to the raw rewards."""

import math

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.rising.ti_ucb import TIUCB


def line_at(rewards, first, last, n):
    """Read the least-squares line through rewards ``first`` to ``last`` off at n."""
    numbers = np.arange(first, last + 1)
    return np.polyval(np.polyfit(numbers, rewards[first - 1 : last], 1), n)


class DirectArm:
    """The section of the reference, step by step on the raw rewards."""

    def __init__(self, delta, omega, gamma, low, high):
        self.delta, self.omega, self.gamma = delta, omega, gamma
        self.low, self.high = low, high
        self.rewards = []
        self.start = 1

    def take(self, reward):
        self.rewards.append(reward)
        n, w = len(self.rewards), self.omega
        if n - self.start + 1 >= 2 * w:
            older = line_at(self.rewards, n - 2 * w + 1, n - w, n + 1)
            newer = line_at(self.rewards, n - w + 1, n, n + 1)
            if older - newer > self.gamma * (self.high - self.low):
                self.start = n - w + 1

    def index(self):
        n = len(self.rewards)
        if n < 2:
            return math.inf
        forecast = line_at(self.rewards, self.start, n, n + 1)
        bonus = math.sqrt(4 * math.log(1 / self.delta) / n)
        return np.clip(forecast, self.low, self.high) + (self.high - self.low) * bonus


def direct_run(curves, horizon, *, delta=0.01, omega=100, gamma=0.3, low=0.0, high=1.0):
    """Return the arms of a whole run, and where the segments of all arms start."""
    arms = [DirectArm(delta, omega, gamma, low, high) for _ in curves]
    chosen = []
    for _ in range(horizon):
        open_arms = [
            i for i in range(len(curves)) if len(arms[i].rewards) < len(curves[i])
        ]
        arm = min(open_arms, key=lambda i: (-arms[i].index(), len(arms[i].rewards), i))
        arms[arm].take(float(curves[arm][len(arms[arm].rewards)]))
        chosen.append(arm)
    return chosen, [arm.start for arm in arms]


def rising_then_flat(n_arms, max_pulls, seed, noise):
    rng = np.random.default_rng(seed)
    top = rng.uniform(0.3, 0.9, (n_arms, 1))
    bend = rng.uniform(0.1, 0.6, (n_arms, 1)) * max_pulls
    curves = np.minimum(top, top / bend * np.arange(1, max_pulls + 1))
    return curves + rng.normal(0.0, noise, curves.shape)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"omega": 8, "gamma": 0.05},
        {"omega": 2, "gamma": 0.2, "delta": 0.9},
        {"omega": 10, "gamma": 0.05, "delta": 1.0},
    ],
)
@pytest.mark.parametrize(("n_arms", "max_pulls"), [(2, 150), (4, 70)])
def test_whole_run_equals_the_direct_policy(parameters, n_arms, max_pulls, play):
    for seed in range(2):
        curves = rising_then_flat(n_arms, max_pulls, seed, noise=0.02)
        policy = TIUCB.create(n_arms, 150, max_pulls, **parameters)
        chosen, starts = direct_run(curves, 150, **parameters)
        assert play(policy, curves, 150) == chosen
        assert policy.start.tolist() == starts


def test_a_reward_range_moves_and_stretches_bonus_threshold_and_clip(play):
    curves = rising_then_flat(3, 120, seed=5, noise=0.02)
    unit = TIUCB.create(3, 120, omega=8, gamma=0.05)
    other = TIUCB.create(3, 120, omega=8, gamma=0.05, reward_range=(-20.0, 80.0))
    arms = play(unit, curves, 120)
    assert max(unit.start) > 1
    assert play(other, 100.0 * curves - 20.0, 120) == arms
    for arm in range(3):
        expected = explain(unit, arm)
        assert explain(other, arm) == pytest.approx(
            {
                "forecast": 100.0 * expected["forecast"] - 20.0,
                "bonus": 100.0 * expected["bonus"],
            }
        )


def test_an_arm_that_has_converged_is_forecast_by_its_newest_rewards_alone():
    policy = TIUCB.create(1, 200, omega=10, gamma=0.1)
    rewards = [min(0.8, 0.02 * n) for n in range(1, 61)]
    for n, reward in enumerate(rewards, start=1):
        policy.update(n, 0, reward, None)
        if n == 40:
            assert policy.start[0] == 1
            assert explain(policy, 0)["forecast"] == pytest.approx(0.82)
    assert policy.start[0] > 30
    assert explain(policy, 0)["forecast"] == pytest.approx(0.8, abs=0.02)


def test_rewards_outside_their_range_count_but_are_not_predicted():
    policy = TIUCB.create(1, 20)
    for n, reward in enumerate([0.9, 1.1, 1.3], start=1):
        policy.update(n, 0, reward, None)
    assert explain(policy, 0)["forecast"] == 1.0
    policy.update(4, 0, 0.1, None)
    assert explain(policy, 0)["forecast"] == pytest.approx(
        line_at([0.9, 1.1, 1.3, 0.1], 1, 4, 5)
    )
