import json
import subprocess

import numpy as np
import pytest

from benchmarks.hpo.draws import draw_search
from benchmarks.hpo.tasks import make_task
from benchmarks.peers.environments import NotInstalledError
from benchmarks.transfer import rivals
from benchmarks.transfer.rivals import EarlierTable

EPOCHS = np.arange(1, 7)


def curves(features):
    return (0.2 + features[:, :1]) * (1.0 - np.exp(-EPOCHS / 2.0))


@pytest.fixture
def run():
    features = np.random.default_rng(0).random((30, 2))
    task = make_task("one", "a", curves(features), features=features)
    return draw_search(task, 3, 0.0)


@pytest.fixture
def earlier():
    tables = []
    for seed in (1, 2):
        features = np.random.default_rng(seed).random((10, 2))
        tables.append(EarlierTable(features, curves(features)))
    return tables


def test_optuna_opens_what_was_best_before_it_goes_on(run, earlier):
    arms = rivals.play(run, 60, earlier, rival="optuna", python=None)
    again = rivals.play(run, 60, earlier, rival="optuna", python=None)
    assert np.array_equal(arms, again)
    assert 0 < len(arms) <= 60
    assert np.bincount(arms).max() <= run.task.max_epochs
    opened = list(dict.fromkeys(arms.tolist()))
    left = dict(enumerate(run.task.features))
    for arm, point in zip(opened[:2], rivals.best_of(earlier), strict=True):
        assert arm == min(left, key=lambda one: np.sum((left[one] - point) ** 2))
        del left[arm]


def test_the_best_of_each_task_comes_once(earlier):
    first = earlier[0].features[earlier[0].features[:, 0].argmax()]
    second = earlier[1].features[earlier[1].features[:, 0].argmax()]
    found = rivals.best_of([*earlier, earlier[0]])
    assert found == [first.tolist(), second.tolist()]


def test_syne_tune_gets_the_earlier_tasks_without_gaps(run, earlier, monkeypatch):
    gaps = earlier[0].scores.copy()
    gaps[0, 3:], gaps[1] = np.nan, np.nan
    given = [EarlierTable(earlier[0].features, gaps), earlier[1]]

    def called(command, **options):
        assert command[:3] == ["python", "-m", rivals.RUNNER]
        job = json.loads(command[-1])
        assert (job["search"], job["budget"], job["seed"]) == ("rush", 4, 3)
        with np.load(job["table"]) as table:
            assert np.array_equal(table["features"], run.task.features[run.order])
            scores = table["earlier_scores_0"]
            assert scores.shape == (9, 6)
            assert np.all(scores[0, 3:] == gaps[0, 2])
            assert len(table["earlier_features_0"]) == 9
            assert np.array_equal(table["earlier_scores_1"], earlier[1].scores)
        return subprocess.CompletedProcess(command, 0, "[0, 2, 2, 1]\n", "")

    monkeypatch.setattr(subprocess, "run", called)
    arms = rivals.play(run, 4, given, rival="rush", python="python")
    assert np.array_equal(arms, run.order[[0, 2, 2, 1]])


def test_what_cannot_be_installed_is_not_played(
    run, earlier, tmp_path, monkeypatch, capsys
):
    def python_of(name, packages, cache):
        msg = "no index"
        raise NotInstalledError(msg)

    monkeypatch.setattr(rivals, "python_of", python_of)
    python = rivals.installed(tmp_path)
    assert python is None
    assert "rush" in capsys.readouterr().err
    assert rivals.left_out(python) == rivals.SYNE
    assert rivals.left_out("python") == ()
    assert rivals.play(run, 4, earlier, rival="rush", python=None) is None
