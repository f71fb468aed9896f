import numpy as np
import pytest
from scipy import stats

from benchmarks.shared import claims
from risingsearch.simulation import Comparison

NAMES = ["ours", "second", "third"]
SHORT, LONG = 10, 20


def comparison(short, long, n_runs=30):
    """Return one in which the policies have these mean regrets, with some spread."""
    spread = np.random.default_rng(0).normal(size=(2, len(short), n_runs))
    spread -= spread.mean(axis=-1, keepdims=True)
    regret = np.array([short, long], dtype=float)[:, :, None] + 0.1 * spread
    names = NAMES[: len(short)]
    return Comparison(names, ["here"], [SHORT, LONG], regret[None], 0 * regret[None])


def test_lowest_everywhere():
    assert claims.lowest_everywhere(comparison([1, 2, 3], [4, 5, 6]), "ours", "").holds
    found = claims.lowest_everywhere(comparison([1, 2, 3], [5, 4, 6]), "ours", "")
    assert not found.holds
    assert "lowest at 1 of 2" in found.ours
    assert "second lower at 20: 4 against 5 at 20" in found.ours


def test_p_value_is_that_of_a_paired_t_test():
    given = comparison([1, 1.02], [1, 1.02])
    first, second = given.regret[0, -1]
    found = claims.lowest_everywhere(given, "second", "").ours
    assert f"(p = {stats.ttest_rel(first, second).pvalue:.2g})" in found


@pytest.mark.parametrize(("long", "holds"), [([1, 2, 3], True), ([2, 1, 3], False)])
def test_best_average_rank_and_most_wins(long, holds):
    given = comparison([1, 2, 3], long)
    assert claims.best_average_rank(given, "ours", (SHORT, LONG), "").holds is holds
    assert claims.wins_most(given, "ours", (SHORT, LONG), "").holds is holds


def test_far_ahead_asks_for_a_multiple():
    given = comparison([1, 3, 1.5], [1, 3, 3])
    assert claims.far_ahead(given, "ours", "second", [SHORT, LONG], "").holds
    assert not claims.far_ahead(given, "ours", "third", [SHORT, LONG], "").holds


def test_never_above_looks_at_every_run():
    regret = np.ones((1, 2, 2, 5))
    given = Comparison(["ours", "second"], ["here"], [SHORT, LONG], regret, regret)
    assert claims.never_above(given, "ours", "second", "").holds
    regret[0, 1, 0, 3] = 8.0
    found = claims.never_above(given, "ours", "second", "")
    assert not found.holds
    assert found.ours == "above in 1 of 10 runs, by 7.0 at most"
