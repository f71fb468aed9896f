"""Workers that were lost with a chunk: whether the chunk is to blame for it."""

from __future__ import annotations

import asyncio
from typing import Any

import dask
from distributed.comm.core import connect

from risingsearch.arms import Job
from risingsearch.errors import WorkersDiedError

POLL_SECONDS = 1.0
"""Seconds after which a nanny is looked for again."""
N_POLLS = 60
"""How often, until one that has no worker is believed to stay."""

ANSWER_SECONDS = 5.0
"""Seconds after which a nanny that has not answered is believed to be gone."""

MOST_ENDED = 20
"""How often a chunk may be lost to nobody's fault before the search stops."""


class Losses:
    """The workers that were lost while they trained one chunk.

    Where a worker dies of what it trains, its nanny lives and starts another. Where the
    nanny is gone as well, somebody has ended both, or the machine is down: a job that
    was cancelled, preempted or at its time limit. That is not the arm's fault. Without
    a nanny nothing is known of a worker, and the arm is to blame.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._nannies: list[str | None] = []

    def add(self, nanny: str | None) -> None:
        """Record that a worker was lost, by the address of its nanny."""
        self._nannies.append(nanny)

    async def are_the_arms(self, job: Job) -> bool:
        """Return whether more workers have died of the chunk than are allowed to.

        A WorkersDiedError says that it will never end as things are.
        """
        allowed: int = dask.config.get("distributed.scheduler.allowed-failures")
        if len(self._nannies) <= allowed:
            return False
        n_died = sum([await self._lives_on(nanny) for nanny in self._nannies])
        n_ended = len(self._nannies) - n_died
        if n_ended >= MOST_ENDED:
            msg = (
                f"epoch {job.from_epoch + 1} of arm {job.arm} was lost {n_ended} times "
                "because its worker and nanny were ended: workers must live longer "
                "than an epoch takes"
            )
            raise WorkersDiedError(msg)
        return n_died > allowed

    async def _lives_on(self, nanny: str | None) -> bool:
        """Return whether a nanny is still there, now that its worker is not.

        One that is about to end has no worker, and does not start another.
        """
        if nanny is None:
            return True
        for _ in range(N_POLLS):
            identity = await self._client.scheduler.identity()
            if any(worker["nanny"] == nanny for worker in identity["workers"].values()):
                return True
            if not await self._client.run_on_scheduler(_answers, nanny):
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True


async def _answers(address: str, dask_scheduler: Any = None) -> bool:
    """Return whether something listens there; it runs in the scheduler."""
    try:
        comm = await connect(  # type: ignore[no-untyped-call]
            address, timeout=ANSWER_SECONDS, **dask_scheduler.connection_args
        )
    except OSError:
        return False
    await comm.close()
    return True
