"""Whatever a job has started is found by its token, and nothing else is."""

import math
import os
import subprocess
import sys
from itertools import count
from shutil import which

import psutil
import pytest

from risingsearch.errors import SetupError
from risingsearch.scripts import processes
from risingsearch.scripts.processes import TOKENS, end_all, new_token, variables_with

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


def test_only_those_with_the_token_are_ended(sleeper):
    one, other = new_token(), new_token()
    mine = [sleeper(variables_with(one)) for _ in range(3)]
    inner = sleeper({TOKENS: f"{one} {other}"})  # of a sweep inside a script
    similar = [
        sleeper(variables_with(other)),
        sleeper({TOKENS: f"{one}0"}),
        sleeper({"OTHER": one}),
    ]
    end_all(one)
    assert [process.wait() for process in [*mine, inner]] == [-9] * 4
    assert [process.poll() for process in similar] == [None] * 3


def test_those_that_have_left_their_family_are_ended(tmp_path):
    token = new_token()
    paths = [str(tmp_path / "new"), str(tmp_path / "pid")]
    command = [sys.executable, "-c", FORKS, *paths]
    subprocess.run(command, env=os.environ | variables_with(token), check=True)
    while not os.path.exists(paths[1]):
        pass
    last = psutil.Process(int((tmp_path / "pid").read_text()))
    end_all(token)
    assert not processes.is_alive(last)


def test_one_that_starts_others_meanwhile_is_ended_with_all_of_them(tmp_path):
    token = new_token()
    program = """
        i=0
        while [ $i -lt 500 ]; do setsid sleep 600 & i=$((i + 1)); done; sleep 600
    """
    command = ["sh", "-c", program]
    started = subprocess.Popen(command, env=os.environ | variables_with(token))
    while len(psutil.Process(started.pid).children()) < 3:
        pass
    end_all(token)
    started.wait()
    assert list(processes._carriers(token)) == []


@pytest.mark.parametrize("looks", [{0}, {1}, {0, 1}, {1, 2, 3}], ids=str)
def test_one_that_runs_program_after_program_is_not_overlooked(
    monkeypatch, sleeper, looks
):
    """Its environment is not there at some of the looks at it."""
    token = new_token()
    process = sleeper(variables_with(token))
    content, number = processes._content, count()

    def now_and_then(path):
        if path == f"/proc/{process.pid}/environ" and next(number) in looks:
            return b""
        return content(path)

    monkeypatch.setattr(processes, "_content", now_and_then)
    end_all(token)
    assert process.wait() == -9


def test_one_without_an_environment_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(processes, "UNSURE", math.inf)
    process = subprocess.Popen([which("sleep"), "600"], env={})
    end_all(new_token())
    assert process.poll() is None
    process.kill()
    process.wait()


def test_one_that_does_not_end_is_named(monkeypatch, sleeper):
    monkeypatch.setattr(processes, "PATIENCE", 0.0)
    monkeypatch.setattr(psutil.Process, "kill", lambda self: None)
    process = sleeper(variables_with(token := new_token()))
    with pytest.raises(SetupError, match=rf"cannot be ended \({process.pid}\)"):
        end_all(token)


def test_the_variable_names_the_sweeps_around_too(monkeypatch):
    monkeypatch.setenv(TOKENS, "outer")
    assert variables_with("inner") == {TOKENS: "outer inner"}
