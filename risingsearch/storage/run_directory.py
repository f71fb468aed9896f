"""The directory of a search: what survives when its process does not.

``journal.jsonl``
    The settings of the search, then one line per job that came back.
``checkpoints/``
    The states of the arms that may train on, and of the best one. They may be in an
    object store instead, which the journal names.
``journal.tail``
    How far the journal has come, so that lines which go missing at its end are missed.
    It may be missing itself.
``state.json``
    The scheduler some events ago, so that not all decisions are made again. It may be
    missing.
``lock``
    Held by the process that searches.

All of them, and the directory where it is made here, are for their owner alone.

A job's checkpoint is written first, then its line in the journal, and then the
scheduler is told: what the scheduler knows is on disk.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from risingsearch.errors import (
    JournalError,
    RisingSearchError,
    RunDirError,
    StateError,
)
from risingsearch.storage import lock, tail
from risingsearch.storage.bucket import checked_url
from risingsearch.storage.checkpoints import DirectoryStore, Store
from risingsearch.storage.files import (
    PRIVATE,
    left_beside,
    look_anew,
    make_folder,
    open_plain,
    size_now,
    write_whole,
)
from risingsearch.storage.journal import Event, Journal, Recorded, create, read
from risingsearch.storage.objects import OBJECTS, ObjectStore, bucket_at, new_place
from risingsearch.storage.tail import Known

JOURNAL, CHECKPOINTS, STATE, LOCK = "journal.jsonl", "checkpoints", "state.json", "lock"
TAIL = "journal.tail"


class Saved(NamedTuple):
    """The search in a directory: its journal, and the scheduler some events ago."""

    recorded: Recorded
    n_known: int
    state: dict[str, Any] | None  # that knows the first events, None for 0

    @property
    def header(self) -> Event:
        """What the search was begun with."""
        return self.recorded.header

    @property
    def events(self) -> list[Event]:
        """What has happened."""
        return self.recorded.events


class RunDirectory:
    """Keeps the events and the checkpoints of one search on disk.

    The directory is made if it is missing, for its owner alone, or that is a
    RunDirError. With ``checkpoints``, the URL of an object store, those are there.
    """

    def __init__(
        self,
        path: Path,
        max_checkpoint_bytes: int | None = None,
        checkpoints: str | None = None,
    ) -> None:
        self.path = path
        self._max_checkpoint_bytes = max_checkpoint_bytes
        self._url = None if checkpoints is None else checked_url(checkpoints)
        self._journal: Journal | None = None
        self._n_events_saved = 0
        self._is_held = False
        try:
            make_folder(path, parents=True)
        except OSError as error:
            raise _unusable(path, error) from error

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes out; one that is in, or was meanwhile, is an error."""
        if self._is_held:
            yield
            return
        try:
            with self._locked():
                self._is_held = True
                yield
                self._is_held = False
        except BaseException:  # Ctrl-C, perhaps in the lines before
            self._is_held = False
            raise

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            path = self.path / LOCK
            try:
                stack.enter_context(lock.held(path))
                look_anew(self.path)
                if journal := self._journal:
                    path = journal.path
                    n_bytes = size_now(path)
            except OSError as error:
                raise _unusable(path, error) from error
            if journal and n_bytes != journal.n_bytes:
                msg = f"another process went on in {self.path}: resume it anew"
                raise RunDirError(msg)
            yield

    def open(self, header: Event) -> Saved:
        """Return the search; with this header, make it if there is none.

        A journal that is damaged, lacks events, or cannot be written is a JournalError.
        """
        path = self.path / JOURNAL
        n_known, state, known = _known(self.path)
        if not holds_search(self.path):
            _check_complete(path, [], known)
            place = {} if self._url is None else {OBJECTS: new_place(self._url)}
            create(path, {**header, **place})
        recorded = read(path)
        _check_complete(path, recorded.checksums, known)
        self._journal = Journal(path, recorded)
        self._n_events_saved = n_known
        try:
            for left in (*left_beside(path), *left_beside(self.path / STATE)):
                left.unlink()
        except OSError as error:
            raise _unusable(left, error) from error
        self.checkpoints = self._store(recorded, self._journal)
        return Saved(recorded, n_known, state)

    def _store(self, recorded: Recorded, journal: Journal) -> Store:
        """Return where the checkpoints of the search are."""
        place = recorded.header.get(OBJECTS)
        if place is not None:
            with understood(self.path):
                return ObjectStore(
                    bucket_at(place, self._url),
                    recorded,
                    lambda: Known(journal.n_events, journal.checksum),
                    self._max_checkpoint_bytes,
                )
        if self._url is not None:
            msg = (
                f"{self.path} holds a search with its checkpoints, and it was opened "
                f"with checkpoints={self._url!r}: leave that out to go on, or give "
                "another run_dir"
            )
            raise StateError(msg)
        return DirectoryStore(self.path / CHECKPOINTS, self._max_checkpoint_bytes)

    def append(self, event: Event) -> None:
        """Write an event; once this returns, it is on disk."""
        journal = self._journal
        assert journal is not None
        journal.append(event)
        tail.write(self.path / TAIL, Known(journal.n_events, journal.checksum))

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
        assert self._journal is not None
        known = Known(self.n_events, self._journal.checksum)
        content = json.dumps({**known._asdict(), "scheduler": state}).encode()
        head = hashlib.sha256(content).hexdigest().encode() + b"\n"
        path = self.path / STATE
        try:
            write_whole(path, (head, content), PRIVATE)
        except OSError as error:
            raise _unusable(path, error) from error
        self._n_events_saved = self.n_events


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


