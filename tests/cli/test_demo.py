"""The demo counts what its searches train, and prints, draws and writes the results."""

import numpy as np
import pytest
from sklearn.model_selection import ParameterSampler

from risingsearch import Functions, RisingSearch
from risingsearch.cli import demo
from risingsearch.cli.demo import MAX_EPOCHS, OWN, SPACE, Classifier, DemoRun, Problem
from risingsearch.errors import InvalidParameterError


@pytest.fixture(scope="module")
def problem():
    """Return the problem with fewer rows in each part."""
    whole = demo.load()
    return Problem(whole.X, whole.y, *(rows[:512] for rows in whole[2:]))


@pytest.fixture
def log(problem, monkeypatch):
    log = DemoRun("any", 0)
    for name, value in {"problem": problem, "log": log, "tried": set()}.items():
        monkeypatch.setattr(Classifier, name, value, raising=False)
    return log


class TestModels:
    def test_every_epoch_and_the_best_scores_are_counted(self, problem, log):
        params = next(iter(ParameterSampler(SPACE, 1, random_state=1)))
        scores = list(problem.epochs({**params, "rate": 0.01, "width": 8}, seed=0))
        assert log.epochs == len(scores) == MAX_EPOCHS
        assert log.tried == 1
        best = [score for _, score in log.best]
        assert best == sorted(set(best))
        assert best[-1] == max(scores)
        assert log.best[-1][0] == scores.index(max(scores)) + 1
        assert 0.2 < log.test_score < 1.0

    def test_a_fit_starts_afresh_and_tries_nothing_new(self, problem, log):
        params = next(iter(ParameterSampler(SPACE, 1, random_state=1)))
        model = Classifier(**params, epochs=2, random_state=0)
        X, y = problem.X[:512], problem.y[:512]
        once = model.fit(X, y).predict(X)
        assert np.array_equal(model.fit(X, y).predict(X), once)
        model.set_params(epochs=1).fit(X, y)
        assert (log.epochs, log.tried) == (5, 1)

    def test_a_network_that_diverges_costs_its_epochs_and_scores_badly(
        self, problem, log
    ):
        steep = next(iter(ParameterSampler(SPACE, 1, random_state=1)))
        steep |= {"depth": 3, "solver": "sgd", "rate": 1e12, "activation": "relu"}
        scores = list(problem.epochs(steep, seed=0))
        assert log.epochs == MAX_EPOCHS
        assert max(scores) < 0.3


@pytest.fixture
def small(problem, monkeypatch):
    """Search with fewer epochs and rows."""
    monkeypatch.setattr(demo, "load", lambda: problem)
    monkeypatch.setattr(demo, "BUDGET", 54)


@pytest.mark.parametrize(
    "search",
    [pytest.param(s, marks=[pytest.mark.slow] * (s != OWN)) for s in demo.SEARCHES],
)
def test_a_search_says_what_its_models_have_trained(search, small, log, quiet_optuna):
    run = demo.run(search, seed=100)
    assert (run.search, run.seed) == (search, 100)
    if search == "HalvingRandomSearchCV":  # 63 for 1, 21 for 3, 7 for 9, 3 for 27
        assert (run.epochs, run.tried) == (270, 63)
    else:
        assert run.epochs == 54
    assert run.best[-1][0] <= run.epochs
    assert 0.0 <= run.test_score <= 1.0
    if search == OWN:
        again = demo.run(search, seed=100)
        assert (again.best, again.test_score) == (run.best, run.test_score)
        assert again.result.best_score == run.score


def a_run(search, seed, score, result=None):
    best = [(1, 0.1), (20, score)]
    return DemoRun(search, seed, best, score - 0.1, 20, 10 + seed, 1.0, result)


@pytest.fixture
def found():
    """Return runs of two searches, one of them with its result."""
    result = RisingSearch(
        Functions(lambda params, seed: params, lambda state: state["width"]),
        [{"width": width} for width in (16, 32, 64)],
        budget=20,
        max_epochs=10,
        seed=0,
    ).run()
    own = [a_run(OWN, k, score, result) for k, score in enumerate((0.9, 0.8, 0.7))]
    return [*own, *(a_run("other", seed, 0.75) for seed in range(3))]


def test_table_picture_and_report(found, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo, "run_all", lambda seeds: found)
    demo.run_demo(tmp_path / "new", seed=0)
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("search "))
    at = lines[head].index("epochs")
    assert [line[at : at + 2] for line in lines[head + 1 : head + 3]] == ["20", "20"]
    names = ["best-by-epochs.png", "report.html"]
    assert all((tmp_path / "new" / name).stat().st_size > 5_000 for name in names)
    own, other = demo.rows(found)
    assert own == {
        "search": OWN,
        "score": "0.800 (0.700 to 0.900)",
        "test": "0.700 (0.600 to 0.800)",
        "epochs": 20,
        "tried": 11,
        "CPU s": "1.0",
    }
    assert other["score"] == "0.750 (0.750 to 0.750)"


def test_what_cannot_be_written_is_refused_first(monkeypatch, tmp_path):
    monkeypatch.delattr(demo, "run_all")
    (tmp_path / "file").touch()
    refused = r"file/best-by-epochs.png cannot be written"
    with pytest.raises(InvalidParameterError, match=refused):
        demo.run_demo(tmp_path / "file", 0)


def test_the_best_so_far_is_drawn_as_the_median_of_the_seeds(found):
    found[0].best = [(1, 0.4), (20, 0.9)]
    found[1].best = [(1, 0.2), (20, 0.9)]
    [ax] = demo.best_by_epochs(found).axes
    own = next(line for line in ax.get_lines() if line.get_label() == OWN)
    x, y = own.get_data()
    assert y[x == 19] == pytest.approx(0.2)
