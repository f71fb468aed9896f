"""Run the jobs of a search on the workers of a Dask cluster."""

import asyncio
import logging
import math
import time
from collections.abc import Collection, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any

import cloudpickle
from distributed import Client, KilledWorker
from distributed.cfexecutor import ClientExecutor

from risingsearch.arms import Report
from risingsearch.errors import InvalidParameterError, WorkerError
from risingsearch.integrations.dask.losses import Losses
from risingsearch.integrations.dask.placement import Assignment, Placement, SharedData
from risingsearch.integrations.dask.remote import Reply, train_job
from risingsearch.search.training import Outcome, Task, Workers

INLINE_BYTES = 2**18
"""Larger checkpoints do not go through the scheduler's list of tasks."""
REFRESH_SECONDS = 1.0
"""Seconds after which the list of the cluster's workers is read again."""
WARN_SECONDS = 10.0  # seconds without any worker after which a warning is logged

logger = logging.getLogger(__name__)


class DaskWorkers(Workers):
    """A Dask cluster as the workers of a search: data sent once, arms that stay.

    After each job its checkpoint comes back, so that a worker that dies loses one job,
    and the live state stays where it was trained.

    Parameters
    ----------
    executor : distributed.Client or its executor
        A client that is used from this thread. The options of an executor hold for
        every job (``client.get_executor(resources={"GPU": 1})``).

    Raises
    ------
    InvalidParameterError
        If the executor is another object, or the client cannot be used.

    Examples
    --------
    >>> from distributed import Client
    >>> options = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": None}
    >>> with Client(processes=False, **options) as client:
    ...     DaskWorkers(client).n_workers
    2
    """

    # Everything but ``train`` and ``n_workers`` happens in the client's event loop.

    def __init__(self, executor: object) -> None:
        super().__init__(is_elastic=True)
        self._client, self._options = _checked_client(executor)
        self._scheduler = self._client.scheduler.address
        self._placement = Placement()
        self._addresses: Collection[str] = ()  # of all workers, paused ones too
        self._nannies: dict[str, str | None] = {}  # by the addresses of their workers
        self._refreshed = -math.inf  # when, on time.monotonic
        self._data: SharedData | None = None

    @property
    def n_workers(self) -> int:
        """Number of threads of all workers now."""
        if self._client.status == "running" and self._is_due:
            self._client.sync(self._refresh)
        return self._placement.n_threads

    def train(self, trainable: Any, task: Task) -> Future[Outcome]:
        """Start a job.

        Parameters
        ----------
        trainable : Trainable
            Sent to each worker once.
        task : Task
            The job.

        Returns
        -------
        concurrent.futures.Future
            Of the outcome.

        Raises
        ------
        ConnectionError
            If the cluster cannot be reached any more.
        """
        if self._client.status in ("closing", "closed"):
            raise self._lost()
        if self._data is None or self._data.trainable is not trainable:
            self._data = SharedData(trainable)
        loop = self._client.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(self._train(self._data, task), loop)

    def release_idle(self) -> None:
        """Release the data and the states on the workers."""
        self._data = None

    async def _train(self, data: SharedData, task: Task) -> Outcome:
        """Train a job, on another worker if one is lost with it."""
        began = time.perf_counter()
        losses = Losses(self._client)
        while True:
            assignment = await self._assign(data, task)
            nanny = self._nannies.get(assignment.address)
            try:
                reply = await self._reply(data, task, assignment)
            except (CancelledError, KeyError, KilledWorker, OSError) as error:
                data.drop(assignment.address)
                self._refreshed = -math.inf
                if not await self._is_connected():
                    raise self._lost() from error
                losses.add(nanny)
                if await losses.are_the_arms(task.job):
                    return _retried(task, _died(task, error, began))
                continue
            finally:
                self._placement.release(assignment)
            if reply.error is not None:
                raise reply.error
            data.record(task, assignment, reply)
            if reply.outcome is not None:
                return _retried(task, reply.outcome)

    async def _assign(self, data: SharedData, task: Task) -> Assignment:
        """Choose a worker for a job, as soon as there is one."""
        await self._refresh()
        while not self._placement.n_threads:
            await self._wait_for_worker()
            await asyncio.sleep(REFRESH_SECONDS)
            await self._refresh()
        return self._placement.assign(task, data.states.get(task.job.arm))

    async def _wait_for_worker(self) -> None:
        """Submit an empty task, for which adaptive clusters start a worker."""
        future = self._client.submit(
            bool,
            pure=False,
            **self._options,
        )
        asked = asyncio.ensure_future(future)
        try:
            done, _ = await asyncio.wait({asked}, timeout=WARN_SECONDS)
            if not done:
                logger.warning("the Dask cluster has no workers: the search waits")
            await asked
        except (CancelledError, KilledWorker) as error:
            if not await self._is_connected():
                raise self._lost() from error
        finally:
            asked.cancel()
            future.release()

    async def _reply(
        self,
        data: SharedData,
        task: Task,
        assignment: Assignment,
    ) -> Reply:
        """Let one worker train a job; it may not go to another, nor be repeated."""
        client = self._client
        workers = [assignment.address]
        on_worker = await data.on_worker(client, assignment.address)
        checkpoint = None
        if assignment.token is None:
            checkpoint = task.state
        if checkpoint is not None and len(checkpoint) > INLINE_BYTES:
            checkpoint = await client.scatter(
                checkpoint,
                workers=workers,
                hash=False,
            )
        future = client.submit(
            train_job,
            on_worker,
            cloudpickle.dumps(task._replace(state=None)),
            checkpoint,
            assignment.token,
            pure=False,
            **self._options | {"workers": workers},
        )
        reply: asyncio.Future[Reply] = asyncio.ensure_future(future)
        try:
            while not reply.done():
                await asyncio.wait({reply}, timeout=REFRESH_SECONDS)
                await self._refresh()
                if assignment.address not in self._addresses and not reply.done():
                    raise ConnectionError(f"{assignment.address} has left the cluster")
            return await reply
        finally:
            reply.cancel()
            future.release()

    @property
    def _is_due(self) -> bool:
        return time.monotonic() - self._refreshed >= REFRESH_SECONDS

    async def _refresh(self) -> None:
        """Read which workers there are, unless that was done just before."""
        if not self._is_due:
            return
        self._refreshed = time.monotonic()
        try:
            identity = await self._client.scheduler.identity()
        except OSError:  # if it lasts, the jobs fail
            return
        self._addresses = identity["workers"].keys()
        self._nannies = {}
        threads: dict[str, int] = {}
        for address, worker in identity["workers"].items():
            self._nannies[address] = worker["nanny"]
            n_threads = _usable_threads(address, worker, self._options)
            if n_threads:
                threads[address] = n_threads
        self._placement.threads = threads

    def _lost(self) -> ConnectionError:
        """Return the error for a cluster that cannot be reached any more."""
        return ConnectionError(
            f"the client has lost the Dask scheduler at {self._scheduler}: with a "
            "run_dir, RisingSearch.resume continues on this cluster or another one"
        )

    async def _is_connected(self) -> bool:
        """Return whether there is a scheduler, once the client has found out."""
        while self._client.status == "connecting":
            await asyncio.sleep(0.1)
        return bool(self._client.status == "running")


