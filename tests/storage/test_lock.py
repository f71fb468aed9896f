"""One process at a time, with any number of readers, however the last one ended."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from risingsearch.errors import RunDirError
from risingsearch.storage.lock import held, is_held

HOLD = """
import sys
from pathlib import Path
from risingsearch.storage.lock import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
# A search on forked workers; every one of them has done something once it is killed.
# A pool that nobody holds any more sends its workers home.
KILLED = """
import os, signal, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from risingsearch.storage.lock import held

context = get_context("fork")
together = context.Barrier(2)

def work(_):
    together.wait()
    return os.getpid()

pool = ProcessPoolExecutor(2, mp_context=context)
with held(Path(sys.argv[1])):
    print(*pool.map(work, range(2)), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
LOOK = """
import sys
from pathlib import Path
from risingsearch.storage.lock import is_held
print("looking", flush=True)
while True:
    is_held(Path(sys.argv[1]))
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


@contextmanager
def process(program, path):
    """Yield a process after its first line."""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        try:
            yield other, other.stdout.readline()
        finally:
            other.kill()


def test_it_is_seen_while_it_is_held(path):
    assert not is_held(path)
    assert not path.exists()
    for _ in range(3):
        with held(path):
            assert is_held(path)
        assert not is_held(path)


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_it_is_seen_until_its_process_ends(path, end):
    with process(HOLD, path) as (other, said):
        assert said == "held\n"
        assert is_held(path)
        with pytest.raises(RunDirError, match="another process searches"):
            held(path).__enter__()
        assert is_held(path)
        if end == "kill":
            other.kill()
        other.communicate("")
    assert not is_held(path)
    with held(path):
        assert is_held(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_forked_workers_of_a_killed_search_do_not_hold_it(path):
    with process(KILLED, path) as (search, said):
        workers = [int(pid) for pid in said.split()]
        assert search.wait() == -signal.SIGKILL
        try:
            for pid in workers:
                os.kill(pid, 0)  # it lives
            assert len(set(workers)) == 2
            assert not is_held(path)
            with held(path):
                assert is_held(path)
        finally:
            for pid in workers:
                os.kill(pid, signal.SIGKILL)


def test_whoever_looks_keeps_nobody_out(path):
    over = threading.Event()
    n_looks = []

    def look():
        n = 0
        while not over.is_set():
            is_held(path)
            n += 1
        n_looks.append(n)

    threads = [threading.Thread(target=look) for _ in range(2)]
    with process(LOOK, path) as (_, said):
        assert said == "looking\n"
        for thread in threads:
            thread.start()
        try:
            for _ in range(100):
                with held(path):
                    pass
        finally:
            over.set()
            for thread in threads:
                thread.join()
    assert all(n > 0 for n in n_looks)


def test_only_its_owner_may_read_it_unless_it_was_there(path):
    with held(path):
        assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with held(path):
        assert path.stat().st_mode & 0o777 == 0o644
