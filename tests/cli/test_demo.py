"""The demo counts what its searches train, and prints, draws and writes the results."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterSampler

from risingsearch import Functions, RisingSearch
from risingsearch.cli import demo
from risingsearch.cli.demo import MAX_EPOCHS, OWN, SPACE, Classifier, DemoRun
from risingsearch.errors import InvalidParameterError


@pytest.fixture
def small(monkeypatch):
    """Search with fewer epochs and rows."""
    for part in ("TRAIN", "VALID", "TEST"):
        monkeypatch.setattr(demo, part, getattr(demo, part)[:512])
    monkeypatch.setattr(demo, "BUDGET", 54)


@pytest.fixture
def log(small, monkeypatch):
    log = DemoRun(0)
    monkeypatch.setattr(Classifier, "log", log, raising=False)
    return log


@pytest.fixture
def params():
    return next(iter(ParameterSampler(SPACE, 1, random_state=1)))


class TestModels:
    def test_every_epoch_and_the_best_scores_are_counted(self, params, log):
        scores = list(demo.epochs_of({**params, "rate": 0.01, "width": 8}, seed=0))
        assert len(scores) == MAX_EPOCHS
        assert log.best == [0.0, *np.maximum.accumulate(scores)]
        assert len(log.tried) == 1
        assert 0.2 < log.test_score < 1.0

    def test_a_clone_starts_afresh_and_tries_nothing_new(self, params, log):
        X, y = (values[:512] for values in demo.load())
        model = Classifier(**params, epochs=2, random_state=0)
        once = clone(model).fit(X, y).predict(X)
        assert np.array_equal(clone(model).fit(X, y).predict(X), once)
        clone(model).set_params(epochs=1).fit(X, y)
        assert (len(log.best), len(log.tried)) == (1 + 5, 1)

    def test_a_network_that_diverges_costs_its_epochs_and_scores_badly(
        self, params, log
    ):
        params |= {"depth": 3, "solver": "sgd", "rate": 1e12, "activation": "relu"}
        with np.errstate(over="ignore", invalid="ignore"):
            scores = list(demo.epochs_of(params, seed=0))
        assert len(log.best) == 1 + MAX_EPOCHS
        assert max(scores) < 0.3


@pytest.mark.parametrize(
    "search",
    [pytest.param(s, marks=[pytest.mark.slow] * (s != OWN)) for s in demo.SEARCHES],
)
def test_a_search_says_what_its_models_have_trained(search, log, quiet_optuna):
    run = demo.run(search, seed=100)
    assert run.seed == 100
    if search == "HalvingRandomSearchCV":  # 63 for 1, 21 for 3, 7 for 9, 3 for 27
        assert (len(run.best), len(run.tried)) == (1 + 270, 63)
    else:
        assert len(run.best) == 1 + 54
    assert run.best == sorted(run.best)
    assert 0.0 <= run.test_score <= 1.0
    if search == OWN:
        again = demo.run(search, seed=100)
        assert (again.best, again.test_score) == (run.best, run.test_score)
        assert again.result.best_score == run.best[-1]


def runs(scores, result=None):
    return [
        DemoRun(
            seed,
            [0.0, *[0.1] * 19, score],
            score - 0.1,
            set(range(10 + seed)),
            result,
        )
        for seed, score in enumerate(scores)
    ]


@pytest.fixture
def demo_runs():
    """Return runs of two searches, one of them with its result."""
    result = RisingSearch(
        Functions(lambda params, seed: params, lambda state: state["width"]),
        [{"width": width} for width in (16, 32, 64)],
        budget=20,
        max_epochs=10,
        seed=0,
    ).run()
    return {OWN: runs([0.9, 0.8, 0.7], result), "other": runs([0.75] * 3)}


def test_table_picture_and_report(demo_runs, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo, "SEARCHES", demo_runs)
    monkeypatch.setattr(demo, "run_seeds", lambda search, seeds: demo_runs[search])
    demo.run_demo(tmp_path / "new", seed=0)
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("search "))
    at = lines[head].index("epochs")
    assert [line[at : at + 2] for line in lines[head + 1 : head + 3]] == ["20", "20"]
    assert lines[head + 1].startswith(OWN)
    names = ["best-by-epochs.png", "report.html"]
    assert all((tmp_path / "new" / name).stat().st_size > 5_000 for name in names)
    assert demo.row(demo_runs[OWN]) == {
        "score": "0.800 (0.700 to 0.900)",
        "test": "0.700 (0.600 to 0.800)",
        "epochs": 20,
        "tried": 11,
    }
    assert demo.row(demo_runs["other"])["score"] == "0.750 (0.750 to 0.750)"


def test_what_cannot_be_written_is_refused_first(monkeypatch, tmp_path):
    monkeypatch.delattr(demo, "run_seeds")
    (tmp_path / "file").touch()
    refused = r"file/best-by-epochs.png cannot be written"
    with pytest.raises(InvalidParameterError, match=refused):
        demo.run_demo(tmp_path / "file", 0)


def test_the_best_so_far_is_drawn_as_the_median_of_the_seeds(demo_runs):
    first, second, _ = demo_runs[OWN]
    first.best[1:20] = [0.4] * 19
    second.best[1:20] = [0.2] * 19
    [ax] = demo.best_by_epochs(demo_runs).axes
    own = next(line for line in ax.get_lines() if line.get_label() == OWN)
    x, y = own.get_data()
    assert y[x == 19] == pytest.approx(0.2)
