"""Searches in Python on a real Slurm of one node with two slots."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from risingsearch import RisingSearchCV, SlurmExecutor
from risingsearch.errors import InvalidParameterError
from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch
from risingsearch.search.slurm import executor as executor_module

PROGRAM = """
import os, pathlib, time
from risingsearch import RisingSearch, SlurmExecutor

class Rising:  # which only this program has
    def start(self, params, seed):
        return {"epochs": 0, **params}

    def train(self, state):
        state["epochs"] += 1
        with open("trained", "a") as trained:
            job = os.environ["SLURM_JOB_ID"]
            trained.write(f"{state['top']} {state['epochs']} {job}\\n")
        while pathlib.Path("hang").exists():
            time.sleep(0.05)
        return {"score": state["top"] * (1 - 0.7 ** state["epochs"]), "trained_by": job}

with SlurmExecutor("run/slurm", 2, ["--time=7"]) as executor:
    result = RisingSearch(
        Rising(),
        [{"top": top} for top in (0.5, 0.9, 0.7)],
        budget=9,
        max_epochs=5,
        epochs_per_job=2,
        seed=0,
        executor=executor,
        run_dir="run",
    ).run()
print(result.n_epochs)
"""


@pytest.fixture
def search(tmp_path, monkeypatch):
    """Return a function: start the program of a search."""
    monkeypatch.chdir(tmp_path)
    Path("search.py").write_text(PROGRAM)
    running = []

    def start():
        command = [sys.executable, "search.py"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()


def trained():
    """Return (configuration, epoch) of every epoch that was begun, and its job."""
    path = Path("trained")
    lines = path.read_text().splitlines() if path.exists() else []
    return [tuple(line.split()) for line in lines]


def wait_for(condition, process):
    while not condition():
        assert process.poll() is None
        time.sleep(0.05)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_jobs_of_a_search_that_was_ended_are_recorded_by_the_next(
    slurm_cluster, search, end
):
    Path("hang").touch()
    process = search()
    wait_for(lambda: len(trained()) == 2, process)
    process.send_signal(end)
    process.wait()
    assert len(slurm_cluster.jobs("RUNNING")) == 2
    Path("hang").unlink()
    while slurm_cluster.jobs():
        time.sleep(0.05)
    process = search()
    assert process.communicate()[0].strip() == "9"
    epochs = [line[:2] for line in trained()]
    assert len(set(epochs)) == len(epochs) == 9
    assert len({job for _, _, job in trained()}) >= 5
    assert list(Path("run", "slurm").iterdir()) == []


def test_folds_of_an_estimator_are_trained_in_jobs(
    slurm_cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(executor_module, "ASK_EVERY", 0.5)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    with SlurmExecutor(tmp_path / "slurm", 2) as executor:
        fitted = RisingSearchCV(
            SGDClassifier(),
            {"alpha": [1e-4, 1e-2]},
            budget=4,
            max_epochs=2,
            cv=0.25,
            random_state=0,
            executor=executor,
        ).fit(X, X[:, 0] > 0)
    assert fitted.n_epochs_ == 4
    assert fitted.best_score_ > 0.8


def test_an_error_of_a_configuration_is_its_own(slurm_cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(executor_module, "ASK_EVERY", 0.5)
    monkeypatch.chdir(tmp_path)

    class Fragile:
        def start(self, params, seed):
            return dict(params)

        def train(self, state):
            if state["x"] == 1:
                raise ValueError("x is 1")
            if state["x"] == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return state["x"]

    with SlurmExecutor(tmp_path / "slurm", 2) as executor:
        result: SearchResult = RisingSearch(
            Fragile(),
            [{"x": x} for x in range(4)],
            budget=6,
            max_epochs=2,
            seed=0,
            executor=executor,
        ).run()
    failed = [arm.status == "failed" for arm in result.arms]
    assert failed == [False, True, True, False]
    reasons = [arm.reason for arm in result.arms if arm.status == "failed"]
    assert "x is 1" in reasons[0]
    assert "has ended as FAILED" in reasons[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_jobs": 0},
        {"folder": 3},
        {"options": "--mem=8G"},
        {"options": [8]},
        {"options": 8},
        {"variables": [{"KEY": "1"}]},
    ],
)
def test_wrong_arguments_are_refused_before_slurm_is_asked(tmp_path, wrong):
    with pytest.raises(InvalidParameterError, match=f"{min(wrong)} must "):
        SlurmExecutor(**{"folder": tmp_path, "n_jobs": 2} | wrong)
