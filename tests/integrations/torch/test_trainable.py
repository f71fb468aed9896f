"""A paused and resumed run equals one that was never interrupted, bit for bit."""

import errno
import io
import random
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from risingsearch import RisingSearch
from risingsearch.errors import (
    InvalidParameterError,
    NotTrainableError,
    RunDirError,
    SearchFailedError,
    SetupError,
)
from risingsearch.integrations.torch import TorchTrainable
from risingsearch.integrations.torch.random_states import alone
from risingsearch.integrations.torch.snapshots import data_node

sys.path.insert(0, str(Path(__file__).parent))
import digits_loop as loop  # workers import it too

PARAMS = {"rate": 0.01, "width": 32}


def trainable(**options):
    options = {"device": "cpu"} | options
    return TorchTrainable(loop.build, loop.train_epoch, loop.validate, **options)


def bits(run):
    """Return all that a run resumes from, comparable."""
    checkpoint = run.checkpoint()
    return repr(
        torch.utils._pytree.tree_map(
            lambda leaf: leaf.tolist() if isinstance(leaf, torch.Tensor) else leaf,
            checkpoint,
        )
    )


def uninterrupted(n_epochs, params=PARAMS, seed=3):
    own = trainable()
    run = own.start(params, seed)
    return run, [own.train(run) for _ in range(n_epochs)]


class TestBitForBit:
    def test_saved_and_loaded_after_every_epoch(self, tmp_path):
        whole, expected = uninterrupted(6)
        run = trainable().start(PARAMS, 3)
        told = []
        for _ in range(6):
            own = trainable()
            trainable().save(run, str(tmp_path / "run.pt"))
            run = own.load(str(tmp_path / "run.pt"))
            told.append(own.train(run))
        assert told == expected
        assert bits(run) == bits(whole)

    def test_interleaved_with_others_wherever_it_waits(self):
        own = trainable(max_resident=2)
        chosen = loop.CANDIDATES[:4]
        runs = [own.start(params, seed) for seed, params in enumerate(chosen)]
        order = np.random.default_rng(0).permutation([*range(4)] * 4)
        told = [[] for _ in runs]
        for i in order:
            told[i].append(own.train(runs[i]))
            assert sum(run.is_live for run in runs) <= 2
        for i, run in enumerate(runs):
            whole, expected = uninterrupted(4, chosen[i], i)
            assert told[i] == expected
            assert bits(run) == bits(whole)

    def test_random_states_outside_stay_as_they_are(self):
        random.seed(1)
        np.random.seed(1)
        torch.manual_seed(1)
        before = random.random(), np.random.random(), torch.rand(1).item()
        random.seed(1)
        np.random.seed(1)
        torch.manual_seed(1)
        uninterrupted(1)
        assert (random.random(), np.random.random(), torch.rand(1).item()) == before


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.int64])
@pytest.mark.parametrize("in_a_dict", [True, False])
def test_a_tensor_without_dimensions_is_a_number(tmp_path, kind, in_a_dict):
    def validate(run):
        score = torch.tensor(3, dtype=kind, requires_grad=kind != torch.int64)
        return {"score": score, "loss": score / 2} if in_a_dict else score

    own = TorchTrainable(lambda params, device: {"n": 0}, print, validate, device="cpu")
    result = RisingSearch(own, [{}], budget=2, run_dir=tmp_path).run()
    row = result.history[0]
    assert (row["score"], type(row["score"])) == (3.0, float)
    assert not in_a_dict or row["loss"] == 1.5


class TestSearch:
    def search(self, own, **options):
        options = {"budget": 20, "max_epochs": 6, "seed": 0} | options
        return RisingSearch(own, loop.CANDIDATES, **options)

    def test_the_same_wherever_the_runs_wait(self, tmp_path):
        plain = self.search(trainable()).run()
        assert plain.n_epochs == 20
        best = plain.best_state()
        assert best.epoch == plain.best_epoch
        assert loop.validate(best)["score"] == plain.best_score > 0.7
        parked = self.search(trainable(max_resident=1)).run()
        kept = self.search(trainable(), run_dir=tmp_path).run()
        for other in (parked, kept):
            assert other.history["score"] == plain.history["score"]

    @pytest.mark.slow
    def test_the_same_where_another_process_trains(self):
        spawn = get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            away = self.search(trainable(), executor=pool).run()
        assert away.history["score"] == self.search(trainable()).run().history["score"]

    def test_threads_are_refused_because_they_share_the_random_states(self):
        with (
            ThreadPoolExecutor(2) as pool,
            pytest.raises(SetupError, match="use an executor of processes"),
            alone(),  # as if another thread trained
        ):
            self.search(trainable(), executor=pool).run()


