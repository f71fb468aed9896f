"""The directory of a search: what survives when its process does not.

``journal.jsonl``
    The settings of the search, then one line per job that came back.
``checkpoints/``
    The states of the arms that may train on, and of the best one.
``state.json``
    The scheduler some events ago, so that not all decisions are made again. It may be
    missing.
``lock``
    Held by the process that searches.

A job's checkpoint is written first, then its line in the journal, and then the
scheduler is told: what the scheduler knows is on disk.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from risingsearch.errors import JournalError, RunDirError
from risingsearch.storage.checkpoints import DirectoryStore
from risingsearch.storage.files import write_whole
from risingsearch.storage.journal import Event, Journal, create, read

JOURNAL, CHECKPOINTS, STATE, LOCK = "journal.jsonl", "checkpoints", "state.json", "lock"


class RunDirectory:
    """Keeps the events and the checkpoints of one search on disk.

    The directory is made if it is missing, or that is a RunDirError.
    """

    def __init__(self, path: Path, max_checkpoint_bytes: int | None = None) -> None:
        self.path = path
        self._max_checkpoint_bytes = max_checkpoint_bytes
        self._journal: Journal | None = None
        self._n_events_saved = 0
        self._is_held = False
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable(path, error) from error

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out; one that is in, or was meanwhile, is an error."""
        from filelock import FileLock, Timeout

        if self._is_held:
            yield
            return
        lock = FileLock(self.path / LOCK)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            msg = (
                f"another process searches in {self.path}: wait for its end, or give "
                "another run_dir"
            )
            raise RunDirError(msg) from None
        except OSError as error:
            raise _unusable(self.path, error) from error
        try:
            journal = self._journal
            if journal and journal.path.stat().st_size != journal.n_bytes:
                msg = f"another process went on in {self.path}: resume it anew"
                raise RunDirError(msg)
            self._is_held = True
            yield
        finally:
            self._is_held = False
            lock.release()

    def open(self, header: Event) -> list[Event]:
        """Return the events of the search; with this header, make it if there is none.

        A journal that is damaged, or cannot be written, is a JournalError.
        """
        path = self.path / JOURNAL
        if not path.exists():
            create(path, header)
        recorded = read(path)
        self._journal = Journal(path, recorded)
        self.checkpoints = DirectoryStore(
            self.path / CHECKPOINTS, self._max_checkpoint_bytes
        )
        return recorded.events

    def append(self, event: Event) -> None:
        """Write an event; once this returns, it is on disk."""
        assert self._journal is not None
        self._journal.append(event)

    @property
    def events_since_state(self) -> int:
        """How many events have come since the state was saved."""
        assert self._journal is not None
        return self._journal.n_events - self._n_events_saved

    @property
    def n_events(self) -> int:
        """How many events there are."""
        assert self._journal is not None
        return self._journal.n_events

    def save_state(self, state: Mapping[str, Any]) -> None:
        """Save the scheduler's state, as of the events so far."""
        content = json.dumps({"events": self.n_events, "scheduler": state}).encode()
        head = hashlib.sha256(content).hexdigest().encode() + b"\n"
        path = self.path / STATE
        try:
            write_whole(path, (head, content))
        except OSError as error:
            raise _unusable(path, error) from error
        self._n_events_saved = self.n_events

    def load_state(self) -> tuple[int, dict[str, Any] | None]:
        """Return a saved state and the number of events it knows; 0 and None for none.

        A damaged one is as good as none, and a warning says so.
        """
        n_known, state = saved_state(self.path)
        if n_known > self.n_events:
            _warn_of_damage(self.path / STATE)
            n_known, state = 0, None
        self._n_events_saved = n_known
        return n_known, state


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from going through many new events over and over."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def saved_state(path: Path) -> tuple[int, dict[str, Any] | None]:
    """Return the state in a directory and the number of events it knows, or 0 and None.

    A damaged one is as good as none, and a warning says so.
    """
    file = path / STATE
    try:
        head, _, content = file.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return 0, None
    except OSError as error:
        raise _unusable(file, error) from error
    if hashlib.sha256(content).hexdigest().encode() != head:
        _warn_of_damage(file)
        return 0, None
    saved = json.loads(content)
    return saved["events"], saved["scheduler"]


def _warn_of_damage(file: Path) -> None:
    warnings.warn(
        f"{file} is damaged: all decisions are made again from the journal, which "
        "takes longer and ends the same",
        RuntimeWarning,
        stacklevel=2,
    )


def is_held(path: Path) -> bool:
    """Return whether a process searches in a directory."""
    from filelock import FileLock, Timeout

    if not (path / LOCK).exists():
        return False
    try:
        with FileLock(path / LOCK, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


def holds_search(path: Path) -> bool:
    """Return whether there is a search in a directory."""
    return (path / JOURNAL).exists()


def saved_header(path: Path) -> Event:
    """Return the header of the search in a directory; none is a JournalError."""
    if not holds_search(path):
        msg = f"{path} holds no search: it has no {JOURNAL}"
        raise JournalError(msg)
    return read(path / JOURNAL, header_only=True).header


def saved_events(path: Path) -> tuple[Event, list[Event]]:
    """Return header and events of the search in a directory, and touch nothing."""
    saved_header(path)
    recorded = read(path / JOURNAL)
    return recorded.header, recorded.events


def saved_entropy(path: Path) -> int | None:
    """Return what the seeds of the search in a directory come from, if there is one."""
    if not holds_search(path):
        return None
    return int(saved_header(path)["entropy"])


def _unusable(path: Path, error: OSError) -> RunDirError:
    return RunDirError(
        f"{path} cannot be used ({error.strerror}): make room or change the "
        "permissions, or give another run_dir"
    )
