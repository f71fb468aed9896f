"""A Hugging Face Trainer trains one slice at a time, and resumes where it was."""

import copy
from functools import partial

import pytest
import torch
from torch import nn
from transformers import (
    EarlyStoppingCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from risingsearch import RisingSearch
from risingsearch.errors import NotTrainableError, SetupError
from risingsearch.integrations.torch.huggingface import HuggingFaceTrainable, unpacked
from risingsearch.testing import check_trainable

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),  # the Trainer's advice
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

X = torch.linspace(-1, 1, 96).reshape(-1, 2)
ROWS = [{"points": x, "labels": (x.sum() > 0).long()} for x in X]


class Network(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 2)
        )

    def forward(self, points, labels=None):
        logits = self.layers(points)
        loss = nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


def accuracy(predicted):
    right = predicted.predictions.argmax(axis=1) == predicted.label_ids
    return {"accuracy": float(right.mean())}


def build(params, seed, folder, callbacks=None, kind=Trainer, **options):
    torch.manual_seed(seed)
    arguments = TrainingArguments(
        output_dir=folder,
        seed=seed,
        num_train_epochs=4,
        learning_rate=params["rate"],
        per_device_train_batch_size=8,
        use_cpu=True,
        report_to="none",
        logging_strategy="no",
        **options,
    )
    return kind(
        Network(8),
        arguments,
        train_dataset=ROWS,
        eval_dataset=ROWS,
        compute_metrics=accuracy,
        callbacks=callbacks() if callbacks else None,
    )


def trainable(**options):
    return HuggingFaceTrainable(build, **{"monitor": "eval_accuracy"} | options)


def scores(told):
    return [(metrics["score"], metrics["eval_loss"]) for metrics in told]


@pytest.mark.parametrize("n_steps", [None, 5])
def test_paused_and_interleaved_runs_equal_uninterrupted_ones(tmp_path, n_steps):
    own = trainable(n_steps=n_steps)
    whole = own.start({"rate": 0.05}, 7)
    expected = scores(own.train(whole) for _ in range(4))
    paused, other = own.start({"rate": 0.05}, 7), own.start({"rate": 0.5}, 8)
    told = []
    for _ in range(4):
        told.append(own.train(paused))
        own.train(other)
        own.save(paused, str(tmp_path / "run"))
        paused = trainable(n_steps=n_steps).load(str(tmp_path / "run"))
    assert scores(told) == expected


def test_a_search_finds_the_rate_that_learns(tmp_path):
    candidates = [{"rate": 10.0**-power} for power in range(1, 6)]
    search = RisingSearch(trainable(), candidates, budget=12, max_epochs=4, seed=0)
    result = search.run()
    assert result.n_epochs == 12
    assert result.best_params["rate"] in (0.1, 0.01)
    folder = unpacked(result.best_state(), str(tmp_path))
    assert (tmp_path / folder / "trainer_state.json").exists()


def test_a_checkpoint_without_the_optimizer_is_refused():
    own = HuggingFaceTrainable(
        partial(build, save_only_model=True), monitor="eval_accuracy"
    )
    with pytest.raises(SetupError, match="leaves out the optimizer"):
        RisingSearch(own, [{"rate": 0.1}], budget=2).run()


def test_a_metric_that_is_not_there_is_named():
    search = RisingSearch(trainable(monitor="eval_f1"), [{"rate": 0.1}], budget=2)
    with pytest.raises(SetupError, match="and monitor is 'eval_f1'"):
        search.run()


def test_a_run_that_has_not_trained_has_no_folder(tmp_path):
    with pytest.raises(NotTrainableError, match="train it first"):
        unpacked(trainable().start({}, 0), str(tmp_path))


class Stopping(TrainerCallback):
    """Stops the training at a step."""

    def on_step_end(self, args, state, control, **_):
        control.should_training_stop |= state.global_step == 8


PATIENT = {
    "callbacks": lambda: [EarlyStoppingCallback(2, early_stopping_threshold=2.0)],
    "eval_strategy": "epoch",
    "metric_for_best_model": "accuracy",
}


@pytest.mark.parametrize(
    ("options", "n_steps", "n_epochs"),
    [
        (PATIENT | {"load_best_model_at_end": True, "save_strategy": "best"}, None, 3),
        (PATIENT | {"eval_strategy": "steps", "eval_steps": 4}, 4, 3),
        ({"callbacks": lambda: [Stopping()]}, None, 2),
        ({"eval_on_start": True}, 5, 5),  # 4 epochs are 24 steps
    ],
)
def test_an_arm_is_finished_when_its_trainer_says_so(
    tmp_path, capfd, options, n_steps, n_epochs
):
    own = HuggingFaceTrainable(
        partial(build, **options), monitor="eval_accuracy", n_steps=n_steps
    )
    candidates = [{"rate": 0.1}, {"rate": 0.01}]
    search = RisingSearch(
        own, candidates, budget=16, epochs_per_job=2, seed=0, run_dir=tmp_path
    )
    result = search.run()
    assert [arm.epochs for arm in result.arms] == [n_epochs] * 2
    assert result.n_epochs == 2 * n_epochs
    assert {arm.status for arm in result.arms} == {"finished"}
    run = own.start(candidates[0], 0)
    own.train(run)
    capfd.readouterr()
    own.train(run)
    assert capfd.readouterr() == ("", "")  # no progress bars, no warnings
    model = own.best_model(result.best_state()).eval()
    guesses = model(X, (X.sum(dim=1) > 0).long())["logits"].argmax(dim=1)
    assert float((guesses == (X.sum(dim=1) > 0)).float().mean()) == pytest.approx(
        result.best_score
    )


class Averaging(TrainerCallback):
    """Averages weights, counts epochs, and freezes a layer: all outside a state."""

    def on_train_begin(self, args, state, control, model=None, **_):
        self.average = copy.deepcopy(model.layers)
        self.n_epochs = 0

    def on_epoch_begin(self, args, state, control, model=None, **_):
        self.n_epochs += 1
        if self.n_epochs == 2:
            model.layers[0].requires_grad_(False)

    def on_step_end(self, args, state, control, model=None, **_):
        pairs = zip(self.average.parameters(), model.layers.parameters(), strict=True)
        for mean, now in pairs:
            mean.data.lerp_(now.data, 0.1)

    def on_train_end(self, args, state, control, model=None, **_):
        model.layers.load_state_dict(self.average.state_dict())


class Curriculum(Trainer):
    """Weighs the loss by the calls that it has counted."""

    n_calls = 0

    def compute_loss(self, model, *args, **options):
        loss = super().compute_loss(model, *args, **options)
        if not model.training:
            return loss
        self.n_calls += 1
        return loss * (1 + 0.01 * self.n_calls)


def test_a_run_equals_one_train_and_so_does_its_winner(tmp_path):
    options = {"kind": Curriculum, "callbacks": lambda: [Averaging()]}
    make = partial(build, eval_strategy="epoch", **options)
    own = HuggingFaceTrainable(make, monitor="eval_loss")
    check_trainable(own, {"rate": 0.05}, epochs=2)
    run = own.start({"rate": 0.05}, 5)
    for _ in range(4):
        own.train(run)
    trainer = make({"rate": 0.05}, 5, str(tmp_path))
    trainer.train()
    expected = [value.tolist() for value in trainer.model.state_dict().values()]
    found = own.best_model(run).state_dict().values()
    assert [value.tolist() for value in found] == expected


def test_a_build_with_other_arguments_is_refused_at_once():
    with pytest.raises(NotTrainableError, match="build must take"):
        HuggingFaceTrainable(lambda params: None, monitor="eval_loss")
