"""A worker that was ended with its nanny is not held against what it trained."""

import asyncio
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dask
import pytest
from distributed import Client, Scheduler, SpecCluster

from risingsearch import RisingSearch
from risingsearch.arms import Job
from risingsearch.errors import WorkerError
from risingsearch.integrations.dask.losses import MOST_ENDED, Losses


@pytest.fixture
def learner(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    from learners import Learner

    return Learner(tmp_path)


@contextmanager
def worker_job(address):
    """Start a worker as a batch system does: with its nanny, in a process group."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address]
    options = ["--nthreads=1", "--nworkers=1", "--no-dashboard"]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    with subprocess.Popen(
        [*command, *options],
        env=os.environ | {"PYTHONPATH": path},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    ) as process:
        yield
        process.terminate()


@pytest.fixture
def client(monkeypatch, tmp_path):
    """Return a client of two workers that are jobs; no worker may die of an arm."""
    root = str(Path(__file__).parents[3])
    monkeypatch.setenv("PYTHONPATH", root, prepend=os.pathsep)
    monkeypatch.setenv("DASK_TEMPORARY_DIRECTORY", str(tmp_path))
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": ":0", "port": 0}}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        SpecCluster(scheduler=scheduler) as cluster,
        Client(cluster) as client,
        ExitStack() as jobs,
    ):
        for _ in range(2):
            jobs.enter_context(worker_job(cluster.scheduler_address))
        client.wait_for_workers(2)
        yield client


def found(learner, client, **first_arm):
    arms = [{"arm": arm, "top": 0.5 + arm / 10} for arm in range(3)]
    arms[0] |= first_arm
    return RisingSearch(
        learner, arms, budget=9, max_epochs=3, executor=client, n_jobs=1, seed=0
    ).run()


def test_a_job_that_was_cancelled_is_no_failure(client, learner):
    result = found(learner, client, cancelled_at=2)
    assert result.n_epochs == 9
    assert not result.failures


class Gone:
    """A client of a cluster where every nanny has ended with its worker."""

    @property
    def scheduler(self):
        return self

    async def identity(self):
        return {"workers": {}}

    async def run_on_scheduler(self, function, address):
        return False


def test_workers_that_never_live_long_enough_stop_the_search():
    losses, job = Losses(Gone()), Job(arm=3, from_epoch=4, n_epochs=1, id=0)
    for nanny in range(MOST_ENDED - 1):
        losses.add(f"tcp://{nanny}")
        assert not asyncio.run(losses.are_the_arms(job))
    losses.add("tcp://last")
    with pytest.raises(WorkerError, match="a job of arm 3 was lost 20 times"):
        asyncio.run(losses.are_the_arms(job))
