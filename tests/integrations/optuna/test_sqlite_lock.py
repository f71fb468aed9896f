import subprocess
import sys

import optuna
import pytest

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


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_sqlite_in_memory_is_not_shared(objective, make_study):
    study = make_study(budget=20, study={"storage": "sqlite://"})
    study.optimize(objective)
    assert objective.trained.total() == 20
