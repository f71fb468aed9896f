"""Exclusive lock on a run directory that readers can inspect without taking it.

The lock is that of ``filelock``: the kernel releases it with the process, and forked
workers do not inherit it. To look at such a lock is to take it for a moment, which
would keep a search out. So on Linux its holder puts a second lock of another kind (an
open file description lock) on the same file, and readers query that one, also across
containers. Elsewhere a look takes the lock briefly, and a search waits for a second.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from risingsearch.errors import RunDirError
from risingsearch.storage.files import PRIVATE, check_regular_file, open_regular_file

VISIBLE = sys.platform == "linux"
"""Whether a lock can be inspected without taking it."""
TIMEOUT = 0.2 if VISIBLE else 1.0
"""Seconds to wait for readers, if they take the lock, or for a worker that a killed
process was about to fork, which has the lock for some milliseconds."""


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock in a file, which is made if it is missing.

    If another process holds it, that is a RunDirError; an unusable file is an OSError.
    """
    from filelock import FileLock, Timeout

    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
    except FileExistsError:
        check_regular_file(path)
    descriptors: list[int] = []
    lock = FileLock(path, on_acquired=descriptors.append)
    try:
        try:
            lock.acquire(timeout=TIMEOUT)
            for descriptor in descriptors:
                _show(descriptor, held=True)
            yield
        finally:
            for descriptor in descriptors:
                _show(descriptor, held=False)
            lock.release()
    except Timeout:
        msg = (
            f"another process searches in {path.parent}: wait for its end, or give "
            "another run_dir"
        )
        raise RunDirError(msg) from None
    except BaseException:  # Ctrl-C, perhaps before the lock was released
        lock.release()
        raise


def is_held(path: Path) -> bool:
    """Whether a process holds the lock in a file; an unusable file is an OSError."""
    try:
        check_regular_file(path)
    except FileNotFoundError:
        return False
    if VISIBLE:
        with open_regular_file(path) as file:
            return _is_shown(file.fileno())
    try:
        with held(path):
            return False
    except RunDirError:
        return True


_FLOCK = "hhqqi"  # of fcntl.h: kind, whence, start, length (0: all), process


def _show(descriptor: int, *, held: bool) -> None:
    """Let readers see that this open file is locked, or is not any more."""
    if sys.platform == "linux":
        import fcntl

        kind = fcntl.F_WRLCK if held else fcntl.F_UNLCK
        asked = struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0)
        # A file system without such locks shows nothing; the lock itself holds.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, asked)


def _is_shown(descriptor: int) -> bool:
    if sys.platform == "linux":
        import fcntl

        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        with contextlib.suppress(OSError):
            found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked)
            return bool(struct.unpack(_FLOCK, found)[0] != fcntl.F_UNLCK)
    return False
