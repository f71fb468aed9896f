"""Searches in several processes or threads: same counts, same results, no leftovers."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.svm import SVC

from risingsearch import RisingSearchCV
from risingsearch.errors import SearchFailedError
from risingsearch.integrations.sklearn import processes
from risingsearch.integrations.sklearn.processes import SentOnce
from risingsearch.search import wall_clock

X, Y = make_classification(80, 6, random_state=0)
SPACE = [{"alpha": 10.0**-k} for k in range(6)]

SHUFFLED = KFold(3, shuffle=True, random_state=4)
PIPELINE_SPACE = {"sgd__alpha": [1e-4, 1e-2]}


def pipeline(transformer):
    return Pipeline([("first", transformer), ("sgd", SGDClassifier(random_state=0))])


def logging_classifier():
    """Return a class that only this process knows, as a notebook's would be."""

    class Logging(SGDClassifier):
        """Notes every call and the process it was made in."""

        def __init__(self, alpha=1e-4, log=None, fault=None, random_state=None):
            super().__init__(alpha=alpha, random_state=random_state)
            self.log = log
            self.fault = fault

        def partial_fit(self, X, y, classes=None, sample_weight=None):
            with open(self.log, "a") as file:
                file.write(f"{os.getpid()}\n")
            self.n_own_ = getattr(self, "n_own_", 0) + 1
            self.threads_ = os.environ.get("OMP_NUM_THREADS")
            died = Path(f"{self.log}.died")
            again = self.fault == "dies" or not died.exists()
            if str(self.fault).startswith("dies") and self.n_own_ == 2 and again:
                died.touch()
                os._exit(1)
            if self.fault == "raises":
                raise ArithmeticError("overflow")
            return super().partial_fit(X, y, classes, sample_weight)

    return Logging


@pytest.fixture
def log(tmp_path):
    return tmp_path / "calls"


def pids(log: Path) -> list[int]:
    return [int(line) for line in log.read_text().split()]


def rising(estimator, space=SPACE, **options):
    options = {"budget": 20, "max_epochs": 8, "cv": 0.25, "random_state": 0} | options
    return RisingSearchCV(estimator, space, **options)


