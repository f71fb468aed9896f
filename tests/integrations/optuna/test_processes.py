"""Several processes share one study."""

import itertools
import os
import signal
import subprocess
import sys
import time
import types
import uuid
from collections import Counter
from pathlib import Path

import optuna
import pytest

import risingsearch.integrations.optuna as rising
from risingsearch.integrations.optuna import study_replica

sys.path.insert(0, str(Path(__file__).parent))
from worker import open_storage

WORKER = Path(__file__).with_name("worker.py")
POSTGRES = os.environ.get("RISINGSEARCH_TEST_POSTGRES")
BUDGET = 40
FROM = "rising:from_epoch"


@pytest.fixture
def place(request, tmp_path):
    postgres = getattr(request, "param", "") == "postgres" and POSTGRES
    return postgres or f"journal:{tmp_path}/log"


@pytest.fixture
def study(place):
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

    def __init__(self, place, study, number, folder, patience, *stop):
        self.trained = folder / f"{number}.trained"
        self.said = folder / f"{number}.said"
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [
                    *[sys.executable, WORKER, place, study.study_name],
                    *[str(number), folder, str(patience), *stop],
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

    def start(*stop, patience=4.0):
        workers.append(Worker(place, study, len(workers), tmp_path, patience, *stop))
        return workers[-1]

    yield start
    for worker in workers:
        worker.process.kill()
        worker.process.wait()


def check(study, workers):
    """Check that each epoch of the budget was told once; return how many were begun."""
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
    return begun.total()


@pytest.mark.parametrize("give_up_after", [1.0, 5.0, 30.0])
def test_processes_that_take_each_other_for_dead_come_to_an_end(
    monkeypatch, make_study, quiet_optuna, give_up_after
):
    now = [0.0]
    clock = types.SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(study_replica, "time", clock)
    options = {"n_candidates": 1, "epochs_per_job": 4, "give_up_after": give_up_after}
    storage = optuna.storages.InMemoryStorage()
    study = {"storage": storage, "study_name": "slow", "load_if_exists": True}
    studies = [make_study(4, 4, study=study, **options) for _ in range(2)]
    open_trials = [None, None]  # and when their next epochs end
    told = 0
    while told < 4 and now[0] < 600:
        now[0] += 1.0
        for process, study in enumerate(studies):
            if open_trials[process] is None:
                trial = study.ask()
                if trial.user_attrs["rising:n_epochs"]:
                    trial.suggest_float("x", 0.0, 1.0)
                    open_trials[process] = trial, rising.arm(trial), now[0] + 20.0
                else:
                    study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                continue
            trial, arm, end = open_trials[process]
            if now[0] >= end:
                trial.report(0.5, len(trial._cached_frozen_trial.intermediate_values))
                open_trials[process] = trial, arm, now[0] + 20.0
                if trial.should_prune():
                    study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                    open_trials[process] = None
        told = sum(result.epochs for result in rising.arm_results(studies[0]))
    assert told == 4


def test_an_arm_whose_owner_is_silent_trains_on_before_all_others_have_ended(
    tmp_path, monkeypatch
):
    hours = itertools.count(0, 3600)
    clock = types.SimpleNamespace(monotonic=lambda: next(hours))
    monkeypatch.setattr(study_replica, "time", clock)

    def study_of_a_process():
        return optuna.create_study(
            study_name="shared",
            storage=open_storage(f"journal:{tmp_path}/log"),
            load_if_exists=True,
            sampler=rising.RisingSampler(60, 20, n_candidates=3, epochs_per_job=2),
            pruner=rising.RisingPruner(),
        )

    dead = study_of_a_process().ask()
    dead.suggest_float("x", 0.0, 1.0)
    rising.arm(dead)

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for epoch in range(rising.arm(trial).from_epoch, 20):
            trial.report(x + epoch, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x

    study = study_of_a_process()
    study.optimize(objective)
    arms = [trial.user_attrs.get("rising:arm") for trial in study.trials[1:]]
    assert arms.index(dead.number) < len(arms) // 2
    assert sum(result.epochs for result in rising.arm_results(study)) == 60


def test_processes_share_the_budget(start, study):
    workers = [start(patience=3600.0) for _ in range(2)]
    for worker in workers:
        worker.finish()
    assert check(study, workers) == BUDGET


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
    check(study, workers)
    assert any(result.opened_by_prior for result in rising.arm_results(study))


@pytest.mark.parametrize(
    ("place", "stop"),
    [
        pytest.param("journal", "in a slice", marks=pytest.mark.slow),
        ("postgres", "before one"),
    ],
    indirect=["place"],
)
def test_a_process_that_was_taken_for_dead_counts_for_nothing(start, study, stop):
    slow = start(stop)
    slow.wait_for_its_suspension()
    first, last = start(), start()
    first.finish()  # which is only when they have given it up
    last.finish()
    slow.process.send_signal(signal.SIGCONT)
    slow.finish()
    check(study, [slow, first, last])
