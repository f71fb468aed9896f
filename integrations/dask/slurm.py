"""Keep the number of jobs of a ``dask_jobqueue.SLURMCluster`` constant."""

import asyncio
import signal
from typing import Any

from distributed.deploy.adaptive import Adaptive

from risingsearch.checks import checked_int

LOOK_EVERY = "10s"  # how often Slurm is asked for its jobs, with one squeue for all


def keep_jobs(cluster: Any, n_jobs: int) -> None:
    """Have a Slurm cluster keep this number of jobs, in the queue or running.

    For searches that last longer than jobs. A job that was cancelled, preempted or
    ended by its time limit is replaced, also if it had not started yet, or if Slurm's
    controller was down when it should have been replaced. It takes the place of
    ``cluster.scale`` and ``cluster.adapt``, and lets Ctrl-C interrupt the search, which
    ``dask_jobqueue`` prevents when it is imported.

    Parameters
    ----------
    cluster : dask_jobqueue.SLURMCluster
        A cluster whose jobs ``squeue --me`` lists here.
    n_jobs : int
        The number of jobs, at least 1.

    Raises
    ------
    InvalidParameterError
        If ``n_jobs`` is not a whole number of at least 1.

    Examples
    --------
    >>> from dask_jobqueue import SLURMCluster  # doctest: +SKIP
    >>> cluster = SLURMCluster(cores=4, processes=1, memory="8GB")  # doctest: +SKIP
    >>> keep_jobs(cluster, 8)  # doctest: +SKIP
    """
    n_jobs = checked_int("n_jobs", n_jobs, 1)
    handler = signal.getsignal(signal.SIGINT)
    if getattr(handler, "__module__", None) == "dask_jobqueue.runner":
        # Ctrl-C is to interrupt the search again, instead of ending Python.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cluster.scale(jobs=n_jobs)  # at once
    cluster.adapt(
        Adaptive=_KeptJobs,
        minimum_jobs=n_jobs,
        maximum_jobs=n_jobs,
        interval=LOOK_EVERY,
    )


class _KeptJobs(Adaptive):
    """Submits jobs again that Slurm does not list any more.

    Dask alone misses those that have never had a worker: cancelled while they waited,
    or refused by a controller that was down. If ``squeue`` fails, nothing is done.
    """

    async def recommendations(self, target: int) -> dict[str, Any]:
        """Recommend changes, after lost jobs are removed from the cluster's list."""
        cluster: Any = self.cluster
        submitted = dict(cluster.workers)  # before Slurm is asked
        listed = await _listed()
        for name, job in submitted.items():
            if job.job_id not in listed and cluster.workers.get(name) is job:
                del cluster.workers[name]
        return await super().recommendations(target)


async def _listed() -> set[str]:
    """List the pending and running jobs of this user; a RuntimeError if that fails."""
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
        raise RuntimeError(f"squeue has failed: {complained.decode().strip()}")
    return set(printed.decode().split())
