"""Lightning modules train one epoch at a time, and go on where they were."""

import copy
import random

import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import (
    BackboneFinetuning,
    EarlyStopping,
    EMAWeightAveraging,
    LearningRateMonitor,
    ModelCheckpoint,
    StochasticWeightAveraging,
    TQDMProgressBar,
)
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from risingsearch import RisingSearch
from risingsearch.errors import (
    InvalidParameterError,
    NotTrainableError,
    SetupError,
)
from risingsearch.integrations.torch import Batches
from risingsearch.integrations.torch.lightning import QUIET, LightningTrainable
from risingsearch.testing import check_trainable

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),  # Lightning's advice
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

X = torch.linspace(-1, 1, 96).reshape(-1, 2)
Y = (X.sum(dim=1) > 0).long()


class Module(LightningModule):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate
        self.net = nn.Sequential(
            nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2)
        )

    def training_step(self, batch, number):
        X, y = batch
        noise = 0.1 * random.random() + 0.1 * torch.rand(())
        return nn.functional.cross_entropy(self.net(X + noise), y)

    def validation_step(self, batch, number):
        X, y = batch
        self.log("accuracy", (self.net(X).argmax(dim=1) == y).float().mean())
        self.log("rate", self.optimizers().param_groups[0]["lr"])

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.rate)
        steps = self.trainer.estimated_stepping_batches
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
        config = {"scheduler": schedule, "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": config}


def build(params):
    rows = TensorDataset(X, Y)
    return {
        "model": Module(params["rate"]),
        "train_dataloaders": DataLoader(rows, 8, shuffle=True),
        "val_dataloaders": DataLoader(rows, 48),
    }


def trainable(**options):
    options = {"monitor": "accuracy", "max_epochs": 6, "accelerator": "cpu"} | options
    return LightningTrainable(build, **options)


def weights(own, run):
    return [value.tolist() for value in own.best_model(run).state_dict().values()]


def test_paused_and_interleaved_runs_equal_uninterrupted_ones(tmp_path):
    own = trainable()
    whole = own.start({"rate": 0.05}, 7)
    expected = [own.train(whole) for _ in range(4)]
    paused, other = own.start({"rate": 0.05}, 7), own.start({"rate": 0.5}, 8)
    told = []
    for _ in range(4):
        told.append(own.train(paused))
        own.train(other)
        own.save(paused, str(tmp_path / "run"))
        paused = trainable().load(str(tmp_path / "run"))
    assert told == expected
    assert weights(own, paused) == weights(own, whole)


def test_schedules_count_with_the_epochs_of_a_full_run():
    own = trainable()
    run = own.start({"rate": 0.06}, 0)
    rates = [own.train(run)["logged_rate"] for _ in range(6)]
    assert rates == pytest.approx([0.05, 0.04, 0.03, 0.02, 0.01, 0.0], abs=1e-8)


class Listening(Module):
    def on_fit_start(self):
        self.seen = []

    def training_step(self, batch, number):
        self.seen.append(batch[0].tolist())
        return super().training_step(batch, number)


def test_a_slice_may_be_some_steps(tmp_path):
    def build_steps(params):
        loader = DataLoader(TensorDataset(X, Y), 8, shuffle=True)  # a pass: 6 batches
        built.append(Listening(params["rate"]))
        return build(params) | {
            "model": built[-1],
            "train_dataloaders": Batches(loader, 4),
        }

    built = []
    own = LightningTrainable(
        build_steps, monitor="accuracy", max_epochs=9, accelerator="cpu"
    )
    run = own.start({"rate": 0.05}, 3)
    for _ in range(3):
        own.train(run)
        own.save(run, str(tmp_path / "run"))
        run = own.load(str(tmp_path / "run"))
    assert [len(model.seen) for model in built] == [4, 8, 12]  # as of one training
    seen = [rows for batch in built[-1].seen for rows in batch]
    assert sorted(seen) == sorted(2 * X.tolist())  # two passes, each over all rows
    assert sorted(seen[:48]) == sorted(X.tolist())


def test_a_search_finds_the_rate_that_learns(tmp_path):
    candidates = [{"rate": 10.0**-power} for power in range(1, 6)]
    search = RisingSearch(
        trainable(), candidates, budget=16, max_epochs=6, seed=0, run_dir=tmp_path
    )
    result = search.run()
    assert result.n_epochs == 16
    assert result.best_params["rate"] in (0.1, 0.01)
    model = trainable().best_model(result.best_state())
    model.eval()
    accuracy = (model.net(X).argmax(dim=1) == Y).float().mean().item()
    assert accuracy == pytest.approx(result.best_score)


