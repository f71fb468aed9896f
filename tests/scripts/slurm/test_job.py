"""What a job does where nobody waits for it, or where it was started twice."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from risingsearch.scripts.slurm.batches import Batch, Slice, make_home, rung_at
from risingsearch.scripts.slurm.trainable import facts_of

SCRIPT = """
import json, os, pathlib, time
pathlib.Path("trained").open("a").write("x")
print(json.dumps({"epoch": 1, "score": 0.5, "key": os.environ.get("KEY")}))
while pathlib.Path("hang").exists():
    time.sleep(0.01)
"""


@pytest.fixture
def batch(tmp_path):
    """Return a batch of one slice, as it is before it is submitted."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "run" / "arms" / "arm-000004").mkdir(parents=True)
    options = {
        "metric": "score",
        "report_file": None,
        "timeout": None,
        "cwd": tmp_path,
        "cost": None,
    }
    command = [sys.executable, "train.py"]
    facts = facts_of(options, command, tmp_path / "run" / "arms", None)
    part = Slice(4, 0, 77, {"lr": 0.1}, 0, 0, 1)
    return Batch.made(make_home(tmp_path / "run"), facts, [part])


def command_of(batch):
    module = "risingsearch.scripts.slurm.job"
    return [sys.executable, "-P", "-m", module, str(batch.folder), "0"]


def started(batch):
    done = subprocess.run(command_of(batch), capture_output=True, text=True, check=True)
    return done.stdout


def test_it_leaves_what_the_script_has_reported_and_rings(batch, tmp_path):
    before = rung_at(batch.folder.parent)
    started(batch)
    outcome = batch.outcome(0)
    assert outcome.results == [{"score": 0.5, "key": None}]
    assert 0.0 < outcome.seconds < 3600.0
    assert (tmp_path / "run" / "arms" / "arm-000004" / outcome.work).is_dir()
    assert rung_at(batch.folder.parent) != before


def test_started_again_once_it_is_through_it_trains_nothing(batch, tmp_path):
    started(batch)
    assert "this slice is through" in started(batch)
    assert (tmp_path / "trained").read_text() == "x"


def test_where_nobody_waits_it_trains_nothing(batch, tmp_path):
    folder = batch.folder
    batch.close(0)
    assert not folder.exists()
    assert "nobody waits" in started(batch)
    assert not (tmp_path / "trained").exists()


def test_what_nobody_waits_for_is_not_left(batch):
    spec = batch.read()
    batch.path(0).unlink()
    batch.leave(0, None)
    assert not batch.path(0).exists()
    assert batch.read() == spec


def test_told_to_end_it_ends_the_script_and_leaves_nothing(batch, tmp_path):
    (tmp_path / "hang").touch()
    job = subprocess.Popen(command_of(batch), stderr=subprocess.DEVNULL)
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
    assert batch.outcome(0) is None
    assert batch.has_begun(0)
    assert batch.was_told(0)


def test_secret_variables_come_from_the_private_file(batch, tmp_path):
    from risingsearch.scripts import environment

    values = [{"KEY": "first"}, {"KEY": "second"}]
    environment.save(tmp_path / "run", values, "salt")
    facts, [part] = batch.read()
    facts["environment"] = str(tmp_path / "run" / environment.FILE)
    own = Batch.made(batch.folder.parent, facts, [part._replace(slot=1)])
    assert "second" not in (own.folder / "slices.json").read_text()
    started(own)
    assert own.outcome(0).results[0]["key"] == "second"


def test_a_script_that_fails_is_an_outcome(batch, tmp_path):
    (tmp_path / "train.py").write_text("raise SystemExit(3)")
    started(batch)
    outcome = batch.outcome(0)
    assert outcome.error == "ScriptError"
    assert "ended with exit code 3" in outcome.message
    assert json.loads(batch.path(0).read_text())["outcome"]["results"] == []
