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

import risingsearch.integrations.optuna as rising

WORKER = Path(__file__).with_name("worker.py")
POSTGRES = os.environ.get("RISINGSEARCH_TEST_POSTGRES")
BUDGET = 80
FROM = "rising:from_epoch"


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


@pytest.fixture
def prior(tmp_path):
    """Write an earlier search for the workers."""
    rows = [f"{k / 20},{1 - (k / 20 - 0.3) ** 2}" for k in range(20)]
    (tmp_path / "prior.csv").write_text("\n".join(["x,score", *rows]))


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


def check(study, workers, n_dead=0):
    """Check that each epoch of the budget was told, and trained once.

    Of ``n_dead`` threads that have ended, an epoch each is trained once more.
    """
    told = Counter()
    for trial in study.get_trials(deepcopy=False):
        attrs = trial.user_attrs
        n_epochs = attrs.get("rising:given_up", len(trial.intermediate_values))
        if attrs.get("rising:n_epochs"):
            arm = attrs.get("rising:arm", trial.number)
            told.update((arm, k) for k in range(attrs.get(FROM, 0), n_epochs))
    assert told.total() == BUDGET
    assert set(told.values()) == {1}
    begun = Counter(line for worker in workers for line in worker.epochs())
    assert set(begun) >= {f"{arm} {epoch}" for arm, epoch in told}
    assert begun.total() <= BUDGET + n_dead


def test_processes_share_the_budget(start, study):
    workers = [start(), start(), start()]
    for worker in workers:
        worker.finish()
    check(study, workers)


@pytest.mark.usefixtures("prior")
def test_the_slices_of_a_killed_process_continue_from_their_checkpoints(start, study):
    first, killed, last = workers = [start(), start(), start()]
    while sum(len(worker.epochs()) for worker in workers) < BUDGET // 4:
        assert killed.process.poll() is None
        time.sleep(0.02)
    killed.process.send_signal(signal.SIGKILL)
    killed.finish(-signal.SIGKILL)
    first.finish()
    last.finish()
    check(study, workers, n_dead=2)
    assert any(result.opened_by_prior for result in rising.arm_results(study))


@pytest.mark.parametrize("stop", ["in a slice", "before one"])
def test_a_process_that_was_taken_for_dead_counts_for_nothing(start, study, stop):
    slow = start(stop)
    slow.wait_for_its_suspension()
    first, last = start(), start()
    first.finish()  # which is only when they have given it up
    last.finish()
    slow.process.send_signal(signal.SIGCONT)
    slow.finish()
    check(study, [slow, first, last], n_dead=1)