class TestJobs:
    @pytest.fixture(autouse=True)
    def threads(self, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "3")

    def test_workers_serve_all_searches_of_a_program(self, log):
        model = logging_classifier()(log=str(log))
        search = rising(model, n_jobs=2, refit="best", cv=0.25).fit(X, Y)
        workers = set(pids(log))
        assert search.n_epochs_ == len(pids(log)) == 20
        assert os.getpid() not in workers
        assert len(workers) <= 2
        assert type(search.best_estimator_) is type(model)
        assert search.best_estimator_.n_own_ == search.best_epoch_
        assert search.best_estimator_.threads_ == "3"
        first = list(search.history_)
        search.continue_search(5)
        assert search.n_epochs_ == len(pids(log)) == 25
        assert search.history_[:20] == first
        other = make_pipeline(StandardScaler(), model)
        options = {"n_jobs": 2, "refit": False, "budget": 8}
        rising(other, {"logging__alpha": [0.1, 0.2]}, **options).fit(X[:60], Y[:60])
        assert len(set(pids(log))) <= 2

    def test_an_error_leaves_a_search_that_can_go_on(self, log):
        model = logging_classifier()(log=str(log))
        options = {"n_jobs": 2, "error_score": "raise", "refit": False}
        search = rising(model, [*SPACE[:3], {"fault": "raises"}], **options)
        with pytest.raises(ArithmeticError, match="overflow"):
            search.fit(X, Y)
        with pytest.warns(FitFailedWarning, match="overflow"):
            search.continue_search(3)
        assert search.n_epochs_ == len(pids(log)) == 23

    def test_a_worker_that_dies(self, log):
        model = logging_classifier()(log=str(log))
        space = [{"alpha": 0.01}, {"alpha": 0.1, "fault": "dies"}]
        options = {"policy": "round-robin", "refit": "best", "budget": 6}
        search = rising(model, space, n_jobs=2, **options)
        with pytest.warns(FitFailedWarning, match="killed its process"):
            search.fit(X, Y)
        assert len(pids(log)) == 6  # the one that died is not tried again
        assert search.best_params_ in space
        assert 0 < search.best_score_ <= 1
        assert_readable_in_another_process(search, log.parent / "error")

    def test_a_process_that_never_starts_is_ended(self, monkeypatch):
        monkeypatch.setattr(processes, "_IDLE", [])
        monkeypatch.setattr(processes, "end_with_parent", lambda pid: time.sleep(3600))
        monkeypatch.setattr(wall_clock, "SHORTEST", 0.1)
        search = rising(SGDClassifier(), n_jobs=2, budget=None, timeout=0.1)
        with pytest.raises(SearchFailedError, match="as it began or trained long"):
            search.fit(X, Y)

    @pytest.mark.parametrize("fault", ["dies", "dies once"])
    def test_one_that_kills_its_program_does_not_do_so_twice(self, tmp_path, fault):
        model = logging_classifier()(log=str(tmp_path / "calls"))
        space = [{"alpha": 0.01}, {"alpha": 0.1, "fault": fault}, {"alpha": 1.0}]
        options = {"policy": "round-robin", "refit": False, "budget": 9}

        def fit(folder):
            search = rising(model, space, run_dir=tmp_path / folder, **options)
            return search.fit(X, Y)

        if (pid := os.fork()) == 0:
            fit("run")
            os._exit(0)
        assert os.waitpid(pid, 0)[1] != 0
        if fault == "dies":
            with pytest.warns(FitFailedWarning, match=r"in epoch 2; attempts: 2"):
                search = fit("run")
            assert list(search.cv_results_["status"]).count("failed") == 1
            assert search.n_epochs_ == 9
        else:
            found, undisturbed = fit("run").history_, fit("another").history_
            for column in ("arm", "epoch", "score"):
                assert found[column] == undisturbed[column]

    def test_nothing_of_a_killed_program_is_left(self, tmp_path):
        program = tmp_path / "program.py"
        program.write_text(
            "import os, time\n"
            "import numpy as np\n"
            "from sklearn.linear_model import SGDClassifier\n"
            "from risingsearch import RisingSearchCV\n"
            "class Slow(SGDClassifier):\n"
            "    def partial_fit(self, *args, **options):\n"
            "        os.write(1, b'trains\\n')\n"
            "        time.sleep(3600)\n"
            "X = np.ones((200_000, 2))\n"
            "RisingSearchCV(Slow(), [{}, {}], budget=2, n_jobs=2)"
            ".fit(X, X[:, 0] > np.arange(200_000) % 2)\n"
        )
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        environment = {**os.environ, "JOBLIB_TEMP_FOLDER": str(temporary)}
        command = [sys.executable, program]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, env=environment, **options) as search:
            assert search.stdout.readline() == b"trains\n"
            assert sum(path.stat().st_size for path in temporary.glob("*/*")) > 3e6
            search.kill()
            search.stdout.read()  # at its end where no worker holds it open
            search.stderr.read()  # the same of what removes the data
        assert not list(temporary.iterdir())


def test_data_of_programs_that_ended_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    names = [
        f"joblib_memmapping_folder_{pid}_a_{processes.OWN}-b",
        f"joblib_memmapping_folder_{os.getpid()}_a_{processes.OWN}-b",
        f"joblib_memmapping_folder_{pid}_a_risingsearch-elsewhere-b",
        f"joblib_memmapping_folder_{pid}_a_of_another_package",
    ]
    for name in names:
        (tmp_path / name).mkdir()
    sent = SentOnce(SimpleNamespace(start=0, train=0))
    sent.write()
    sent.remove()
    assert {path.name for path in tmp_path.iterdir()} == {*names[1:]}


def test_arrays_are_mapped_and_each_process_may_write_to_its_own():
    sent = SentOnce(SimpleNamespace(start=0, train=0, X=np.ones((300, 500)), y=Y))
    sent.write()
    text = pickle.dumps(sent)
    received = pickle.loads(text)
    assert isinstance(received.X, np.memmap)
    received.X[:] = received.y[:] = 0.0
    assert (sent.trainable.X == 1.0).all()
    assert Y.any()
    processes._SENT.clear()
    assert (pickle.loads(text).X == 1.0).all()
    processes._SENT.clear()
    sent.remove()
    assert pickle.loads(text) is None


