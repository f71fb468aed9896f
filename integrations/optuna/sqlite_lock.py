"""SQLite is no queue: a study in it belongs to one process at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from filelock import FileLock, Timeout
from optuna.storages import BaseStorage, RDBStorage
from optuna.storages._cached_storage import _CachedStorage

from risingsearch.errors import SetupError

BEGUN = datetime.now()  # before the first trial of this process

_popping = threading.Lock()
_held: dict[tuple[int, str], FileLock] = {}  # by process, until it ends


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
        msg = (
            f"another process searches in {database}, and SQLite hands the same trial "
            "to two processes: use JournalStorage, PostgreSQL or MySQL"
        )
        raise SetupError(msg) from None
    _held[os.getpid(), path] = lock
    return True


def _one_at_a_time(method: Callable[..., bool], *args: Any, **kwargs: Any) -> bool:
    with _popping:
        return method(*args, **kwargs)
