"""Rested arms in a table."""

import re

import numpy as np
import pytest

from risingsearch.curves.base import fresh, pull_limits
from risingsearch.curves.rested import CurveTable
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
