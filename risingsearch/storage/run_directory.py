"""Directory of a search, which remains after its process has ended.

``journal.jsonl``
    The settings of the search, then one line per event.
``checkpoints/``
    The states of the arms that may train on, and of the best one; or the journal's
    header names an object store that holds them.
``state.json``
    The scheduler some events ago, a cache that may be deleted.
``lock``
    Held by the process that searches.

All of them, and the directory if it is made here, are for their owner alone.

A job's checkpoint is written first, then its result in the journal, and then the
scheduler is told: no result reaches the scheduler before it is on disk. A decision that
is lost with the process is made again.
"""

import contextlib
import gc
import json
import os
import secrets
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from risingsearch.errors import RisingSearchError, RunDirError, SetupError
from risingsearch.json_values import Json
from risingsearch.storage import lock
from risingsearch.storage.checkpoints import Folder, Store
from risingsearch.storage.files import (
    make_folder,
    open_regular_file,
    read_digested,
    refresh_nfs,
    temp_files_of,
    usable,
    write_digested,
)
from risingsearch.storage.journal import (
    Journal,
    Recorded,
    create,
    read,
    read_appended,
)
from risingsearch.storage.object_store import ObjectStore, checked_url

JOURNAL = "journal.jsonl"
CHECKPOINTS = "checkpoints"
STATE = "state.json"
LOCK = "lock"
URL = "checkpoints"
"""In a header: the folder of an object store that holds the checkpoints."""


class Saved(NamedTuple):
    """The search in a directory: its journal, and the scheduler some events ago."""

    recorded: Recorded
    n_in_state: int  # events that the state knows
    state: Json | None  # None if it knows none

    @property
    def events(self) -> list[Json]:
        """Events of the journal."""
        return self.recorded.events


class RunDirectory:
    """Keeps the events and the checkpoints of one search on disk."""

    def __init__(
        self,
        path: Path,
        max_checkpoint_bytes: int | None = None,
        checkpoints: str | None = None,
    ) -> None:
        self.path = path
        self._max_checkpoint_bytes = max_checkpoint_bytes
        self._url = None if checkpoints is None else checked_url(checkpoints)
        self.n_events_saved = 0  # those that the saved state knows
        self._holder: int | None = None  # the process, which may fork
        with _usable(path):
            make_folder(path)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Lock the directory; a RunDirError if another process changed or holds it."""
        if self._holder == os.getpid():
            yield
            return
        with contextlib.ExitStack() as stack:
            with _usable(self.path / LOCK):
                stack.enter_context(lock.held(self.path / LOCK))
                refresh_nfs(self.path)
            journal: Journal | None = getattr(self, "journal", None)
            if journal is not None:
                # NFS refreshes its size.
                with _usable(journal.path), open_regular_file(journal.path) as file:
                    n_bytes = os.fstat(file.fileno()).st_size
                if n_bytes != journal.n_bytes:
                    raise RunDirError(
                        f"another process has continued the search in {self.path}: "
                        "make this search again, and it continues from there"
                    )
            self._holder = os.getpid()
            try:
                yield
            finally:
                self._holder = None

    def check_held(self) -> None:
        """Raise a RunDirError if this process does not hold the directory."""
        if self._holder != os.getpid():
            raise RunDirError(
                f"the search in {self.path} runs in the process that this one was "
                "forked from: let only that one train and record, or make the search "
                "in the forked process, in another run_dir"
            )

    def open(self, header: Json, saved: Saved | None = None) -> Saved:
        """Return the search, which begins with this header if there is none yet."""
        path = self.path / JOURNAL
        if saved is None:
            if not holds_search(self.path):
                n_in_state, _ = _saved_state(self.path / STATE)
                _check_complete(path, 0, n_in_state)
                check_free(self.path / STATE)
                if self._url is not None:  # a new folder of the object store
                    header = {**header, URL: f"{self._url}/{secrets.token_hex(8)}"}
                    ObjectStore(header[URL]).check()
                create(path, header)
            saved = saved_search(self.path)
        else:
            saved = saved._replace(recorded=read_appended(path, saved.recorded))
        self.journal = Journal(path, saved.recorded)
        self.n_events_saved = saved.n_in_state
        for left in (*temp_files_of(path), *temp_files_of(self.path / STATE)):
            with _usable(left):
                left.unlink()
        self.checkpoints = self._store(saved.recorded)
        return saved

    def _store(self, recorded: Recorded) -> Store:
        """Where the checkpoints of the search are."""
        url = recorded.header.get(URL)
        if url is None:
            if self._url is None:
                files = Folder(self.path / CHECKPOINTS)
                return Store(files, self._max_checkpoint_bytes)
            raise RunDirError(
                f"{self.path} holds a search with its checkpoints, and it was opened "
                f"with checkpoints={self._url!r}: leave that out to resume it, or give "
                "another run_dir"
            )
        with damage_as_error(self.path):
            if self._url is not None:  # they may have been moved there
                url = f"{self._url}/{url.rpartition('/')[2]}"
            objects = ObjectStore(url)
        objects.check()
        store = Store(objects, self._max_checkpoint_bytes)
        if not store.keys() and any("best" in event for event in recorded.events):
            raise SetupError(
                f"{objects} holds no checkpoints of the search in {self.path}: restore "
                "them, or give the URL where they are as checkpoints; "
                "RisingSearch.saved_result shows what was found so far"
            )
        return store

    def save_state(self, state: Mapping[str, object]) -> None:
        """Save the scheduler's state, as of the events so far."""
        n_events = self.journal.n_events
        content = json.dumps({"events": n_events, "scheduler": state})
        with _usable(self.path / STATE):
            write_digested(self.path / STATE, content.encode())
        self.n_events_saved = n_events


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection while many events are loaded."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextlib.contextmanager
def damage_as_error(path: Path) -> Iterator[None]:
    """Convert unexpected errors while reading a run directory into a RunDirError."""
    try:
        yield
    except (RisingSearchError, Warning):
        raise
    except Exception as error:
        raise RunDirError(
            f"{path} holds what no release has written there "
            f"({type(error).__name__}: {error!s:.200}): restore it from a backup"
        ) from error


