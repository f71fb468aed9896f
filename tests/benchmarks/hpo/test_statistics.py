import math

import numpy as np
import pytest

from benchmarks.hpo import statistics

FAMILIES = np.array(["few", "many", "many", "many"])


def test_every_family_counts_alike():
    assert statistics.balanced(np.array([1.0, 0.0, 0.0, 0.0]), FAMILIES) == 0.5


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


def test_pairs_are_compared_task_by_task():
    families = np.repeat("one", 12)
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 0.2, (12, 2, 3))
    found = statistics.paired(first, first + 0.1, families)
    assert found.won == 1.0
    assert found.difference == pytest.approx((-0.1, -0.1, -0.1))
    assert found.p_value == pytest.approx(2 / 2**12)
    same = statistics.paired(first, first, families)
    assert (same.won, same.p_value) == (0.0, 1.0)


def test_the_critical_difference_is_that_of_the_literature():
    # Demsar 2006, JMLR, Table 5: 2.343 for 3 classifiers.
    expected = 2.343 * math.sqrt(2)
    found = statistics.critical_difference(3, 1)
    assert found == pytest.approx(expected, rel=1e-3)
