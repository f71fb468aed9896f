"""The program of a job: also if no search waits for it, or if it is started twice."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from risingsearch.scripts.slurm.slices import SlurmSlice, made_slice
from risingsearch.storage.files import write_digested

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
    (tmp_path / "run" / "arms" / "arm-000004").mkdir(parents=True)
    facts = {
        "command": [sys.executable, "train.py"],
        "folder": str(tmp_path / "run" / "arms"),
        "cwd": str(tmp_path),
    }

    def make(private=None, slot=0):
        part = SlurmSlice(4, 0, 77, {"lr": 0.1}, 0, 0, 1, slot)
        own = facts | {"environment": private and str(private)}
        return made_slice(tmp_path / "run" / "slurm", own, part)

    return make


@pytest.fixture
def submitted(submit):
    return submit()


def command_of(submitted):
    module = "risingsearch.scripts.slurm.job"
    return [sys.executable, "-P", "-m", module, str(submitted.folder)]


def started(submitted):
    done = subprocess.run(
        command_of(submitted), capture_output=True, text=True, check=True
    )
    return done.stdout


def test_it_leaves_what_the_script_has_reported_and_trains_it_once(submitted, tmp_path):
    started(submitted)
    outcome = submitted.outcome
    assert outcome.results == [{"score": 0.5, "key": None}]
    assert 0.0 < outcome.seconds < 3600.0
    assert (tmp_path / "run" / "arms" / "arm-000004" / outcome.work).is_dir()
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


def test_secret_variables_come_from_the_private_file(submit, tmp_path):
    private = tmp_path / "run" / "sweep.json"
    values = {"environment": [{"KEY": "first"}, {"KEY": "second"}]}
    write_digested(private, json.dumps(values).encode())
    own = submit(private, slot=1)
    assert b"second" not in (own.folder / "slice.json").read_bytes()
    started(own)
    assert own.outcome.results[0]["key"] == "second"


def test_a_script_that_fails_is_an_outcome(submitted, tmp_path):
    (tmp_path / "train.py").write_text("raise SystemExit(3)")
    started(submitted)
    outcome = submitted.outcome
    assert outcome.error == "ScriptError"
    assert "ended with exit code 3" in outcome.message
    assert outcome.results == []
