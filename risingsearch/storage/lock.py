"""Exclusive lock on a run directory that readers can inspect.

The lock is that of ``filelock``: the kernel releases it with the process, and forked
workers do not inherit it. A reader tries to share it for a moment, so a search waits
a little for readers.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from risingsearch.errors import RunDirError
from risingsearch.storage.files import PRIVATE, open_regular_file

TIMEOUT = 1.0
"""Seconds to wait for readers, and for a worker that a killed process was about to
fork, which has the lock for some milliseconds."""


@contextmanager
def held(path: Path, timeout: float = TIMEOUT) -> Iterator[None]:
    """Hold the lock in a file; a RunDirError if another process holds it."""
    from filelock import FileLock, Timeout

    lock = FileLock(path, mode=PRIVATE)
    try:
        try:
            lock.acquire(timeout=timeout, poll_interval=0.01)
            yield
        finally:
            lock.release()
    except Timeout:
        raise RunDirError(
            f"another process searches in {path.parent}: wait for its end, or give "
            "another run_dir"
        ) from None
    except BaseException:  # Ctrl-C, perhaps before the lock was released
        lock.release()
        raise


def is_held(path: Path) -> bool:
    """Whether a process holds the lock in a file; an unusable file is an OSError."""
    if not path.exists():
        return False
    if os.name == "posix":
        import fcntl

        with open_regular_file(path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False
    try:
        with held(path):
            return False
    except RunDirError:
        return True
