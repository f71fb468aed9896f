"""Ray Tune's ASHA as a runner: one actor, used again for every trial."""

from __future__ import annotations

import logging
import os
import tempfile
from typing import Any

import numpy as np
import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler

from benchmarks.peers.jobs import Task, main
from benchmarks.shared.problems import MAX_EPOCHS


class Trial(tune.Trainable):  # type: ignore[misc]
    """A configuration; a step is an epoch."""

    def setup(self, config: dict[str, Any], task: Task | None = None) -> None:
        self.task = task or self.task
        self.train_one = self.task.trainer(self.task.candidates[config["candidate"]])

    def step(self) -> dict[str, Any]:
        return {"score": self.train_one(), "epoch": self.iteration + 1}

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.setup(new_config)
        return True


class Budget(tune.Stopper):  # type: ignore[misc]
    """Stop everything once the budget is spent."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return self.task.budget_spent

    def stop_all(self) -> bool:
        return self.task.budget_spent


def asha(task: Task) -> None:
    """Try the configurations in random order."""
    with tempfile.TemporaryDirectory() as folder:
        _asha(task, folder)


def _asha(task: Task, folder: str) -> None:
    order = np.random.default_rng(task.seed).permutation(len(task.candidates)).tolist()
    tuner = tune.Tuner(
        tune.with_parameters(Trial, task=task),
        param_space={"candidate": tune.grid_search(order)},
        tune_config=tune.TuneConfig(
            metric="score",
            mode="max",
            scheduler=ASHAScheduler(
                time_attr="epoch", max_t=MAX_EPOCHS, grace_period=1, reduction_factor=3
            ),
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(
            name=task.log.stem,
            storage_path=folder,
            stop=Budget(task),
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            verbose=0,
        ),
    )
    results = tuner.fit()
    if results.errors:
        raise results.errors[0]


if __name__ == "__main__":
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = "1"
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    ray.init(
        address="local",  # not whatever cluster is up
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    main({"Ray Tune ASHA": asha})
