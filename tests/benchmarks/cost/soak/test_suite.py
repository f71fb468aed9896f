"""The suite plays its searches to the end, kills them, and says what they used."""

import csv

import pytest

from benchmarks.cost.soak import suite


@pytest.mark.slow
def test_suite_leaves_results_figure_and_summary(tmp_path, monkeypatch, capsys):
    tiny = suite.Scale(100, arms=20, kills=1, samples=5)
    monkeypatch.setitem(suite.SCALES, "quick", tiny)
    monkeypatch.setattr(suite, "WORKERS", {"in process": "black", "threads": "red"})
    suite.run(tmp_path, scale="quick", seed=0, jobs=1)
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    for cell in [(workers, kept) for workers in suite.WORKERS for kept in suite.KEPT]:
        own = [row for row in rows if (row["workers"], row["kept"]) == cell]
        assert own[-1]["epochs"] == "100"
        assert sum(bool(row["start"]) for row in own) == (2 if "run_dir" in cell else 1)
    summary = (tmp_path / "summary.md").read_text()
    assert "the same history; the budget of 100 epochs is spent" in summary
    assert summary in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.csv",
        "soak.png",
        "soak.svg",
        "summary.md",
    }
