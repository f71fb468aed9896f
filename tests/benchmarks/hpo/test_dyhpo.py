import numpy as np
import pytest

from benchmarks.hpo import dyhpo, surface
from benchmarks.hpo.draws import draw_search
from benchmarks.hpo.methods import DYHPO, Method
from benchmarks.hpo.replay import Setting, search
from benchmarks.hpo.surface import Kernel, Ranked, Surface
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


class TestKernel:
    def test_the_slope_of_the_likelihood_is_that_of_its_values(self):
        rng = np.random.default_rng(1)
        x, y = rng.random((12, 3)), rng.standard_normal(12)
        logs = np.log(np.array([0.8, 1.5, 2.5, 0.1]))
        _, slope = surface.minus_log_likelihood(x, y, np.exp(logs))
        steps = 1e-5 * np.eye(4)
        found = [
            surface.minus_log_likelihood(x, y, np.exp(logs + sign * step))[0]
            for step in steps
            for sign in (1, -1)
        ]
        assert slope == pytest.approx(-np.diff(np.reshape(found, (4, 2)))[:, 0] / 2e-5)

    def test_a_fit_shortens_the_length_of_what_matters(self):
        rng = np.random.default_rng(2)
        x = rng.random((60, 3))
        y = np.sin(9.0 * x[:, 1])
        fitted = surface.fitted(x, y, Kernel(surface.typical(3), 0.1))
        assert fitted.inverse_lengths.argmax() == 1
        assert fitted.noise < 0.1


class TestSurface:
    def test_one_observation_more_is_as_good_as_all_anew(self, monkeypatch):
        monkeypatch.setattr(Ranked, "of", lambda scores: np.asarray)
        monkeypatch.setattr(surface, "FEWEST", 99)
        features = np.random.default_rng(3).random((9, 2))
        made = []
        for anew in (lambda n: True, lambda n: n == 1):
            monkeypatch.setattr(surface, "is_power_of_two", anew)
            one = Surface(features, 5, np.random.default_rng(0))
            for row, score in zip(
                [4, 1, 1, 7, 4, 1], np.linspace(0, 1, 6), strict=True
            ):
                one.observe(row, score)
            made.append(one)
        assert made[1].mean == pytest.approx(made[0].mean)
        assert made[1].variance == pytest.approx(made[0].variance)

    def test_normal_scores_keep_the_order_and_end_one_above_the_best(self):
        ranked = Ranked.of(np.array([0.5, -1e9, 0.7, 0.5]))
        low, tied, high = ranked([-1e9, 0.5, 0.7])
        assert low < tied < high
        assert ranked(0.6) == pytest.approx((tied + high) / 2)
        assert ranked(1e12) == pytest.approx(high + 1.0)


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

    def test_it_goes_on_when_observations_are_dropped(self, task, monkeypatch):
        monkeypatch.setattr(surface, "MOST", 24)
        monkeypatch.setattr(surface, "KEPT", 16)
        run = draw_search(task, 1, 0.0)
        arms = dyhpo.play(run, 60)
        assert np.array_equal(arms, dyhpo.play(run, 60))
        assert len(np.unique(arms)) > 5
