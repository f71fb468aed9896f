import signal
import subprocess
import sys
import time

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState

import risingsearch.integrations.optuna as rising

OTHER = """
import sys
import optuna
import risingsearch.integrations.optuna as rising
from risingsearch.errors import SetupError

study = optuna.load_study(
    study_name="shared",
    storage=sys.argv[1],
    sampler=rising.RisingSampler(20, 5, seed=1),
    pruner=rising.RisingPruner(),
)

def objective(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    arm = rising.arm(trial)
    for epoch in range(arm.from_epoch, 5):
        trial.report(x * epoch, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x

try:
    study.optimize(objective)
except SetupError as error:
    sys.exit(f"refused: {error}")
"""


def in_another_process(storage):
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OTHER, storage],
        capture_output=True,
        text=True,
    )


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_sqlite_serves_one_process_after_the_other(objective, tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(study_name="shared", storage=storage)
    first = in_another_process(storage)
    assert first.returncode == 0, first.stderr
    study = optuna.load_study(
        study_name="shared",
        storage=storage,
        sampler=rising.RisingSampler(30, 5, seed=2),
        pruner=rising.RisingPruner(),
    )
    objective.n_epochs = 5
    study.optimize(objective, n_jobs=2)
    assert objective.trained.total() == 10
    refused = in_another_process(storage)
    assert refused.returncode == 1
    assert "another process searches in" in refused.stderr
    assert "use JournalStorage, PostgreSQL or MySQL" in refused.stderr
    assert study.get_trials(states=(TrialState.RUNNING,)) == []


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_sqlite_in_memory_is_not_shared(objective, make_study):
    study = make_study(budget=20, study={"storage": "sqlite://"})
    study.optimize(objective)
    assert objective.trained.total() == 20


def test_no_two_threads_take_the_same_trial(
    objective, tmp_path, monkeypatch, make_study
):
    taken = RDBStorage.set_trial_state_values

    def slowly(storage, trial_id, state, values=None):  # as on a slow disk
        waited = storage.get_trial(trial_id).state == TrialState.WAITING
        time.sleep(0.01)
        return taken(storage, trial_id, state, values) or waited

    monkeypatch.setattr(RDBStorage, "set_trial_state_values", slowly)
    objective.n_epochs = 4
    options = {"budget": 12, "max_epochs": 4, "epochs_per_job": 4}
    study = make_study(study={"storage": f"sqlite:///{tmp_path}/s.db"}, **options)
    for x in (0.1, 0.5, 0.9):
        study.enqueue_trial({"x": x})
    study.optimize(objective, n_jobs=3)
    assert objective.trained.total() == 12
    assert set(objective.trained.values()) == {1}
    assert [one.params["x"] for one in rising.arm_results(study)] == [0.1, 0.5, 0.9]


KILLED = """
import os, pathlib, signal, sys
import optuna
import risingsearch.integrations.optuna as rising

sampler = rising.RisingSampler(
    12, 12, epochs_per_job=4, n_candidates=1, checkpoint_dir=sys.argv[2]
)
study = optuna.create_study(
    study_name="killed",
    storage=sys.argv[1],
    load_if_exists=True,
    sampler=sampler,
    pruner=rising.RisingPruner(),
)
dies_at = int(sys.argv[3])

def objective(trial):
    trial.suggest_float("x", 0.0, 1.0)
    if dies_at == -2:  # before it asks for its arm
        os.kill(os.getpid(), signal.SIGKILL)
    arm = rising.arm(trial)
    epoch = int((arm.checkpoint / "n").read_text()) if arm.checkpoint else 0
    while epoch < 12:
        if epoch == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        trial.report(epoch + 1.0, epoch)
        epoch += 1
        if epoch % 2 == 0:
            with arm.save() as folder:
                (folder / "n").write_text(str(epoch))
        if trial.should_prune():
            raise optuna.TrialPruned
    return float(epoch)

study.optimize(objective)
"""


def test_the_arm_of_a_killed_process_continues_in_the_next(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    command = [sys.executable, "-W", "ignore", "-c", KILLED, storage, tmp_path]
    for dies_at in ("-2", "6"):
        assert subprocess.run([*command, dies_at]).returncode == -signal.SIGKILL
    subprocess.run([*command, "-1"], check=True, timeout=50)  # less than give_up_after
    study = optuna.load_study(study_name="killed", storage=storage)
    [result] = filter(lambda one: one.epochs, rising.arm_results(study))
    assert result.epochs == 12
    trained = {epoch: epoch + 1.0 for epoch in range(12)}
    assert result.curve == trained  # under the numbers that they were told with
