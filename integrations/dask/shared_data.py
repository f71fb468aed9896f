"""The workers of a Dask cluster, for a search."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Collection, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any

import cloudpickle
import dask
from dask.utils import parse_bytes
from distributed import Client, KilledWorker
from distributed.cfexecutor import ClientExecutor

from risingsearch.arms import Report
from risingsearch.errors import InvalidParameterError, WorkersDiedError
from risingsearch.integrations.dask.chunks import Parts
from risingsearch.integrations.dask.placement import Held, Place, Places
from risingsearch.integrations.dask.remote import Reply, Sent, There, train_arm
from risingsearch.search.trainable import Outcome, Task
from risingsearch.search.workers import Workers

INLINE_BYTES = 2**18
"""Larger checkpoints do not go through the scheduler's list of tasks."""
LOOK_EVERY = 1.0
"""Seconds after which the workers of the cluster are looked at again."""
SAY_AFTER = 10.0
"""Seconds without any worker after which that is said."""

logger = logging.getLogger(__name__)


class DaskWorkers(Workers):
    """What a search makes of a Dask client: data sent once, arms that stay.

    Jobs are cut into parts of an epoch, or of some where epochs are short. After each
    part the checkpoint comes back, so that a worker that dies takes one part along, and
    the live state stays where it was trained.

    Parameters
    ----------
    executor : distributed.Client or its executor
        A client that is used from this thread. Of an executor the options are kept
        (``client.get_executor(resources={"GPU": 1})``).

    Raises
    ------
    InvalidParameterError
        If it is something else, or the client cannot be used.

    Notes
    -----
    Everything but ``train`` and ``n_workers`` happens in the client's event loop.
    """

    def __init__(self, executor: Any) -> None:
        super().__init__(is_elastic=True)
        self._client, self._options = _checked_client(executor)
        bandwidth = dask.config.get("distributed.scheduler.bandwidth")
        self._places = Places(parse_bytes(bandwidth))
        self._addresses: Collection[str] = ()  # of all workers, paused ones too
        self._looked = -math.inf  # at the cluster, on time.monotonic
        self._data: _Data | None = None
        self._pace: dict[int, float] = {}  # seconds per epoch, by arm

    @property
    def n_workers(self) -> int:
        """How many threads all workers have now."""
        if self._client.status == "running" and self._is_due:
            self._client.sync(self._look)
        return self._places.n_threads

    def train(self, trainable: Any, task: Task) -> Future[Outcome]:
        """Start a job."""
        if self._client.status in ("closing", "closed"):
            msg = f"the Dask client is {self._client.status}"
            raise RuntimeError(msg)
        if self._data is None or self._data.trainable is not trainable:
            self._data = _Data(trainable)
        loop = self._client.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(self._train(self._data, task), loop)

    def rest(self) -> None:
        """Let the workers forget the data and the states."""
        self._data = None

    # ------------------------------------------------------------ in the event loop

    async def _train(self, data: _Data, task: Task) -> Outcome:
        arm = task.job.arm
        at_a_stroke = callable(getattr(data.trainable, "train_epochs", None))
        parts = Parts(task, at_a_stroke=at_a_stroke)
        while not parts.done:
            part = parts.next(self._pace.get(arm))
            outcome = await self._train_part(data, part)
            parts.add(part, outcome)
            if outcome.report.scores:
                self._pace[arm] = outcome.elapsed / len(outcome.report.scores)
        return parts.outcome()

    async def _train_part(self, data: _Data, part: Task) -> Outcome:
        """Train a part, on as many workers as die while they do."""
        began = time.perf_counter()
        n_lost = 0
        while True:
            place = await self._begin(data, part)
            try:
                reply = await self._reply(data, part, place)
            except (CancelledError, KeyError, KilledWorker, OSError) as error:
                data.drop(place.address)
                self._looked = -math.inf
                n_lost += 1
                if not await self._is_connected():
                    raise
                allowed = dask.config.get("distributed.scheduler.allowed-failures")
                if isinstance(error, KilledWorker) or n_lost > allowed:
                    return _died(part, error, time.perf_counter() - began)
                continue
            finally:
                self._places.end(place)
            if reply.error is not None:
                raise reply.error
            data.note(part, place, reply)
            if reply.outcome is not None:
                self._places.took(reply.outcome.elapsed)
                return reply.outcome

    async def _begin(self, data: _Data, part: Task) -> Place:
        """Choose a worker for a part, as soon as there is one."""
        await self._look()
        while not self._places.n_threads:
            await self._some_worker()
            await asyncio.sleep(LOOK_EVERY)
            await self._look()
        return self._places.begin(part, data.held.get(part.job.arm))

    async def _some_worker(self) -> None:
        """Wait by a task that does nothing: adaptive clusters start a worker for it."""
        future = self._client.submit(bool, pure=False, **self._options)
        asked = asyncio.ensure_future(future)
        try:
            done, _ = await asyncio.wait({asked}, timeout=SAY_AFTER)
            if not done:
                logger.warning("the Dask cluster has no workers: the search waits")
            await asked
        except CancelledError:
            if not await self._is_connected():
                raise
        finally:
            asked.cancel()
            future.release()

    async def _reply(self, data: _Data, part: Task, place: Place) -> Reply:
        """Let one worker train a part; it may not go to another, nor be repeated."""
        client, workers = self._client, [place.address]
        there = await data.on_worker(client, place.address)
        checkpoint = part.state if place.token is None else None
        if checkpoint is not None and len(checkpoint) > INLINE_BYTES:
            checkpoint = await client.scatter(checkpoint, workers=workers, hash=False)
        future = client.submit(
            train_arm,
            there,
            cloudpickle.dumps(part._replace(state=None)),
            checkpoint,
            place.token,
            pure=False,
            **self._options | {"workers": workers},
        )
        reply: asyncio.Future[Reply] = asyncio.ensure_future(future)
        try:
            while not reply.done():
                await asyncio.wait({reply}, timeout=LOOK_EVERY)
                await self._look()
                if place.address not in self._addresses and not reply.done():
                    msg = f"{place.address} has left the cluster"
                    raise ConnectionError(msg)
            return await reply
        finally:
            reply.cancel()
            future.release()

    @property
    def _is_due(self) -> bool:
        return time.monotonic() - self._looked >= LOOK_EVERY

    async def _look(self) -> None:
        """See which workers there are, if that was not done lately."""
        if not self._is_due:
            return
        self._looked = time.monotonic()
        try:
            identity = await self._client.scheduler.identity()
        except OSError:  # the jobs will say so, if it lasts
            return
        self._addresses = identity["workers"].keys()
        self._places.see(
            {
                address: n_threads
                for address, worker in identity["workers"].items()
                if (n_threads := _usable_threads(address, worker, self._options))
            }
        )

    async def _is_connected(self) -> bool:
        """Return whether there is a scheduler, once the client has found out."""
        while self._client.status == "connecting":
            await asyncio.sleep(0.1)
        return bool(self._client.status == "running")


