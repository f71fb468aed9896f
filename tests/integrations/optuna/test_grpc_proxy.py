"""Processes behind a proxy that hands the same trial to several, as over SQLite."""

import socket
import threading
from collections import Counter

import optuna
import pytest
from optuna.storages import GrpcStorageProxy, RDBStorage, get_storage
from optuna.storages._grpc.server import make_server
from optuna.trial import TrialState, create_trial

import risingsearch.integrations.optuna as rising
from risingsearch.errors import SetupError
from risingsearch.integrations.optuna.storages import claim

pytestmark = [
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
BUDGET = 16
N_EPOCHS = 5


@pytest.fixture
def connect(tmp_path, monkeypatch):
    """Return a function that connects a process, here a thread, to the same proxy."""
    set_state = RDBStorage.set_trial_state_values

    def for_all_who_ask(storage, trial_id, state, values=None):
        set_state(storage, trial_id, state, values)
        return True

    monkeypatch.setattr(RDBStorage, "set_trial_state_values", for_all_who_ask)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    server = make_server(get_storage(f"sqlite:///{tmp_path}/s.db"), "localhost", port)
    server.start()
    clients = []

    def connect():
        clients.append(GrpcStorageProxy(host="localhost", port=port))
        clients[-1].wait_server_ready(timeout=60)
        return clients[-1]

    yield connect
    for client in clients:
        client.close()
    server.stop(grace=None).wait()


@pytest.fixture
def join(connect, make_study):
    """Return a function that has one more process take part in the same study."""

    def join():
        study = {"storage": connect(), "study_name": "s", "load_if_exists": True}
        options = {"give_up_after": 1.0, "epochs_per_job": 1}
        return make_study(BUDGET, N_EPOCHS, study=study, **options)

    return join


def test_a_trial_of_the_queue_is_taken_once(connect):
    clients = [connect() for _ in range(3)]
    study = optuna.create_study(storage=clients[0])
    for client in clients:
        claim(client)
    for _ in range(20):
        waiting = create_trial(state=TrialState.WAITING)
        number = clients[0].create_new_trial(study._study_id, waiting)
        taken = []
        begin = threading.Barrier(len(clients))

        def take(client, number=number, taken=taken, begin=begin):
            begin.wait()
            taken.append(client.set_trial_state_values(number, TrialState.RUNNING))

        threads = [threading.Thread(target=take, args=[client]) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(taken) <= 1
        late = clients[0].set_trial_state_values(number, TrialState.RUNNING)
        assert not late


def test_processes_train_no_epoch_twice(join):
    trained = Counter()
    n_open = Counter()

    def search(study):
        while sum(trained.values()) < BUDGET:
            trial = rising.ask(study)
            if trial is None:
                continue
            x = trial.suggest_float("x", 0.0, 1.0)
            arm = rising.arm(trial)
            for epoch in range(arm.from_epoch, arm.from_epoch + arm.n_epochs):
                trained[arm.id, epoch] += 1
                trial.report(x * epoch, epoch)
            study.tell(trial, state=TrialState.PRUNED)
            n_open[threading.get_ident()] += 1

    threads = [threading.Thread(target=search, args=[join()]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(n_open) == 2
    assert trained.total() == BUDGET
    assert set(trained.values()) == {1}


def test_a_process_that_begins_with_the_trial_of_another_is_refused(join):
    first = join()
    second = join()
    first.enqueue_trial({"x": 0.25})
    trial = first.ask()
    second._pop_waiting_trial_id = lambda: trial._trial_id  # it had read the queue
    with pytest.raises(SetupError, match="the same trial at the same moment"):
        second.ask()
    assert trial.suggest_float("x", 0.0, 1.0) == 0.25
    rising.arm(trial)
    trial.report(1.0, 0)
    first.tell(trial, state=TrialState.PRUNED)
    [result] = rising.arm_results(first)
    assert result.epochs == 1
