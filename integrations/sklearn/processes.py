"""Worker processes that receive the trainable, and so the data, once each."""

from __future__ import annotations

import os
import pickle
import uuid
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from joblib import cpu_count
from joblib.externals.loky.backend import reduction
from joblib.externals.loky.process_executor import ProcessPoolExecutor

_SENT: dict[str, Any] = {}


class SentOnce:
    """A trainable that pickles as a token, for workers that were sent it before.

    In a process that was not sent it, it unpickles as None: results can be read
    anywhere, and restoring the best state of one takes pickle alone.
    """

    def __init__(self, trainable: Any) -> None:
        self.trainable = trainable
        self.token = uuid.uuid4().hex
        self.start, self.train = trainable.start, trainable.train

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return _received, (self.token,)


def _receive(token: str, path: Path) -> None:
    with path.open("rb") as file:
        _SENT[token] = pickle.load(file)


def _received(token: str) -> Any:
    return _SENT.get(token)


class WorkerProcesses(Executor):
    """Processes, started with the first job and again after a shutdown.

    Every process reads the trainable from a file when it starts: the processes start
    side by side, where a pipe would be filled for one after the other. Each gets its
    share of the processors for the threads of its numerical libraries, unless the
    environment says otherwise.
    """

    restarts = True

    def __init__(self, n_workers: int, trainable: SentOnce) -> None:
        self._max_workers = n_workers
        self._trainable = trainable
        self._pool: ProcessPoolExecutor | None = None
        self._folder: TemporaryDirectory[str] | None = None

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Run ``fn`` in one of the processes."""
        if self._pool is None:
            self._pool = self._started()
        future: Future[Any] = self._pool.submit(fn, *args, **kwargs)
        return future

    def _started(self) -> ProcessPoolExecutor:
        self._folder = TemporaryDirectory(prefix="risingsearch-")
        path = Path(self._folder.name, "trainable")
        with path.open("wb") as file:
            reduction.dump(self._trainable.trainable, file)
        share = str(max(1, cpu_count() // self._max_workers))
        names = [f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL")]
        return ProcessPoolExecutor(
            self._max_workers,
            initializer=_receive,
            initargs=(self._trainable.token, path),
            env={name: os.environ.get(name, share) for name in names},
        )

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=wait, kill_workers=cancel_futures)
            self._pool = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
