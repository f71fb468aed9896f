"""Where the jobs of a search run: in this process, or on an executor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor, Future
from typing import Any

from risingsearch.errors import InvalidParameterError
from risingsearch.search.trainable import Outcome, Task, run_task


class Workers(ABC):
    """What a search asks of those who train for it.

    The adapter of a cluster subclasses this, to send data once and to leave states
    where they are.

    Parameters
    ----------
    is_elastic : bool, default False
        Whether the number of workers may change while a search runs.
    """

    def __init__(self, *, is_elastic: bool = False) -> None:
        self.is_elastic = is_elastic

    @property
    @abstractmethod
    def n_workers(self) -> int | None:
        """How many jobs can run at the same time now; None where nobody knows."""

    @abstractmethod
    def train(self, trainable: Any, task: Task) -> Future[Outcome]:
        """Start a job, as ``run_task`` would run it."""

    def rest(self) -> None:  # noqa: B027, most keep nothing
        """Let go of what is kept for the next job: there is none for now."""


class Here(Workers):
    """The process of the search: a job has run when ``train`` returns."""

    n_workers = 1

    def train(self, trainable: Any, task: Task) -> Future[Outcome]:
        """Run a job."""
        future: Future[Outcome] = Future()
        future.set_result(run_task(trainable, task))
        return future


class Pool(Workers):
    """An executor that takes any function.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Runs the jobs; it is not shut down.
    is_elastic : bool, default False
        As in ``Workers``.
    """

    def __init__(self, executor: Executor, *, is_elastic: bool = False) -> None:
        super().__init__(is_elastic=is_elastic)
        self._executor = executor

    @property
    def n_workers(self) -> int | None:
        """How many workers the executor says it has."""
        return getattr(self._executor, "_max_workers", None)

    def train(self, trainable: Any, task: Task) -> Future[Outcome]:
        """Submit a job."""
        return self._executor.submit(run_task, trainable, task)


def workers_of(executor: Any, *, is_elastic: bool = False) -> Workers:
    """Return the workers of what a user gives as ``executor``.

    Parameters
    ----------
    executor : concurrent.futures.Executor, Workers, Dask client or None
        None stands for this process.
    is_elastic : bool, default False
        Whether to take the number of workers for one that may change: a search goes on
        that was begun where it could.

    Returns
    -------
    Workers

    Raises
    ------
    InvalidParameterError
        If it is something else.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(3) as threads:
    ...     workers_of(threads).n_workers
    3
    """
    if executor is None:
        return Here(is_elastic=is_elastic)
    if isinstance(executor, Workers):
        return executor
    if any(c.__module__.startswith("distributed.") for c in type(executor).__mro__):
        from risingsearch.integrations.dask import DaskWorkers

        return DaskWorkers(executor)
    if not callable(getattr(executor, "submit", None)):
        msg = (
            "executor must be a concurrent.futures.Executor, a Dask client or None; "
            f"got {executor!r}"
        )
        raise InvalidParameterError(msg)
    return Pool(executor, is_elastic=is_elastic)
