"""Searches in several processes or threads: same counts, same results, no leftovers."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sklearn
from joblib.externals import loky
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
            if self.fault == "dies" and self.n_own_ == 2:
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


def is_alive(pid):
    multiprocessing.active_children()  # buries those that have ended
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def all_gone(workers):
    deadline = time.monotonic() + 3600
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(is_alive, workers))


def rising(estimator, space=SPACE, **options):
    options = {"budget": 20, "max_epochs": 8, "cv": 0.25, "random_state": 0} | options
    return RisingSearchCV(estimator, space, **options)


class TestJobs:
    def test_counts_continuing_and_no_leftovers(self, log, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        model = logging_classifier()(log=str(log))
        search = rising(model, n_jobs=2, refit="best", cv=0.25).fit(X, Y)
        workers = set(pids(log))
        assert search.n_epochs_ == len(pids(log)) == 20
        assert os.getpid() not in workers
        assert len(workers) <= 2
        assert all_gone(workers)
        assert type(search.best_estimator_) is type(model)
        assert search.best_estimator_.n_own_ == search.best_epoch_
        assert search.best_estimator_.threads_ == "3"
        first = list(search.history_)
        search.continue_search(5)
        assert search.n_epochs_ == len(pids(log)) == 25
        assert search.history_[:20] == first
        assert all_gone(pids(log))

    def test_an_error_leaves_a_search_that_can_go_on(self, log):
        model = logging_classifier()(log=str(log))
        options = {"n_jobs": 2, "error_score": "raise", "refit": False}
        search = rising(model, [*SPACE[:3], {"fault": "raises"}], **options)
        with pytest.raises(ArithmeticError, match="overflow"):
            search.fit(X, Y)
        assert all_gone(pids(log))
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
        assert search.best_params_ in space
        assert 0 < search.best_score_ <= 1
        assert all_gone(pids(log))
        assert_readable_in_another_process(search, log.parent / "error")


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
    """Two processes, which import scikit-learn once for all tests that share them."""
    with loky.ProcessPoolExecutor(2) as executor:
        yield executor


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

    def test_failures_travel(self, log, pool):
        model = logging_classifier()(log=str(log))
        options = {"executor": pool, "policy": "round-robin", "refit": False}
        search = rising(model, [*SPACE, {"fault": "raises"}], **options)
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
