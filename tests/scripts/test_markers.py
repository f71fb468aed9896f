"""What a killed sweep has left is ended, and a marker can have nothing else ended."""

import os
import shutil
import subprocess
import sys

import psutil
import pytest

from risingsearch.errors import SetupError
from risingsearch.scripts import markers
from risingsearch.scripts.markers import RUNNING, Marker, end_left_over
from risingsearch.scripts.processes import TOKENS, variables_with


@pytest.fixture
def script(tmp_path):
    """Return a function that starts what a killed sweep has left running."""
    started = []

    def start(variables, *descriptors):
        process = subprocess.Popen(
            ["sleep", "600"], env=os.environ | variables, pass_fds=descriptors
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_what_carries_the_token_of_a_marker_is_ended(tmp_path, script):
    marker = Marker(tmp_path)
    assert marker.path.stat().st_mode & 0o777 == 0o600
    process = script(variables_with(marker.token), marker.descriptor)
    marker.release()
    end_left_over(tmp_path)
    assert process.wait() == -9
    assert not marker.path.exists()
    end_left_over(tmp_path)  # there is nothing to do


BECOMES = """
import os, sys
open(sys.argv[1], "w").close()
sys.stdin.read()  # until it is told to go on
os.execve("/bin/sleep", ["sleep", "600"], {sys.argv[2]: sys.argv[3]})
"""


def test_one_that_does_not_carry_it_yet_is_waited_for(tmp_path, monkeypatch):
    """Between fork and exec a script has the lock, and not its own environment."""
    marker = Marker(tmp_path)
    command = [sys.executable, "-c", BECOMES, str(tmp_path / "is_there")]
    script = subprocess.Popen(
        [*command, TOKENS, marker.token],
        stdin=subprocess.PIPE,
        pass_fds=[marker.descriptor],
    )
    marker.release()
    while not (tmp_path / "is_there").exists():
        pass
    n_looks = 0
    end_all = markers.end_all

    def looked(token):
        nonlocal n_looks
        n_looks += 1
        end_all(token)
        if n_looks == 3:
            assert script.poll() is None
            script.stdin.close()

    monkeypatch.setattr(markers, "end_all", looked)
    end_left_over(tmp_path)
    assert script.wait() == -9
    assert n_looks > 3


def test_one_that_never_carries_it_is_an_error(tmp_path, script, monkeypatch):
    monkeypatch.setattr(markers, "PATIENCE", 0.0)
    marker = Marker(tmp_path)
    process = script({}, marker.descriptor)
    marker.release()
    with pytest.raises(SetupError, match=r"still has .*running\.json open"):
        end_left_over(tmp_path)
    assert process.poll() is None
    assert marker.path.exists()


def test_a_marker_that_was_not_written_yet_is_removed(tmp_path):
    (tmp_path / RUNNING).touch()
    end_left_over(tmp_path)
    assert not (tmp_path / RUNNING).exists()


def test_the_copy_of_a_directory_ends_nothing_of_the_original(tmp_path, script):
    (tmp_path / "one").mkdir()
    marker = Marker(tmp_path / "one")
    process = script(variables_with(marker.token), marker.descriptor)
    marker.release()
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    end_left_over(tmp_path / "copy")
    assert process.poll() is None
    assert not (tmp_path / "copy" / RUNNING).exists()
    (tmp_path / "one").rename(tmp_path / "moved")
    end_left_over(tmp_path / "moved")
    assert process.wait() == -9


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "[" * 10**6,
        '{"token": "PATH", "inode": 1}',
        '{"token": "%s", "inode": 1.5}' % ("a" * 32),
        '{"token": "%s", "inode": INODE}' % ("b" * 32),  # of this process
    ],
)
def test_a_marker_that_no_sweep_has_written(tmp_path, content, monkeypatch):
    monkeypatch.setattr(psutil.Process, "kill", lambda self: pytest.fail("killed"))
    monkeypatch.setenv(TOKENS, "b" * 32)
    path = tmp_path / RUNNING
    path.touch()
    path.write_text(content.replace("INODE", str(path.stat().st_ino)))
    with pytest.raises(SetupError, match="is not what a sweep has written there"):
        end_left_over(tmp_path)
    assert path.exists()


@pytest.mark.parametrize("kind", ["folder", "named pipe", "symbolic link"])
def test_something_else_in_the_place_of_a_marker(tmp_path, kind):
    path = tmp_path / RUNNING
    if kind == "folder":
        path.mkdir()
    elif kind == "named pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(
        SetupError, match=f"cannot be used .*it is a {kind} and must be"
    ):
        end_left_over(tmp_path)
