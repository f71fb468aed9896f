from pathlib import Path

import pytest

from benchmarks.peers import figures, suite
from benchmarks.peers.audit import Event
from benchmarks.peers.figures import LOOKS
from benchmarks.peers.jobs import Run
from benchmarks.peers.results import Result


def test_every_search_has_a_look_and_a_runner():
    searches = [search for peer in suite.PEERS for search in peer.searches]
    assert list(LOOKS) == searches
    folder = Path(suite.__file__).parent
    assert all(
        (folder / "runners" / f"{peer.runner}.py").is_file() for peer in suite.PEERS
    )


@pytest.fixture
def stand_ins(monkeypatch):
    """Let every search have trained the first networks for an epoch each."""
    names = [figures.label(c) for c in figures.candidates("late-bloomers")]

    def measure(peer, python, job):
        runs = [
            Run(search, job.problem, seed, search, 0.0, 9.0)
            for search in job.searches
            for seed in job.seeds
        ]
        return suite.complete(runs, job, "")

    def read(runs):
        events = [
            event
            for k, name in enumerate(names[:9])
            for event in (Event(k, name, 1, None), Event(k + 0.5, name, 1, 0.1 * k))
        ]
        return [Result(run, [] if run.error else events) for run in runs]

    monkeypatch.setattr(suite, "measure", measure)
    monkeypatch.setattr(suite.results, "read", read)


@pytest.mark.usefixtures("stand_ins")
def test_quick_compares_without_installing(monkeypatch, tmp_path):
    monkeypatch.setattr(
        suite, "python_of", lambda *_: pytest.fail("quick installs nothing")
    )
    suite.run(tmp_path, scale="quick", seed=5, data_dir=None)
    summary = (tmp_path / "summary.md").read_text()
    assert "seeds 5 to 6" in summary
    assert "HalvingRandomSearchCV" in summary
    assert "Ray" not in summary.partition("- Scores")[0]
    assert "synth was not measured: it takes too long for --quick." in summary
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 1 + 2 * 3 * 2
