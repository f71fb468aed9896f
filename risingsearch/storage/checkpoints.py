"""Checkpoints by arm and epoch: in memory, in a folder, or in an object store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from pathlib import Path
from typing import NamedTuple

from risingsearch.errors import RunDirError
from risingsearch.storage.files import (
    DIGEST_BYTES,
    PRIVATE,
    atomic_write,
    digest_line,
    make_folder,
    open_regular_file,
    temp_files_of,
    undigested,
    usable,
)
from risingsearch.storage.object_store import ObjectStore

SAFE = (
    "; all older checkpoints are safe: make room or change the permissions, and resume"
)


class Key(NamedTuple):
    """Identifies a state: its arm, and how many epochs that was trained."""

    arm: int
    epoch: int

    @property
    def file_name(self) -> str:
        """Name of its file or object."""
        return f"arm-{self.arm:06d}-epoch-{self.epoch:06d}.ckpt"


_NAME = re.compile(r"arm-(\d{6,})-epoch-(\d{6,})\.ckpt")


class MemoryStore:
    """Checkpoints in memory, for as long as the search lives."""

    def __init__(self) -> None:
        self._states: dict[Key, bytes] = {}

    def keys(self) -> Set[Key]:
        """Keys of all checkpoints."""
        return self._states.keys()

    def has_room(self, key: Key, state: bytes) -> bool:
        """Whether a state fits: there is no limit in memory."""
        return True

    def save(self, key: Key, state: bytes) -> None:
        """Store a state."""
        self._states[key] = state

    def load(self, key: Key) -> bytes:
        """State that was saved; a missing one is a RunDirError."""
        if key not in self._states:
            raise RunDirError(
                f"no state of arm {key.arm} at epoch {key.epoch} is in memory"
            )
        return self._states[key]

    def drop(self, key: Key) -> None:
        """Remove a state."""
        del self._states[key]


class Store:
    """Checkpoints as files with a digest, whole or absent."""

    def __init__(
        self, files: Folder | ObjectStore, max_bytes: int | None = None
    ) -> None:
        self.files = files
        self._max_bytes = max_bytes
        self._sizes = {
            Key(int(match[1]), int(match[2])): n_bytes
            for name, n_bytes in files.sizes().items()
            if (match := _NAME.fullmatch(name))
        }

    @property
    def n_bytes(self) -> int:
        """Size of all files together."""
        return sum(self._sizes.values())

    def keys(self) -> Set[Key]:
        """Keys of all checkpoints."""
        return self._sizes.keys()

    def has_room(self, key: Key, state: bytes) -> bool:
        """Whether a state can be saved within ``max_bytes``."""
        return self._max_bytes is None or self._n_bytes_with(key, state) <= (
            self._max_bytes
        )

    def save(self, key: Key, state: bytes) -> None:
        """Store a state, safely once this returns; else all others are as before."""
        if not self.has_room(key, state):
            raise RunDirError(
                f"{self.files}/{key.file_name} would bring the checkpoints to "
                f"{self._n_bytes_with(key, state):,} bytes, and max_checkpoint_bytes "
                f"is {self._max_bytes:,}: allow more, and resume"
            )
        self.files.put(key.file_name, digest_line(state), state)
        self._sizes[key] = DIGEST_BYTES + len(state)

    def load(self, key: Key) -> bytes:
        """State that was saved; a missing or damaged one is a RunDirError."""
        content = self.files.get(key.file_name)
        try:
            return undigested(content)
        except ValueError as error:
            raise RunDirError(
                f"{self.files}/{key.file_name} is damaged: {error}"
            ) from error

    def drop(self, key: Key) -> None:
        """Remove a state."""
        self.files.remove([key.file_name])
        del self._sizes[key]

    def _n_bytes_with(self, key: Key, state: bytes) -> int:
        return self.n_bytes - self._sizes.get(key, 0) + DIGEST_BYTES + len(state)


class Folder:
    """Local files of a folder, for their owner alone; no other process writes there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with usable(path, "used for checkpoints"):
            make_folder(path)
            for left in temp_files_of(path / "arm-*.ckpt"):
                left.unlink()

    def __str__(self) -> str:
        return str(self.path)

    def put(self, name: str, *parts: bytes) -> None:
        """Write a file; once this returns, it is on disk."""
        with usable(self.path / name, "written", SAFE):
            atomic_write(self.path / name, *parts, mode=PRIVATE)

    def get(self, name: str) -> bytes:
        """Content of a file; one that cannot be read is a RunDirError."""
        path = self.path / name
        with usable(path, "read"), open_regular_file(path) as file:
            return file.read()

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are gone already are ignored."""
        for name in names:
            with usable(self.path / name, "removed"):
                (self.path / name).unlink(missing_ok=True)

    def sizes(self) -> dict[str, int]:
        """Sizes in bytes of all files."""
        return {path.name: path.lstat().st_size for path in self.path.iterdir()}
