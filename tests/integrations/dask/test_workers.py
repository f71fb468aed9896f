"""Searches on a cluster: the same results, whatever happens to its workers."""

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

from risingsearch import Functions, RisingSearch, RisingSearchCV
from risingsearch.errors import (
    InvalidParameterError,
    SearchFailedError,
    SetupError,
    WorkerError,
)
from tests.search.curve_search import facts


@pytest.fixture(scope="module")
def learners():
    """Return the module of the learners, which the workers import by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent)
        import learners

        yield learners


@pytest.fixture(scope="module")
def cluster(learners):
    with LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        for _ in range(5):
            cluster.scale(2)  # of one that a test has killed, the nanny may be gone too
            with suppress(TimeoutError):
                client.wait_for_workers(2, timeout=20)
        assert len(client.scheduler_info()["workers"]) >= 2
        yield client


@pytest.fixture
def threads():
    """Return a client of workers that are threads of this process."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        LocalCluster(2, processes=False, **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def learner(learners, tmp_path):
    (tmp_path / "notes").mkdir()
    return learners.Learner(tmp_path / "notes")


def times_noted(learner, what):
    """Return how often each (arm, epoch) was begun or ended."""
    notes = [note.split() for note in learner.notes()]
    return Counter((int(n[1]), int(n[2])) for n in notes if n[0] == what)


def told(result):
    return Counter((row["arm"], row["epoch"]) for row in result.history)


class TestResults:
    @pytest.mark.parametrize("n_jobs", [1, 3])
    def test_are_those_of_local_threads(self, client, learners, learner, n_jobs):
        def search(executor):
            return RisingSearch(
                learner,
                learners.arms(8),
                budget=40,
                max_epochs=8,
                seed=0,
                deterministic=True,
                n_jobs=n_jobs,
                executor=executor,
            ).run()

        with ThreadPoolExecutor(n_jobs) as pool:
            here = search(pool)
        remote = search(client)
        assert facts(remote) == facts(here)
        assert remote.best_state() == here.best_state()
        assert set(times_noted(learner, "ended").values()) == {2}

    def test_of_functions_that_only_this_process_has(self, client):
        rate = 0.5
        search = RisingSearch(
            Functions(
                lambda params, seed: {"epochs": 0, **params},
                lambda state: state["top"] * rate,
            ),
            [{"top": 0.5}, {"top": 0.8}],
            budget=6,
            executor=client,
        )
        assert search.run().best_score == 0.4


class TestRisingSearchCV:
    def test_finds_what_it_finds_here(self, client):
        X, y = load_digits(return_X_y=True)

        def search(**options):
            return RisingSearchCV(
                SGDClassifier(),
                {"alpha": loguniform(1e-6, 1e-1), "penalty": ["l2", "l1"]},
                budget=20,
                max_epochs=10,
                cv=0.25,
                random_state=0,
                **options,
            ).fit(X / 16, y)

        here, remote = search(), search(executor=client.get_executor(), n_jobs=1)
        assert remote.best_params_ == here.best_params_
        assert remote.history_["score"] == here.history_["score"]
        assert (remote.best_estimator_.coef_ == here.best_estimator_.coef_).all()


class TestWhatTravels:
    def test_the_data_go_to_every_worker_once(self, client, learners, tmp_path):
        learner = learners.Travelling(tmp_path, np.arange(500_000.0))
        RisingSearch(
            learner, learners.arms(6, meets=2), budget=40, executor=client
        ).run()
        assert len(list(tmp_path.iterdir())) == 2
        assert learner.notes().count("arrived") == 2

    def test_a_paused_arm_stays_where_it_was(self, client, learners, tmp_path):
        learner = learners.Travelling(tmp_path)
        RisingSearch(
            learner,
            learners.arms(4),
            budget=20,
            epochs_per_job=1,
            policy="round-robin",
            executor=client,
            n_jobs=1,
        ).run()
        assert len(times_noted(learner, "ended")) == 20
        assert "loaded" not in learner.notes()
        assert len(list(tmp_path.iterdir())) == 1


class TestWorkersThatDie:
    @pytest.fixture
    def cluster(self, learners):
        """Return a cluster for each test: none misses what another has killed."""
        with LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster:
            yield cluster

    def test_take_one_job_along(self, client, learners, learner):
        arms = learners.arms(3, seconds=0.1, ballast=bytes(2**20))
        arms[1]["dies_at"] = 3
        search = RisingSearch(
            learner,
            arms,
            budget=15,
            max_epochs=5,
            epochs_per_job=1,
            policy="round-robin",
            executor=client,
        )
        result = search.run()
        assert result.n_epochs == 15
        assert not result.failures
        assert times_noted(learner, "ended") == told(result)
        extra = times_noted(learner, "begun") - told(result)
        assert extra[1, 3] == 1
        assert extra.total() <= 2  # that of the job beside it, if they shared a worker

    @pytest.mark.slow
    def test_time_after_time_are_the_failure_of_an_arm(self, client, learners, learner):
        arms = learners.arms(3)
        arms[1] |= {"dies_at": 2, "always": True}
        search = RisingSearch(
            learner, arms, budget=10, max_epochs=4, executor=client, n_jobs=1
        )
        with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
            result = search.run()
        [report] = result.failures
        assert isinstance(report.failure, WorkerError)
        assert "arm 1 was lost with every worker" in str(report.failure)
        assert result.n_epochs == 10
        assert [arm.status for arm in result.arms] == ["finished", "failed", "finished"]


