"""Killed in any epoch and resumed, an arm trains the epochs that it is told of."""

import os
import signal
import sys
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch

from risingsearch import RisingSearch
from risingsearch.integrations.torch import TorchTrainable

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[3]))  # a spawned process imports this one
import digits_loop
import test_huggingface
import test_lightning

pytestmark = test_huggingface.pytestmark
START = "spawn" if torch.cuda.is_available() else "fork"  # CUDA survives no fork
RATES = [{"rate": 0.1, "width": 8}, {"rate": 0.01, "width": 8}]
KINDS = {
    "a loop": lambda: TorchTrainable(
        digits_loop.build, digits_loop.train_epoch, digits_loop.validate, device="cpu"
    ),
    "Lightning": test_lightning.trainable,
    "Hugging Face": lambda: test_huggingface.trainable(monitor="eval_loss", n_steps=3),
}


class Mortal:
    """Kills its process before or after it trains its epoch of some number."""

    def __init__(self, own, epoch, *, before):
        self.start, self.save, self.load = own.start, own.save, own.load
        self.own, self.left, self.before = own, epoch, before

    def train(self, run):
        self.left -= 1
        score = None if self.left == 0 and self.before else self.own.train(run)
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return score


def search(own, folder=None):
    options = {"budget": 6, "max_epochs": 4, "epochs_per_job": 2, "seed": 0}
    return RisingSearch(own, RATES, run_dir=folder, **options)


def dies(kind, number, before, folder):
    search(Mortal(KINDS[kind](), number, before=before), folder).run()


def told(result):
    return [(row["arm"], row["epoch"], row["score"]) for row in result.history]


@pytest.mark.filterwarnings("ignore:the code has changed")
@pytest.mark.parametrize("kind", KINDS)
def test_the_epoch_told_is_the_epoch_trained(tmp_path, kind):
    whole = told(search(KINDS[kind]()).run())
    assert len({score for *_, score in whole}) > 1
    for number, before in [(2, False), (5, True)]:
        folder = tmp_path / f"{number} {before}"
        process = get_context(START).Process(
            target=dies, args=(kind, number, before, folder)
        )
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert told(RisingSearch.resume(folder, KINDS[kind]()).run()) == whole
