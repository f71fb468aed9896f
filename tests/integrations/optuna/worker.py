"""One of several processes that search together.

``python worker.py STORAGE STUDY SEED FOLDER``: each epoch trained is a line in a file.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import optuna

import risingsearch.integrations.optuna as rising

BUDGET, MAX_EPOCHS = 300, 50


def open_storage(place):
    if not place.startswith("journal:"):
        return optuna.storages.get_storage(place)
    path = place.removeprefix("journal:")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a grace period this short
        lock = optuna.storages.journal.JournalFileOpenLock(path, grace_period=2)
    backend = optuna.storages.journal.JournalFileBackend(path, lock_obj=lock)
    return optuna.storages.JournalStorage(backend)


def main(place, name, seed, folder):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    with (Path(folder) / f"{os.getpid()}.trained").open("a", buffering=1) as file:

        def objective(trial):
            x = trial.suggest_float("x", 0.0, 1.0)
            arm = rising.arm(trial)
            for epoch in range(arm.from_epoch, MAX_EPOCHS):
                file.write(f"{arm.id} {epoch}\n")
                time.sleep(0.001)
                score = (1.0 - (x - 0.3) ** 2) * (1.0 - 1.0 / (epoch + 2))
                trial.report(score, epoch)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return score

        study = optuna.load_study(
            study_name=name,
            storage=open_storage(place),
            sampler=rising.RisingSampler(
                BUDGET, MAX_EPOCHS, seed=int(seed), patience=4.0
            ),
            pruner=rising.RisingPruner(),
        )
        study.optimize(objective, n_jobs=2)


if __name__ == "__main__":
    main(*sys.argv[1:])