def is_held(path: Path) -> bool:
    """Whether a process searches in a directory; none is kept out meanwhile."""
    with _usable(path / LOCK):
        return lock.is_held(path / LOCK)


def holds_search(path: Path) -> bool:
    """Whether there is a search in a directory."""
    with _usable(path):
        try:
            (path / JOURNAL).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def saved_header(path: Path) -> Json:
    """Header of the search in a directory; a RunDirError if there is none."""
    if not holds_search(path):
        msg = f"{path} does not exist: name the run directory of a search"
        if path.exists():
            msg = f"{path} holds no search: it has no {JOURNAL}"
        raise RunDirError(msg)
    return read(path / JOURNAL, header_only=True).header


def saved_search(path: Path) -> Saved:
    """Read the search in a directory, also while another process searches there."""
    saved_header(path)
    n_in_state, state = _saved_state(path / STATE)  # first: it is never ahead then
    recorded = read(path / JOURNAL)
    _check_complete(path / JOURNAL, len(recorded.events), n_in_state)
    return Saved(recorded, n_in_state, state)


def _saved_state(file: Path) -> tuple[int, Json | None]:
    """Read a saved state and how many events it knows; warn if it is damaged."""
    with _usable(file), contextlib.suppress(FileNotFoundError):
        try:
            saved = json.loads(read_digested(file))
            return saved["events"], saved["scheduler"]
        except (ValueError, LookupError, TypeError):
            warnings.warn(
                f"{file} is damaged: the journal is replayed from its beginning, which "
                "takes longer and ends the same",
                RuntimeWarning,
                stacklevel=2,
            )
    return 0, None


def check_free(path: Path) -> None:
    """Raise a RunDirError if a file is there that a new search would replace."""
    if os.path.lexists(path):
        raise RunDirError(
            f"{path} is there, and {path.parent} holds no search that it belongs to: "
            "move it away, or give an empty folder as run_dir"
        )


def _check_complete(path: Path, n_events: int, n_in_state: int) -> None:
    """Raise a RunDirError if a journal has fewer events than the saved state knows."""
    if n_in_state > n_events:
        raise RunDirError(
            f"{path} lacks its last {n_in_state - n_events} events, which {STATE} has: "
            f"restore it from a backup, or delete {STATE} to continue with the rest, "
            "and the others are trained again"
        )


def _usable(path: Path) -> contextlib.AbstractContextManager[None]:
    advice = (
        ": make room, change the permissions or remove what is in its place, or give "
        "another run_dir"
    )
    return usable(path, "used", advice)
