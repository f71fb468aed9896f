"""Rising bandits against the public code's loop over the raw rewards."""

import numpy as np
import pytest

from risingsearch.policies import explain
from risingsearch.policies.rising.rising_bandits_cash import RisingBandits

SIZES = pytest.mark.parametrize(
    ("n_arms", "horizon", "max_pulls"),
    [(2, 120, 120), (4, 160, 50), (6, 100, 100), (3, 7, 7)],
)


def bounds_run(race_class, curves, horizon, *, window=7, low=0.0, high=1.0):
    """Sweep, bound and drop as the public code does, arm against arm."""
    race = race_class(curves, horizon)
    judged = 0
    while not race.over():
        race.pull(race.sweep_order())
        best = [
            np.maximum.accumulate(np.clip((np.array(x) - low) / (high - low), 0, 1))
            for x in race.seen
        ]
        race.value = {i: y[-1] if len(y) else 0.0 for i, y in enumerate(best)}
        if race.pulls_of_all() <= judged:
            continue
        judged = race.pulls_of_all()
        upper = {}
        for i in race.racing():
            past = best[i][-1 - window] if len(best[i]) > window else -1.0
            slope = (best[i][-1] - past) / window
            upper[i] = min(1.0, best[i][-1] + slope * (horizon - len(race.arms)))
        for i in list(upper):
            for j in list(upper):
                if i != j and i in race.racing() and race.value[i] >= upper[j]:
                    race.dropped.add(j)
    return race.arms


@SIZES
@pytest.mark.parametrize("parameters", [{}, {"window": 1}, {"window": 20}])
def test_rising_bandits_equal_the_direct_policy(
    n_arms, horizon, max_pulls, parameters, play, direct_race, concave
):
    for seed in range(2):
        curves = concave(n_arms, max_pulls, seed, noise=0.003)
        policy = RisingBandits.create(n_arms, horizon, max_pulls, **parameters)
        assert play(policy, curves, horizon) == bounds_run(
            direct_race, curves, horizon, **parameters
        )


def test_rising_bandits_start_from_minus_one_until_the_window_is_passed():
    policy = RisingBandits.create(2, 10, window=3)
    bounds = []
    for t in range(1, 9):
        policy.update(t, t % 2, 0.1, None)
        if t % 2 == 0:
            bounds.append(explain(policy, 0)["upper_bound"])
    # 0.1 + (10 - t) (0.1 - (-1)) / 3, at most 1; after 4 pulls the slope is 0
    assert bounds == pytest.approx([1.0, 1.0, 1.0, 0.1])
    late = RisingBandits.create(2, 7, window=3)
    for t in range(1, 7):
        late.update(t, t % 2, 0.1, None)
    assert explain(late, 0)["upper_bound"] == pytest.approx(0.1 + 1.1 / 3)


def test_rising_bandits_map_rewards_from_their_range_and_clip_them(play, concave):
    curves = concave(4, 120, seed=3, noise=0.003)
    arms = play(RisingBandits.create(4, 120), curves, 120)
    percent = RisingBandits.create(4, 120, reward_range=(0.0, 100.0))
    assert play(percent, 100.0 * curves, 120) == arms
    policy = RisingBandits.create(1, 9, reward_range=(-1.0, 1.0))
    for reward, best in [(-4.0, 0.0), (0.5, 0.75), (7.0, 1.0)]:
        policy.update(1, 0, reward, None)
        assert explain(policy, 0)["best_reward"] == best
