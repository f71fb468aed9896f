"""The published experiments, against what their scripts do."""

import re

import numpy as np
import pytest

from risingsearch.curves import raven
from risingsearch.errors import InvalidParameterError

STUDY = [
    raven.sensitivity_variance,
    raven.sensitivity_incremental,
    raven.sensitivity_blips,
]


def make(experiment, horizon, seed=0, **options):
    return experiment(np.random.default_rng(seed), horizon, **options)


def test_bernoulli_arms_stand_still_and_lie_close():
    arms = make(raven.bernoulli, 500)
    assert arms.n_arms == 10
    assert 0.8 <= arms.means.min() < arms.means.max() <= 0.95
    np.testing.assert_array_equal(arms.means, make(raven.bernoulli, 15_000).means)
    assert arms.optimal(np.array([500]))[0] == pytest.approx(500 * arms.means.max())
    rng = np.random.default_rng(1)
    drawn = {arms.draw(arms.mean(2, 1, t), 2, 1, t, rng) for t in range(1, 100)}
    assert drawn == {0.0, 1.0}


class TestSensitivity:
    def test_at_a_thousand_rounds_the_three_scenarios_are_one(self):
        drawn = [make(experiment, 1_000) for experiment in STUDY]
        for arms in drawn:
            assert arms.rounds.tolist() == [1]
            np.testing.assert_array_equal(arms.means, drawn[0].means)
            np.testing.assert_array_equal(arms.variances, drawn[0].variances)

    @pytest.mark.parametrize("experiment", STUDY)
    def test_shifts_come_at_the_multiples_of_5000(self, experiment):
        arms = make(experiment, 19_950)
        assert arms.rounds.tolist() == [1, 5_000, 10_000, 15_000]
        for table, low, high in [(arms.means, 0.3, 0.8), (arms.variances, 0.01, 0.09)]:
            assert low <= table.min() < table.max() <= high

    def test_blips_are_left_out_of_the_last_hundred_rounds(self):
        assert make(raven.sensitivity_blips, 10_099).rounds.tolist() == [1, 5_000]
        assert make(raven.sensitivity_blips, 10_100).rounds[-1] == 10_000
        assert make(raven.sensitivity_variance, 10_000).rounds[-1] == 10_000

    def test_what_shifts(self):
        def changed(experiment):
            arms = make(experiment, 9_000)
            return [
                np.mean(np.diff(x, axis=0) != 0.0) for x in (arms.means, arms.variances)
            ]

        assert changed(raven.sensitivity_variance) == [0.0, 1.0]
        assert changed(raven.sensitivity_incremental) == [1.0, 0.0]
        assert changed(raven.sensitivity_blips) == [1.0, 1.0]


class TestLogistics:
    def test_the_best_arm_is_the_noisiest_at_first(self):
        arms = make(raven.logistics, 50_000)
        np.testing.assert_allclose(arms.means[0], np.linspace(0.3, 0.8, 100))
        np.testing.assert_allclose(arms.variances[0], np.linspace(0.1, 0.3, 100) ** 2)

    def test_33_arms_change_nine_times(self):
        arms = make(raven.logistics, 50_000)
        assert arms.rounds.tolist() == [1, *range(5_001, 50_000, 5_000)]
        for table in (arms.means, arms.variances):
            assert (np.diff(table, axis=0) != 0.0).sum(axis=1).tolist() == [33] * 9
        changed = np.diff(arms.means, axis=0) != 0.0
        deviations = np.sqrt(arms.variances[1:][changed])
        assert deviations.mean() == pytest.approx(0.2, abs=0.01)  # not of the variances
        assert arms.means[1:][changed].mean() == pytest.approx(0.55, abs=0.03)

    def test_regret_is_against_the_best_mean_at_the_start(self):
        rounds = np.array([1, 50_000])
        arms = make(raven.logistics, 50_000)
        np.testing.assert_allclose(arms.optimal(rounds), [0.8, 40_000.0])
        arms = make(raven.logistics, 50_000, reference="dynamic")
        best = 5_000 * arms.means.max(axis=1).sum()
        np.testing.assert_allclose(arms.optimal(rounds), [0.8, best])
        assert best < 40_000.0


@pytest.mark.parametrize(
    ("experiment", "options", "message"),
    [
        (raven.bernoulli, {"n_arms": 0}, "n_arms must be a whole number of at least 1"),
        (raven.logistics, {"reference": "best"}, "reference must be one of 'dynamic',"),
    ],
)
def test_they_say_what_is_wrong(experiment, options, message):
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        make(experiment, 20_000, **options)
