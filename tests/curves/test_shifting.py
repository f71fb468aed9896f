"""Seven ways of shifting, each against its definition."""

import numpy as np
import pytest

from risingsearch.curves import shifting
from risingsearch.errors import InvalidParameterError

T = 10_000
SCENARIOS = [
    shifting.incremental,
    shifting.variance_drift,
    shifting.gradual,
    shifting.localised_jump,
    shifting.periodic,
    shifting.blip,
]


def make(scenario, horizon=T, seed=0, **options):
    return scenario(np.random.default_rng(seed), horizon, **options)


def means(arms, t):
    return np.array([arms.mean(arm, 1, t) for arm in range(arms.n_arms)])


def state(arms, t):
    """Return means and variances at a round."""
    at = np.interp(t, arms.rounds, np.arange(len(arms.rounds)))
    if not arms.rates.any():
        at = np.floor(at)
    k, part = int(at), at - int(at)
    after = min(k + 1, len(arms.rounds) - 1)
    variances = (1.0 - part) * arms.variances[k] + part * arms.variances[after]
    return means(arms, t), variances


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_arms_start_in_the_suggested_ranges(scenario):
    for seed in range(10):
        arms = make(scenario, seed=seed)
        assert arms.n_arms == 10
        assert 0.3 <= arms.means[0].min() < arms.means[0].max() <= 0.8
        assert 0.01 <= arms.variances[0].min() < arms.variances[0].max() <= 0.0901
        assert arms.reference == "dynamic"


@pytest.mark.parametrize("scenario", [*SCENARIOS, shifting.add_remove])
def test_every_horizon_and_number_of_arms_will_do(scenario):
    for horizon in (1, 2, 3, 7):
        arms = make(scenario, horizon, n_arms=1)
        assert arms.optimal(np.array([horizon]))[0] >= horizon * 0.29


def test_incremental_means_take_equal_steps():
    arms = make(shifting.incremental)
    steps = np.array([means(arms, t + 1) - means(arms, t) for t in (1, 777, T - 1)])
    np.testing.assert_allclose(steps, np.broadcast_to(steps[0], (3, 10)), atol=1e-12)
    assert 1.5e-5 < np.abs(steps).max() <= 2e-5
    assert steps.min() < 0.0 < steps.max()
    np.testing.assert_array_equal(arms.variances[0], arms.variances[1])


def test_variances_grow_and_means_stay():
    arms = make(shifting.variance_drift)
    start, middle, end = (state(arms, t) for t in (1, (T + 1) / 2, T))
    np.testing.assert_array_equal(start[0], end[0])
    growth = end[1] - start[1]
    assert 0.0 <= growth.min() < growth.max() <= 0.08
    np.testing.assert_allclose(middle[1] - start[1], growth / 2)


def test_gradual_drift_mixes_between_a_third_and_two_thirds():
    arms = make(shifting.gradual)
    assert arms.mixing
    assert arms.rounds.tolist() == [1, 3_333, 6_666]
    np.testing.assert_array_equal(means(arms, 1), means(arms, 3_333))
    np.testing.assert_array_equal(means(arms, 6_666), means(arms, T))
    assert np.all(means(arms, 1) != means(arms, T))
    np.testing.assert_array_equal(arms.variances[0], arms.variances[1])


def test_a_third_of_the_arms_jumps_at_a_time():
    arms = make(shifting.localised_jump)
    assert arms.rounds.tolist() == [1, 2_001, 4_001, 6_001, 8_001]
    for table in (arms.means, arms.variances):
        assert (np.diff(table, axis=0) != 0.0).sum(axis=1).tolist() == [3] * 4


def test_periods_repeat():
    arms = make(shifting.periodic)
    for t in (1, 2, 500, 2_000):
        for later in (t + 2_000, t + 4 * 2_000):
            for own, other in zip(state(arms, t), state(arms, later), strict=True):
                np.testing.assert_allclose(own, other)
    assert np.all(means(arms, 1) != means(arms, 400))
    assert arms.rounds[-1] > T


def test_a_blip_passes():
    arms = make(shifting.blip)
    assert arms.rounds.tolist() == [1, 5_000, 5_100]
    for own, other in zip(state(arms, 4_999), state(arms, 5_100), strict=True):
        np.testing.assert_array_equal(own, other)
    assert np.all(means(arms, 5_000) != means(arms, 4_999))


def test_an_arm_appears_and_the_best_of_the_others_vanishes():
    arms = make(shifting.add_remove)
    assert arms.rounds.tolist() == [1, 3_334, 6_667]
    best = arms.means[0].argmax()
    absent = [[10], [], [best]]  # they pay 0, always
    for at, missing in enumerate(absent):
        assert np.flatnonzero(arms.means[at] == 0.0).tolist() == missing
        assert np.flatnonzero(arms.variances[at] == 0.0).tolist() == missing
    arms = make(shifting.add_remove, 12, n_arms=2)
    assert arms.rounds.tolist() == [1, 5, 9]
    first, second, third = arms.means[1]
    total = 4 * max(first, second) + 4 * max(first, second, third)
    total += 4 * max(min(first, second), third)
    assert arms.optimal(np.array([12]))[0] == pytest.approx(total)


def test_there_must_be_an_arm():
    with pytest.raises(InvalidParameterError, match="n_arms must be a whole number of"):
        make(shifting.incremental, n_arms=0)
