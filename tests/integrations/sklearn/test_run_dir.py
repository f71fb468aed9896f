"""A search with a run directory goes on where its process was killed."""

import importlib
import os
import re
import signal
import sys
import threading
from functools import partial
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, TargetEncoder

from risingsearch.errors import InvalidParameterError, NotTrainableError, RunDirError
from risingsearch.integrations.sklearn import RisingSearchCV

X, y = make_classification(300, n_informative=5, random_state=0)
SHUFFLED = KFold(3, shuffle=True, random_state=0)
SPACE = {"alpha": loguniform(1e-6, 1e-1), "penalty": ["l2", "l1"]}


def searching(run_dir, **changes):
    arguments = {"budget": 20, "max_epochs": 8, "cv": 0.3, "random_state": 0}
    arguments |= {"run_dir": run_dir, **changes}
    return RisingSearchCV(SGDClassifier(), SPACE, **arguments)


def killed_at(write, search):
    """Fit in a child process that is killed at one of its writes."""
    pid = os.fork()
    if pid == 0:
        sync, left = os.fsync, [write]

        def killing(descriptor):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            sync(descriptor)

        os.fsync = killing
        try:
            search.fit(X, y)
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ended")
    searching(folder).fit(X, y)
    return folder


@pytest.mark.parametrize("write", [2, 40])
def test_after_a_crash_the_same_call_ends_as_if_there_had_been_none(tmp_path, write):
    whole = searching(None).fit(X, y)
    killed_at(write, searching(tmp_path))
    resumed = searching(tmp_path).fit(X, y)
    assert resumed.history_["score"] == whole.history_["score"]
    assert resumed.n_epochs_ == whole.n_epochs_ == 20
    assert resumed.best_params_ == whole.best_params_
    np.testing.assert_array_equal(
        resumed.best_estimator_.coef_, whole.best_estimator_.coef_
    )


def test_a_pipeline_goes_on_with_the_same_rows(tmp_path):
    encoder = TargetEncoder(cv=SHUFFLED)
    pipeline = Pipeline([("first", encoder), ("sgd", SGDClassifier())])
    space = {"sgd__alpha": loguniform(1e-6, 1e-1)}
    changes = {"estimator": pipeline, "param_distributions": space, "budget": 10}
    whole = searching(None).set_params(**changes).fit(X, y)
    killed_at(20, searching(tmp_path).set_params(**changes))
    resumed = searching(tmp_path).set_params(**changes).fit(X, y)
    assert resumed.history_["score"] == whole.history_["score"]


def test_a_finished_search_trains_nothing_when_it_is_called_again(tmp_path):
    first = searching(tmp_path, refit="best").fit(X, y)

    again = searching(tmp_path, refit="best").set_params(estimator=SGDClassifier())
    again.fit(X, y)
    assert again.history_ == first.history_
    np.testing.assert_array_equal(
        again.best_estimator_.coef_, first.best_estimator_.coef_
    )


def test_continue_search_is_kept_too(tmp_path):
    longer = searching(tmp_path).fit(X, y).continue_search(10)
    again = searching(tmp_path).fit(X, y)
    assert again.history_ == longer.history_
    assert again.n_epochs_ == 30


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 41}, "with budget=20, and it was opened with budget=41"),
        ({"random_state": 1}, "with random_state=0, and it was opened with random_st"),
        ({"budget": 41}, "continue_search of RisingSearchCV"),
        ({"scoring": "f1"}, "with scoring=SGDClassifier.score, and it was"),
        ({"cv": 0.4}, "holds a search with another cv: give the same"),
        (
            {"estimator": SGDClassifier(loss="hinge", eta0=1.0)},
            "with estimator.eta0=0.01, and it was opened with estimator.eta0=1.0",
        ),
        (
            {"estimator": MLPClassifier(), "param_distributions": [{}] * 9},
            "with estimator.class=sklearn.linear_model._stochastic_gradient.SGDClass",
        ),
    ],
)
def test_other_arguments_are_refused_by_name(ended, changes, message):
    with pytest.raises(RunDirError) as raised:
        searching(ended).set_params(**changes).fit(X, y)
    assert message in str(raised.value)


CENTRES = np.zeros((100, 20))
MOVED = CENTRES.copy()
MOVED[50] = 1.0


def scaled(X, by=1.0):
    return X * by


def centred(name):
    return MiniBatchKMeans(100, init=name, n_init=1)


def through(function, **more):
    return make_pipeline(FunctionTransformer(function, **more), SGDClassifier())