class _Data:
    """A trainable, and what of it is on the cluster.

    It is sent to one worker, from which the others get it: each once.

    Parameters
    ----------
    trainable : Trainable
        In this process.

    Attributes
    ----------
    held : dict of int to Held
        The state that stayed on a worker, by arm.
    """

    def __init__(self, trainable: Any) -> None:
        self.trainable = trainable
        self._sent = Sent.of(trainable)
        self._scattering: asyncio.Task[Any] | None = None
        self._there: dict[str, Any] = {}  # Dask's futures, by address
        self.held: dict[int, Held] = {}

    async def on_worker(self, client: Any, address: str) -> Any:
        """Return Dask's future of what one worker has."""
        if not self._is_there(address):
            sent = await self._scattered(client, address)
            if not self._is_there(address):  # nor has another job seen to it
                self._there[address] = client.submit(
                    There, sent, workers=[address], pure=False
                )
        return self._there[address]

    def _is_there(self, address: str) -> bool:
        there = self._there.get(address)
        return there is not None and there.status in ("pending", "finished")

    async def _scattered(self, client: Any, address: str) -> Any:
        """Return Dask's future of what is sent, sent again if it was lost."""
        if self._scattering is None or _is_lost(self._scattering):
            self._scattering = asyncio.ensure_future(
                client.scatter(self._sent, workers=[address], hash=False)
            )
        return await asyncio.shield(self._scattering)

    def drop(self, address: str) -> None:
        """Take in that a worker has nothing."""
        self._there.pop(address, None)

    def note(self, part: Task, place: Place, reply: Reply) -> None:
        """Take in what a worker has after it was asked to train a part."""
        outcome, arm = reply.outcome, part.job.arm
        if outcome is not None and reply.token is not None:
            epoch = part.job.from_epoch + len(outcome.report.scores)
            n_bytes = len(outcome.resume_from)
            self.held[arm] = Held(place.address, reply.token, epoch, n_bytes)
            return
        self.held.pop(arm, None)
        if outcome is None and place.token is None:
            self.drop(place.address)


def _is_lost(scattering: asyncio.Task[Any]) -> bool:
    if not scattering.done():
        return False
    if scattering.cancelled() or scattering.exception() is not None:
        return True
    return bool(scattering.result().status != "finished")


def _checked_client(executor: Any) -> tuple[Any, dict[str, Any]]:
    """Return the client, and what its executor's jobs are submitted with."""
    client, options = executor, {}
    if isinstance(executor, ClientExecutor):
        client, options = executor._client, dict(executor._kwargs)
        options.pop("pure", None)
        if options.pop("allow_other_workers", False):
            options.pop("workers", None)
    if not isinstance(client, Client):
        msg = (
            "executor must be a distributed.Client or its client.get_executor(); got "
            f"{executor!r}"
        )
        raise InvalidParameterError(msg)
    if client.status != "running" or client.asynchronous:
        state = "asynchronous" if client.asynchronous else client.status
        msg = (
            f"executor must be a connected Dask client that blocks; {client} is {state}"
        )
        raise InvalidParameterError(msg)
    return client, options


def _usable_threads(
    address: str, worker: Mapping[str, Any], options: Mapping[str, Any]
) -> int:
    """Return how many jobs with these options a worker can train at the same time."""
    if worker["status"] != "running":
        return 0
    wanted = options.get("workers")
    if wanted is not None:
        wanted = [wanted] if isinstance(wanted, str) else wanted
        names = {address, worker["host"], worker["name"]}
        if not names & set(wanted):
            return 0
    most: int = worker["nthreads"]
    for resource, amount in (options.get("resources") or {}).items():
        most = min(most, int(worker["resources"].get(resource, 0) // amount))
    return most


def _died(part: Task, error: Exception, seconds: float) -> Outcome:
    """Return that an arm brings its workers down: a failure of its job."""
    failure = WorkersDiedError(
        f"arm {part.job.arm} was lost with every worker that trained its epoch "
        f"{part.job.from_epoch + 1} ({error})"
    )
    return Outcome(
        Report(part.job, failure=failure),
        ended=False,
        resume_from=None,
        snapshot=None,
        n_calls=0,
        elapsed=seconds,
    )
