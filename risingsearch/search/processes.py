"""Worker processes that end with the process of the search, and die alone."""

import faulthandler
import os
import signal
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_start_method, parent_process
from multiprocessing.process import BaseProcess
from typing import Any

from risingsearch.errors import SetupError

POLL_SECONDS = 1.0
"""Seconds between two looks of a worker whether the process of the search lives."""
HAS_ALARM = hasattr(signal, "setitimer")  # as everywhere but on Windows
TIMED_OUT = -signal.SIGALRM if HAS_ALARM else 1
"""Exit code of a process that a ``time_limit`` has ended."""
LONGEST = 1e8  # seconds of a time limit, which is that of macOS
_STDERR = 2


class Slots:
    """Sets of variables, each for one running process at a time."""

    def __init__(self, variables: Sequence[Mapping[str, str]]) -> None:
        self.variables = [dict(each) for each in variables]
        self._free = list(range(len(variables)))
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, wanted: int | None = None) -> Iterator[int]:
        """Yield the number of a slot, once one is free that is like the wanted one."""
        variables = self.variables

        def free() -> list[int]:
            return [
                slot
                for slot in self._free
                if wanted is None or variables[slot] == variables[wanted]
            ]

        with self._changed:
            slot = self._changed.wait_for(free)[0]
            self._free.remove(slot)
        try:
            yield slot
        finally:
            with self._changed:
                self._free.append(slot)
                self._changed.notify_all()

    def is_free(self, slot: int) -> bool:
        """Return whether no process runs in a slot."""
        return slot in self._free


Worker = Any
"""An executor of one process, of the standard library or of loky."""


class SingleProcesses(Executor):
    """Worker processes with an executor each: one that dies takes one job with it."""

    isolates_jobs = True

    def __init__(self, variables: Sequence[Mapping[str, str]]) -> None:
        self._slots = Slots(variables)
        self._max_workers = len(self._slots.variables)
        self._workers: dict[int, Worker] = {}  # by slot, those that were started
        self._first: dict[int, Future[int]] = {}  # jobs of the processes, by slot
        self._threads: ThreadPoolExecutor | None = None  # each waits for a worker

    @abstractmethod
    def _started(self, slot: int) -> Worker:
        """Return an executor of one process."""

    def start(self) -> None:
        """Start the processes that are missing.

        From the thread that submits jobs: a fork while others hold locks may hang.
        """
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._max_workers)
        for slot in range(self._max_workers):
            if slot not in self._workers:
                self._workers[slot] = self._started(slot)

    def submit(
        self, fn: Callable[..., object], /, *args: object, **kwargs: object
    ) -> Future[Any]:
        """Run ``fn`` in a worker, once one is free."""
        self.start()
        assert self._threads is not None
        return self._threads.submit(self._run, partial(fn, *args, **kwargs))

    def _run(self, job: Callable[[], object]) -> object:
        with self._slots.taken() as slot:
            try:
                worker = self._workers[slot]
                future = worker.submit(job)
            except (BrokenExecutor, KeyError):  # it has died between two jobs
                self._workers[slot] = worker = self._started(slot)
                future = worker.submit(job)
            processes = list(worker._processes.values())
            try:
                result = future.result()
            except BrokenExecutor as error:
                self._workers.pop(slot, None)
                vars(error)["timed_out"] = _exit_code(processes) == TIMED_OUT
                if slot in self._first and self._first[slot].exception():
                    raise SetupError(
                        "a worker process has ended before its first job, with the "
                        "error that is printed above: put the script's calls below "
                        "if __name__ == '__main__', because workers import it"
                    ) from error
                raise
            if getattr(result, "leaves_gpu_unusable", False):
                self._workers.pop(slot, None)
                worker.shutdown(wait=False)
            return result

    def end_jobs(self) -> None:
        """End the processes that have a job, at once."""
        self._first.clear()  # it is no error of the script that they end
        for slot, worker in list(self._workers.items()):
            if not self._slots.is_free(slot):
                for pid in list(worker._processes or ()):
                    with suppress(ProcessLookupError):
                        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes after their jobs; without ``wait``, by themselves."""
        if self._threads is not None:
            self._threads.shutdown(wait, cancel_futures=cancel_futures)
            self._threads = None
        workers = list(self._workers.values())
        self._workers.clear()
        for worker in workers:
            worker.shutdown(wait)


class OwnProcesses(SingleProcesses):
    """Worker processes of a search."""

    def __init__(self, n_workers: int) -> None:
        super().__init__([{}] * n_workers)

    def _started(self, slot: int) -> ProcessPoolExecutor:
        parent = None if get_start_method() == "forkserver" else os.getpid()
        worker = ProcessPoolExecutor(
            1,
            initializer=end_with_parent,
            initargs=(parent,),
        )
        self._first[slot] = worker.submit(int)  # with which the process is started
        return worker


def _exit_code(processes: Sequence[BaseProcess]) -> int | None:
    """Return the exit code of a process that has died, which its pool reaps."""
    [process] = processes
    deadline = time.monotonic() + POLL_SECONDS
    while process.exitcode is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS / 100.0)
    return process.exitcode


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End this process, with its traceback, if a block takes longer.

    The system ends it, even while code holds the lock of Python. Once a training
    sets another alarm, that one counts.
    """
    end: Callable[[], object] = faulthandler.cancel_dump_traceback_later
    if HAS_ALARM:
        before = signal.setitimer(signal.ITIMER_REAL, seconds)
        end = partial(signal.setitimer, signal.ITIMER_REAL, *before)
    else:
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)
    try:
        yield
    finally:
        end()


def end_with_parent(parent: int | None) -> None:
    """End this worker process soon after the process of the search, however it ends.

    That has the pid ``parent``, and may have ended already; None if a server forks the
    workers. Those forked by the search hold each other's pipes open, so none of them is
    told.
    """
    if HAS_ALARM:  # by which a time limit ends it, even if the search blocks it
        faulthandler.unregister(signal.SIGALRM)  # which a nested search inherits
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        faulthandler.register(signal.SIGALRM, file=_STDERR, chain=True)

    def watch() -> None:
        if parent is None and (search := parent_process()):
            search.join()
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
