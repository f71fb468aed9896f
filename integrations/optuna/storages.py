"""Where a study is kept: its checkpoints, and a SQLite database for one process."""

import contextlib
import os
import shutil
import tarfile
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import Any

from filelock import FileLock, Timeout
from optuna.artifacts import FileSystemArtifactStore
from optuna.artifacts.exceptions import ArtifactNotFound
from optuna.storages import BaseStorage, GrpcStorageProxy, RDBStorage
from optuna.storages._cached_storage import _CachedStorage
from optuna.trial import TrialState

from risingsearch.checks import kept_path, shown
from risingsearch.errors import InvalidParameterError, RunDirError, SetupError

NAME = "checkpoint"  # of the folder in an archive
# System attributes of a trial that was taken from a proxy:
FIRST = "rising:first"  # the last process that may be the first
CLOSED = "rising:closed"  # whether no other process can be the first any more
PAUSE = 0.02  # seconds in which processes that were given the same trial see each other

_popping = threading.Lock()
_held: dict[tuple[int, str], FileLock] = {}  # by process, until it ends


class Checkpoints:
    """Folders, each an archive in an artifact store."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def save(self, folder: Path) -> str:
        """Store a folder, and return its key."""
        key = uuid.uuid4().hex
        with TemporaryFile() as archive:
            with tarfile.open(fileobj=archive, mode="w") as packed:
                packed.add(folder, NAME)
            archive.seek(0)
            self.store.write(key, archive)
        return key

    def find(self, key: str, arm: Any) -> Path:
        """Unpack an arm's archive; the folder exists for as long as ``arm`` does."""
        into = Path(mkdtemp())
        weakref.finalize(arm, shutil.rmtree, into, ignore_errors=True)
        try:
            with (
                self.store.open_reader(key) as archive,
                tarfile.open(fileobj=archive, mode="r|") as packed,
            ):
                packed.extractall(into, filter="data")
        except (ArtifactNotFound, tarfile.TarError) as error:
            place = getattr(self.store, "_base_path", type(self.store).__name__)
            raise RunDirError(
                f"arm {arm.id} has lost its checkpoint of {arm.from_epoch} epochs, "
                f"{key} in {place} ({error}): restore it, or retire all such arms by "
                "study.optimize(..., catch=(RunDirError,))"
            ) from error
        return into / NAME

    def remove(self, key: str) -> None:
        """Remove an archive; it may be gone."""
        with contextlib.suppress(ArtifactNotFound):
            self.store.remove(key)


def checkpoints_in(
    checkpoint_dir: str | os.PathLike[str] | None, artifact_store: Any
) -> Checkpoints | None:
    """Return where arms are saved, None where nowhere; raise where there are two."""
    if checkpoint_dir is not None and artifact_store is not None:
        raise InvalidParameterError("give checkpoint_dir or artifact_store, not both")
    if checkpoint_dir is not None:
        folder = kept_path("checkpoint_dir", checkpoint_dir)
        folder.mkdir(parents=True, exist_ok=True)
        artifact_store = FileSystemArtifactStore(folder)
    methods = "open_reader", "write", "remove"
    if artifact_store is not None and not all(
        callable(getattr(artifact_store, name, None)) for name in methods
    ):
        raise InvalidParameterError(
            "artifact_store must be one of optuna.artifacts, such as "
            f"FileSystemArtifactStore(folder); got {shown(artifact_store)}"
        )
    return None if artifact_store is None else Checkpoints(artifact_store)


def claim(storage: BaseStorage) -> bool:
    """Have trials taken once only; True if dead processes have left some.

    A SQLite database is kept for this process. Other storages are shared.
    """
    # SQLite locks no row: two processes that read the queue at the same time may both
    # get the same trial.
    if isinstance(storage, GrpcStorageProxy):
        _take_by(storage, _take_from_proxy)
        return False
    backend = storage
    if isinstance(storage, _CachedStorage):
        backend = storage._backend
    if not isinstance(backend, RDBStorage) or backend.engine.dialect.name != "sqlite":
        return False
    # Two threads may not take the same trial out of the queue either.
    _take_by(storage, _one_at_a_time)
    database = backend.engine.url.database
    if not database or database == ":memory:":
        return False
    path = f"{os.path.realpath(database)}.rising.lock"
    if (os.getpid(), path) in _held:
        return False
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise SetupError(
            f"another process searches in {database}, and SQLite hands the same trial "
            "to two processes: use JournalStorage, PostgreSQL or MySQL"
        ) from None
    _held[os.getpid(), path] = lock
    return True


def check_taken_alone(storage: BaseStorage, trial_id: int) -> None:
    """Raise if others may have the trial that was taken before the storage's claim."""
    is_claimed = "set_trial_state_values" in vars(storage)
    if not isinstance(storage, GrpcStorageProxy) or is_claimed:
        return
    if not _is_first(storage, trial_id):
        raise SetupError(
            "another process was given the same trial at the same moment, as by a "
            "proxy in front of SQLite: start this process again"
        )


def _take_by(storage: BaseStorage, take: Callable[..., bool]) -> None:
    """Have trials taken out of the queue, and their states set, by a function."""
    storage.set_trial_state_values = partial(  # type: ignore[method-assign]
        take, storage
    )


def _one_at_a_time(storage: BaseStorage, *args: Any, **kwargs: Any) -> bool:
    with _popping:
        return type(storage).set_trial_state_values(storage, *args, **kwargs)


def _take_from_proxy(
    storage: BaseStorage,
    trial_id: int,
    state: TrialState,
    values: Sequence[float] | None = None,
) -> bool:
    is_set = type(storage).set_trial_state_values(storage, trial_id, state, values)
    return is_set and (state != TrialState.RUNNING or _is_first(storage, trial_id))


def _is_first(storage: BaseStorage, trial_id: int) -> bool:
    """Whether this process alone may have the trial that the storage has given it."""
    # Which database is behind a proxy cannot be seen. So processes that were given the
    # same trial go through Lamport's splitter, which lets at most one of them pass: the
    # last, if the others see it within the pause. If none does, the trial is given up
    # as that of a process that has died.
    name = uuid.uuid4().hex
    if FIRST in storage.get_trial_system_attrs(trial_id):
        return False
    storage.set_trial_system_attr(trial_id, FIRST, name)
    time.sleep(PAUSE)
    attrs = storage.get_trial_system_attrs(trial_id)
    if attrs[FIRST] != name or CLOSED in attrs:
        return False
    storage.set_trial_system_attr(trial_id, CLOSED, True)
    return bool(storage.get_trial_system_attrs(trial_id)[FIRST] == name)
