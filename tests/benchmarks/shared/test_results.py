import numpy as np
import pytest

from benchmarks.shared import results
from risingsearch.simulation import Comparison


@pytest.fixture
def comparison():
    # Two policies, four runs, two horizons; the second is better at the long one.
    regret = np.array([[[1.0, 2, 3, 4], [2, 3, 4, 1]], [[9, 9, 9, 9], [5, 6, 7, 9]]])
    return Comparison(["a", "b"], ["here"], [10, 20], regret[None], 0 * regret[None])


def test_means_and_ranks_begin_with_the_lowest(comparison):
    assert results.means(comparison, 20) == {"b": 6.75, "a": 9.0}
    assert list(results.means(comparison, 20)) == ["b", "a"]
    assert results.average_ranks(comparison, 20) == {"b": 1.125, "a": 1.875}
    assert results.average_ranks(comparison, 10) == {"a": 1.25, "b": 1.75}


def test_table_of_references_tells_the_difference(comparison):
    text = results.reference_table(comparison, {10: {"a": 2}, 20: {"a": 10.0}})
    small, large = text.splitlines()[2:]
    assert "+0.5" in small
    assert "%" not in small
    assert "-10.0%" in large


def test_a_difference_that_never_varies_is_beyond_chance():
    assert results.paired_p_value(np.array([1.0, 2.0]), np.array([1.5, 2.5])) == 0.0
    assert np.isnan(results.paired_p_value(np.ones(3), np.ones(3)))
    assert np.isnan(results.paired_p_value(np.ones(1), np.zeros(1)))
