"""Curves in a table."""

import re

import numpy as np
import pytest

from risingsearch.curves.recorded import CurveTable
from risingsearch.errors import InvalidParameterError

MEANS = [[0.5, 0.1, np.nan], [0.1, 0.9, 0.2]]


def test_curves_may_have_different_lengths():
    arms = CurveTable.create(MEANS)
    assert arms.pulls.tolist() == [2, 3]
    assert [arms.mean(1, n, 7) for n in (1, 2, 3)] == [0.1, 0.9, 0.2]


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


def test_the_callers_table_is_left_alone():
    means = np.array([[0.1, 0.2]])
    arms = CurveTable.create(means)
    means[:] = 0.9
    assert arms.mean(0, 1, 1) == 0.1


def test_tables_are_laid_out_alike_so_that_the_loop_compiles_once():
    arms = CurveTable.create(np.ones((3, 4)).T)
    assert arms.means.flags.c_contiguous
    assert arms.means.flags.writeable


@pytest.mark.parametrize(
    ("means", "message"),
    [
        ([], "means must be a table of one row per arm, with NaN only after an arm's"),
        ([[[0.1]]], "got shape (1, 1, 1)"),
        ([[0.1, 0.2], [0.1, np.nan]] * 2 + [[np.nan, 0.2]], "where arm 4 has a gap"),
        ([[0.1, 0.2], [np.nan, np.nan]], "every arm needs at least one mean"),
        ([[0.1, np.inf]], "every arm needs at least one mean, and all must be finite"),
    ],
)
def test_tables_with_gaps_are_refused(means, message):
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        CurveTable.create(means)


def test_an_unknown_reference_is_refused():
    with pytest.raises(InvalidParameterError, match="reference must be one of 'alloca"):
        CurveTable.create([[0.1]], reference="dynamic")
