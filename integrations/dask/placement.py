"""Placement of arms on workers, and the contents of each worker."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from risingsearch.integrations.dask.remote import Reply, SharedTrainable, WorkerData
from risingsearch.search.training import Task


class HeldState(NamedTuple):
    """Live state that stays on a worker."""

    address: str
    token: str
    epoch: int


class Assignment(NamedTuple):
    """Worker that trains a job."""

    address: str
    token: str | None  # of the state that it holds


class Placement:
    """Workers of a cluster, and how busy they are; an arm stays where its state is."""

    def __init__(self) -> None:
        self.threads: Mapping[str, int] = {}  # of the workers there are now
        self._busy: Counter[str] = Counter()

    @property
    def n_threads(self) -> int:
        """How many jobs can be trained at the same time."""
        return sum(self.threads.values())

    def assign(self, task: Task, state: HeldState | None) -> Assignment:
        """Choose a worker.

        Parameters
        ----------
        task : Task
            The job.
        state : HeldState or None
            The arm's last state that stayed on a worker.

        Returns
        -------
        Assignment
            The worker with the state, if it is free, or else the freest.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> placement = Placement()
        >>> placement.threads = {"a": 1, "b": 1}
        >>> job = SimpleNamespace(from_epoch=3)
        >>> task = SimpleNamespace(job=job, epochs_missing=0)
        >>> placement.assign(task, HeldState("b", "token", epoch=3)).address
        'b'
        """
        if state is not None and self._can_continue(task, state):
            assignment = Assignment(state.address, state.token)
        else:
            assignment = Assignment(max(self.threads, key=self._free), None)
        self._busy[assignment.address] += 1
        return assignment

    def _can_continue(self, task: Task, state: HeldState) -> bool:
        """Return whether a job can begin with a state where it is."""
        is_free = state.address in self.threads and self._free(state.address) > 0
        is_latest = state.epoch == task.job.from_epoch and task.epochs_missing == 0
        return is_free and is_latest

    def release(self, assignment: Assignment) -> None:
        """Record that a job is no longer trained."""
        self._busy[assignment.address] -= 1

    def _free(self, address: str) -> int:
        return self.threads[address] - self._busy[address]


class SharedData:
    """A trainable of this process, and its copies and states on the cluster."""

    def __init__(self, trainable: object) -> None:
        self.trainable = trainable
        self._shared = SharedTrainable.of(trainable)
        self._scattering: asyncio.Task[Any] | None = None
        self._on_worker: dict[str, Any] = {}  # Dask's futures, by address
        self.states: dict[int, HeldState] = {}  # by arm

    async def on_worker(self, client: Any, address: str) -> Any:
        """Return Dask's future of the ``WorkerData`` of one worker."""
        if not self._is_on(address):
            shared = await self._scattered(client, address)
            if not self._is_on(address):  # another job may have submitted it meanwhile
                self._on_worker[address] = client.submit(
                    WorkerData,
                    shared,
                    workers=[address],
                    pure=False,
                )
        return self._on_worker[address]

    def _is_on(self, address: str) -> bool:
        future = self._on_worker.get(address)
        return future is not None and future.status in ("pending", "finished")

    async def _scattered(self, client: Any, address: str) -> Any:
        """Return Dask's future of the trainable, sent again if it was lost."""
        if self._scattering is None or _is_lost(self._scattering):
            self._scattering = asyncio.ensure_future(
                client.scatter(
                    self._shared,
                    workers=[address],
                    hash=False,
                )
            )
        return await asyncio.shield(self._scattering)

    def drop(self, address: str) -> None:
        """Record that a worker holds nothing."""
        self._on_worker.pop(address, None)

    def record(
        self,
        task: Task,
        assignment: Assignment,
        reply: Reply,
    ) -> None:
        """Record the contents of a worker after its reply to a job.

        Parameters
        ----------
        task : Task
            The job.
        assignment : Assignment
            Where it was trained.
        reply : Reply
            The worker's answer.
        """
        outcome = reply.outcome
        arm = task.job.arm
        if outcome is not None and reply.token is not None:
            epoch = task.job.from_epoch + len(outcome.report.scores)
            self.states[arm] = HeldState(assignment.address, reply.token, epoch)
            return
        self.states.pop(arm, None)
        if outcome is None and assignment.token is None:
            self.drop(assignment.address)


def _is_lost(scattering: asyncio.Task[Any]) -> bool:
    if not scattering.done():
        return False
    if scattering.cancelled() or scattering.exception() is not None:
        return True
    return bool(scattering.result().status != "finished")
