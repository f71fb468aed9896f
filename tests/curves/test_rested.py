"""Rested arms: in a table, and linear then flat."""

import re

import numpy as np
import pytest

from risingsearch.curves.base import fresh, pull_limits
from risingsearch.curves.optimum import best_arm
from risingsearch.curves.rested import CurveTable, LinearThenFlat
from risingsearch.errors import InvalidParameterError

MEANS = [[0.5, 0.1, np.nan], [0.1, 0.9, 0.2]]


def test_curves_may_have_different_lengths():
    arms = CurveTable.create(MEANS)
    assert arms.pulls.tolist() == [2, 3]
    assert pull_limits(arms, 2).tolist() == [2, 2]
    assert [arms.mean(1, n, 7) for n in (1, 2, 3)] == [0.1, 0.9, 0.2]
    assert fresh(arms) is arms


@pytest.mark.parametrize(
    ("reference", "best"),
    [
        ("allocation", [0.5, 1.0, 1.5, 1.7, 1.8]),
        ("best-arm", [0.5, 1.0, 1.2, 1.2, 1.2]),
        ("greedy", [0.9, 1.4, 1.6, 1.7, 1.8]),
    ],
)
def test_the_reference_says_what_regret_is_measured_against(reference, best):
    arms = CurveTable.create(MEANS, reference=reference)
    assert arms.reference == reference
    np.testing.assert_allclose(arms.optimal(np.arange(1, 6)), best)


def test_the_callers_table_is_copied_and_laid_out_by_rows():
    means = np.ones((3, 4)).T
    arms = CurveTable.create(means)
    means[:] = 0.9
    assert arms.mean(0, 1, 1) == 1.0
    assert arms.means.flags.c_contiguous  # so that the loop compiles once


@pytest.mark.parametrize(
    ("means", "options", "message"),
    [
        ([], {}, "means must be a table of one row per arm, with NaN only after an"),
        ([[0.1, 0.2], [0.3]], {}, "means must be numbers in a regular table"),
        ([[0.1, np.nan], [np.nan, 0.2]], {}, "NaN only after an arm's last pull"),
        ([[0.1, 0.2], [np.nan, np.nan]], {}, "every arm needs at least one mean"),
        ([[0.1, np.inf]], {}, "every arm needs at least one mean, and all must be"),
        ([[0.1]], {"reference": "dynamic"}, "reference must be one of 'allocation',"),
    ],
)
def test_a_table_says_what_is_wrong(means, options, message):
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        CurveTable.create(means, **options)


class TestLinearThenFlat:
    def test_the_best_sum_is_that_of_the_written_out_curves(self):
        rng = np.random.default_rng(0)
        plateaus = rng.uniform(0.1, 1.0, 20)
        slopes = plateaus / rng.integers(1, 60, 20)
        arms = LinearThenFlat.create([*slopes, 0.0, 2.0], [*plateaus, 1.0, 0.05])
        rounds = np.arange(1, 100)
        means = np.array(
            [[arms.mean(i, n, 1) for n in rounds] for i in range(arms.n_arms)]
        )
        np.testing.assert_allclose(arms.optimal(rounds), best_arm(means, rounds))

    def test_an_arm_moves_with_its_own_pulls_only(self):
        arms = LinearThenFlat.create([0.1], [0.35])
        means = [arms.mean(0, n, 1) for n in (1, 3, 4, 9)]
        assert means == pytest.approx([0.1, 0.3, 0.35, 0.35])
        assert arms.mean(0, 2, 1) == arms.mean(0, 2, 1_000)
        assert pull_limits(arms, 7).tolist() == [7]

    def test_compiled_runs_are_the_same(self, same_either_way):
        arms = LinearThenFlat.create([0.001, 0.4], [0.9, 0.4], 0.1)
        _, rewards, total = same_either_way(arms)
        expected = 1_000 * 0.4 + arms.optimal(np.array([1_000]))[0]
        assert total == pytest.approx(expected, 1e-3)
        assert rewards.mean() == pytest.approx(total / 2_000, abs=0.01)

    @pytest.mark.parametrize(
        ("slopes", "plateaus"),
        [([], []), ([0.1], [0.1, 0.2]), ([-0.1], [1.0]), ([0.1], [np.inf])],
    )
    def test_slopes_and_plateaus_must_match(self, slopes, plateaus):
        message = "slopes and plateaus must be two lists of one number of at least 0"
        with pytest.raises(InvalidParameterError, match=message):
            LinearThenFlat.create(slopes, plateaus)

    def test_bernoulli_noise_needs_plateaus_up_to_one(self):
        with pytest.raises(InvalidParameterError, match=r"reach from 0 to 1\.5"):
            LinearThenFlat.create([0.1], [1.5], "bernoulli")
