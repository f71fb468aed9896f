"""What stands in where an environment leaves something out."""

import numpy as np

from risingsearch.curves.analytic import LinearThenFlat
from risingsearch.curves.base import NEVER, fresh, pull_limits
from risingsearch.curves.recorded import CurveTable
from risingsearch.curves.restless import DriftingMeans
from risingsearch.simulation import engine


def test_arms_give_as_many_pulls_as_they_have_and_there_are_rounds():
    endless = LinearThenFlat.create([0.1, 0.2], [1.0, 1.0])
    assert pull_limits(endless, 7).tolist() == [7, 7]
    table = CurveTable.create([[0.1, 0.2, 0.3], [0.5, np.nan, np.nan]])
    assert pull_limits(table, 2).tolist() == [2, 1]


def test_a_run_of_its_own_shares_tables_and_nothing_that_changes():
    table = CurveTable.create([[0.1]])
    assert fresh(table) is table
    drifting = DriftingMeans.create([[0.1, 0.2]], [1, 3])
    drifting.mean(0, 1, 5)
    own = fresh(drifting)
    assert own.means is drifting.means
    assert own.knot is not drifting.knot
    assert own.knot[0] == 0


def test_never_is_the_same_round_everywhere():
    assert NEVER == engine.NEVER