def assert_readable_in_another_process(search, path):
    error = SearchFailedError("the workers died", search._search.result())
    path.write_bytes(pickle.dumps(error))
    code = (
        "import pickle, sys\n"
        "error = pickle.load(open(sys.argv[1], 'rb'))\n"
        "result = pickle.loads(pickle.dumps(error)).result\n"
        "[trainer] = result.best_state()\n"
        "print(error, result.best_epoch, trainer.epochs, result.best_score)\n"
    )
    command = [sys.executable, "-c", code, path]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    epoch = search.best_epoch_
    assert printed == f"the workers died {epoch} {epoch} {search.best_score_}\n"


@pytest.fixture(scope="module")
def pool():
    """Two processes of the caller, which have imported everything already."""
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as executor:
        yield executor


class Raising(SGDClassifier):
    def __init__(self, alpha=1e-4, fault=None):
        super().__init__(alpha=alpha)
        self.fault = fault

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if self.fault == "raises":
            raise ArithmeticError("overflow")
        return super().partial_fit(X, y, classes, sample_weight)


class TestSharedProcesses:
    @pytest.mark.parametrize(
        ("estimator", "space", "options"),
        [
            (SVC(), {"C": [0.1, 1.0, 10.0]}, {"resource": "n_samples"}),
            (pipeline(TargetEncoder(cv=SHUFFLED)), PIPELINE_SPACE, {}),
        ],
        ids=["resource", "TargetEncoder"],
    )
    def test_find_the_same_every_time(self, pool, tmp_path, estimator, space, options):
        options |= {"executor": pool, "n_jobs": 2, "deterministic": True, "cv": 2}
        first = rising(estimator, space, **options).fit(X, Y)
        options["run_dir"] = tmp_path
        second, resumed = (rising(estimator, space, **options).fit(X, Y) for _ in "ab")
        for column in ("arm", "epoch", "score", "reason"):
            assert first.history_[column] == second.history_[column]
        assert first.history_["score"] == resumed.history_["score"]
        assert first.stop_reason_ == second.stop_reason_
        np.testing.assert_array_equal(first.predict(X), second.predict(X))

    def test_configuration_and_metadata_go_along(self, pool):
        with sklearn.config_context(enable_metadata_routing=True):
            model = SGDClassifier().set_fit_request(sample_weight=True)
            scorer = get_scorer("accuracy").set_score_request(sample_weight=True)
            options = {"scoring": scorer, "budget": 4}
            search = rising(make_pipeline(model), [{}], executor=pool, **options)
            weights = np.where(X[:, 0] > 0, 1.0, 1e-9)
            several = search.fit(X, X[:, 0] > 0, sample_weight=weights)
            alone = rising(make_pipeline(model), [{}], **options)
            alone.fit(X, X[:, 0] > 0, sample_weight=weights)
        assert several.history_["score"] == alone.history_["score"]

    def test_failures_travel(self, pool):
        options = {"executor": pool, "policy": "round-robin", "refit": False}
        search = rising(Raising(), [*SPACE, {"fault": "raises"}], **options)
        with pytest.warns(FitFailedWarning, match="ArithmeticError"):
            search.fit(X, Y)
        assert search.cv_results_["status"][6] == "failed"
        search.set_params(param_distributions=[{"fault": "raises"}])
        with pytest.raises(SearchFailedError) as caught:
            search.fit(X, Y)
        assert isinstance(caught.value.__cause__, ArithmeticError)


class TestExecutors:
    def test_threads(self):
        with ThreadPoolExecutor(2) as executor:
            search = rising(
                make_pipeline(StandardScaler(), SGDClassifier()),
                {"sgdclassifier__alpha": [10.0**-k for k in range(6)]},
                executor=executor,
                cv=2,
            ).fit(X, Y)
            assert search.n_epochs_ == 20
            assert search.continue_search(3).n_epochs_ == 23
            assert executor.submit(int, 3).result() == 3  # it is not shut down
