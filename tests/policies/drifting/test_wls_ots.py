"""The lines against numpy's weighted least squares on the raw rewards."""

import math

import numpy as np
import pytest

from risingsearch.policies.drifting.wls_ots import WLSOptimisticTS


def direct_trend(rounds, rewards, t, *, decay, window, width=1.0):
    """Return line and deviation at round ``t``, from the rewards and their rounds."""
    rounds, rewards = np.array(rounds[-window:]), np.array(rewards[-window:])
    weights = decay ** (t - rounds)
    # polyfit multiplies the residuals by its weights before it squares them.
    slope, level = np.polyfit(rounds - t, rewards, 1, w=weights / weights.max())
    residuals = rewards - level - slope * (rounds - t)
    variance = (weights * residuals**2).sum() / max(weights.sum() - 2, 1)
    return level, max(math.sqrt(variance), 1e-6 * width)


@pytest.mark.parametrize(("decay", "window"), [(0.95, 50), (0.8, 7), (1.0, 20)])
def test_whole_run_equals_the_direct_policy(decay, window, agree):
    def values(t, seen, left, rng):
        value = {}
        for i in left:
            if len(seen[i]) < 2:
                value[i] = rng.random()
            else:
                line, s = direct_trend(
                    seen[i].rounds, seen[i], t, decay=decay, window=window
                )
                value[i] = max(line, rng.normal(line, s))
        return value

    for seed, (n_arms, max_pulls) in enumerate([(2, 150), (5, 150), (7, 40)]):
        rewards = np.random.default_rng(seed).normal(0.5, 0.2, (n_arms, max_pulls))
        policy = WLSOptimisticTS.create(
            n_arms, 150, max_pulls, decay=decay, window=window
        )
        agree(policy, values, rewards, 150)


def test_a_line_does_not_change_while_its_arm_rests():
    rng = np.random.default_rng(0)
    policy = WLSOptimisticTS.create(2, 60_000)
    for t, reward in [(1, 0.30), (2, 0.31), (3, 0.32)]:
        policy.update(t, 0, reward, rng)
    for t in range(4, 6):
        policy.update(t, 1, 0.6, rng)
    # The line gains 0.01 per round: it is at 0.6 in round 31.
    assert [policy.select(t, rng) for t in (20, 30, 32, 50_000)] == [1, 1, 0, 0]


def test_an_arm_with_one_reward_is_pulled_by_chance():
    rng = np.random.default_rng(0)
    policy = WLSOptimisticTS.create(2, 9_000, reward_range=(-1.0, 1.0))
    policy.update(1, 0, 0.9, rng)
    for t in (2, 3):
        policy.update(t, 1, 0.5, rng)
    # Uniform on [-1, 1], above 0.5 in a quarter of all rounds.
    chosen = np.bincount([policy.select(4, rng) for _ in range(4000)])
    assert chosen[0] == pytest.approx(1000, abs=100)  # 3.5 deviations