class TestWhatIsGiven:
    def test_a_subclass_defines_the_three_parts(self):
        class Own(TorchTrainable):
            build = staticmethod(loop.build)
            train_epoch = staticmethod(loop.train_epoch)
            validate = staticmethod(loop.validate)

        own = Own(device="cpu")
        assert own.train(own.start(PARAMS, 3)) == uninterrupted(1)[1][0]

    def test_a_missing_part_is_named(self):
        with pytest.raises(NotTrainableError, match="TorchTrainable has no validate"):
            TorchTrainable(loop.build, loop.train_epoch)

    @pytest.mark.parametrize(
        ("built", "message"),
        [
            (nn.Linear(1, 1), "build must return a dict of the run's objects by name"),
            ({"_model": 1}, "build must return a dict"),
            ({"epoch": 1}, r"build names objects \['epoch'\], which a run uses"),
        ],
    )
    def test_what_build_must_return(self, built, message):
        own = TorchTrainable(lambda params, device: built, print, print, device="cpu")
        with pytest.raises(SetupError, match=message):
            own.start({}, 0)

    def test_parts_that_take_other_arguments_are_refused_at_once(self):
        with pytest.raises(NotTrainableError, match=r"build must take \(params, dev"):
            TorchTrainable(lambda params: {}, loop.train_epoch, loop.validate)
        with pytest.raises(NotTrainableError, match=r"train_epoch must take \(run\)"):
            TorchTrainable(loop.build, lambda run, epoch: None, loop.validate)

    def test_a_limit_out_of_range(self):
        with pytest.raises(InvalidParameterError, match="max_resident"):
            trainable(max_resident=-1)

    def test_another_build_than_before_is_refused(self, tmp_path):
        own = trainable()
        own.save(own.start(PARAMS, 0), str(tmp_path / "run.pt"))

        def smaller(params, device):
            objects = loop.build(params, device)
            del objects["average"]
            return objects

        other = TorchTrainable(smaller, loop.train_epoch, loop.validate, device="cpu")
        with pytest.raises(SetupError, match="it must build the same objects"):
            other.train(other.load(str(tmp_path / "run.pt")))


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "cuda:x", "", 1.5])
def test_a_device_that_is_not_there_is_named_at_once(device):
    search = RisingSearch(trainable(device=device), [PARAMS] * 2, budget=2)
    with pytest.raises(SetupError, match=rf"^device={device!r} cannot be used on this"):
        search.run()
    assert search.result().n_epochs == 0


@pytest.mark.parametrize("returned", [None, "0.5", (0.5, 0.4), {"accuracy": 0.5}])
def test_an_invalid_return_of_validate_is_named(returned):
    own = TorchTrainable(
        lambda params, device: {}, print, lambda run: returned, device="cpu"
    )
    with pytest.raises(SearchFailedError, match="validate must return a number"):
        RisingSearch(own, [{}], budget=1).run()


class Rate:
    """A state that no reader of weights knows."""

    def state_dict(self):
        return {"rate": Rate()}

    def load_state_dict(self, state):
        """Never called."""


class TestSafety:
    def test_checkpoints_that_could_not_be_read_safely_are_refused(self, tmp_path):
        own = TorchTrainable(
            lambda params, device: {"odd": Rate()}, print, print, device="cpu"
        )
        with pytest.raises(SetupError, match="the state of 'odd' holds"):
            own.save(own.start({}, 0), str(tmp_path / "run.pt"))

    def test_nothing_is_unpickled(self, tmp_path):
        path = tmp_path / "run.pt"
        torch.save({"version": 1, "objects": Rate()}, path)
        with pytest.raises(Exception, match=r"[Ww]eights"):
            trainable().load(str(path))

    def test_params_must_be_json(self, tmp_path):
        own = trainable()
        run = own.start(PARAMS | {"odd": object()}, 0)
        with pytest.raises(NotTrainableError, match="params of a run are saved as"):
            own.save(run, str(tmp_path / "run.pt"))


class Unwritable(io.BytesIO):
    """A file on a disk that is full."""

    def write(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_checkpoint_that_cannot_be_written_stops_the_search(tmp_path, monkeypatch):
    def full(checkpoint, path):
        monkeypatch.undo()
        torch.save(checkpoint, Unwritable())

    own = trainable()
    search = RisingSearch(own, [PARAMS] * 3, budget=6, seed=0, run_dir=tmp_path)
    monkeypatch.setattr(TorchTrainable, "save", lambda own, run, path: full(run, path))
    with pytest.raises(RunDirError, match=r"cannot be written .* TMPDIR"):
        search.run()
    result = RisingSearch.resume(tmp_path, trainable()).run()
    assert result.n_epochs == 6
    assert result.failures == []


def test_a_checkpoint_without_attributes_is_one_of_an_earlier_release(tmp_path):
    run, _ = uninterrupted(2)
    checkpoint = run.checkpoint()
    del checkpoint["attributes"]
    module = run.model
    content = checkpoint["objects"]["model"][1]
    weights = [(each.requires_grad, each.grad) for each in module.parameters()]
    content[1]["training"] = data_node([part.training for part in module.modules()])
    content[1]["weights"] = data_node(weights)
    torch.save(checkpoint, tmp_path / "run")
    own = trainable()
    again = own.load(str(tmp_path / "run"))
    assert [own.train(again)] == uninterrupted(3)[1][2:]
