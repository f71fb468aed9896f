"""Files and folders of scripts: no link, pipe or device in the place of one."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

from risingsearch.errors import ScriptError, SetupError
from risingsearch.storage import files
from risingsearch.storage.files import check_regular_file

if sys.platform == "win32":
    msg = (
        "searches over scripts need Linux or macOS, and this is Windows: run them in "
        "WSL, or search in Python with RisingSearch"
    )
    raise SetupError(msg)


def open_plain(path: Path, flags: int) -> int:
    """Return a descriptor of a file; a folder, link or pipe there is an ``OSError``."""
    if not flags & os.O_CREAT or os.path.lexists(path):
        check_regular_file(path)
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)


def make_folder(path: Path) -> None:
    """Make a folder, and the one above, for its owner alone; a link is an error."""
    files.make_folder(path.parent)
    files.make_folder(path)
    check_folder(path)


def check_folder(path: Path) -> None:
    """Raise an ``OSError`` unless this is a folder."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise OSError(errno.ENOTDIR, "it must be a folder", str(path))


def check_tree(folder: Path) -> None:
    """Raise a ``ScriptError`` unless a folder holds files, folders and links only."""
    left = [folder]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    left.append(Path(entry.path))
                elif not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                    name = os.path.relpath(entry.path, folder)
                    msg = (
                        f"the script has left {name!r} in its checkpoint directory: a "
                        "checkpoint holds files, folders and links, and no pipe, "
                        "socket or device"
                    )
                    raise ScriptError(msg)
