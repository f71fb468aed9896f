"""Files that are whole or absent, whenever the process or the machine stops."""

import errno
import hashlib
import os
import secrets
import shlex
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from risingsearch.errors import RunDirError, SetupError

PRIVATE = 0o600  # the mode of files that only their owner may read
MAKE_ROOM = "make room or change the permissions, and resume"
PROBED = 1 << 20  # bytes that a folder with room has to take
_NO_ROOM = [
    *map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)),
    "SIGXFSZ",  # by which a program ends whose file has become too large
]
"""Words of all languages' libraries for a full disk, a quota and a limit of size."""


@contextmanager
def usable(path: Path, done: str, advice: str = "") -> Iterator[None]:
    """Convert an OSError into the RunDirError that a path cannot be read, say."""
    try:
        yield
    except OSError as error:
        raise RunDirError(
            f"{path} cannot be {done} ({error.strerror or error}){advice}"
        ) from error


@contextmanager
def blaming_the_disk(
    what: Path | str,
    advice: str,
    folder: Path | None = None,
    always: type[OSError] | tuple[()] = OSError,
) -> Iterator[None]:
    """Raise a RunDirError if a block fails to write.

    Libraries hide the cause: an error of any type counts if it tells of no room, or if
    nothing more can be written to ``folder``. Those of ``always`` count in any
    case; in code of the user, which may read other files or wait for a server, none.
    """
    try:
        yield
    except (RunDirError, SetupError):
        raise
    except Exception as error:
        if not isinstance(error, always) and not _is_of_the_disk(error, folder):
            raise
        raise RunDirError(f"{what} cannot be written ({error}): {advice}") from error


def _is_of_the_disk(error: BaseException, folder: Path | None) -> bool:
    """Whether an error says that there is no room, or none is left in a folder."""
    link: BaseException | None = error
    while link is not None:
        if any(words in str(link) for words in _NO_ROOM):
            return True
        link = link.__cause__ or link.__context__
    return folder is not None and not _has_room(folder)


def _has_room(folder: Path) -> bool:
    """Whether one more file can be written, which is larger than those there."""
    sizes = (path.lstat().st_size for path in folder.rglob("*") if path.is_file())
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.seek(max(sizes, default=0))  # the limit of a file may be below that
            return file.write(bytes(PROBED)) == PROBED
    except OSError:
        return False


def atomic_write(path: Path, *parts: bytes, mode: int = 0o666) -> None:
    """Write or replace a file, so that a crash leaves the old one or the new one.

    The parts are written to a temporary file, brought to disk, and renamed. After an
    OSError the old file is there, or the new one if only its name could not be brought
    to disk. A file that is replaced keeps its mode.
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


def temp_files_of(path: Path) -> Iterable[Path]:
    """List the files of crashes in ``atomic_write``; ``*`` in the name is any text."""
    return path.parent.glob(f"{path.name}*.tmp")


def digest_line(content: bytes) -> bytes:
    """SHA-256 of a content as the line that precedes it in a file."""
    return hashlib.sha256(content).hexdigest().encode() + b"\n"


DIGEST_BYTES = len(digest_line(b""))


def write_digested(path: Path, content: bytes) -> None:
    """Write a private file atomically, with a digest that reveals damage."""
    atomic_write(
        path,
        digest_line(content),
        content,
        mode=PRIVATE,
    )


def read_digested(path: Path) -> bytes:
    """Content that ``write_digested`` wrote; a ValueError if it is damaged."""
    with open_regular_file(path) as file:
        return undigested(file.read())


def undigested(content: bytes) -> bytes:
    """Content without its digest line; a ValueError if the digest does not fit."""
    head = content[:DIGEST_BYTES]
    body = content[DIGEST_BYTES:]
    if head != digest_line(body):
        raise ValueError("its digest does not fit")
    return body


def check_owner(folder: Path) -> None:
    """Refuse a folder that another user owns, or that everybody may write to.

    A search unpickles states from its folder, and runs the command named there. A
    folder that does not exist yet is fine; Windows has no permissions to look at.
    """
    if os.name != "posix" or not folder.exists():
        return
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise RunDirError(
            f"{folder} belongs to another user (uid {status.st_uid}), and its files "
            "can run code as you: run chown -R on it, or give a directory that you own"
        )
    if status.st_mode & stat.S_IWOTH:
        raise RunDirError(
            f"everybody may write to {folder} (mode {stat.S_IMODE(status.st_mode):o}), "
            "and its files can run code as you: run chmod -R o-w "
            f"{shlex.quote(str(folder))}"
        )


_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


# If a link or a pipe comes after the check, neither follow nor wait.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def open_regular_file(path: Path, mode: str = "rb") -> IO[bytes]:
    """Open a binary file; a folder, link or pipe in its place is an OSError."""
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        if "a" not in mode:
            raise
    else:
        if kind != stat.S_IFREG:
            what = _KINDS.get(kind, "a device")
            raise OSError(errno.EINVAL, f"it is {what} and must be a file")
    return open(
        path,
        mode,
        opener=lambda name, flags: os.open(name, flags | _CAREFULLY, PRIVATE),
    )


def refresh_nfs(folder: Path) -> None:
    """Have a network file system ask its server for the names in a folder."""
    if os.name == "posix":
        os.close(os.open(folder, os.O_RDONLY))


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, for its owner alone, unless it exists."""
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise OSError(errno.ENOTDIR, "it must be a folder") from None


def sync_tree(folder: Path) -> None:
    """Wait until all files under a folder, and their names, are on disk."""
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            sync_folder(path)
        elif path.is_file() and not path.is_symlink():
            with path.open("rb" if os.name == "posix" else "r+b") as file:
                os.fsync(file.fileno())  # Windows requires permission to write
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, if the system can do that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
