"""Paused runs are exact, and leave nothing on the device: on a GPU, and on the CPU."""

import gc
import os
import sys
import weakref
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

# cuBLAS reads it when it starts; older releases of torch ask for it.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn

from risingsearch import GpuPool, RisingSearch
from risingsearch.integrations.torch import TorchTrainable

sys.path.insert(0, str(Path(__file__).parent))
import digits_loop as loop  # workers import it too

PARAMS = {"rate": 0.01, "width": 32}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(autouse=True)
def deterministic():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(before)


@pytest.fixture
def no_collection():
    """Have only what is freed at once be free."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def trainable(device, build=loop.build, **limits):
    return TorchTrainable(
        build, loop.train_epoch, loop.validate, device=device, **limits
    )


@pytest.fixture
def built():
    """Return weak references to the weights of all models, and what builds them."""
    weights = []

    def build(params, device):
        objects = loop.build(params, device)
        model = objects["model"]
        model.circle = model.register_forward_hook(lambda *_: model and None)
        weights.append(weakref.ref(model[0].weight))
        return objects

    return weights, build


def alive(weights):
    return sum(weight() is not None for weight in weights)


def allocated():
    return torch.cuda.memory_allocated() if torch.cuda.is_available() else 0


def on_cpu(state):
    return torch.utils._pytree.tree_map(
        lambda leaf: leaf.tolist() if isinstance(leaf, torch.Tensor) else leaf, state
    )


@pytest.mark.parametrize("most", [0, 1, 2])
@pytest.mark.parametrize("device", DEVICES)
def test_runs_that_give_way_to_each_other_equal_runs_that_do_not(device, most):
    own, whole = trainable(device, max_resident=most), trainable(device)
    runs = [own.start(PARAMS, seed) for seed in range(3)]
    told = [[own.train(run) for run in runs] for _ in range(3)]
    for seed, run in enumerate(runs):
        other = whole.start(PARAMS, seed)
        assert [row[seed] for row in told] == [whole.train(other) for _ in range(3)]
        assert repr(on_cpu(run.checkpoint())) == repr(on_cpu(other.checkpoint()))


@pytest.mark.gpu
def test_a_run_comes_back_in_another_process():
    def search(executor):
        return RisingSearch(
            trainable("cuda"),
            loop.CANDIDATES[:4],
            budget=8,
            max_epochs=4,
            executor=executor,
            seed=0,
        ).run()

    spawn = get_context("spawn")
    options = {"mp_context": spawn, "initializer": torch.use_deterministic_algorithms}
    with ProcessPoolExecutor(1, initargs=(True,), **options) as pool:
        assert search(pool).history["score"] == search(None).history["score"]


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("device", DEVICES)
class TestMemory:
    def test_of_four_arms_no_more_are_on_the_device_than_may_be(self, device, built):
        weights, build = built
        own = trainable(device, build, max_resident=2)
        runs = [own.start(PARAMS, seed) for seed in range(4)]
        assert alive(weights) == 2
        for run in runs:
            own.train(run)
            assert alive(weights) == 2

    def test_a_run_that_is_paused_leaves_nothing(self, device, built):
        weights, build = built
        own = trainable(device, build, max_resident=0)
        own.train(own.start(PARAMS, 0))  # torch keeps some memory for itself
        before = allocated()
        run = own.start(PARAMS, 1)
        for _ in range(2):
            own.train(run)
            assert not run.is_live
            assert alive(weights) == 0
            assert allocated() == before

    def test_nor_does_a_run_that_is_dropped_as_workers_drop_theirs(self, device, built):
        weights, build = built
        own = trainable(device, build, max_resident=2)
        for seed in range(3):
            run = own.start(PARAMS, seed)
            own.train(run)
            del run
            assert alive(weights) == 0


def test_what_torch_has_cached_is_given_back_where_no_run_may_stay(monkeypatch):
    emptied = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    monkeypatch.setattr(TorchTrainable, "torch_device", torch.device("cuda", 0))

    def on_the_cpu(params, device):
        return {"model": nn.Linear(1, 1), "n": 0}

    for most, times in ((1, 0), (0, 2)):
        own = TorchTrainable(on_the_cpu, print, len_of_params, max_resident=most)
        run = own.start({}, 0)
        own.train(run)
        own.train(run)
        assert len(emptied) == times


def len_of_params(run):
    return len(run.params)


@pytest.mark.gpu
def test_a_worker_of_a_pool_sees_its_gpu_alone():
    with GpuPool(gpus=0.5, max_workers=2) as pool:
        seen = [pool.submit(torch.cuda.device_count) for _ in range(2)]
        assert [one.result() for one in seen] == [1, 1]
