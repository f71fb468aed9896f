"""Files that are whole or not there, whenever the process or the machine stops."""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import stat
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import IO

from risingsearch.errors import RunDirError

PRIVATE = 0o600
"""The mode of files that only their owner may read."""


def write_whole(path: Path, parts: Iterable[bytes], mode: int = 0o666) -> None:
    """Write a file, or replace it, so that a crash leaves the old one or the new one.

    It is written beside its name, brought to disk, and then renamed. After an OSError
    the old one is there, or the new one if only its name could not be brought to disk.
    A file that is replaced keeps its mode. What a crash has left beside is found by
    ``left_beside``.
    """
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(beside, "xb", opener=partial(os.open, mode=mode)) as file:
            if path.is_file():
                beside.chmod(stat.S_IMODE(path.stat().st_mode))
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:  # Ctrl-C as well
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def left_beside(path: Path) -> Iterable[Path]:
    """Return what ``write_whole`` has beside a file; ``*`` in its name is any text.

    Remove it only where nobody else can be writing.
    """
    return path.parent.glob(f"{path.name}*.tmp")


def check_owner(folder: Path) -> None:
    """Refuse a folder that another user owns, or that everybody may write to.

    A search unpickles states from its folder, and runs the command named there. A
    folder that does not exist yet is fine; Windows has no permissions to look at.
    """
    if os.name != "posix" or not folder.exists():
        return
    status = folder.stat()
    if status.st_uid != os.geteuid():
        msg = (
            f"{folder} belongs to another user (uid {status.st_uid}), and its files "
            "can run code as you: run chown -R on it, or give a directory that you own"
        )
        raise RunDirError(msg)
    if status.st_mode & stat.S_IWOTH:
        msg = (
            f"everybody may write to {folder} (mode {stat.S_IMODE(status.st_mode):o}), "
            "and its files can run code as you: run chmod -R o-w "
            f"{shlex.quote(str(folder))}"
        )
        raise RunDirError(msg)


_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
}


def check_plain(path: Path) -> None:
    """Raise an OSError where a name is not that of a file; it says what is there."""
    kind = stat.S_IFMT(path.lstat().st_mode)
    if kind != stat.S_IFREG:
        found = _KINDS.get(kind, "a special file")
        raise OSError(errno.EINVAL, f"it is {found} and must be a file")


# Should a link or a pipe come after the check, neither follow nor wait.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def open_plain(path: Path) -> IO[bytes]:
    """Open a file to read; a folder, link or pipe in its place is an OSError."""
    check_plain(path)
    return open(path, "rb", opener=_opened_carefully)


def _opened_carefully(path: str, flags: int) -> int:
    return os.open(path, flags | _CAREFULLY)


def size_now(path: Path) -> int:
    """Return the size of a file as it is, and not as a network file system knew it.

    NFS remembers sizes and names for a while, and asks its server where something is
    opened.
    """
    with open_plain(path) as file:
        return os.fstat(file.fileno()).st_size


def look_anew(folder: Path) -> None:
    """Have a network file system ask which names there are in a folder."""
    if os.name == "posix":
        os.close(os.open(folder, os.O_RDONLY))


def overwrite(path: Path, content: bytes) -> None:
    """Write to the start of a file for its owner alone, and wait for no disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | _CAREFULLY, PRIVATE)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def make_folder(folder: Path, *, parents: bool = False) -> None:
    """Make a folder that only its owner may enter, unless there is one."""
    try:
        folder.mkdir(0o700, parents, exist_ok=True)
    except FileExistsError:
        raise OSError(errno.ENOTDIR, "it must be a folder") from None
    except ValueError:
        raise OSError(errno.EINVAL, "no name can hold a NUL") from None


def sync_tree(folder: Path) -> None:
    """Wait until all files under a folder, and their names, are on disk."""
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            sync_folder(path)
        elif path.is_file() and not path.is_symlink():
            with path.open("rb" if os.name == "posix" else "r+b") as file:
                os.fsync(file.fileno())  # Windows takes it from those who may write
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
