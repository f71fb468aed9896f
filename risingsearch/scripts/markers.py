"""Which scripts run: a file in the folder of an arm, written before its script starts.

The file names the token of the job (see ``processes``). It is locked, and the script
inherits the lock: where the lock is free, nothing of the job is about to start that
does not carry the token yet. So whenever the process of the sweep is killed, the next
one finds all that it has left.
"""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from risingsearch.errors import SetupError
from risingsearch.scripts.processes import (
    PATIENCE,
    POLL_EVERY,
    end_all,
    new_token,
    own_tokens,
)
from risingsearch.storage.files import open_regular_file

try:
    import fcntl
except ModuleNotFoundError as error:
    msg = (
        "searches over scripts need Linux or macOS, and this is Windows: run them in "
        "WSL, or search in Python with RisingSearch"
    )
    raise SetupError(msg) from error

RUNNING = "running.json"
LONGEST = 1000  # bytes of a marker
_TOKEN = re.compile(r"[0-9a-f]{32}")


class Marker:
    """The marker of a job that is about to start.

    Its ``descriptor`` has to be inherited by the script, and is then released here. A
    marker that cannot be written is a ``SetupError``.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / RUNNING
        self.token = new_token()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self.descriptor = os.open(self.path, flags, 0o600)
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            inode = os.fstat(self.descriptor).st_ino
            content = {"token": self.token, "inode": inode}
            os.write(self.descriptor, json.dumps(content).encode())
        except OSError as error:
            msg = (
                f"{self.path} cannot be written ({error}): make room or change the "
                "permissions, and resume"
            )
            raise SetupError(msg) from error

    def release(self) -> None:
        """Close the lock here; the script, if any, keeps it."""
        os.close(self.descriptor)

    def remove(self) -> None:
        """Remove the file, once nothing of the job runs any more."""
        self.path.unlink(missing_ok=True)


def end_left_over(home: Path) -> None:
    """End processes of an arm that a killed sweep left running; remove its marker.

    Only processes with the token are ended. A file that no sweep has
    written is a ``SetupError``.
    """
    path = home / RUNNING
    try:
        with open_regular_file(path, "r+b") as file:
            content = file.read(LONGEST + 1)
            if content:  # else the sweep was killed before it had written it
                _end_job(path, file, *_marked(path, content))
        path.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        msg = f"{path} cannot be used ({error}): remove it, and resume"
        raise SetupError(msg) from error


def _marked(path: Path, content: bytes) -> tuple[str, int]:
    """Return the token and the inode that a marker names."""
    with suppress(ValueError, RecursionError):
        found = json.loads(content) if len(content) <= LONGEST else None
        match found:
            case {"token": str(token), "inode": int(inode)} if _TOKEN.fullmatch(token):
                if token not in own_tokens():
                    return token, inode
    msg = (
        f"{path} is not what a sweep has written there: see that no script of this arm "
        "runs, remove the file, and resume"
    )
    raise SetupError(msg)


def _end_job(path: Path, file: IO[bytes], token: str, inode: int) -> None:
    if inode == os.fstat(file.fileno()).st_ino:  # else it is a copy of a marker
        _wait_for_lock(path, file, token)
        end_all(token)


def _wait_for_lock(path: Path, file: IO[bytes], token: str) -> None:
    """Wait until no process has the lock that the job has inherited."""
    deadline = time.monotonic() + PATIENCE
    while True:
        end_all(token)
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() > deadline:
            msg = (
                f"a process that a script has started still has {path} open, and "
                "cannot be recognised by its environment: end it, and resume"
            )
            raise SetupError(msg)
        time.sleep(POLL_EVERY)
