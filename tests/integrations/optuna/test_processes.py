"""Three processes of two threads each share one study."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

WORKER = Path(__file__).with_name("worker.py")
POSTGRES = os.environ.get("RISINGSEARCH_TEST_POSTGRES")
BUDGET = 300


def lines(folder):
    """Return (arm, epoch) of all epochs begun."""
    files = folder.glob("*.trained")
    return [line for file in files for line in file.read_text().splitlines()]


@pytest.fixture(params=["journal", *(["postgres"] if POSTGRES else [])])
def place(request, tmp_path):
    return POSTGRES if request.param == "postgres" else f"journal:{tmp_path}/log"


@pytest.mark.parametrize("kill", [False, True], ids=["", "one killed"])
def test_processes_share_the_budget(place, kill, tmp_path):
    name = uuid.uuid4().hex
    sys.path.insert(0, str(WORKER.parent))
    try:
        from worker import open_storage
    finally:
        sys.path.remove(str(WORKER.parent))
    storage = open_storage(place)
    study = optuna.create_study(study_name=name, storage=storage, direction="maximize")
    workers = [
        subprocess.Popen([sys.executable, WORKER, place, name, str(i), tmp_path])
        for i in range(3)
    ]
    if kill:
        while len(lines(tmp_path)) < BUDGET // 4:
            time.sleep(0.02)
        workers[1].send_signal(signal.SIGKILL)
    codes = [worker.wait(timeout=180) for worker in workers]
    assert codes == [0, -signal.SIGKILL if kill else 0, 0]

    begun = Counter(lines(tmp_path))
    assert set(begun.values()) == {1}
    trials = study.get_trials(deepcopy=False)
    blocked = sum(
        trial.user_attrs.get("rising:n_epochs", 0)
        for trial in trials
        if trial.state == TrialState.RUNNING
    )
    told = sum(
        len(trial.intermediate_values) - trial.user_attrs.get("rising:from_epoch", 0)
        for trial in trials
        if trial.state in (TrialState.PRUNED, TrialState.COMPLETE)
        and trial.user_attrs.get("rising:n_epochs")
    )
    assert told + blocked == BUDGET
    assert told <= begun.total() <= BUDGET
    assert bool(blocked) <= kill