class TestWorkersThatComeAndGo:
    def test_are_used_and_not_missed(self, cluster, client, learners, learner):
        def change(epoch):
            if epoch.number == 1:
                cluster.scale(3)
            if epoch.number == 21:
                cluster.scale(2)

        first, *others = learners.arms(9)
        arms = [first, *({"meets": 3, **arm} for arm in others)]
        search = RisingSearch(
            learner,
            arms,
            budget=60,
            policy="round-robin",
            shuffle=False,
            epochs_per_job=1,
            executor=client,
            callbacks=[change],
        )
        result = search.run()
        assert result.n_epochs == 60
        assert not result.failures
        assert len(list(learner.folder.iterdir())) >= 3


class TestRunDirectories:
    def test_are_gone_on_with_on_another_cluster(
        self, client, threads, learners, learner, tmp_path
    ):
        def stop(epoch):
            if len(times_noted(learner, "ended")) >= n_epochs:
                epoch.stop()

        options = {
            "trainable": learner,
            "candidates": learners.arms(6),
            "budget": 40,
            "max_epochs": 10,
            "seed": 0,
            "callbacks": [stop],
            "run_dir": tmp_path / "run",
        }
        n_epochs = 10
        RisingSearch(**options, executor=client).run()
        n_epochs = 20
        RisingSearch(**options, executor=threads).run()
        n_epochs = 30
        RisingSearch.resume(tmp_path / "run", learner, callbacks=[stop]).run()
        result = RisingSearch.resume(
            tmp_path / "run", learner, executor=client.get_executor()
        ).run()
        assert result.n_epochs == 40
        assert times_noted(learner, "ended") == told(result)
        assert RisingSearch.saved_result(tmp_path / "run").n_epochs == 40


class TestFailures:
    def test_arrive_with_their_message(self, client, learners, learner):
        arms = learners.arms(3)
        arms[2]["fails_at"] = 2
        result = RisingSearch(
            learner, arms, budget=12, max_epochs=5, executor=client
        ).run()
        [report] = result.failures
        assert isinstance(report.failure, ValueError)
        assert str(report.failure) == "arm 2 diverged"
        assert result.arms[2].status == "failed"
        assert result.n_epochs == 12

    def test_a_setup_error_stops_the_search(self, client, learners, learner):
        arms = learners.arms(3, lacks_at=2)
        with pytest.raises(SetupError, match="has moved"):
            RisingSearch(learner, arms, budget=12, executor=client).run()

    def test_a_module_that_workers_lack(self, client, tmp_path, monkeypatch):
        (tmp_path / "only_here.py").write_text(
            "def start(params, seed): return {}\ndef train(state): return 0.5\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        import only_here

        search = RisingSearch(
            Functions(only_here.start, only_here.train), [{}], budget=3, executor=client
        )
        with pytest.raises(SearchFailedError, match="No module named 'only_here'"):
            search.run()

    def test_a_cluster_that_is_gone(self, learners, learner, tmp_path):
        def close(epoch):
            if epoch.number == 6:
                cluster.close()

        with (
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
            LocalCluster(
                1, threads_per_worker=1, processes=False, dashboard_address=":0"
            ) as cluster,
            Client(cluster) as client,
        ):
            search = RisingSearch(
                learner,
                learners.arms(3),
                budget=20,
                executor=client,
                callbacks=[close],
                run_dir=tmp_path / "run",
            )
            lost = f"lost the Dask scheduler at {client.scheduler.address}: with"
            with pytest.raises(SearchFailedError, match=lost) as caught:
                search.run()
        assert len(caught.value.result.history) >= 6
        assert math.isfinite(caught.value.result.best_score)
        assert RisingSearch.resume(tmp_path / "run", learner).run().n_epochs == 20


class TestExecutors:
    def test_that_are_no_clients(self, cluster, learners, learner):
        with pytest.raises(InvalidParameterError, match=r"distributed\.Client"):
            RisingSearch(learner, learners.arms(2), budget=4, executor=cluster)

    def test_that_are_closed(self, threads, learners, learner):
        threads.close()
        with pytest.raises(InvalidParameterError, match="is closed"):
            RisingSearch(learner, learners.arms(2), budget=4, executor=threads)

    def test_that_are_restricted_to_a_worker(self, client, learners, learner):
        address, _ = client.nthreads()
        RisingSearch(
            learner,
            learners.arms(4),
            budget=16,
            executor=client.get_executor(workers=[address]),
        ).run()
        assert len(list(learner.folder.iterdir())) == 1
