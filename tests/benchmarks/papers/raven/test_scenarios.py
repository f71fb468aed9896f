"""Kinds of change, each against its definition."""

import numpy as np
import pytest

from benchmarks.papers.raven import scenarios
from benchmarks.papers.raven.scenarios import STUDIED, TABLE_1

T = 10_000


def make(scenario, horizon=T, seed=0):
    return scenario(np.random.default_rng(seed), horizon)


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


@pytest.mark.parametrize("scenario", TABLE_1.values())
def test_arms_are_ten_in_the_suggested_ranges_for_every_horizon(scenario):
    for seed, horizon in enumerate((1, 2, 7, T)):
        arms = make(scenario, horizon, seed)
        assert arms.n_arms == 10 + (scenario is scenarios.add_remove)
        first = slice(0, 10)
        assert 0.3 <= arms.means[0, first].min() < arms.means[0, first].max() <= 0.8
        assert arms.variances[0, first].min() >= 0.01
        assert arms.variances[0, first].max() <= 0.0901
        assert arms.optimal(np.array([horizon]))[0] >= horizon * 0.3


def test_incremental_means_take_equal_steps():
    arms = make(scenarios.incremental)
    steps = np.array([means(arms, t + 1) - means(arms, t) for t in (1, 777, T - 1)])
    np.testing.assert_allclose(steps, np.broadcast_to(steps[0], (3, 10)), atol=1e-12)
    assert 1.5e-5 < np.abs(steps).max() <= 2e-5
    assert steps.min() < 0.0 < steps.max()
    np.testing.assert_array_equal(arms.variances[0], arms.variances[1])


def test_variances_grow_and_means_stay():
    arms = make(scenarios.variance_drift)
    start, middle, end = (state(arms, t) for t in (1, (T + 1) / 2, T))
    np.testing.assert_array_equal(start[0], end[0])
    growth = end[1] - start[1]
    assert 0.0 <= growth.min() < growth.max() <= 0.08
    np.testing.assert_allclose(middle[1] - start[1], growth / 2)


def test_gradual_drift_mixes_between_a_third_and_two_thirds():
    arms = make(scenarios.gradual)
    assert arms.mixing
    assert arms.rounds.tolist() == [1, 3_333, 6_666]
    np.testing.assert_array_equal(means(arms, 1), means(arms, 3_333))
    np.testing.assert_array_equal(means(arms, 6_666), means(arms, T))
    assert np.all(means(arms, 1) != means(arms, T))
    np.testing.assert_array_equal(arms.variances[0], arms.variances[1])


def test_a_third_of_the_arms_jumps_at_a_time():
    arms = make(scenarios.localised_jump)
    assert arms.rounds.tolist() == [1, 2_001, 4_001, 6_001, 8_001]
    for table in (arms.means, arms.variances):
        assert (np.diff(table, axis=0) != 0.0).sum(axis=1).tolist() == [3] * 4


def test_periods_repeat():
    arms = make(scenarios.periodic)
    for t in (1, 2, 500, 2_000):
        for later in (t + 2_000, t + 4 * 2_000):
            for own, other in zip(state(arms, t), state(arms, later), strict=True):
                np.testing.assert_allclose(own, other)
    assert np.all(means(arms, 1) != means(arms, 400))
    assert arms.rounds[-1] > T


def test_a_blip_passes():
    arms = make(scenarios.blip)
    assert arms.rounds.tolist() == [1, 5_000, 5_100]
    for own, other in zip(state(arms, 4_999), state(arms, 5_100), strict=True):
        np.testing.assert_array_equal(own, other)
    assert np.all(means(arms, 5_000) != means(arms, 4_999))


def test_an_arm_appears_and_the_best_of_the_others_vanishes():
    arms = make(scenarios.add_remove)
    assert arms.rounds.tolist() == [1, 3_334, 6_667]
    best = arms.means[0].argmax()
    absent = [[10], [], [best]]  # they pay 0, always
    for at, missing in enumerate(absent):
        assert np.flatnonzero(arms.means[at] == 0.0).tolist() == missing
        assert np.flatnonzero(arms.variances[at] == 0.0).tolist() == missing


class TestSensitivity:
    def test_at_a_thousand_rounds_the_three_scenarios_are_one(self):
        drawn = [make(experiment, 1_000) for experiment in STUDIED.values()]
        for arms in drawn:
            assert arms.rounds.tolist() == [1]
            np.testing.assert_array_equal(arms.means, drawn[0].means)
            np.testing.assert_array_equal(arms.variances, drawn[0].variances)

    @pytest.mark.parametrize("experiment", STUDIED.values())
    def test_shifts_come_at_the_multiples_of_5000(self, experiment):
        arms = make(experiment, 19_950)
        assert arms.rounds.tolist() == [1, 5_000, 10_000, 15_000]
        for table, low, high in [(arms.means, 0.3, 0.8), (arms.variances, 0.01, 0.09)]:
            assert low <= table.min() < table.max() <= high

    def test_blips_are_left_out_of_the_last_hundred_rounds(self):
        assert make(scenarios.study_blips, 10_099).rounds.tolist() == [1, 5_000]
        assert make(scenarios.study_blips, 10_100).rounds[-1] == 10_000
        assert make(scenarios.study_variance, 10_000).rounds[-1] == 10_000

    def test_what_shifts(self):
        def changed(experiment):
            arms = make(experiment, 9_000)
            return [
                np.mean(np.diff(x, axis=0) != 0.0) for x in (arms.means, arms.variances)
            ]

        assert changed(scenarios.study_variance) == [0.0, 1.0]
        assert changed(scenarios.study_incremental) == [1.0, 0.0]
        assert changed(scenarios.study_blips) == [1.0, 1.0]
