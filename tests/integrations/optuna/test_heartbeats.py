"""A killed process whose slice Optuna finds by its heartbeat, and queues again."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import optuna
import pytest
from optuna.trial import TrialState

import risingsearch.integrations.optuna as rising

KILLED = """
import os, signal, sys, warnings
import optuna
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import test_heartbeats
study = test_heartbeats.load(sys.argv[2])

def objective(trial):
    if trial.user_attrs.get("rising:from_epoch"):
        trial.suggest_float("x", 0.0, 1.0)
        test_heartbeats.rising.arm(trial)
        study._storage.record_heartbeat(trial._trial_id)
        os.kill(os.getpid(), signal.SIGKILL)
    return test_heartbeats.objective(trial)

study.optimize(objective)
"""
BUDGET, MAX_EPOCHS = 16, 8


RETRY = getattr(
    optuna.storages,
    "RetryHeartbeatStaleTrialCallback",
    optuna.storages.RetryFailedTrialCallback,  # its name before Optuna 4.9
)


def load(storage):
    callback = {
        "heartbeat_stale_trial_callback"
        if hasattr(optuna.storages, "RetryHeartbeatStaleTrialCallback")
        else "failed_trial_callback": RETRY()
    }
    return optuna.create_study(
        study_name="shared",
        storage=optuna.storages.RDBStorage(
            storage, heartbeat_interval=1, grace_period=2, **callback
        ),
        load_if_exists=True,
        sampler=rising.RisingSampler(BUDGET, MAX_EPOCHS, seed=0),
        pruner=rising.RisingPruner(),
    )


def objective(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    arm = rising.arm(trial)
    for epoch in range(arm.from_epoch, MAX_EPOCHS):
        trial.report(x + 1.0 / (epoch + 1), epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_killed_slice_is_queued_again(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    command = [sys.executable, "-c", KILLED, os.path.dirname(__file__), storage]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    study = load(storage)
    dead = study.trials[-1]
    assert dead.user_attrs["rising:from_epoch"] > 0
    assert dead.state == TrialState.RUNNING
    while not study._storage._get_stale_trial_ids(study._study_id):
        time.sleep(0.1)
    study.optimize(objective)
    assert study.trials[dead.number].state == TrialState.FAIL
    again = study.trials[dead.number + 1]
    for name in ("rising:arm", "rising:from_epoch", "rising:n_epochs"):
        assert again.user_attrs.get(name) == dead.user_attrs.get(name)
    assert again.params == dead.params
    assert again.state in (TrialState.PRUNED, TrialState.COMPLETE)
    trained = Counter(
        (trial.user_attrs.get("rising:arm"), epoch)
        for trial in study.trials
        if trial.state != TrialState.FAIL
        for epoch in range(
            trial.user_attrs.get("rising:from_epoch", 0), len(trial.intermediate_values)
        )
    )
    assert set(trained.values()) == {1}
    charged = trained.total() + dead.user_attrs["rising:n_epochs"]
    assert charged == BUDGET
