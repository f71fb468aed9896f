import numpy as np
import pytest

from benchmarks.hpo import dyhpo
from benchmarks.hpo.draws import draw_search
from benchmarks.hpo.methods import DYHPO, Method
from benchmarks.hpo.replay import Setting, search
from benchmarks.hpo.tasks import make_task


@pytest.fixture
def task():
    """Return 60 curves of 4 to 8 epochs that end high where the first feature does."""
    rng = np.random.default_rng(0)
    features = rng.random((60, 3))
    ends = 1.0 - (features[:, :1] - 0.8) ** 2
    table = ends * (1.0 - np.exp(-np.arange(1, 9) / 2.0))
    table[np.arange(1, 9) > rng.integers(4, 12, (60, 1))] = np.nan
    return make_task("one", "a", table, features=features)


class TestRule:
    def test_the_budget_is_spent_within_the_curves(self, task):
        run = draw_search(task, 0, 0.0)
        arms = dyhpo.play(run, 5 * task.max_epochs)
        assert len(arms) == 5 * task.max_epochs
        assert arms[0] == run.order[0]
        epochs = np.bincount(arms, minlength=60)
        assert np.all(epochs <= task.lengths)

    def test_it_learns_from_the_features(self, task):
        first = Method("order", "none", play=lambda run, n: run.order[:n])
        seeds = range(4)
        found, order = (
            [
                search(draw_search(task, seed, 0.0), method, 4, Setting()).regret
                for seed in seeds
            ]
            for method in (DYHPO, first)
        )
        assert np.mean(found) < 0.5 * np.mean(order)
