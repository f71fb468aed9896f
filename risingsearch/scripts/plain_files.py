"""Files and folders that are what they seem: no link, FIFO or device instead."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

from risingsearch.errors import ScriptError, SetupError

if sys.platform == "win32":
    msg = (
        "searches over scripts need Linux or macOS, and this is Windows: run them in "
        "WSL, or search in Python with RisingSearch"
    )
    raise SetupError(msg)

DEEPEST = 100  # folders inside each other
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NotPlainError(OSError):
    """Something else is in the place of a file or a folder."""


def open_plain(path: Path, flags: int, *, within: Path | None = None) -> int:
    """Return a descriptor of a file, or raise an ``OSError`` that says why not.

    A FIFO is not waited for, and a link is not followed; with ``within``, a folder
    above the file, neither are links between the two.
    """
    above = path.parent if within is None else within
    *folders, name = path.relative_to(above).parts
    at = os.open(above, _FOLDER)
    try:
        for folder in folders:
            outer = at
            at = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=outer)
            os.close(outer)
        try:  # before it is opened, which may do something to a device
            _check_file(path, os.stat(name, dir_fd=at, follow_symlinks=False))
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
        safely = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, safely, 0o600, dir_fd=at)
    finally:
        os.close(at)
    try:
        _check_file(path, os.fstat(descriptor))
    except NotPlainError:
        os.close(descriptor)
        raise
    return descriptor


def make_folder(path: Path) -> None:
    """Make a folder for its owner alone; a link to one in its place is an error."""
    for folder in (path.parent, path):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_folder(path)


def check_folder(path: Path) -> None:
    """Raise an error if something else is there."""
    mode = os.lstat(path).st_mode
    if not stat.S_ISDIR(mode):
        raise _other_kind(path, mode, "a folder")


def check_tree(folder: Path) -> None:
    """Raise a ``ScriptError`` if a folder holds what cannot be copied.

    That is all but files, folders and links, which are copied as links.
    """
    left = [(folder, 0)]
    while left:
        inner, depth = left.pop()
        if depth > DEEPEST:
            msg = f"the script's checkpoint has folders more than {DEEPEST} deep"
            raise ScriptError(msg)
        with os.scandir(inner) as entries:
            for entry in entries:
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    left.append((Path(entry.path), depth + 1))
                elif not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                    name = os.path.relpath(entry.path, folder)
                    msg = (
                        f"the script has left {name!r} in its checkpoint directory, "
                        f"which is {_kind(mode)}: a checkpoint holds files, folders "
                        "and links"
                    )
                    raise ScriptError(msg)


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def _check_file(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _other_kind(path, status.st_mode, "a file")


def _other_kind(path: Path, mode: int, wanted: str) -> NotPlainError:
    problem = f"is {_kind(mode)}, and has to be {wanted}"
    return NotPlainError(errno.EINVAL, problem, str(path))


def _kind(mode: int) -> str:
    return next((kind for is_one, kind in _KINDS if is_one(mode)), "a file")
