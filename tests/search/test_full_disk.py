"""On a small file system, full or read-only, a search stops and later goes on.

Where the kernel lets no user mount one for a process (containers often forbid it), the
same errors are simulated, at every write, by ``TestWritesThatFail`` of
``test_resume.py``.
"""

import subprocess
import sys
import tempfile
import textwrap

import pytest

SEARCH = """
    import subprocess, sys
    from pathlib import Path
    from risingsearch import RisingSearch
    from risingsearch.errors import RunDirError
    from risingsearch.search.trainable import Functions

    def start(params, seed):
        return {"epochs": 0, "weights": bytes(8000), **params}

    def train(state):
        state["epochs"] += 1
        return state["top"] * state["epochs"] / (state["epochs"] + 2)

    def search(run_dir):
        found = RisingSearch(
            Functions(start, train),
            [{"top": 1 / (i + 1)} for i in range(40)],
            policy="round-robin", budget=90, max_epochs=9, seed=0, run_dir=run_dir,
        ).run()
        return [(row["arm"], row["epoch"], row["score"]) for row in found.history]

    def mount(*options):
        subprocess.run(["mount", *options, "disk"], check=True)

    def refused():
        try:
            search("disk/run")
        except RunDirError as error:
            print(type(error).__name__, error, file=sys.stderr)
            return True
        return False

    Path("disk").mkdir()
"""
OWN_MOUNTS = ["unshare", "--map-root-user", "--mount"]


def can_mount():
    """Return whether this system lets a process have a file system of its own."""
    command = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "none", tempfile.gettempdir()]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(
    not can_mount(),
    reason="this system lets no process mount a file system of its own",
)


@pytest.fixture
def searching(tmp_path):
    """Return what a program says that may mount file systems, and no one else sees."""

    def run(program):
        whole = textwrap.dedent(SEARCH) + textwrap.dedent(program)
        done = subprocess.run(
            [*OWN_MOUNTS, sys.executable, "-c", whole],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    return run


def test_a_full_disk_loses_nothing(searching):
    said = searching("""
        mount("-t", "tmpfs", "-o", "size=150k", "none")
        assert refused()
        assert refused()
        n_lines = len(Path("disk/run/journal.jsonl").read_text().splitlines())
        assert n_lines > 5
        mount("-o", "remount,size=20m")
        assert search("disk/run") == search("elsewhere")
        assert len(Path("disk/run/journal.jsonl").read_text().splitlines()) >= 91
    """)
    assert said.count("No space left on device") == 2
    assert "make room" in said


def test_a_read_only_directory(searching):
    said = searching("""
        mount("-t", "tmpfs", "none")
        mount("-o", "remount,ro")
        assert refused()
        mount("-o", "remount,rw")
        whole = search("disk/run")
        mount("-o", "remount,ro")
        assert refused()
        assert len(RisingSearch.saved_result("disk/run").history) == len(whole)
    """)
    assert said.count("Read-only file system") == 2
    assert "change the permissions" in said
