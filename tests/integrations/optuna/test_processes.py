"""Three processes share one study."""

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

import risingsearch.integrations.optuna as rising

WORKER = Path(__file__).with_name("worker.py")
POSTGRES = os.environ.get("RISINGSEARCH_TEST_POSTGRES")
BUDGET = 120


@pytest.fixture(params=["journal", *(["postgres"] if POSTGRES else [])])
def place(request, tmp_path):
    return POSTGRES if request.param == "postgres" else f"journal:{tmp_path}/log"


@pytest.fixture
def study(place):
    sys.path.insert(0, str(WORKER.parent))
    try:
        from worker import open_storage
    finally:
        sys.path.remove(str(WORKER.parent))
    return optuna.create_study(
        study_name=uuid.uuid4().hex, storage=open_storage(place), direction="maximize"
    )


@pytest.fixture(params=["alone", "with a prior"])
def prior(request, tmp_path):
    """Write an earlier search for the workers, or none; return whether there is one."""
    if request.param == "alone":
        return False
    rows = [f"{k / 20},{1 - (k / 20 - 0.3) ** 2}" for k in range(20)]
    (tmp_path / "prior.csv").write_text("\n".join(["x,score", *rows]))
    return True


class Worker:
    """A process of two threads that searches; of one if it is to suspend itself."""

    def __init__(self, place, study, number, folder, *stop):
        self.trained = folder / f"{number}.trained"
        self.said = folder / f"{number}.said"
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [
                    *[sys.executable, WORKER, place, study.study_name],
                    *[str(number), folder, *stop],
                ],
                stderr=said,
            )

    def epochs(self):
        """Return "arm epoch" of all epochs begun."""
        return (
            self.trained.read_text().split("\n")[:-1] if self.trained.exists() else []
        )

    def finish(self, code=0):
        """Wait for the process to end as it should."""
        ended = self.process.wait()
        assert ended == code, self.said.read_text()
        assert not self.said.read_text()

    def wait_for_its_suspension(self):
        options = os.WSTOPPED | os.WEXITED | os.WNOWAIT
        seen = os.waitid(os.P_PID, self.process.pid, options)
        assert seen.si_code == os.CLD_STOPPED, self.said.read_text()


@pytest.fixture
def start(place, study, tmp_path):
    """Return a function that starts a worker, which is killed at the latest here."""
    workers = []

    def start(*stop):
        workers.append(Worker(place, study, len(workers), tmp_path, *stop))
        return workers[-1]

    yield start
    for worker in workers:
        worker.process.kill()
        worker.process.wait()


def check(study, workers):
    """Check that each epoch was trained once; return those of trials that hang."""
    begun = Counter(line for worker in workers for line in worker.epochs())
    assert set(begun.values()) == {1}
    told = blocked = 0
    for trial in study.get_trials(deepcopy=False):
        n_epochs = trial.user_attrs.get("rising:n_epochs", 0)
        if trial.state == TrialState.RUNNING:
            blocked += n_epochs
        elif n_epochs:
            assert trial.state in (TrialState.PRUNED, TrialState.COMPLETE)
            told += len(trial.intermediate_values)
            told -= trial.user_attrs.get("rising:from_epoch", 0)
    assert told + blocked == BUDGET
    assert told <= begun.total() <= BUDGET
    return blocked


def check_opened_by(prior, study):
    """Check that arms were opened for what the earlier search says, where one is."""
    results = rising.arm_results(study)
    assert any(result.opened_by_prior for result in results) == prior


def test_processes_share_the_budget(start, study):
    workers = [start(), start(), start()]
    for worker in workers:
        worker.finish()
    assert check(study, workers) == 0


def test_a_killed_process_costs_no_more_than_its_slices(start, study, prior):
    first, killed, last = workers = [start(), start(), start()]
    while sum(len(worker.epochs()) for worker in workers) < BUDGET // 4:
        assert killed.process.poll() is None
        time.sleep(0.02)
    killed.process.send_signal(signal.SIGKILL)
    killed.finish(-signal.SIGKILL)
    first.finish()
    last.finish()
    check(study, workers)
    check_opened_by(prior, study)


@pytest.mark.parametrize("stop", ["in a slice", "before one"])
def test_who_was_taken_for_dead_overruns_nothing(start, study, stop, prior):
    slow = start(stop)
    slow.wait_for_its_suspension()
    first, last = start(), start()
    first.finish()  # which is only when they have given it up
    last.finish()
    slow.process.send_signal(signal.SIGCONT)
    slow.finish()
    assert check(study, [slow, first, last]) == 0
    check_opened_by(prior, study)
