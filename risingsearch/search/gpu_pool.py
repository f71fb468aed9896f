"""Worker processes that share out the GPUs of a machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from risingsearch.search.gpus import variables_of_workers
from risingsearch.search.slots import Slots

_STARTING = threading.Lock()


class GpuPool(Executor):
    """Worker processes that have GPUs of their own, or a share of one.

    Good for a search that trains several arms at once on the GPUs of a machine: it is
    an ``executor`` for ``RisingSearch`` and ``RisingSearchCV``. With less than a whole
    GPU each, workers are spread over all GPUs before they share them.

    A worker sees its GPUs alone, by ``CUDA_VISIBLE_DEVICES``. CUDA reads that variable
    once in every process, where it is first used, so a worker has it from its first
    instruction to its last; it is set in this process while the worker starts, and then
    is what it was. What may be seen here is shared out: the devices that the variable
    names, or those that ``nvidia-smi -L`` lists. On AMD it is ``HIP_VISIBLE_DEVICES``.

    Parameters
    ----------
    gpus : float, default 1.0
        GPUs of each worker: a whole number, or the share of one. 0.5 are two workers on
        a GPU; nothing divides its memory between them. It is also what a budget in
        GPU-hours counts, whatever the trainable says.
    max_workers : int, optional
        How many workers there are, from 1 to 1000; by default as many as have room.

    Raises
    ------
    InvalidParameterError
        If no GPU is seen here, or there are fewer than the workers need.

    Notes
    -----
    Workers are started at once, by ``spawn``, since CUDA does not survive a fork: what
    is trained is defined in a module, and a script that makes a pool does so below
    ``if __name__ == "__main__":``. One that dies is replaced.

    Examples
    --------
    >>> import os
    >>> os.environ["CUDA_VISIBLE_DEVICES"] = "2,3"  # as a cluster sets it
    >>> with GpuPool(gpus=0.5, max_workers=1) as pool:
    ...     pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result()
    '2'
    >>> os.environ.pop("CUDA_VISIBLE_DEVICES")
    '2,3'
    """

    isolates_jobs = True

    def __init__(self, gpus: float = 1.0, max_workers: int | None = None) -> None:
        self._slots = Slots(variables_of_workers(gpus, "max_workers", max_workers))
        self.gpus = gpus
        self._max_workers = len(self._slots.variables)
        self._workers = [_started(each) for each in self._slots.variables]
        self._waiting = ThreadPoolExecutor(self._max_workers)  # for a worker

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Run ``fn`` in a worker, once one is free."""
        return self._waiting.submit(self._run, fn, args, kwargs)

    def _run(
        self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        with self._slots.taken() as slot:
            try:
                return self._workers[slot].submit(fn, *args, **kwargs).result()
            except BrokenProcessPool:
                self._workers[slot] = _started(self._slots.variables[slot])
                raise

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers after their jobs; without ``wait``, by themselves."""
        self._waiting.shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for worker in self._workers:
                worker.shutdown()


def _started(variables: Mapping[str, str]) -> ProcessPoolExecutor:
    """Return a pool of one process, which is started with these variables."""
    worker = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with _STARTING, _set(variables):
        worker.submit(int)  # a process is started with its first job
    return worker


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process, and leave them as they were before."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
