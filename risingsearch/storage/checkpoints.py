"""Where checkpoints are kept: in memory, or as files of a folder."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from risingsearch.errors import CheckpointError, StateError
from risingsearch.storage.files import (
    PRIVATE,
    left_beside,
    make_folder,
    open_plain,
    write_whole,
)

VERSION = 1


class Key(NamedTuple):
    """Which state: the arm's, after so many of its epochs."""

    arm: int
    epoch: int


class Store(Protocol):
    """Where checkpoints are kept."""

    def keys(self) -> Set[Key]:
        """Return what is kept."""
        ...

    def has_room(self, key: Key, state: bytes) -> bool:
        """Return whether a state can be kept."""
        ...

    def save(self, key: Key, state: bytes) -> Mapping[str, Any] | None:
        """Keep a state; what comes back has to be in the event of its job."""
        ...

    def load(self, key: Key) -> bytes:
        """Return a state that was saved, or raise a CheckpointError."""
        ...

    def drop(self, key: Key) -> None:
        """Remove a state."""
        ...


class Room:
    """How large each checkpoint is, and how large all may be."""

    def __init__(self, sizes: Mapping[Key, int], max_bytes: int | None) -> None:
        self._sizes = dict(sizes)
        self._max_bytes = max_bytes
        self.n_bytes = sum(self._sizes.values())

    def keys(self) -> Set[Key]:
        """Return which there are."""
        return self._sizes.keys()

    def has(self, key: Key, n_bytes: int) -> bool:
        """Return whether one can be kept within ``max_bytes``, with all others."""
        return self._max_bytes is None or self._with(key, n_bytes) <= self._max_bytes

    def check(self, where: str, key: Key, n_bytes: int) -> None:
        """Raise a CheckpointError where it cannot be kept."""
        if not self.has(key, n_bytes):
            msg = (
                f"{where} would bring the checkpoints to {self._with(key, n_bytes):,} "
                f"bytes, and max_checkpoint_bytes is {self._max_bytes:,}: allow more, "
                "and resume"
            )
            raise CheckpointError(msg)

    def take(self, key: Key, n_bytes: int) -> None:
        """Count one, or count it anew."""
        self.n_bytes = self._with(key, n_bytes)
        self._sizes[key] = n_bytes

    def free(self, key: Key) -> None:
        """Count one no longer."""
        self.n_bytes -= self._sizes.pop(key)

    def _with(self, key: Key, n_bytes: int) -> int:
        return self.n_bytes - self._sizes.get(key, 0) + n_bytes


class MemoryStore:
    """Checkpoints in memory, for as long as the search lives.

    Examples
    --------
    >>> store = MemoryStore()
    >>> store.save(Key(arm=3, epoch=1), b"weights")
    >>> store.load(Key(3, 1))
    b'weights'
    """

    def __init__(self) -> None:
        self._states: dict[Key, bytes] = {}

    def keys(self) -> Set[Key]:
        """Return what is kept."""
        return self._states.keys()

    def save(self, key: Key, state: bytes) -> None:
        """Keep a state."""
        self._states[key] = state

    def drop(self, key: Key) -> None:
        """Forget a state."""
        del self._states[key]

    def has_room(self, key: Key, state: bytes) -> bool:
        """Return whether a state can be kept: memory has no limit here."""
        return True

    def load(self, key: Key) -> bytes:
        """Return a state that was saved, or raise a CheckpointError."""
        if key not in self._states:
            msg = f"there is no state of arm {key.arm} at epoch {key.epoch} in memory"
            raise CheckpointError(msg)
        return self._states[key]


