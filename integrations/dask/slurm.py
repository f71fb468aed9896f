"""The jobs of a ``dask_jobqueue.SLURMCluster``: as many as were asked for."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from distributed.deploy.adaptive import Adaptive

from risingsearch.checks import checked_int

LOOK_EVERY = "10s"
"""How often Slurm is asked for its jobs, with one ``squeue`` for all."""


def keep_jobs(cluster: Any, n_jobs: int) -> None:
    """Have a Slurm cluster keep so many jobs, in the queue or running.

    Good for searches that last longer than jobs do. A job that was cancelled, preempted
    or ended by its time limit is replaced, also where it had not started yet, and where
    Slurm's controller was down as it should have been. It takes the place of
    ``cluster.scale`` and ``cluster.adapt``, and gives Ctrl-C back to the search, which
    ``dask_jobqueue`` has taken where it was imported.

    Parameters
    ----------
    cluster : dask_jobqueue.SLURMCluster
        A cluster whose jobs ``squeue --me`` lists here.
    n_jobs : int
        How many jobs, from 1.

    Raises
    ------
    InvalidParameterError
        If ``n_jobs`` is not such a number.

    Examples
    --------
    >>> from dask_jobqueue import SLURMCluster  # doctest: +SKIP
    >>> cluster = SLURMCluster(cores=4, processes=1, memory="8GB")  # doctest: +SKIP
    >>> keep_jobs(cluster, 8)  # doctest: +SKIP
    """
    n_jobs = checked_int("n_jobs", n_jobs, 1)
    _give_ctrl_c_back()
    cluster.scale(jobs=n_jobs)  # at once
    cluster.adapt(
        Adaptive=_KeptJobs,
        minimum_jobs=n_jobs,
        maximum_jobs=n_jobs,
        interval=LOOK_EVERY,
    )


def _give_ctrl_c_back() -> None:
    """Have Ctrl-C interrupt the search, and not end Python as dask_jobqueue has it."""
    handler = signal.getsignal(signal.SIGINT)
    if getattr(handler, "__module__", None) == "dask_jobqueue.runner":
        signal.signal(signal.SIGINT, signal.default_int_handler)


class _KeptJobs(Adaptive):
    """Submits jobs again that Slurm has no more.

    Dask alone misses those that have never had a worker: cancelled while they waited,
    or not taken by a controller that was down. Where ``squeue`` fails nothing is done.
    """

    async def recommendations(self, target: int) -> dict[str, Any]:
        """Return what is to be done, once what is lost is no more counted."""
        cluster: Any = self.cluster
        submitted = dict(cluster.workers)  # before Slurm is asked
        listed = await _listed()
        for name, job in submitted.items():
            if job.job_id not in listed and cluster.workers.get(name) is job:
                del cluster.workers[name]
        return await super().recommendations(target)


async def _listed() -> set[str]:
    """Return the jobs of this user that wait or run; a RuntimeError if none says."""
    process = await asyncio.create_subprocess_exec(
        "squeue",
        "--me",
        "--noheader",
        "--format=%A",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complained = await process.communicate()
    if process.returncode != 0:
        msg = f"squeue has failed: {complained.decode().strip()}"
        raise RuntimeError(msg)
    return set(printed.decode().split())
