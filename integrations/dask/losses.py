"""Decide whether a job has killed the workers that were lost with it."""

import asyncio
from typing import Any

import dask
from distributed.comm.core import connect

from risingsearch.arms import Job
from risingsearch.errors import WorkerError

POLL_SECONDS = 1.0  # seconds between two looks for a nanny
N_POLLS = 60  # looks after which a nanny without a worker counts as alive

ANSWER_SECONDS = 5.0  # seconds after which a nanny that does not answer counts as gone

MOST_ENDED = 20  # losses of a job with their nannies after which the search stops


class Losses:
    """Workers that were lost while they trained one job.

    If a job kills its worker, the nanny survives and starts another. If the nanny is
    gone as well, both were ended, or the machine is down: the job was cancelled,
    preempted or at its time limit, which is no failure of the arm. The loss of a worker
    without a nanny counts as a failure of the arm.

    Parameters
    ----------
    client : distributed.Client
        The client of the cluster.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._nannies: list[str | None] = []

    def add(self, nanny: str | None) -> None:
        """Record that a worker was lost, by the address of its nanny."""
        self._nannies.append(nanny)

    async def are_the_arms(self, job: Job) -> bool:
        """Return whether more workers have died of the job than are allowed to.

        Parameters
        ----------
        job : Job
            The job that the workers trained.

        Returns
        -------
        bool
            Whether the loss is a failure of the arm.

        Raises
        ------
        WorkerError
            If the job is lost again and again, with the nannies too.
        """
        allowed: int = dask.config.get("distributed.scheduler.allowed-failures")
        if len(self._nannies) <= allowed:
            return False
        n_died = sum([await self._lives_on(nanny) for nanny in self._nannies])
        n_ended = len(self._nannies) - n_died
        if n_ended >= MOST_ENDED:
            raise WorkerError(
                f"a job of arm {job.arm} was lost {n_ended} times because its worker "
                "and nanny were ended: workers must live longer than a job takes "
                f"({job.n_epochs} epochs: see epochs_per_job)"
            )
        return n_died > allowed

    async def _lives_on(self, nanny: str | None) -> bool:
        """Return whether the nanny of a lost worker is alive.

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
    """Return whether an address accepts connections; runs in the scheduler."""
    try:
        comm = await connect(  # type: ignore[no-untyped-call]
            address,
            timeout=ANSWER_SECONDS,
            **dask_scheduler.connection_args,
        )
    except OSError:
        return False
    await comm.close()
    return True
