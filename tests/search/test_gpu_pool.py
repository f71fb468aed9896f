"""Workers have their GPUs from their start, and this process is left as it was."""

import os
import signal
from concurrent.futures.process import BrokenProcessPool

import pytest
import seen_gpus

from risingsearch import Budget, Functions, GpuPool, RisingSearch
from risingsearch.errors import InvalidParameterError
from risingsearch.search.gpus import MASKS
from risingsearch.search.processes import OwnProcesses

ORDER = "CUDA_DEVICE_ORDER"
LISTED = "GPU 0: A (UUID: GPU-aa)\nGPU 1: A (UUID: GPU-bb)\n"


@pytest.fixture(scope="module")
def pool():
    """Two workers on each of two GPUs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(seen_gpus.MASK, "5,7")
        pool = GpuPool(gpus=0.5)
    with pool:
        yield pool


def search(
    executor, budget, tops=(0.4, 0.0, 0.6, 0.8, 0.5, 0.7), params=None, **options
):
    return RisingSearch(
        Functions(seen_gpus.start, seen_gpus.train, gpus=4),
        [{"top": top, **(params or {})} for top in tops],
        policy="round-robin",
        budget=budget,
        max_epochs=4,
        executor=executor,
        seed=0,
        **options,
    )


def test_workers_are_spread_over_the_gpus_and_then_share_them(pool, tmp_path):
    jobs = [pool.submit(seen_gpus.together, tmp_path, k, 4) for k in range(4)]
    seen = [job.result() for job in jobs]
    assert sorted(gpu for _, gpu in seen) == ["5", "5", "7", "7"]
    assert len({process for process, _ in seen}) == 4


def test_a_worker_has_its_gpu_before_it_imports_what_is_trained(pool):
    _, gpu, at_import = pool.submit(seen_gpus.seen).result()
    assert at_import == gpu


def test_a_process_keeps_its_gpu_through_a_search_in_which_training_raises(pool):
    result = search(pool, 20).run()
    assert [str(report.failure) for report in result.failures] == ["out of memory"]
    trained = [row for row in result.history if "process" in row]
    gpus = {row["process"]: row["gpu"] for row in trained}
    assert all(gpus[row["process"]] == row["gpu"] for row in trained)
    assert set(gpus.values()) == {5, 7}


def test_gpu_hours_count_the_gpus_of_a_worker(pool):
    result = search(pool, Budget(gpu_hours=1e-9), tops=[0.4]).run()
    assert result.spent == pytest.approx(result.training_seconds * 0.5 / 3600)


def test_a_worker_that_dies_is_replaced_on_its_gpu(monkeypatch):
    monkeypatch.setenv(seen_gpus.MASK, "3")
    with GpuPool() as pool:
        before = pool.submit(seen_gpus.seen).result()
        with pytest.raises(BrokenProcessPool):
            pool.submit(os._exit, 1).result()
        after = pool.submit(seen_gpus.seen).result()
    assert before[0] != after[0]
    assert before[1:] == after[1:] == ("3", "3")


@pytest.mark.parametrize("kind", [GpuPool, OwnProcesses])
def test_a_job_does_not_fail_by_a_death_before_it(monkeypatch, kind):
    monkeypatch.setenv(seen_gpus.MASK, "3")
    with kind(1) as pool:
        idle = pool.submit(os.getpid).result()
        os.kill(idle, signal.SIGKILL)
        pool._workers[0]._executor_manager_thread.join()  # it is known by then
        assert pool.submit(os.getpid).result() != idle


class TestThisProcess:
    @pytest.fixture(autouse=True)
    def driver(self, tmp_path, monkeypatch):
        """Have the driver list two GPUs, and no variable name any."""
        for name in (*MASKS, ORDER):
            monkeypatch.delenv(name, raising=False)
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\necho '{LISTED}'\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def test_it_is_left_as_it_was(self, monkeypatch):
        monkeypatch.setenv(ORDER, "FASTEST_FIRST")
        before = dict(os.environ)
        with GpuPool(max_workers=1) as pool:
            assert dict(os.environ) == before
            assert pool.submit(os.getenv, ORDER).result() == "PCI_BUS_ID"
            assert pool.submit(os.getenv, seen_gpus.MASK).result() == "0"

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"gpus": 0}, "gpus must be a finite number above 0 and at most 1000"),
            ({"gpus": 1.5}, "gpus must be a whole number, or less than 1 where"),
            ({"gpus": 0.5, "max_workers": 5}, "5 workers have no room where gpus is"),
            ({"gpus": 4}, "1 workers have no room where gpus is 4: 2 can be seen here"),
            ({"max_workers": 0}, "max_workers must be a whole number"),
        ],
    )
    def test_what_cannot_be_had(self, given, message):
        with pytest.raises(InvalidParameterError, match=message):
            GpuPool(**given)
