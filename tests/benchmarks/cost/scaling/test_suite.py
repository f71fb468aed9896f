"""The simulated cluster keeps the books of budget, workers' time and failures."""

import csv

import pytest

from benchmarks.cost.scaling import runs, suite
from benchmarks.cost.scaling.cluster import free, search


@pytest.mark.parametrize("policy", ["auto", "asha"])
def test_the_budget_is_spent_exactly(policy):
    run = search(policy, 20, 200, 4, seed=0, charge=free)
    assert run.finished
    assert run.n_epochs == 200
    assert 0 <= run.regret < 0.5


@pytest.mark.slow
def test_suite_leaves_results_figure_and_summary(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runs, "CLUSTERS", ((1, 10), (1000, 20), (2, 2000)))
    monkeypatch.setattr(runs, "ARMS", (100, 200))
    monkeypatch.setattr(runs, "WORKERS", (1, 4))
    monkeypatch.setattr(runs, "CLOCK_SECONDS", 10.0)
    monkeypatch.setattr(runs, "FULL_TRAININGS", 2)
    tiny = runs.Scale(
        0.05, budget=20, seeds=2, regret_arms=10, clock_workers=(2,), lines=3
    )
    monkeypatch.setitem(runs.SCALES, "quick", tiny)
    suite.run(tmp_path, scale="quick", seed=0, jobs=1)
    with (tmp_path / "results.csv").open() as file:
        tables = {row["table"] for row in csv.DictReader(file)}
    assert tables == {
        "cluster",
        "decisions",
        "asynchrony",
        "by the clock",
        "slow starts",
        "kept",
        "around",
    }
    summary = (tmp_path / "summary.md").read_text()
    assert "asha, 1,000 workers, 20 arms" in summary
    assert "30 s a start, Budget(wall_seconds=55.5)" in summary
    assert summary in capsys.readouterr().out
    assert (tmp_path / "scaling.png").exists()
    assert (tmp_path / "scaling.svg").exists()
    assert not (tmp_path / "run").exists()
