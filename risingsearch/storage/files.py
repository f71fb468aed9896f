"""Files that are whole or not there, whenever the process or the machine stops."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file, or replace it, so that a crash leaves the old one or the new one.

    It is written beside its name, brought to disk, and then renamed. After an OSError
    the old one is there, or the new one if only its name could not be brought to disk.
    """
    beside = path.with_name(f"{path.name}.tmp")
    try:
        with beside.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_tree(folder: Path) -> None:
    """Wait until all files under a folder, and their names, are on disk."""
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            sync_folder(path)
        elif path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where the system can do that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
