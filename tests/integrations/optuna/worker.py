"""One of several processes that search together.

``python worker.py STORAGE STUDY SEED FOLDER PATIENCE [STOP]``: each epoch trained is a
line in a file. An earlier search in the file PRIOR in the folder is learnt from. With
STOP the process has one thread and suspends itself: "in a slice", or "before one", when
Optuna has made its trial and nothing was decided for it.
"""

import os
import signal
import sys
import time
import warnings
from pathlib import Path

import optuna

import risingsearch.integrations.optuna as rising
from risingsearch.priors import earlier_searches

BUDGET, MAX_EPOCHS = 40, 20
STOP_AT = 8  # epochs, or trials
PRIOR = "prior.csv"


def open_storage(place):
    if not place.startswith("journal:"):
        return optuna.storages.get_storage(place)
    path = place.removeprefix("journal:")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a grace period this short
        lock = optuna.storages.journal.JournalFileOpenLock(path, grace_period=10)
    backend = optuna.storages.journal.JournalFileBackend(path, lock_obj=lock)
    return optuna.storages.JournalStorage(backend)


class Suspending(rising.RisingSampler):
    def before_trial(self, study, trial):
        if trial.number >= STOP_AT and "rising:n_epochs" not in trial.user_attrs:
            suspend_once()
        super().before_trial(study, trial)


suspended = []


def suspend_once():
    if not suspended:
        suspended.append(True)
        os.kill(os.getpid(), signal.SIGSTOP)


def main(place, name, seed, folder, patience, stop=""):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    with (Path(folder) / f"{seed}.trained").open("a", buffering=1) as file:
        n_epochs = 0

        def objective(trial):
            nonlocal n_epochs
            x = trial.suggest_float("x", 0.0, 1.0)
            arm = rising.arm(trial)
            if arm.from_epoch:
                assert int((arm.checkpoint / "epochs").read_text()) == arm.from_epoch
            for epoch in range(arm.from_epoch, MAX_EPOCHS):
                file.write(f"{arm.id} {epoch}\n")
                n_epochs += 1
                if stop == "in a slice" and n_epochs == STOP_AT:
                    suspend_once()
                time.sleep(0.001)
                score = (1.0 - (x - 0.3) ** 2) * (1.0 - 1.0 / (epoch + 2))
                trial.report(score, epoch)
                with arm.save() as saved:
                    (saved / "epochs").write_text(str(epoch + 1))
                if trial.should_prune():
                    raise optuna.TrialPruned
            return score

        prior = Path(folder, PRIOR)
        read = {"score": "score", "direction": "maximize"}
        options = {
            "seed": int(seed),
            "give_up_after": float(patience),
            "prior": earlier_searches(prior, **read) if prior.exists() else None,
            "checkpoint_dir": folder,
        }
        make = Suspending if stop == "before one" else rising.RisingSampler
        study = optuna.load_study(
            study_name=name,
            storage=open_storage(place),
            sampler=make(BUDGET, MAX_EPOCHS, **options),
            pruner=rising.RisingPruner(),
        )
        study.optimize(objective, n_jobs=1 if stop else 2)


if __name__ == "__main__":
    main(*sys.argv[1:])