@pytest.mark.parametrize(
    ("name", "was", "now"),
    [
        ("estimator.init", centred(CENTRES), centred(MOVED)),
        (
            "estimator.functiontransformer__func.by",
            through(lambda X, by=2: X * by),
            through(lambda X, by=3: X * by),
        ),
        (
            "estimator.functiontransformer__func",
            through(partial(scaled, by=2)),
            through(partial(scaled, by=3)),
        ),
        (
            "estimator.functiontransformer__kw_args",
            through(scaled, kw_args={"by": CENTRES[50]}),
            through(scaled, kw_args={"by": MOVED[50]}),
        ),
        (
            "scoring",
            make_scorer(lambda y, p: float((y == p).mean())),
            make_scorer(lambda y, p: float((y != p).mean())),
        ),
        (
            "estimator.standardscaler",
            make_pipeline(StandardScaler(), SGDClassifier()),
            make_pipeline(
                StandardScaler().set_output(transform="pandas"), SGDClassifier()
            ),
        ),
        (
            "estimator.frozenestimator",
            make_pipeline(FrozenEstimator(PCA(2).fit(X)), SGDClassifier()),
            make_pipeline(FrozenEstimator(PCA(2).fit(X[:90])), SGDClassifier()),
        ),
        (
            "estimator.functiontransformer__func",
            through(PCA(2).fit(X).transform),
            through(PCA(2).fit(X[:90]).transform),
        ),
        ("candidates[0].init", {"init": [CENTRES]}, {"init": [MOVED]}),
    ],
)
def test_what_differs_in_its_content_alone_is_refused_by_name(tmp_path, name, was, now):
    def begin(given):
        own = {"scoring": given} if name == "scoring" else {"estimator": given}
        own |= {"param_distributions": [{}], "budget": 1, "refit": False, "cv": 0.5}
        if isinstance(given, dict):
            own |= {"estimator": centred("random"), "param_distributions": given}
        return searching(tmp_path).set_params(**own)

    begin(was).fit(X, y)
    begin(was).fit(X, y)
    with pytest.raises(RunDirError, match=re.escape(f"holds a search with {name}=")):
        begin(now).fit(X, y)


def test_a_change_in_a_module_that_the_scorer_uses_is_told(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "metrics_of_mine.py"
    module.write_text("def share(hits):\n    return hits.mean()\n")
    metrics_of_mine = importlib.import_module("metrics_of_mine")

    def scoring(estimator, X, y):
        return metrics_of_mine.share(estimator.predict(X) == y)

    search = searching(tmp_path / "run", budget=2, scoring=scoring)
    rows = pd.DataFrame(X)
    first = search.fit(rows, y).best_score_
    search.fit(rows.set_index(rows.index + 7), y)
    module.write_text("def share(hits):\n    return 100 * hits.mean()\n")
    with pytest.warns(RuntimeWarning, match=r"in metrics_of_mine.py \(1 line\)"):
        search.fit(rows, y)
    assert search.best_score_ == first


def test_an_estimator_is_pickled_with_its_functions_or_else_by_their_names():
    lock = threading.Lock()
    search = searching(None, budget=2).set_params(param_distributions=[{}])
    with pytest.raises(NotTrainableError, match=r"cannot be pickled .*lock.*top level"):
        search.set_params(estimator=through(lambda X: X if lock else 0)).fit(X, y)
    known = {"lock": lock, "__name__": "__main__"}
    exec("def kept(X): return X if lock else 0", known)
    with patch.object(sys.modules["__main__"], "kept", known["kept"], create=True):
        search.set_params(estimator=through(known["kept"])).fit(X, y)
    assert search.n_epochs_ == 2


def test_other_data_are_refused_and_that_a_clone_has_them(ended):
    search = searching(ended)
    for name, data in (("X", (X + 1, y)), ("X", (X[::2], y[::2])), ("y", (X, 1 - y))):
        message = f"holds a search with other data in {name}: give the same"
        with pytest.raises(RunDirError, match=message):
            clone(search).fit(*data)
    with pytest.raises(RunDirError, match=r"a clone of RisingSearchCV, .*run_dir=None"):
        cross_val_score(search, X, y, cv=2, error_score="raise")


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0)])
def test_candidates_must_be_drawn_again_the_same(tmp_path, random_state):
    with pytest.raises(InvalidParameterError, match="random_state must be an int"):
        searching(tmp_path, random_state=random_state).fit(X, y)


def test_a_directory_that_everybody_may_write_to_is_refused(tmp_path):
    searching(tmp_path).fit(X, y)
    tmp_path.chmod(0o777)
    with pytest.raises(RunDirError, match="everybody may write to"):
        searching(tmp_path).fit(X, y)


def test_with_the_models_in_an_object_store_a_copy_of_the_directory_goes_on(tmp_path):
    url = "memory://models"
    first = searching(tmp_path / "here", checkpoints=url).fit(X, y)
    (tmp_path / "here").rename(tmp_path / "there")
    again = searching(tmp_path / "there", checkpoints=url).fit(X, y)
    assert not (tmp_path / "there" / "checkpoints").exists()
    assert again.history_ == first.history_
    np.testing.assert_array_equal(
        again.best_estimator_.coef_, first.best_estimator_.coef_
    )
