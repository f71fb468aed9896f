"""Where a study is kept: its checkpoints, and a SQLite database for one process."""

import contextlib
import os
import shutil
import tarfile
import threading
import uuid
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import Any

from filelock import FileLock, Timeout
from optuna.artifacts import FileSystemArtifactStore
from optuna.artifacts.exceptions import ArtifactNotFound
from optuna.storages import BaseStorage, RDBStorage
from optuna.storages._cached_storage import _CachedStorage

from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError, RunDirError, SetupError
from risingsearch.paths import kept_path

NAME = "checkpoint"  # of the folder in an archive

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
    """Keep a SQLite database for this process; True if it was left by dead ones."""
    # SQLite locks no row: two processes that read the queue at the same time may both
    # get the same trial. Other storages are shared.
    backend = storage._backend if isinstance(storage, _CachedStorage) else storage
    if not isinstance(backend, RDBStorage) or backend.engine.dialect.name != "sqlite":
        return False
    # Two threads may not take the same trial out of the queue either.
    storage.set_trial_state_values = partial(  # type: ignore[method-assign]
        _one_at_a_time, type(storage).set_trial_state_values, storage
    )
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


def _one_at_a_time(method: Callable[..., bool], *args: Any, **kwargs: Any) -> bool:
    with _popping:
        return method(*args, **kwargs)
