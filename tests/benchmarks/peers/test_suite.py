import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import figures, reviews, suite
from benchmarks.peers.audit import Event
from benchmarks.peers.environments import NotInstalledError
from benchmarks.peers.figures import LOOKS
from benchmarks.peers.jobs import Job, Run
from benchmarks.peers.results import Result
from benchmarks.peers.suite import Peer
from risingsearch.errors import MissingDependencyError

JOB = Job("digits", ["a", "b"], [0, 1], "logs")
PEER = Peer("tool", ["a", "b"], ("tool==1",))


def line(search, seed, **more):
    return json.dumps(Run(search, "digits", seed, "log", **more)._asdict()) + "\n"


@pytest.fixture
def runner(monkeypatch):
    """Return a function that says what the runner is to answer."""

    def answer(stdout, stderr="", returncode=0):
        def run(command, **options):
            answer.command, answer.options = command, options
            return subprocess.CompletedProcess(command, returncode, stdout, stderr)

        monkeypatch.setattr(subprocess, "run", run)
        return answer

    return answer


def test_runs_are_what_the_runner_prints(runner):
    answer = runner("".join(line(s, n, seconds=1.5) for n in (0, 1) for s in "ab"))
    runs = suite.measure(PEER, Path("python"), JOB)
    assert [(run.search, run.seed) for run in runs] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]
    assert all(run.seconds == 1.5 and not run.error for run in runs)
    assert answer.command[:3] == ["python", "-m", "benchmarks.peers.runners.tool"]
    assert Job(**json.loads(answer.command[3])) == JOB
    assert answer.options["env"]["OMP_NUM_THREADS"] == "1"


def test_what_else_is_printed_is_left_out():
    assert suite.parse("welcome\n\n" + line("a", 0) + "{1: 2}\n") == [
        Run("a", "digits", 0, "log")
    ]


def test_a_runner_that_dies_keeps_what_it_had(runner):
    runner(line("a", 0), "Traceback\nMemoryError: too much\n", returncode=1)
    runs = suite.measure(PEER, Path("python"), JOB)
    assert [run.error for run in runs] == [
        "",
        *["exit code 1: MemoryError: too much"] * 3,
    ]


def test_a_runner_that_hangs_keeps_what_it_had(monkeypatch):
    def run(command, timeout, **options):
        raise subprocess.TimeoutExpired(command, timeout, line("a", 0).encode())

    monkeypatch.setattr(subprocess, "run", run)
    runs = suite.measure(PEER, Path("python"), JOB)
    assert [run.error for run in runs] == ["", *["not done after 2400 s"] * 3]


def test_a_peer_that_is_not_installed_says_why():
    runs = suite.measure(PEER, NotInstalledError("no such package"), JOB)
    assert [run.error for run in runs] == ["not installed: no such package"] * 4


def test_every_search_has_a_look_and_a_runner():
    searches = [search for peer in suite.PEERS for search in peer.searches]
    assert list(LOOKS) == searches
    folder = Path(suite.__file__).parent
    assert all(
        (folder / "runners" / f"{peer.runner}.py").is_file() for peer in suite.PEERS
    )


def test_reviews_are_written_as_logarithms(monkeypatch, tmp_path):
    texts = ["good good", "bad", "good bad bad", "bad!"]
    monkeypatch.setattr(
        reviews.text, "load_texts", lambda data_dir: (texts, np.arange(4))
    )
    monkeypatch.setattr(reviews, "N_REVIEWS", 3)
    reviews.write(None, tmp_path / "rows.npz")
    with np.load(tmp_path / "rows.npz") as kept:
        X, y = kept["X"], kept["y"]
    assert X.dtype == np.float32
    for row, label in zip(X, y, strict=True):
        counted = sorted(np.rint(np.expm1(row)).astype(int))
        assert counted[-1] == max(map(texts[label].count, ("good", "bad")))


@pytest.fixture
def stand_ins(monkeypatch):
    """Let every search have trained the first networks for an epoch each."""
    names = [figures.label(c) for c in figures.candidates("late-bloomers")]

    def measure(peer, python, job):
        if isinstance(python, NotInstalledError):
            return suite.complete([], job, f"not installed: {python}")
        if job.problem == "synth":
            return suite.complete([], job, "it broke")
        return suite.complete(
            [
                Run(s, job.problem, n, s, 0.0, 9.0)
                for s in job.searches
                for n in job.seeds
            ],
            job,
            "",
        )

    def read(runs):
        events = [
            event
            for k, name in enumerate(names[:9])
            for event in (Event(k, name, 1, None), Event(k + 0.5, name, 1, 0.1 * k))
        ]
        return [Result(run, [] if run.error else events) for run in runs]

    def absent(data_dir, path):
        raise MissingDependencyError("datasets is not installed")

    monkeypatch.setattr(suite, "measure", measure)
    monkeypatch.setattr(suite.results, "read", read)
    monkeypatch.setattr(suite.reviews, "write", absent)

    def python_of(name, packages, cache):
        if name == "ray":
            raise NotInstalledError("no such package")
        return Path("python")

    return python_of


def test_quick_compares_without_installing(stand_ins, monkeypatch, tmp_path):
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


def test_what_fails_is_in_the_summary(stand_ins, monkeypatch, tmp_path):
    monkeypatch.setattr(suite, "python_of", stand_ins)
    suite.run(tmp_path, scale="default", seed=0, data_dir=None)
    summary = (tmp_path / "summary.md").read_text()
    assert "imdb was not measured: datasets is not installed." in summary
    assert summary.count("5 of 5: it broke") == 8
    assert summary.count("5 of 5: not installed: no such package") == 3
    for name in ("best-by-epochs", "best-by-seconds", "late-bloomers"):
        assert (tmp_path / f"{name}.png").is_file()
        assert (tmp_path / f"{name}.svg").is_file()


def test_without_torch_the_late_bloomers_are_not_measured(monkeypatch):
    monkeypatch.setattr(suite.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="torch is not installed"):
        suite._data("late-bloomers", Path(), None)


def test_shares_are_those_of_the_budgets_epochs():
    kinds = figures.networks()
    slow = next(name for name, kind in kinds.items() if kind == "deep, 24")
    early = next(name for name, kind in kinds.items() if kind == "shallow")
    trained = [slow] * 3 + [early] * 2 * suite.BUDGET
    events = [Event(0.0, name, 1, None) for name in trained]
    found = figures.shares([Result(Run("a", "late-bloomers", 0, ""), events)])
    assert found["deep, 24"] == pytest.approx(3 / suite.BUDGET)
    assert found["shallow"] == pytest.approx(1 - 3 / suite.BUDGET)
    assert list(found) == ["shallow", *(f"deep, {n}" for n in (0, 3, 9, 15, 20, 24))]
