"""Workers of a cluster on one machine have its GPUs, or shares of them."""

from pathlib import Path

import pytest
from distributed import Client, Scheduler, SpecCluster

from risingsearch import Functions, RisingSearch
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.dask import gpu_workers

MASK = "CUDA_VISIBLE_DEVICES"


@pytest.fixture
def seen_gpus(monkeypatch):
    """Return the module of the training functions, which the workers import by name."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "search")
    import seen_gpus

    return seen_gpus


def test_each_worker_of_a_cluster_trains_on_its_own(seen_gpus, monkeypatch):
    monkeypatch.setenv(MASK, "5,7")
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": ":0"}}
    with (
        SpecCluster(workers=gpu_workers(n_workers=2), scheduler=scheduler) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        result = RisingSearch(
            Functions(seen_gpus.start, seen_gpus.train),
            [{"top": top / 10} for top in range(1, 9)],
            policy="round-robin",
            budget=24,
            executor=client.get_executor(resources={"GPU": 1}),
            seed=0,
        ).run()
    gpus = {row["process"]: row["gpu"] for row in result.history}
    assert all(gpus[row["process"]] == row["gpu"] for row in result.history)
    assert set(gpus.values()) == {5, 7}


def test_what_cannot_be_had(monkeypatch):
    monkeypatch.setenv(MASK, "5,7")
    with pytest.raises(InvalidParameterError, match="5 workers have no room"):
        gpu_workers(0.5, 5)
    with pytest.raises(InvalidParameterError, match="n_workers must be a whole number"):
        gpu_workers(0.5, 0)
