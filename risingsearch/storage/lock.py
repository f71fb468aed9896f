"""Who searches in a directory keeps others out, and lets them look.

The lock is that of ``filelock``, which the kernel drops with the process, however it
ends, and which forked workers do not keep. It cannot be seen without being taken, and
whoever looked would then keep others out. So its holder puts a second lock of the
kernel, of another kind, on the same open file: that one can be asked for, by any
process on any side of a container's wall, and the asking takes nothing. Only Linux has
it. Elsewhere a look takes the lock for an instant, and who wants to hold it waits for a
second.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from risingsearch.errors import RunDirError
from risingsearch.storage.files import PRIVATE, check_plain, open_plain

VISIBLE = sys.platform == "linux"
"""Whether a lock can be seen without taking it."""
PATIENCE = 0.2 if VISIBLE else 1.0
"""Seconds to wait for those who look, where that takes the lock; or else for a worker
that a killed process was about to fork, which has the lock for some milliseconds."""


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock in a file, which is made if it is missing.

    If another process holds it, that is a RunDirError; a file that cannot be used is an
    OSError.
    """
    from filelock import FileLock, Timeout

    _make(path)
    descriptors: list[int] = []
    lock = FileLock(path, on_acquired=descriptors.append)
    try:
        try:
            lock.acquire(timeout=PATIENCE)
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
    """Return whether a process holds the lock in a file; a strange file is an OSError.

    Nobody who wants to hold it is kept out meanwhile.
    """
    try:
        check_plain(path)
    except FileNotFoundError:
        return False
    if VISIBLE:
        with open_plain(path) as file:
            return _is_shown(file.fileno())
    try:
        with held(path):
            return False
    except RunDirError:
        return True


def _make(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
    except FileExistsError:
        check_plain(path)


_FLOCK = "hhqqi"  # of fcntl.h: kind, whence, start, length (0: all), process


def _show(descriptor: int, *, held: bool) -> None:
    """Let others see that this open file is locked, or is not any more."""
    if sys.platform == "linux":
        import fcntl

        kind = fcntl.F_WRLCK if held else fcntl.F_UNLCK
        asked = struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0)
        # On a file system that has no such locks nobody sees it: it still holds.
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
