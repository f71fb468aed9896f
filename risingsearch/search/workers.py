"""The workers of a search, by its ``executor`` and ``n_jobs``."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from risingsearch.checks import checked_int
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.options import SearchOptions
from risingsearch.search.processes import OwnProcesses
from risingsearch.search.training import InProcess, Outcome, Task, Workers, run_task


class Pool(Workers):
    """An executor that takes any function; it is not shut down."""

    def __init__(self, executor: Executor, *, is_elastic: bool = False) -> None:
        super().__init__(is_elastic=is_elastic)
        self._executor = executor
        self.gpus = getattr(executor, "gpus", None)
        self.shares_process = isinstance(executor, ThreadPoolExecutor)
        self.is_own = isinstance(executor, OwnProcesses)
        self.isolates_jobs = getattr(executor, "isolates_jobs", False)
        self.end_jobs = getattr(executor, "end_jobs", bool)

    @property
    def n_workers(self) -> int | None:
        """How many workers the executor says it has."""
        return getattr(self._executor, "_max_workers", None)

    def release_idle(self) -> None:
        """End processes that belong to the search."""
        if self.is_own:
            self._executor.shutdown(wait=False)

    def train(self, trainable: Any, task: Task) -> Future[Outcome]:
        """Submit a job."""
        return self._executor.submit(run_task, trainable, task)


def workers_of(
    executor: Any, *, n_jobs: int | None = None, is_elastic: bool = False
) -> Workers:
    """Return the workers that ``executor`` stands for, or ``n_jobs`` processes."""
    if executor is None and n_jobs not in (None, 1):
        return Pool(OwnProcesses(checked_int("n_jobs", n_jobs, 1)))
    if executor is None:
        return InProcess(is_elastic=is_elastic)
    if isinstance(executor, Workers):
        return executor
    if any(c.__module__.startswith("distributed.") for c in type(executor).__mro__):
        from risingsearch.integrations.dask import DaskWorkers

        return DaskWorkers(executor)
    if not callable(getattr(executor, "submit", None)):
        raise InvalidParameterError(
            "executor must be a concurrent.futures.Executor, a Dask client or None; "
            f"got {executor!r}"
        )
    return Pool(executor, is_elastic=is_elastic)


def checked_n_jobs(options: SearchOptions, workers: Workers) -> int | None:
    """Return how many jobs may be in flight; None stands for one per worker."""
    if options.n_jobs is not None:
        return options.n_jobs
    executor = options.executor
    n_workers = workers.n_workers
    if n_workers is None:
        raise InvalidParameterError(
            f"{executor!r} does not say how many workers it has: give n_jobs"
        )
    if n_workers == 0 and options.deterministic:
        raise InvalidParameterError(
            f"deterministic=True needs a fixed n_jobs, and {executor!r} has no workers "
            "yet: give n_jobs"
        )
    if workers.is_elastic and not options.deterministic:
        return None
    return n_workers


def workers_to_resume(
    executor: object, n_jobs: int | None, *, is_own: bool
) -> Workers | None:
    """Return the workers of a resumed search; None for its own processes."""
    if executor is None and is_own:
        return None
    return workers_of(executor, is_elastic=n_jobs is None)