class DirectoryStore:
    """Checkpoints as files of a folder, whole or not there at all.

    A file is written beside its name, brought to disk and then renamed, so a crash
    leaves the old files. Its first line says what it holds, with a checksum. Folder and
    files are for their owner alone; nobody else writes there meanwhile.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     DirectoryStore(Path(folder)).save(Key(arm=3, epoch=1), b"weights")
    ...     again = DirectoryStore(Path(folder))
    ...     list(again.keys()), again.load(Key(3, 1))
    ([Key(arm=3, epoch=1)], b'weights')
    """

    def __init__(self, folder: Path, max_bytes: int | None = None) -> None:
        self.folder = folder
        try:
            make_folder(folder)
            for path in left_beside(folder / "arm-*.ckpt"):
                path.unlink()
            self._room = Room(dict(_found(folder)), max_bytes)
        except OSError as error:
            msg = f"{folder} cannot be used for checkpoints ({error.strerror})"
            raise CheckpointError(msg) from error

    @property
    def n_bytes(self) -> int:
        """How large all files are together."""
        return self._room.n_bytes

    def path(self, key: Key) -> Path:
        """Return the file of a checkpoint."""
        return self.folder / f"arm-{key.arm:06d}-epoch-{key.epoch:06d}.ckpt"

    def has_room(self, key: Key, state: bytes) -> bool:
        """Return whether a state can be kept within ``max_bytes``."""
        return self._room.has(key, _n_bytes(key, state))

    def save(self, key: Key, state: bytes) -> None:
        """Keep a state; once this returns, it is on disk.

        If it cannot be written, or would take more than ``max_bytes`` with all others,
        that is a CheckpointError, and what was there before is as it was.
        """
        path = self.path(key)
        n_bytes = _n_bytes(key, state)
        self._room.check(str(path), key, n_bytes)
        try:
            write_whole(path, (_head(key, state), state), PRIVATE)
        except OSError as error:
            msg = (
                f"{path} cannot be written ({error.strerror}); all older checkpoints "
                "are safe: make room or change the permissions, and resume"
            )
            raise CheckpointError(msg) from error
        self._room.take(key, n_bytes)

    def load(self, key: Key) -> bytes:
        """Return a state that was saved.

        A file that is missing or damaged is a CheckpointError; one of another version
        is a StateError.
        """
        path = self.path(key)
        try:
            with open_plain(path) as file:
                content = file.read()
        except OSError as error:
            msg = f"{path} cannot be read ({error.strerror})"
            raise CheckpointError(msg) from error
        head, _, state = content.partition(b"\n")
        version = _version(head)
        if version is not None and version != VERSION:
            msg = (
                f"{path} is a checkpoint of version {version}, this release reads "
                f"version {VERSION}: use the release that wrote it"
            )
            raise StateError(msg)
        if head + b"\n" != _head(key, state):
            msg = f"{path} is damaged: it does not fit its checksum"
            raise CheckpointError(msg)
        return state

    def keys(self) -> Set[Key]:
        """Return what is kept."""
        return self._room.keys()

    def drop(self, key: Key) -> None:
        """Remove a file."""
        try:
            self.path(key).unlink(missing_ok=True)
        except OSError as error:
            msg = f"{self.path(key)} cannot be removed ({error.strerror})"
            raise CheckpointError(msg) from error
        self._room.free(key)


_NAME = re.compile(r"arm-(\d+)-epoch-(\d+)\.ckpt")


def _found(folder: Path) -> Iterator[tuple[Key, int]]:
    for path in folder.iterdir():
        if match := _NAME.fullmatch(path.name):
            yield Key(int(match[1]), int(match[2])), path.lstat().st_size


def _head(key: Key, state: bytes) -> bytes:
    return _first_line(key, state, hashlib.sha256(state).hexdigest())


def _n_bytes(key: Key, state: bytes) -> int:
    return len(_first_line(key, state, digest="0" * 64)) + len(state)


def _first_line(key: Key, state: bytes, digest: str) -> bytes:
    facts = {
        "checkpoint": VERSION,
        **key._asdict(),
        "bytes": len(state),
        "sha256": digest,
    }
    return json.dumps(facts).encode() + b"\n"


def _version(head: bytes) -> int | None:
    """Return the version that a first line names, None where it names none."""
    try:
        return int(json.loads(head)["checkpoint"])
    except (ValueError, KeyError, TypeError):
        return None
