"""The program of a job: also if no search waits for it, or if it is started twice."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from risingsearch.arms import Job
from risingsearch.scripts.slurm import SlurmTrainable
from risingsearch.search.slurm.slices import Parcel, made_slice, written
from risingsearch.search.training import Task

SCRIPT = """
import json, os, pathlib, time
pathlib.Path("trained").open("a").write("x")
print(json.dumps({"epoch": 1, "score": 0.5, "key": os.environ.get("KEY")}))
while pathlib.Path("hang").exists():
    time.sleep(0.01)
"""


@pytest.fixture
def submit(tmp_path):
    """Return a function: a slice as it is before its job is submitted."""
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "train.py"]
    arms = tmp_path / "run" / "arms"
    trainable = SlurmTrainable(command, arms, cwd=str(tmp_path))
    trainable.arms = {77: 4}
    home = tmp_path / "run" / "slurm"
    task = Task(
        job=Job(4, 0, 1, 0),
        params={"lr": 0.1},
        seed=77,
        state=None,
        as_bytes=True,
        may_retry=False,
        sign=1.0,
        best_reward=0.0,
    )

    def make(**variables):
        return made_slice(home, Parcel(written(home, trainable), task, variables))

    return make


@pytest.fixture
def submitted(submit):
    return submit()


def command_of(submitted):
    module = "risingsearch.search.slurm.job"
    return [sys.executable, "-P", "-m", module, str(submitted.folder)]


def started(submitted):
    done = subprocess.run(
        command_of(submitted), capture_output=True, text=True, check=True
    )
    return done.stdout


def test_it_leaves_what_the_script_has_reported_and_trains_it_once(submitted, tmp_path):
    started(submitted)
    outcome = submitted.outcome
    assert outcome.report.scores == (0.5,)
    assert outcome.report.metrics == ({"key": None},)
    assert 0.0 < outcome.elapsed < 3600.0
    left = submitted.noted["left"]
    assert (tmp_path / "run" / "arms" / "arm-000004" / left["work"]).is_dir()
    assert "this slice is trained" in started(submitted)
    assert (tmp_path / "trained").read_text() == "x"


def test_that_is_not_waited_for_it_trains_nothing(submitted, tmp_path):
    folder = submitted.folder
    submitted.close()
    assert not folder.exists()
    assert "does not wait for this slice" in started(submitted)
    assert not (tmp_path / "trained").exists()


def test_told_to_end_it_ends_the_script_and_leaves_nothing(submitted, tmp_path):
    (tmp_path / "hang").touch()
    job = subprocess.Popen(command_of(submitted), stderr=subprocess.DEVNULL)
    marker = None
    while marker is None:
        assert job.poll() is None
        trained = (tmp_path / "trained").exists()
        marker = next(Path("/proc").glob(f"{job.pid}/task/*/children"), None)
        marker = marker if trained and marker.read_text().strip() else None
    script = int(marker.read_text().split()[0])
    job.send_signal(signal.SIGTERM)
    assert job.wait() != 0
    assert not Path(f"/proc/{script}").exists()
    assert submitted.outcome is None
    assert submitted.noted["signalled_to_end"]


def test_a_job_has_its_variables_from_a_private_file(submit):
    own = submit(KEY="second")
    assert b"second" not in (own.folder / "slice.json").read_bytes()
    assert all(path.stat().st_mode & 0o077 == 0 for path in own.folder.iterdir())
    started(own)
    assert own.outcome.report.metrics[0]["key"] == "second"


def test_a_script_that_fails_is_an_outcome(submitted, tmp_path):
    (tmp_path / "train.py").write_text("raise SystemExit(3)")
    started(submitted)
    outcome = submitted.outcome
    assert type(outcome.report.failure).__name__ == "ScriptError"
    assert "ended with exit code 3" in str(outcome.report.failure)
    assert outcome.report.scores == ()


def test_a_trainable_that_cannot_be_read_on_its_node_ends_the_search(submitted):
    submitted.parcel.trainable.unlink()
    started(submitted)
    assert isinstance(submitted.outcome, FileNotFoundError)
    assert submitted.trained is None
