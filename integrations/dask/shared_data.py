"""What of a trainable is on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
from typing import Any

from risingsearch.integrations.dask.placement import Assignment, HeldState
from risingsearch.integrations.dask.remote import Reply, SharedTrainable, WorkerData
from risingsearch.search.trainable import Task


class SharedData:
    """A trainable of this process, and what of it is on the cluster.

    It is sent to one worker, from which the others get it: each once.
    """

    def __init__(self, trainable: Any) -> None:
        self.trainable = trainable
        self._shared = SharedTrainable.of(trainable)
        self._scattering: asyncio.Task[Any] | None = None
        self._on_worker: dict[str, Any] = {}  # Dask's futures, by address
        self.held: dict[int, HeldState] = {}  # what stayed on a worker, by arm

    async def on_worker(self, client: Any, address: str) -> Any:
        """Return Dask's future of the ``WorkerData`` of one worker."""
        if not self._is_on(address):
            shared = await self._scattered(client, address)
            if not self._is_on(address):  # nor has another job submitted it meanwhile
                self._on_worker[address] = client.submit(
                    WorkerData, shared, workers=[address], pure=False
                )
        return self._on_worker[address]

    def _is_on(self, address: str) -> bool:
        future = self._on_worker.get(address)
        return future is not None and future.status in ("pending", "finished")

    async def _scattered(self, client: Any, address: str) -> Any:
        """Return Dask's future of the trainable, sent again if it was lost."""
        if self._scattering is None or _is_lost(self._scattering):
            self._scattering = asyncio.ensure_future(
                client.scatter(self._shared, workers=[address], hash=False)
            )
        return await asyncio.shield(self._scattering)

    def drop(self, address: str) -> None:
        """Record that a worker holds nothing."""
        self._on_worker.pop(address, None)

    def record(self, chunk: Task, assignment: Assignment, reply: Reply) -> None:
        """Record what a worker holds after it was asked to train a chunk."""
        outcome, arm = reply.outcome, chunk.job.arm
        if outcome is not None and reply.token is not None:
            epoch = chunk.job.from_epoch + len(outcome.report.scores)
            n_bytes = len(outcome.resume_from)
            self.held[arm] = HeldState(assignment.address, reply.token, epoch, n_bytes)
            return
        self.held.pop(arm, None)
        if outcome is None and assignment.token is None:
            self.drop(assignment.address)


def _is_lost(scattering: asyncio.Task[Any]) -> bool:
    if not scattering.done():
        return False
    if scattering.cancelled() or scattering.exception() is not None:
        return True
    return bool(scattering.result().status != "finished")
