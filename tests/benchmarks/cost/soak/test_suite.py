"""The suite plays its searches to the end, kills them, and says what they used."""

import csv

import pytest

from benchmarks.cost.soak import promises, suite

SEARCHES = [(workers, kept) for workers in suite.WORKERS for kept in suite.KEPT]


def sample(epochs, **changes):
    usual = {
        "epochs": epochs,
        "new epochs": 10,
        "CPU seconds": 0.01,
        "MB": 50 + epochs * 1e-3,
        "descriptors": 9,
        "threads": 3,
        "journal": 200 * epochs,
        "arms that may train on": 5,
        "checkpoints": 11,
        "digest": "abc",
        "ended": "the budget is spent",
    }
    return usual | changes


def searches(**changes):
    """Return six searches; changes are functions of the epochs of a sample."""
    return {
        cell: [
            sample(epochs, **{name: of(epochs) for name, of in changes.items()})
            for epochs in range(10, 210, 10)
        ]
        for cell in SEARCHES
    }


def broken(found):
    return [claim.claim for claim in promises.all_of(found) if not claim.holds]


def test_a_search_that_keeps_its_promises_passes():
    assert broken(searches()) == []


@pytest.mark.parametrize(
    ("name", "of", "promise"),
    [
        ("MB", lambda epochs: 50 + epochs * 1e-2, "memory grows with the history"),
        ("MB", lambda epochs: 50 + (epochs / 200) ** 3 / 10, "memory grows"),
        ("descriptors", lambda epochs: epochs // 20, "descriptors stay"),
        ("threads", lambda epochs: 3 + (epochs > 150), "threads stay"),
        ("journal", lambda epochs: epochs**2, "the journal grows"),
        ("checkpoints", lambda epochs: 12 if epochs == 90 else 3, "checkpoints are"),
        ("CPU seconds", lambda epochs: epochs / 1000, "an epoch takes as long"),
    ],
)
def test_what_grows_breaks_a_promise(name, of, promise):
    [found] = broken(searches(**{name: of}))
    assert found.startswith(promise)


def test_suite_leaves_results_figure_and_summary(tmp_path, monkeypatch, capsys):
    tiny = suite.Scale(300, arms=60, kills=2, samples=10)
    monkeypatch.setitem(suite.SCALES, "quick", tiny)
    monkeypatch.setattr(suite, "WORKERS", {"in process": "black", "threads": "red"})
    suite.run(tmp_path, scale="quick", seed=0, jobs=2)
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    for cell in [(workers, kept) for workers in suite.WORKERS for kept in suite.KEPT]:
        own = [row for row in rows if (row["workers"], row["kept"]) == cell]
        assert own[-1]["epochs"] == "300"
        assert sum(bool(row["start"]) for row in own) == (3 if "run_dir" in cell else 1)
    summary = (tmp_path / "summary.md").read_text()
    assert "the same history; the budget of 300 epochs is spent" in summary
    assert summary in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.csv",
        "soak.png",
        "soak.svg",
        "summary.md",
    }
