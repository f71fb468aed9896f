from pathlib import Path

import pytest

from benchmarks.peers import audit, jobs
from benchmarks.peers.jobs import Job, Task
from benchmarks.peers.runners import rising, sklearn
from benchmarks.shared.problems import BUDGET, load


def job(tmp_path, *searches):
    return Job("digits", list(searches), [3, 4], str(tmp_path))


@pytest.fixture
def task(tmp_path):
    return Task(job(tmp_path), 0, tmp_path / "log", *load("digits"))


def test_every_search_runs_with_every_seed(tmp_path):
    def one_epoch(task):
        task.trainer(task.candidates[task.seed])()
        return 1

    runs = list(jobs.runs(job(tmp_path, "a", "b"), dict.fromkeys("ab", one_epoch)))
    assert [(run.search, run.seed) for run in runs] == [
        ("a", 3),
        ("b", 3),
        ("a", 4),
        ("b", 4),
    ]
    assert len({run.log for run in runs}) == 4
    for run in runs:
        assert (run.own_epochs, run.error) == (1, "")
        trained, scored = audit.read(Path(run.log))
        assert run.begin <= trained.time <= scored.time <= run.begin + run.seconds


def test_budget_is_spent_when_the_audit_says_so(task, monkeypatch):
    monkeypatch.setattr(jobs, "BUDGET", 2)
    train = task.trainer(task.candidates[0])
    spent = []
    for _ in range(2):
        train()
        spent.append(task.budget_spent)
    assert spent == [False, True]


def test_searches_of_this_environment_stay_within_the_budget(task):
    counts = []
    for search in (rising.auto, sklearn.halving, sklearn.in_full):
        task.log.unlink(missing_ok=True)
        search(task)
        counts.append(audit.n_epochs(task.log))
    assert counts == [BUDGET, 264, BUDGET]