class Remembering(Callback):
    """Logs how many epochs it has seen, and how many its last arm had counted."""

    def __init__(self):
        self.n_epochs = self.n_unsaved = 0

    def on_train_epoch_end(self, trainer, pl_module):
        self.n_epochs += 1
        self.n_unsaved += 1
        pl_module.log("seen", float(self.n_epochs))
        pl_module.log("unsaved", float(self.n_unsaved))

    def state_dict(self):
        return {"n_epochs": self.n_epochs}

    def load_state_dict(self, state):
        self.n_epochs = state["n_epochs"]


@pytest.mark.parametrize("listed", [True, False])
def test_every_arm_has_callbacks_of_its_own(listed):
    given = Remembering()
    own = trainable(callbacks=[given] if listed else given)
    runs = [own.start({"rate": 0.1}, seed) for seed in range(2)]
    told = [own.train(runs[i]) for i in (0, 0, 1, 0, 1)]
    assert [metrics["logged_seen"] for metrics in told] == [1, 2, 1, 3, 2]
    assert [metrics["logged_unsaved"] for metrics in told] == [1, 2, 1, 3, 2]
    assert given.n_epochs == 0


class Stopping(Callback):
    """Ends the training at a step, as ``max_time`` does."""

    def on_train_batch_end(self, trainer, *_):
        trainer.should_stop |= trainer.global_step == 8


def stops():
    return EarlyStopping("rate", stopping_threshold=1.0)


@pytest.mark.parametrize(
    ("options", "n_epochs"),
    [
        ({"callbacks": [EarlyStopping("accuracy", min_delta=2.0, patience=1)]}, 2),
        ({"callbacks": EarlyStopping("accuracy", min_delta=2.0, patience=2)}, 3),
        ({"callbacks": [stops()], "val_check_interval": 0.5}, 1),
        ({"callbacks": [stops()], "min_epochs": 3}, 3),
        ({"callbacks": [stops()], "min_steps": 7}, 2),
        ({"max_epochs": 2}, 2),
        ({"max_steps": 4}, 1),
        ({"max_steps": 14}, 3),
        ({"max_steps": 12, "min_epochs": 5}, 2),
        ({"callbacks": [Stopping()], "max_time": {"days": 1}}, 2),
        ({"min_epochs": 4, "max_steps": 21}, 4),
    ],
)
def test_an_arm_is_finished_when_its_trainer_says_so(tmp_path, options, n_epochs):
    search = RisingSearch(
        trainable(**options),
        [{"rate": 0.1}, {"rate": 0.01}],
        budget=12,
        max_epochs=6,
        epochs_per_job=3,
        seed=0,
        run_dir=tmp_path,
    )
    result = search.run()
    assert [arm.epochs for arm in result.arms] == [n_epochs] * 2
    assert result.n_epochs == 2 * n_epochs  # the rest of the jobs has returned
    assert {arm.status for arm in result.arms} == {"finished"}
    assert result.failures == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"callbacks": [ModelCheckpoint()]}, "leave it out; the search keeps every"),
        ({"callbacks": ModelCheckpoint()}, "leave it out; the search keeps every arm"),
        ({"callbacks": LearningRateMonitor()}, "LearningRateMonitor needs a logger"),
        ({"callbacks": [BackboneFinetuning()]}, "does not resume BackboneFinetuning"),
        ({"precison": "bf16"}, "unknown argument of Trainer 'precison'; did you mean"),
        ({"logger": True}, "logger=True would mix the curves of all arms: leave it"),
        ({"logger": CSVLogger("logs")}, "give the search a tracker of risingsearch"),
    ],
)
def test_options_that_no_arm_can_have_are_refused(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        trainable(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"check_val_every_n_epoch": 2}, "with check_val_every_n_epoch=2 not every"),
        ({"monitor": "f1"}, "and monitor is 'f1': log it in validation_step"),
    ],
)
def test_an_epoch_without_a_score_says_why(options, message):
    search = RisingSearch(trainable(**options), [{"rate": 0.1}], budget=4)
    with pytest.raises(SetupError, match=message):
        search.run()