def _checked_client(executor: object) -> tuple[Any, dict[str, Any]]:
    """Return the client, and the options of its executor's jobs."""
    client = executor
    options = {}
    if isinstance(executor, ClientExecutor):
        client = executor._client
        options = dict(executor._kwargs)
        options.pop("pure", None)
        if options.pop("allow_other_workers", False):
            options.pop("workers", None)
    if not isinstance(client, Client):
        raise InvalidParameterError(
            "executor must be a distributed.Client or its client.get_executor(); got "
            f"{executor!r}"
        )
    if client.status != "running" or client.asynchronous:
        state = "asynchronous" if client.asynchronous else client.status
        raise InvalidParameterError(
            f"executor must be a connected Dask client that blocks; {client} is {state}"
        )
    return client, options


def _usable_threads(
    address: str,
    worker: Mapping[str, Any],
    options: Mapping[str, Any],
) -> int:
    """Return how many jobs with these options a worker can train at the same time."""
    if worker["status"] != "running":
        return 0
    wanted = options.get("workers")
    if wanted is not None:
        if isinstance(wanted, str):
            wanted = [wanted]
        if not {address, worker["host"], worker["name"]} & set(wanted):
            return 0
    n_threads: int = worker["nthreads"]
    for resource, amount in (options.get("resources") or {}).items():
        available = worker["resources"].get(resource, 0)
        n_threads = min(n_threads, int(available // amount))
    return n_threads


def _died(
    task: Task,
    error: Exception,
    began: float,
) -> Outcome:
    """Return the outcome of a job that its workers have died of."""
    failure = WorkerError(
        f"arm {task.job.arm} was lost with every worker that trained it after epoch "
        f"{task.job.from_epoch} ({error})"
    )
    elapsed = time.perf_counter() - began
    return Outcome(Report(task.job, failure=failure), elapsed=elapsed, charged=1)


def _retried(task: Task, outcome: Outcome) -> Outcome:
    """Return the outcome with the state for a retry, if no worker knew one."""
    if task.may_retry and outcome.resume_from is None and not outcome.ended:
        return outcome._replace(resume_from=task.state)
    return outcome
