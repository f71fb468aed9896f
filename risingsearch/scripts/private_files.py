"""JSON files of a run directory that only its owner reads, whole or not at all.

They hold what the last ``run`` was given and may differ the next time. A file that is
lost is written anew by the next ``run`` with the sweep's file.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from risingsearch.errors import RunDirError
from risingsearch.scripts.plain_files import open_plain
from risingsearch.storage.files import PRIVATE, make_folder, write_whole

LARGEST = 1 << 22  # bytes of a file


def save(path: Path, values: Any) -> None:
    """Write values, with what tells whether they are damaged."""
    content = json.dumps(values).encode()
    checksum = hashlib.sha256(content).hexdigest().encode()
    try:
        make_folder(path.parent, parents=True)
        write_whole(path, (checksum + b"\n", content), PRIVATE)
    except OSError as error:
        msg = (
            f"{path} cannot be written ({error.strerror}): make room or change the "
            "permissions, and run the sweep again"
        )
        raise RunDirError(msg) from error


def load(path: Path, what: str) -> Any:
    """Return what ``save`` wrote; a file that is anything else is a ``RunDirError``."""
    try:
        with open(open_plain(path, os.O_RDONLY), "rb") as file:
            checksum, _, content = file.read(LARGEST).partition(b"\n")
    except OSError as error:
        raise lost(path, what, f"cannot be read ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest().encode() != checksum:
        raise lost(path, what, "is damaged")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise lost(path, what, "is damaged") from error


def lost(path: Path, what: str, problem: str) -> RunDirError:
    """Return the error for a file that is of no use any more."""
    return RunDirError(
        f"{path}, with {what}, {problem}: go on with risingsearch run SWEEP.yaml "
        f"--run-dir {path.parent}, which writes it anew"
    )