@contextlib.contextmanager
def understood(path: Path) -> Iterator[None]:
    """Blame what a directory holds for errors of all other kinds than our own."""
    try:
        yield
    except (RisingSearchError, Warning):
        raise
    except Exception as error:
        msg = (
            f"{path} holds what no release has written there "
            f"({type(error).__name__}: {error!s:.200}): restore it from a backup"
        )
        raise JournalError(msg) from error


def is_held(path: Path) -> bool:
    """Return whether a process searches in a directory; none is kept out by it."""
    try:
        return lock.is_held(path / LOCK)
    except OSError as error:
        raise _unusable(path / LOCK, error) from error


def holds_search(path: Path) -> bool:
    """Return whether there is a search in a directory."""
    try:
        (path / JOURNAL).lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a NUL in the name
        return False
    except OSError as error:
        raise _unusable(path, error) from error
    return True


def saved_header(path: Path) -> Event:
    """Return the header of the search in a directory; none is a JournalError."""
    if not holds_search(path):
        msg = f"{path} holds no search: it has no {JOURNAL}"
        raise JournalError(msg)
    return read(path / JOURNAL, header_only=True).header


def saved_metric(header: Event) -> str | None:
    """Return what a saved search calls its score, None where it does not say.

    Earlier releases say so in what describes a sweep only.
    """
    sweep = (header["settings"].get("fingerprint") or {}).get("sweep", {})
    called = header.get("metric") or sweep.get("metric")
    if isinstance(called, dict):
        called = called["regex"]  # as sweeps write a pattern
    return None if called is None else str(called)


def saved_search(path: Path) -> Saved:
    """Return the search in a directory, and touch nothing.

    Also while another process searches there. A journal that is missing, damaged, or
    lacks events is a JournalError.
    """
    saved_header(path)
    n_known, state, known = _known(path)
    recorded = read(path / JOURNAL)
    _check_complete(path / JOURNAL, recorded.checksums, known)
    return Saved(recorded, n_known, state)


def saved_entropy(path: Path) -> int | None:
    """Return what the seeds of the search in a directory come from, if there is one."""
    if not holds_search(path):
        return None
    header = saved_header(path)
    with understood(path):
        return int(header["entropy"])


def _known(path: Path) -> tuple[int, dict[str, Any] | None, dict[str, Known]]:
    """Return the saved state with its number of events, and what each file knows.

    To be read before the journal, which is then never behind it.
    """
    state_of, state = _saved_state(path / STATE)
    try:
        known = {STATE: state_of, TAIL: tail.read(path / TAIL)}
    except OSError as error:
        raise _unusable(path / TAIL, error) from error
    return state_of.events, state, known


def _saved_state(file: Path) -> tuple[Known, dict[str, Any] | None]:
    """Return a saved state and what it knows; a warning and nothing if damaged."""
    try:
        with open_plain(file) as opened:
            head, _, content = opened.read().partition(b"\n")
    except FileNotFoundError:
        return Known(0), None
    except OSError as error:
        raise _unusable(file, error) from error
    if hashlib.sha256(content).hexdigest().encode() == head:
        with contextlib.suppress(ValueError, RecursionError):  # not as it was written
            match json.loads(content):
                case {"events": int(n_events), "scheduler": dict(state)} as saved:
                    if n_events >= 0:
                        return Known(n_events, saved.get("checksum")), state
    warnings.warn(
        f"{file} is damaged: all decisions are made again from the journal, which "
        "takes longer and ends the same",
        RuntimeWarning,
        stacklevel=2,
    )
    return Known(0), None


def _check_complete(
    path: Path, checksums: Sequence[str], known: Mapping[str, Known]
) -> None:
    """Raise a JournalError where a journal is not what other files know of it."""
    n_events = max(0, len(checksums) - 1)
    knowing = [name for name, one in known.items() if one.events > n_events]
    if knowing:
        n_missing = max(one.events for one in known.values()) - n_events
        what = f"lacks its last {n_missing} events, of which {' and '.join(knowing)} "
        rest = "what they brought is lost and trained again"
    elif knowing := [
        name
        for name, one in known.items()
        if one.checksum is not None and one.checksum != checksums[one.events]
    ]:
        what = f"is another one than {' and '.join(knowing)} "
        rest = "what is not in it is lost"
    else:
        return
    msg = (
        f"{path} {what}knows: restore it from a backup, or go on with what it holds by "
        f"deleting {' and '.join(known)}, and {rest}"
    )
    raise JournalError(msg)


def _unusable(path: Path, error: OSError) -> RunDirError:
    return RunDirError(
        f"{path} cannot be used ({error.strerror}): make room, change the permissions "
        "or remove what is in its place, or give another run_dir"
    )
