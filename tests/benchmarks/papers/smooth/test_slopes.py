import numpy as np
import pytest

from benchmarks.papers.smooth.slopes import slope
from risingsearch.simulation import Comparison


def comparison(regret, horizons):
    rows = np.asarray(regret, dtype=float)[None]
    return Comparison(["be"], ["sinusoid"], list(horizons), rows[:, :, None], rows)


def test_the_exponent_of_a_power_law_comes_out():
    horizons = [10**6, 10**7, 10**8]
    regret = [[3 * horizon**0.6] * 5 for horizon in horizons]
    found = slope(comparison(regret, horizons), "be")
    assert found[:3] == pytest.approx([0.6] * 3)
    assert found.regret(10**5) == pytest.approx(3 * 10**3)
    assert str(found) == "0.600 [0.600, 0.600]"


def test_an_interval_covers_what_runs_leave_open():
    rng = np.random.default_rng(1)
    horizons = [10**6, 10**7, 10**8]
    regret = [horizon**0.6 * rng.uniform(0.5, 1.5, 50) for horizon in horizons]
    found = slope(comparison(regret, horizons), "be")
    assert found.low < 0.6 < found.high
    assert 0.01 < found.high - found.low < 0.1
    assert slope(comparison(regret, horizons), "be") == found


def test_a_slope_may_be_that_of_a_part():
    horizons = [10**6, 10**7, 10**8]
    regret = [[100.0] * 2, [1000.0] * 2, [2000.0] * 2]
    found = comparison(regret, horizons)
    assert slope(found, "be", 10**6, 10**7).value == pytest.approx(1.0)
    assert slope(found, "be", 10**7).value == pytest.approx(np.log10(2))
