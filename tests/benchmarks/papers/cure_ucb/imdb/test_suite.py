import csv

import pytest

from benchmarks.papers.cure_ucb.imdb import suite
from benchmarks.papers.cure_ucb.imdb.settings import Found
from risingsearch.curves.rising import IMDB_FILE


def put(folder, *files):
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).touch()


@pytest.fixture
def measured(monkeypatch):
    """Put stand-ins in place of both parts; return the order of what is called."""
    called = []

    def measure(name):
        def measured(study, out):
            called.append(name)
            row, bar = {"part": name, name: 1}, {"bar": f"bar of {name}"}
            return Found([row], [bar], [f"found by {name}"])

        return measured

    monkeypatch.setattr(suite.replay, "measure", measure("replay"))
    monkeypatch.setattr(suite.live, "measure", measure("live"))
    return called


def test_both_parts_share_results_and_summary(measured, monkeypatch, tmp_path):
    put(tmp_path, IMDB_FILE, "imdb_text/train.parquet", "imdb_text/test.parquet")
    monkeypatch.setattr(suite.text, "features", lambda *given: tmp_path)
    suite.run(tmp_path, scale="quick", seed=0, data_dir=tmp_path)
    assert measured == ["replay", "live"]
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows == [
        {"part": "replay", "replay": "1", "live": ""},
        {"part": "live", "replay": "", "live": "1"},
    ]
    summary = (tmp_path / "summary.md").read_text()
    for name in ("replay", "live"):
        assert f"bar of {name}" in summary
        assert f"found by {name}" in summary
