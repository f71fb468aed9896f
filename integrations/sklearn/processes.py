"""Worker processes that receive the trainable, and so the data, once each."""

import glob
import os
import pickle
import platform
import shutil
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Lock
from typing import Any

import psutil
from joblib import cpu_count
from joblib._memmapping_reducer import (
    TemporaryResourcesManager,
    get_memmapping_reducers,
)
from joblib.externals.loky.backend import reduction, resource_tracker
from joblib.externals.loky.process_executor import ProcessPoolExecutor

from risingsearch.search.examples import SCORES_OF
from risingsearch.search.processes import SingleProcesses, end_with_parent
from risingsearch.search.training import Outcome, Task
from risingsearch.search.workers import Pool

OWN = f"risingsearch-{platform.node()}"
IDLE_SECONDS = 300  # after which a process without a job ends, as joblib's do
_SENT: dict[str, object] = {}
_IDLE: list[tuple[tuple[int, dict[str, str]], ProcessPoolExecutor]] = []


class SentOnce:
    """A trainable that pickles as a token, for workers that read it from a file."""

    def __init__(self, trainable: Any) -> None:
        self.trainable = trainable
        self.token = uuid.uuid4().hex
        self.start = trainable.start
        self.train = trainable.train
        self.scores_of = getattr(trainable, SCORES_OF, None)
        self.trains_anew = getattr(trainable, "trains_anew", False)
        self._path = Path()
        self._files: TemporaryResourcesManager | None = None

    def write(self) -> None:
        """Write the files, which go when this process ends, however it does."""
        if self._files is not None:
            return
        self._files = TemporaryResourcesManager(context_id=f"{OWN}-{self.token}")
        folder = Path(self._files.resolve_temp_folder_name())
        # Programs that were killed have left theirs.
        anyone = f"joblib_memmapping_folder_*_{glob.escape(OWN)}-*"
        for left in folder.parent.glob(anyone):
            number = left.name.split("_")[3]
            if number.isdecimal() and not psutil.pid_exists(int(number)):
                shutil.rmtree(left, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        self._path = folder / "trainable"
        reducers, _ = get_memmapping_reducers(
            temp_folder_resolver=lambda: str(folder),
            mmap_mode="c",
            unlink_on_gc_collect=False,
        )
        resource_tracker.register(str(self._path), "file")
        with self._path.open("wb") as file:
            reduction.dump(self.trainable, file, reducers=reducers)

    def remove(self) -> None:
        """Remove the files."""
        if self._files is not None:
            self._files._clean_temporary_resources(force=True)
            self._files = None

    def __reduce__(self) -> tuple[object, ...]:
        return _received, (self.token, self._path)


def _received(token: str, path: Path) -> object:
    if token not in _SENT and path.is_file():
        _forget()
        _SENT[token] = pickle.loads(path.read_bytes())
    return _SENT.get(token)  # None: the file is gone, and results can be read


def _forget() -> None:
    _SENT.clear()


class WorkerProcesses(SingleProcesses):
    """Processes that wait for the next search in this program when one has ended."""

    def __init__(self, n_workers: int, trainable: SentOnce) -> None:
        share = str(max(1, cpu_count() // n_workers))
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        variables = {name: os.environ.get(name, share) for name in names}
        super().__init__([variables] * n_workers)
        self._trainable = trainable
        self._jobs: set[Future[Any]] = set()  # which may have yet to read the data
        self._lock = Lock()

    def submit(
        self,
        fn: Callable[..., object],
        /,
        *args: object,
        **kwargs: Any,
    ) -> Future[Any]:
        """Run ``fn`` in one of the processes."""
        with self._lock:
            self._trainable.write()
            job = super().submit(fn, *args, **kwargs)
            self._jobs.add(job)
        job.add_done_callback(self._remove_after)
        return job

    def _remove_after(self, job: Future[Any] | None) -> None:
        with self._lock:
            self._jobs -= {job}
            if self._threads is None and not self._jobs:
                self._trainable.remove()

    def _started(self, slot: int) -> ProcessPoolExecutor:
        variables = self._slots.variables[slot]
        while _IDLE:
            key, worker = _IDLE.pop()
            if key == (os.getpid(), variables) and worker._flags.broken is None:
                return worker
            if key[0] == os.getpid():
                worker.shutdown(wait=False)
        return ProcessPoolExecutor(
            1,
            timeout=IDLE_SECONDS,
            initializer=end_with_parent,
            initargs=(os.getpid(),),
            env=variables,
        )

    def release(self) -> None:
        """Leave the processes to the next search; those with a job end after it."""
        for slot, worker in list(self._workers.items()):
            if self._slots.is_free(slot):
                del self._workers[slot]
                worker.submit(_forget)
                _IDLE.append(((os.getpid(), self._slots.variables[slot]), worker))
        self.shutdown(wait=False)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes after their jobs, and then remove the data."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        self._remove_after(None)


class ProcessApart(Pool):
    """A process for jobs that may have killed the process of their search."""

    def __init__(self, trainable: Any) -> None:
        self._sent = SentOnce(trainable)
        self._processes = WorkerProcesses(1, self._sent)
        super().__init__(self._processes)

    def train(self, trainable: Any, task: Task) -> Future[Outcome]:
        """Submit a job of the trainable that it was made with."""
        return super().train(self._sent, task)

    def release_idle(self) -> None:
        """Leave the process to the next search."""
        self._processes.release()
