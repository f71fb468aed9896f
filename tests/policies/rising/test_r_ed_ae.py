"""R-ed-AE against the loop of its description, over the raw rewards."""

import math

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.rising.r_ed_ae import REdAE, judge_lines
from tests.policies.rising.test_rising_bandits_cash import SIZES


def lines_run(race_class, curves, horizon, *, sigma, delta=0.01):
    """Judge after every double sweep; ``sigma`` gives the noise of what was seen."""
    race = race_class(curves, horizon)
    n_arms, T = len(curves), horizon
    judged = 0
    while not race.over():
        race.pull(race.sweep_order())
        if race.pulls_of_all() // 2 <= judged:
            continue
        judged = M = race.pulls_of_all() // 2
        scale = sigma(race.seen)
        if scale is None:
            continue
        ahead = max(0, T - 2 * M)
        root = math.sqrt(math.log(2 * n_arms * T / delta) * (1 / M + ahead**2 / M**3))
        for i in race.racing():
            first, second = np.sum(race.seen[i][:M]), np.sum(race.seen[i][M : 2 * M])
            mean = (first + second) / (2 * M)
            race.value[i] = mean + (second - first) / M**2 * ahead / 2
        floor = max((race.value[i] for i in race.racing()), default=0) - scale * root
        race.dropped |= {
            i for i in race.racing() if race.value[i] + scale * root < floor
        }
    return race.arms


def straight_lines(n_arms, max_pulls, seed, noise):
    rng = np.random.default_rng(seed)
    start, end = rng.uniform(0.0, 0.5, (2, n_arms, 1))
    curves = start + end * np.arange(1, max_pulls + 1) / max_pulls
    return curves + rng.normal(0.0, noise, curves.shape)


@SIZES
@pytest.mark.parametrize("sigma", [0.0, 1e-4, 2e-3, None])
def test_r_ed_ae_equals_the_direct_policy(
    n_arms, horizon, max_pulls, sigma, play, direct_race, estimated_sigma
):
    def scale(seen):
        return estimated_sigma(seen, unknown=None) if sigma is None else sigma

    for seed in range(2):
        curves = straight_lines(n_arms, max_pulls, seed, noise=1e-4)
        policy = REdAE.create(n_arms, horizon, max_pulls, sigma=sigma)
        assert play(policy, curves, horizon) == lines_run(
            direct_race, curves, horizon, sigma=scale
        )


@pytest.mark.parametrize(
    ("sigma", "half", "radius"),
    [
        (0.5, 5_000, 0.24),
        (0.01, 5_000, 0.005),
        (0.01, 1_000, 0.064),
        (0.5, 25_000, 0.0133),  # nothing left to project
    ],
)
def test_r_ed_ae_needs_little_noise_to_drop_anything(sigma, half, radius):
    policy = REdAE.create(5, 50_000, sigma=sigma)
    judge_lines(policy, half)
    assert explain(policy, 0)["radius"] == pytest.approx(radius, rel=0.05)


def test_r_ed_ae_drops_nothing_before_the_noise_can_be_estimated():
    policy = REdAE.create(2, 40)
    for n in range(1, 4):
        for arm, reward in [(0, 0.1 * n), (1, -0.1 * n)]:
            policy.update(1, arm, reward, None)
        assert policy.alive.all()
    for arm, reward in [(0, 0.4), (1, -0.4)]:
        policy.update(1, arm, reward, None)
    assert policy.alive.tolist() == [True, False]


def test_r_ed_ae_judges_by_sweeps_whatever_order_the_rewards_come_in():
    curves = straight_lines(3, 30, seed=1, noise=1e-4)
    in_turn, late = (REdAE.create(3, 90, sigma=3e-3) for _ in range(2))
    for n in range(30):
        for arm in (0, 1, 2):
            in_turn.update(1, arm, curves[arm, n], None)
        for arm in (0, 2):
            late.update(1, arm, curves[arm, n], None)
    for reward in curves[1]:
        late.update(1, 1, reward, None)
    assert in_turn.alive.sum() == 1
    assert late.alive.tolist() == in_turn.alive.tolist()
