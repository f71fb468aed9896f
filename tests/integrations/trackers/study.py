"""A study that a tracker follows; ``study.py`` as a script kills itself half-way."""

import os
import signal
import sys
import time
import warnings
from pathlib import Path

import optuna

import risingsearch.integrations.optuna as rising
from risingsearch.integrations.trackers import TensorBoardTracker

BUDGET, MAX_EPOCHS = 24, 6
trained = []


def objective(trial):
    top = trial.suggest_float("top", 0.1, 1.0)
    arm = rising.arm(trial)
    for epoch in range(arm.from_epoch, MAX_EPOCHS):
        trained.append(epoch)
        begins = epoch == arm.from_epoch  # what a slice had reported would be lost
        if "killed" in sys.argv and begins and len(trained) > BUDGET // 2:
            while not list(
                Path().glob("tensorboard/*/search")
            ):  # written after all arms
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        score = top * (1 - 0.5 ** (epoch + 1))
        trial.report(score, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return score


def a_study():
    """Return the study in the storage of this folder, followed by a tracker."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    file = optuna.storages.journal.JournalFileBackend("study.log")
    return optuna.create_study(
        study_name="digits",
        storage=optuna.storages.JournalStorage(file),
        load_if_exists=True,
        direction="maximize",
        sampler=rising.RisingSampler(
            BUDGET,
            MAX_EPOCHS,
            seed=0,
            give_up_after=0.0,
            callbacks=[TensorBoardTracker()],
        ),
        pruner=rising.RisingPruner(),
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    a_study().optimize(objective)
