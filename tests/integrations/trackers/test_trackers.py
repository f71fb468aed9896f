import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import study
import torch
from searching import TRACKERS, a_search, after, scores
from stores import STORES

from risingsearch import MissingDependencyError, RisingSearch
from risingsearch.integrations.optuna import arm_results
from risingsearch.integrations.torch import TorchTrainable
from risingsearch.integrations.trackers import TensorBoardTracker

kinds = pytest.mark.parametrize("kind", TRACKERS)
pytestmark = [
    # mlflow's own, of SQLAlchemy, and of files that it leaves to be closed
    pytest.mark.filterwarnings("ignore:::sqlalchemy"),
    pytest.mark.filterwarnings("ignore:.*noload"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def once(expected):
    """Return what a store holds that has every score once."""
    return {
        arm: {step: [pytest.approx(score)] for step, score in curve.items()}
        for arm, curve in expected.items()
    }


@kinds
def test_every_epoch_is_a_step_of_its_arms_one_run(kind):
    result = a_search(TRACKERS[kind]()).run()
    assert "revived" in result.history["reason"]
    assert STORES[kind]() == once(scores(result))


@kinds
def test_killed_and_resumed_every_step_is_logged_once(kind, tmp_path):
    script = Path(__file__).with_name("searching.py")
    # W&B lets child processes share a service, which would know of the killed one's run
    own = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}
    command = [sys.executable, script, kind]
    killed = subprocess.run(command, cwd=tmp_path, env=own, check=False)
    assert killed.returncode == -9
    logged = sum(len(curve) for curve in STORES[kind]().values())
    result = a_search(TRACKERS[kind](), run_dir="run").run()
    assert 0 < logged < result.n_epochs
    assert STORES[kind]() == once(scores(result))


def test_a_killed_study_goes_on_and_every_step_is_logged_once(
    tmp_path, quiet_optuna, tensorboard_curves
):
    script = Path(study.__file__)
    command = [sys.executable, script, "killed"]
    killed = subprocess.run(command, cwd=tmp_path, check=False)
    assert killed.returncode == -9
    assert tensorboard_curves(tmp_path / "tensorboard", "value")
    whole = study.a_study()
    whole.optimize(study.objective)
    told = {
        result.id: {step + 1: score for step, score in result.curve.items()}
        for result in arm_results(whole)
        if result.curve
    }
    assert tensorboard_curves(tmp_path / "tensorboard", "value") == once(told)


def test_a_pytorch_loop_is_tracked(tensorboard_curves, tmp_path):
    def build(params, device):
        model = torch.nn.Linear(2, 1).to(device)
        return {"model": model, "epochs": 0, "rate": params["rate"]}

    def train_epoch(run):
        run.epochs += 1

    def validate(run):
        return {"score": 1 - run.rate**run.epochs, "loss": run.rate**run.epochs}

    result = RisingSearch(
        TorchTrainable(build, train_epoch, validate, device="cpu"),
        [{"rate": rate} for rate in (0.9, 0.5, 0.7)],
        budget=9,
        max_epochs=4,
        seed=0,
        callbacks=[TensorBoardTracker()],
    ).run()
    runs = tmp_path / "tensorboard"
    assert tensorboard_curves(runs) == once(scores(result))
    losses = {
        arm: {step: 1 - score for step, score in curve.items()}
        for arm, curve in scores(result).items()
    }
    assert tensorboard_curves(runs, "loss") == once(losses)


@kinds
def test_another_run_of_the_same_search_adds_to_it(kind):
    search = a_search(TRACKERS[kind](), after(3, RisingSearch.stop))
    before = search.run()
    assert STORES[kind]() == once(scores(before))
    after_all = search.run()
    assert after_all.n_epochs > before.n_epochs
    assert STORES[kind]() == once(scores(after_all))


@kinds
def test_without_its_package_it_says_what_to_install(kind, monkeypatch):
    monkeypatch.setattr(
        "risingsearch.integrations.trackers.tracker.find_spec", lambda name: None
    )
    with pytest.raises(MissingDependencyError, match=rf"risingsearch\[{kind}\]"):
        a_search(TRACKERS[kind]()).run()


@kinds
def test_it_can_be_pickled(kind):
    tracker = TRACKERS[kind]()
    assert vars(pickle.loads(pickle.dumps(tracker))) == vars(tracker)
