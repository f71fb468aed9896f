"""Worker processes that receive the trainable, and so the data, once each."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from joblib import cpu_count
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

    def start(self, params: Any, seed: int) -> Any:
        """Start an arm."""
        return self.trainable.start(params, seed)

    def train(self, state: Any) -> Any:
        """Train an arm one epoch more."""
        return self.trainable.train(state)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return _received, (self.token,)


def _receive(token: str, trainable: Any) -> None:
    _SENT[token] = trainable


def _received(token: str) -> Any:
    return _SENT.get(token)


class WorkerProcesses(Executor):
    """Processes, started with the first job and again after a shutdown.

    The trainable is sent to every process when it starts. Each process gets its share
    of the processors for the threads of its numerical libraries, unless the environment
    says otherwise.
    """

    def __init__(self, n_workers: int, trainable: SentOnce) -> None:
        self._max_workers = n_workers
        self._trainable = trainable
        self._pool: ProcessPoolExecutor | None = None

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Run ``fn`` in one of the processes."""
        if self._pool is None:
            share = str(max(1, cpu_count() // self._max_workers))
            names = [f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL")]
            self._pool = ProcessPoolExecutor(
                self._max_workers,
                initializer=_receive,
                initargs=(self._trainable.token, self._trainable.trainable),
                env={name: os.environ.get(name, share) for name in names},
            )
        future: Future[Any] = self._pool.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=wait, kill_workers=cancel_futures)
            self._pool = None
