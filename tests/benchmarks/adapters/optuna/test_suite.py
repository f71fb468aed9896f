"""Studies on recorded curves train what they may, and the tables say what came out."""

import csv

import numpy as np
import pytest

from benchmarks.adapters.optuna import studies, suite
from benchmarks.adapters.optuna.studies import METHODS, study
from benchmarks.hpo import reference
from benchmarks.hpo.tasks import make_task


def a_task(family="deepobs", name="mnist_vae", seed=0):
    rng = np.random.default_rng(seed)
    ends, rates = rng.uniform(0.2, 0.9, (60, 1)), rng.uniform(1, 4, (60, 1))
    curves = ends * (1 - np.exp(-np.arange(1, 9) / rates))
    return make_task(family, name, curves, features=np.hstack([ends, rates / 4]))


@pytest.mark.parametrize("method", METHODS)
def test_a_study_trains_its_budget_and_finds_something(method):
    studied = study(method, a_task(), 5, 0)
    assert studied.epochs == 40
    assert len(studied.regrets) == studies.POINTS
    assert studied.regrets == sorted(studied.regrets, reverse=True)
    assert studied.regrets[-1] < 1.0
    assert study(method, a_task(), 5, 0) == studied


def test_suite_leaves_results_figure_and_summary(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(suite, "load_tasks", lambda data_dir: [a_task(), a_task("x")])
    monkeypatch.setitem(reference.TASKS, "deepobs", ("mnist_vae",))
    suite.run(tmp_path, scale="quick", seed=0, jobs=1)
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(METHODS) * 2
    assert {row["epochs"] for row in rows} == {"40", "80"}
    assert "all spent exactly" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "regret.png").exists()
    assert (tmp_path / "regret.svg").exists()
