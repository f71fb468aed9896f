import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.peers import audit, jobs
from benchmarks.peers.jobs import Job, Task
from benchmarks.peers.runners import rising, sklearn
from benchmarks.shared.problems import BUDGET, load

LOUD = """
import os
from benchmarks.peers.jobs import main

def loud(task):
    print("in Python")
    os.system("echo from a child")
    task.trainer(task.candidates[0])()
    return 7

main({"loud": loud})
"""


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


def test_a_search_that_fails_says_why_and_the_others_go_on(tmp_path):
    def fails(task):
        raise ValueError("first line\nsecond")

    searches = {"fails": fails, "works": lambda task: None}
    runs = list(jobs.runs(job(tmp_path, *searches), searches))
    assert [run.error for run in runs] == ["ValueError: first line second", ""] * 2


def test_logs_of_an_earlier_run_are_replaced(tmp_path):
    for _ in range(2):
        [run, _] = jobs.runs(
            job(tmp_path, "a"), {"a": lambda task: task.trainer(task.candidates[0])()}
        )
    assert audit.n_epochs(Path(run.log)) == 1


def test_only_runs_go_to_standard_output(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LOUD, json.dumps(job(tmp_path, "loud")._asdict())],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["own_epochs"] for line in lines] == [7, 7]
    assert "in Python" in done.stderr
    assert "from a child" in done.stderr


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