def test_a_mistake_of_all_arms_ends_the_search_in_the_first():
    with pytest.raises(NotTrainableError, match=r"build must take \(params\)"):
        LightningTrainable(lambda params, seed: {}, monitor="accuracy", max_epochs=2)
    for own, message in (
        (trainable(precision="half"), "Lightning refuses to train: Precision 'half'"),
        (
            LightningTrainable(
                lambda params: build(params) | {"loaders": []},
                monitor="accuracy",
                max_epochs=2,
            ),
            "build: unknown argument 'loaders'",
        ),
    ):
        search = RisingSearch(own, [{"rate": 0.1}] * 12, budget=12)
        with pytest.raises(SetupError, match=message):
            search.run()
        assert search.result().n_epochs == 0


class Annealed(Module):
    """Counts its steps, and keeps an average and a list where no state has them."""

    def __init__(self, rate):
        super().__init__(rate)
        self.n_steps, self.seen = 0, []
        self.register_buffer("mean", torch.zeros(1), persistent=False)

    def training_step(self, batch, number):
        self.n_steps += 1
        self.seen.append(0.01 * number)
        self.mean.mul_(0.9).add_(0.1 * batch[0].mean())
        weight = min(1.0, self.n_steps / 15) + sum(self.seen[-4:]) + self.mean
        penalty = weight * self.net[0].weight.square().sum()
        return super().training_step(batch, number) + penalty.sum()


class Averaging(Callback):
    """Averages the weights in a copy of the module, and freezes a layer in time."""

    def on_fit_start(self, trainer, pl_module):
        self.average = copy.deepcopy(pl_module.net)
        self.n_epochs = 0

    def on_train_epoch_start(self, trainer, pl_module):
        self.n_epochs += 1
        if self.n_epochs == 2:
            pl_module.net[0].requires_grad_(False)

    def on_train_batch_end(self, trainer, pl_module, *_):
        pairs = zip(self.average.parameters(), pl_module.net.parameters(), strict=True)
        for mean, now in pairs:
            mean.data.lerp_(now.data, 0.1)

    def on_train_end(self, trainer, pl_module):
        pl_module.net.load_state_dict(self.average.state_dict())

    def on_fit_end(self, trainer, pl_module):
        pl_module.net[0].weight.data.mul_(0.5)


@pytest.mark.parametrize(
    "callbacks",
    [
        [Averaging()],
        [EMAWeightAveraging(decay=0.9, update_every_n_steps=2)],
        [StochasticWeightAveraging(swa_lrs=0.01, swa_epoch_start=2)],
    ],
    ids=lambda callbacks: type(callbacks[0]).__name__,
)
def test_a_run_equals_one_fit_and_so_does_its_winner(callbacks):
    def build_annealed(params):
        shuffler = torch.Generator().manual_seed(4)
        rows = TensorDataset(X, Y)
        return {
            "model": Annealed(**params),
            "train_dataloaders": DataLoader(rows, 8, shuffle=True, generator=shuffler),
            "val_dataloaders": DataLoader(rows, 48),
        }

    own = LightningTrainable(
        build_annealed,
        monitor="accuracy",
        max_epochs=4,
        accelerator="cpu",
        callbacks=callbacks,
    )
    check_trainable(own, {"rate": 0.05}, epochs=3)
    run = own.start({"rate": 0.05}, 5)
    for _ in range(4):
        own.train(run)
    seed_everything(5, verbose=False)
    arguments = build_annealed({"rate": 0.05})
    options = QUIET | {"accelerator": "cpu", "callbacks": copy.deepcopy(callbacks)}
    Trainer(max_epochs=4, **options).fit(**arguments)
    expected = [value.tolist() for value in arguments["model"].state_dict().values()]
    assert weights(own, run) == expected


class Reshaping(Callback):
    """Makes an object in the first epoch that cannot be built again."""

    def on_train_epoch_end(self, trainer, pl_module):
        self.schedule = lambda step: step


def test_a_progress_bar_that_is_given_is_shown(capsys):
    own = trainable(callbacks=[TQDMProgressBar()])
    own.train(own.start({"rate": 0.1}, 0))
    assert "Epoch 0" in "".join(capsys.readouterr())


def test_what_cannot_be_carried_over_stops_the_search_by_name():
    own = trainable(callbacks=[Reshaping()])
    with pytest.raises(SetupError, match=r"callbacks\[0\]\.schedule is in no"):
        RisingSearch(own, [{"rate": 0.1}] * 3, budget=6, max_epochs=2).run()
