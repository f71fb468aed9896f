import json
import subprocess

import numpy as np
import pytest

from benchmarks.hpo import methods, parts, tools
from benchmarks.hpo.draws import draw_search
from benchmarks.hpo.methods import Method
from benchmarks.hpo.replay import Setting, search
from benchmarks.hpo.tasks import make_task
from benchmarks.hpo.tools import syne, tpe
from benchmarks.peers.environments import NotInstalledError


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    features, epochs = rng.random((30, 2)), np.arange(1, 7)
    table = (0.2 + features[:, :1]) * (1.0 - np.exp(-epochs / 2.0))
    return make_task("one", "a", table, features=features)


def test_tpe_opens_each_configuration_once(task):
    run = draw_search(task, 0, 0.0)
    arms = tpe.play(run, 60)
    assert np.array_equal(arms, tpe.play(run, 60))
    assert np.bincount(arms).max() <= task.max_epochs
    assert 0 < len(arms) <= 60


def test_what_tpe_trains_again_is_lost(task):
    few = task._replace(curves=task.curves[:4], features=task.features[:4])
    arms = tpe.play(draw_search(few, 0, 0.0), 24)
    assert np.bincount(arms).max() <= task.max_epochs


class TestSyneTune:
    def play(self, monkeypatch, task, returncode, stdout):
        def run(command, **options):
            self.job = json.loads(command[-1])
            with np.load(self.job["table"]) as table:
                self.features = table["features"]
            return subprocess.CompletedProcess(command, returncode, stdout, "x\nwhy\n")

        monkeypatch.setattr(subprocess, "run", run)
        searched = draw_search(task, 3, 0.0)
        return searched, syne.play(searched, 4, search="mobster", python="python")

    def test_rows_are_those_of_the_order(self, task, monkeypatch):
        run, arms = self.play(monkeypatch, task, 0, "a library's notes\n[0, 2, 2, 1]\n")
        assert np.array_equal(arms, run.order[[0, 2, 2, 1]])
        assert np.array_equal(self.features, task.features[run.order])
        assert (self.job["search"], self.job["budget"], self.job["seed"]) == (
            *("mobster", 4),
            3,
        )

    def test_a_search_that_fails_is_missing_and_says_why(
        self, task, monkeypatch, capsys
    ):
        run, arms = self.play(monkeypatch, task, 1, "")
        assert arms is None
        assert "mobster failed on a: why" in capsys.readouterr().err
        failing = Method("mobster", "mobster", play=lambda run, budget: None)
        assert search(run, failing, 1, Setting()) is None


def test_what_cannot_be_installed_is_left_out_and_says_so(tmp_path, monkeypatch):
    def python_of(name, packages, cache):
        msg = "no index"
        raise NotInstalledError(msg)

    monkeypatch.setattr(tools, "python_of", python_of)
    found, left_out = tools.installed(tmp_path)
    assert [method.name for method in found] == ["tpe-hyperband"]
    assert left_out == [
        "left out: syne tune: mobster, syne tune: dyhpo: not installed: no index"
    ]


def test_methods_that_need_features_are_left_out_without_them(task):
    bare = task._replace(family="two", features=None)
    default = methods.shipped()
    scale = parts.SCALES["quick"]
    for tasks, there in (([task], True), ([task, bare], False)):
        clean, *_ = parts.parts(tasks, scale, 0, default)
        assert ("dyhpo" in [one.name for one in clean.methods]) == there
    [part] = parts.tools_parts([task, bare], 0, default, [methods.DYHPO])
    assert part.tasks == [task]
    assert not list(parts.tools_parts([bare], 0, default, [methods.DYHPO]))
