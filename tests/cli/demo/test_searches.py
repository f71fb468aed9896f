"""Every search of the demo keeps to the epochs, and repeats itself."""

import pytest

from risingsearch.cli.demo import searches
from risingsearch.cli.demo.problem import Problem, load


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Search with fewer epochs and rows."""
    whole = load()
    few = Problem(whole.X, whole.y, *(rows[:512] for rows in whole[2:]))
    monkeypatch.setattr(searches, "load", lambda: few)
    monkeypatch.setattr(searches, "BUDGET", 54)


@pytest.mark.parametrize("search", searches.SEARCHES)
def test_a_search_says_what_its_models_have_trained(search, quiet_optuna):
    run = searches.run(search, seed=100)
    assert (run.search, run.seed) == (search, 100)
    if search == "HalvingRandomSearchCV":  # 63 for 1, 21 for 3, 7 for 9, 3 for 27
        assert (run.epochs, run.tried) == (270, 63)
    else:
        assert run.epochs == 54
    epochs = [epoch for epoch, _ in run.best]
    assert epochs == sorted(set(epochs))
    assert epochs[-1] <= run.epochs
    assert 0.0 <= run.test_score <= 1.0


def test_the_same_seed_finds_the_same():
    first, second = (searches.run(searches.OWN, seed=100) for _ in range(2))
    assert (first.best, first.test_score) == (second.best, second.test_score)
    assert first.result.best_score == first.score
