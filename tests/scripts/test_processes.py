"""Whatever a job has started is found by its token, and nothing else is."""

import os
import shutil
import subprocess
import sys

import psutil
import pytest

from risingsearch.errors import SetupError
from risingsearch.scripts import processes
from risingsearch.scripts.processes import (
    RUNNING,
    TOKENS,
    Marker,
    end_all,
    end_left_over,
)

FORKS = """
import os, sys, time
for _ in range(5):  # each in a session of its own; only the last one stays
    if os.fork():
        os._exit(0)
    os.setsid()
open(sys.argv[1], "w").write(str(os.getpid()))
os.rename(sys.argv[1], sys.argv[2])
time.sleep(600)
"""


@pytest.fixture
def sleeper():
    """Return a function that starts a process with some variables."""
    started = []

    def start(variables):
        command = ["sleep", "600"]
        process = subprocess.Popen(command, env=os.environ | variables)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def marker(tmp_path):
    return Marker(tmp_path)


def test_only_those_with_the_token_are_ended(tmp_path, marker, sleeper):
    (tmp_path / "other").mkdir()
    other = Marker(tmp_path / "other")
    mine = [sleeper(marker.variables) for _ in range(3)]
    inner = sleeper({TOKENS: f"{marker.token} {other.token}"})  # of a sweep inside
    similar = [
        sleeper(other.variables),
        sleeper({TOKENS: f"{marker.token}0"}),
        sleeper({"OTHER": marker.token}),
    ]
    assert marker.path.stat().st_mode & 0o777 == 0o600
    end_left_over(tmp_path)
    assert [process.wait() for process in [*mine, inner]] == [-9] * 4
    assert [process.poll() for process in similar] == [None] * 3
    assert not marker.path.exists()
    end_left_over(tmp_path)  # there is nothing to do


def test_those_that_have_left_their_family_are_ended(tmp_path, marker):
    paths = [str(tmp_path / "new"), str(tmp_path / "pid")]
    command = [sys.executable, "-c", FORKS, *paths]
    subprocess.run(command, env=os.environ | marker.variables, check=True)
    while not os.path.exists(paths[1]):
        pass
    last = psutil.Process(int((tmp_path / "pid").read_text()))
    end_all(marker.token)
    assert not processes.is_alive(last)


def test_one_that_has_just_started_is_found(marker, sleeper):
    for _ in range(20):
        assert processes._tokens(sleeper(marker.variables).pid) == [marker.token]


def test_one_that_starts_others_meanwhile_is_ended_with_all_of_them(marker):
    program = """
        i=0
        while [ $i -lt 500 ]; do setsid sleep 600 & i=$((i + 1)); done; sleep 600
    """
    command = ["sh", "-c", program]
    started = subprocess.Popen(command, env=os.environ | marker.variables)
    while len(psutil.Process(started.pid).children()) < 3:
        pass
    end_all(marker.token)
    started.wait()
    assert list(processes._carriers(marker.token)) == []


def test_one_that_does_not_end_is_named(monkeypatch, marker, sleeper):
    monkeypatch.setattr(processes, "PATIENCE", 0.0)
    monkeypatch.setattr(psutil.Process, "kill", lambda self: None)
    process = sleeper(marker.variables)
    with pytest.raises(SetupError, match=rf"cannot be ended \({process.pid}\)"):
        end_all(marker.token)


def test_the_variable_names_the_sweeps_around_too(marker, monkeypatch):
    monkeypatch.setenv(TOKENS, "outer")
    assert marker.variables == {TOKENS: f"outer {marker.token}"}


def test_a_marker_that_was_not_written_yet_is_removed(tmp_path):
    (tmp_path / RUNNING).touch()
    end_left_over(tmp_path)
    assert not (tmp_path / RUNNING).exists()


def test_the_copy_of_a_directory_ends_nothing_of_the_original(tmp_path, sleeper):
    (tmp_path / "one").mkdir()
    process = sleeper(Marker(tmp_path / "one").variables)
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    end_left_over(tmp_path / "copy")
    assert process.poll() is None
    assert not (tmp_path / "copy" / RUNNING).exists()
    (tmp_path / "one").rename(tmp_path / "moved")
    end_left_over(tmp_path / "moved")
    assert process.wait() == -9


@pytest.mark.parametrize("content", ["[]", "{", '{"token": "PATH"}'])
def test_a_marker_that_no_sweep_has_written(tmp_path, content):
    path = tmp_path / RUNNING
    path.write_text(content)
    with pytest.raises(SetupError, match=r"cannot be used .* remove the file, and"):
        end_left_over(tmp_path)
    assert path.exists()
