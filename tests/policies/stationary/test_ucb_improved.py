"""UCB-Improved against the paper's loop over the raw rewards."""

import math

import numpy as np
import pytest

from risingsearch.policies.base import NO_LIMIT
from risingsearch.policies.stationary.ucb_improved import ImprovedUCB


def stages_run(race_class, curves, horizon, *, order="round-robin", seed=0, span=1.0):
    rng = np.random.default_rng(seed)
    race = race_class(curves, horizon)
    resolution = 1.0
    while not race.over():
        arm = race.sweep_order()
        if order == "random" and race.racing() and len(race.seen[arm]) > 0:
            racing = race.racing()
            arm = racing[int(rng.random() * len(racing))]
        race.pull(arm)
        race.value[arm] = np.mean(race.seen[arm])
        if horizon * resolution**2 < math.e:
            continue
        log_term = math.log(horizon * resolution**2)
        n = math.ceil(2 * log_term / resolution**2)
        if all(len(race.seen[i]) >= n for i in race.racing()):
            width = span * math.sqrt(log_term / (2 * n))
            floor = max((race.value[i] for i in race.racing()), default=0) - width
            race.dropped |= {i for i in race.racing() if race.value[i] + width < floor}
            resolution /= 2
    return race.arms


@pytest.mark.parametrize("order", ["round-robin", "random"])
@pytest.mark.parametrize(
    ("n_arms", "horizon", "max_pulls"),
    [(2, 1500, 1500), (4, 1000, 300), (5, 900, 900), (3, 2, 2), (3, 7, 7)],
)
def test_ucb_improved_equals_the_direct_policy(
    order, n_arms, horizon, max_pulls, play, direct_race
):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        rewards = rng.normal(rng.random((n_arms, 1)), 0.1, (n_arms, max_pulls))
        policy = ImprovedUCB.create(n_arms, horizon, max_pulls, order=order)
        direct = stages_run(direct_race, rewards, horizon, order=order, seed=5)
        assert play(policy, rewards, horizon, seed=5) == direct


def test_ucb_improved_widths_are_in_units_of_the_reward_range(play, direct_race):
    rng = np.random.default_rng(3)
    rewards = rng.normal(rng.random((4, 1)), 0.1, (4, 900))
    arms = play(ImprovedUCB.create(4, 900), rewards, 900)
    percent = ImprovedUCB.create(4, 900, reward_range=(0.0, 100.0))
    assert play(percent, 100.0 * rewards, 900) == arms
    cautious = ImprovedUCB.create(4, 900, reward_range=(-5.0, 5.0))
    assert (
        play(cautious, rewards, 900)
        == stages_run(direct_race, rewards, 900, span=10.0)
        != arms
    )


def test_ucb_improved_stops_refining_when_the_horizon_cannot_tell_finer():
    policy = ImprovedUCB.create(2, 30)  # 30 / 4 > e > 30 / 16
    targets = [int(policy.target[0])]
    for _ in range(30):
        policy.update(1, 0, 0.5, None)
        policy.update(1, 1, 0.5, None)
        if policy.target[0] != targets[-1]:
            targets.append(int(policy.target[0]))
    assert targets == [7, 17, NO_LIMIT]
    assert ImprovedUCB.create(2, 2).target.tolist() == [NO_LIMIT]
