"""An adapter of a framework that writes checkpoints itself, as Keras does."""

import io
from dataclasses import dataclass

import numpy as np
import pytest

from risingsearch import RisingSearch
from risingsearch.errors import NotTrainableError, SetupError
from risingsearch.search.frameworks import (
    FrameworkTrainable,
    PausedRun,
    checkpoint_of,
)
from risingsearch.testing import check_trainable

X = np.linspace(-1, 1, 24).reshape(-1, 2)
Y = X.sum(axis=1)
CANDIDATES = [{"rate": 10.0**-power} for power in range(1, 5)]


class Model:
    """A linear model of a framework, which trains on noisy rows."""

    def __init__(self, rate, seed):
        self.rate = rate
        self.seed = seed
        self.weights = np.zeros(2)
        self.n_epochs = 0

    def fit(self):
        rng = np.random.default_rng([self.seed, self.n_epochs])
        for row, target in zip(X, Y, strict=True):
            noisy = row + 0.01 * rng.normal(size=2)
            self.weights += self.rate * (target - noisy @ self.weights) * noisy
        self.n_epochs += 1

    def evaluate(self):
        return {"val_loss": float(np.square(X @ self.weights - Y).mean())}

    def save(self, file):
        np.savez(file, weights=self.weights, n_epochs=self.n_epochs)

    def load(self, file):
        saved = np.load(file)
        self.weights = saved["weights"]
        self.n_epochs = int(saved["n_epochs"])


class Adapter(FrameworkTrainable[PausedRun]):
    """An epoch is a fit of the framework, from its checkpoint to the next."""

    def __init__(self, monitor="val_loss", patience=9):
        self.monitor = monitor
        self.patience = patience

    def model_of(self, run):
        model = Model(run.params["rate"], run.seed)
        if run.checkpoint is not None:
            model.load(io.BytesIO(run.checkpoint))
        return model

    def train_epoch(self, run):
        model = self.model_of(run)
        model.fit()
        file = io.BytesIO()
        model.save(file)
        run.checkpoint = file.getvalue()
        run.is_over = abs(model.weights).max() > self.patience
        metrics = model.evaluate()
        score = self.monitored(metrics, "evaluate has returned", "give compile metrics")
        return {"score": score}


def test_an_adapter_keeps_the_contract_of_a_trainable():
    check_trainable(Adapter(), {"rate": 0.05})


def test_its_search_resumes_from_a_run_directory(tmp_path):
    options = {"max_epochs": 6, "direction": "minimize", "seed": 0}
    whole = RisingSearch(Adapter(), CANDIDATES[:1], budget=6, **options).run()
    search = RisingSearch(
        Adapter(), CANDIDATES[:1], budget=2, run_dir=tmp_path, **options
    )
    search.run()
    again = RisingSearch.resume(tmp_path, Adapter())
    again.extend(4)
    result = again.run()
    assert result.history["score"] == whole.history["score"]
    model = Adapter().model_of(result.best_state())
    assert model.evaluate()["val_loss"] == result.best_score


def test_numbers_of_numpy_among_the_parameters_come_back_as_they_were(tmp_path):
    adapter = Adapter()
    run = adapter.start({"rate": np.float32(0.1), "layers": (8, 8)}, seed=3)
    adapter.train(run)
    adapter.save(run, str(tmp_path / "run"))
    again = adapter.load(str(tmp_path / "run"))
    assert again == run
    assert type(again.params["rate"]) is np.float32


@dataclass
class CountedRun(PausedRun):
    n_batches: int = 0


def test_runs_may_have_more_fields(tmp_path):
    class Counting(Adapter):
        run_type = CountedRun

        def train_epoch(self, run):
            run.n_batches += len(X)
            return super().train_epoch(run)

    adapter = Counting()
    run = adapter.start({"rate": 0.1}, seed=0)
    adapter.train(run)
    adapter.save(run, str(tmp_path / "run"))
    assert adapter.load(str(tmp_path / "run")) == run
    assert run.n_batches == 12


def test_a_training_that_the_framework_has_ended_is_over(tmp_path):
    adapter = Adapter(patience=0.0)
    run = adapter.start({"rate": 0.1}, seed=0)
    adapter.train(run)
    adapter.save(run, str(tmp_path / "run"))
    with pytest.raises(StopIteration):
        adapter.train(adapter.load(str(tmp_path / "run")))


def test_a_metric_that_is_not_there_is_named():
    message = r"evaluate has returned \['val_loss'\], and monitor is 'f1': give compile"
    with pytest.raises(SetupError, match=message):
        RisingSearch(Adapter("f1"), CANDIDATES, budget=4).run()


def test_a_run_that_has_not_trained_has_no_checkpoint():
    with pytest.raises(NotTrainableError, match="train it first"):
        checkpoint_of(Adapter().start({"rate": 0.1}, seed=0))


def test_parameters_that_json_cannot_hold_are_refused(tmp_path):
    adapter = Adapter()
    run = adapter.start({"rate": object()}, seed=0)
    with pytest.raises(NotTrainableError, match="params of a run are saved as JSON"):
        adapter.save(run, str(tmp_path / "run"))
