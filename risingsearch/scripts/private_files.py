"""JSON files of a run directory that only its owner reads, whole or not at all.

They hold the arguments of the last ``run`` and may differ the next time. A file that is
lost is written anew by the next ``run`` with the sweep's file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from risingsearch.errors import RunDirError
from risingsearch.storage.files import make_folder, read_digested, write_digested


def save(path: Path, values: Any) -> None:
    """Write values, with what tells whether they are damaged."""
    content = json.dumps(values).encode()
    try:
        make_folder(path.parent)
        write_digested(path, content)
    except OSError as error:
        msg = (
            f"{path} cannot be written ({error.strerror}): make room or change the "
            "permissions, and run the sweep again"
        )
        raise RunDirError(msg) from error


def load(path: Path, what: str) -> Any:
    """Return the value that ``save`` wrote; any other file is a ``RunDirError``."""
    try:
        return json.loads(read_digested(path))
    except OSError as error:
        raise lost(path, what, f"cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise lost(path, what, "is damaged") from error


def lost(path: Path, what: str, problem: str) -> RunDirError:
    """Return the error for a file that is of no use any more."""
    return RunDirError(
        f"{path}, with {what}, {problem}: continue with risingsearch run SWEEP.yaml "
        f"--run-dir {path.parent}, which writes it anew"
    )
