import numpy as np
import pytest
from scipy import stats

from risingsearch.simulation.statistics import half_width


@pytest.mark.parametrize("n_runs", [2, 10])
def test_half_width_is_that_of_students_t(n_runs):
    values = np.random.default_rng(n_runs).normal(size=(2, n_runs))
    low, high = stats.t.interval(
        0.95, n_runs - 1, values.mean(axis=-1), stats.sem(values, axis=-1)
    )
    np.testing.assert_allclose(2 * half_width(values), high - low)


def test_half_width_of_a_single_run_is_unknown():
    assert np.isnan(half_width(np.ones((3, 1)))).all()
