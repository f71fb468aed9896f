import numpy as np
import pytest

from benchmarks.hpo import statistics

FAMILIES = np.array(["few", "many", "many", "many"])


def test_intervals_are_over_the_orders():
    regret = np.zeros((4, 2, 3))
    regret[...] = [0.1, 0.2, 0.3]
    found = statistics.over_seeds(statistics.overall(regret, FAMILIES))
    assert found.mean == pytest.approx(0.2)
    assert found.high - found.mean == pytest.approx(0.1 / 3**0.5 * 4.303, rel=1e-3)


def test_a_bootstrap_draws_tasks_within_their_family():
    found = statistics.over_tasks(np.array([1.0, 0.0, 0.3, 0.6]), FAMILIES)
    assert found.mean == pytest.approx(0.65)
    assert 0.5 <= found.low < found.mean < found.high <= 0.8
    alone = statistics.over_tasks(np.array([1.0, 0.2, 0.2, 0.2]), FAMILIES)
    assert (alone.low, alone.high) == pytest.approx((0.6, 0.6))
