from __future__ import annotations

import joblib
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier

from risingsearch import Callback, RisingSearchCV
from risingsearch.errors import InvalidParameterError

callback = pytest.importorskip("sklearn.callback", reason="new in scikit-learn 1.9")
X, Y = make_classification(60, 5, random_state=0)


class Listener:
    """Writes down the tasks it hears of, and asks to stop after so many epochs."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.begun = []
        self.ended = []
        self.data = None
        self.is_set_up = False

    def setup(self, estimator, context):
        self.is_set_up = True

    def teardown(self, estimator, context):
        self.is_set_up = False

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        assert self.is_set_up
        self.data = X, y
        self.begun.append((context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context):
        self.ended.append((context.task_name, context.task_id))
        return self.count("epoch") == self.stop_after

    def count(self, name):
        return sum(task == name for task, _ in self.ended)


def rising(listener, **options):
    options = {"budget": 10, "cv": 0.25, "random_state": 0} | options
    space = {"alpha": [1e-4, 1e-2, 1.0]}
    return RisingSearchCV(SGDClassifier(), space, **options).set_callbacks(listener)


@pytest.mark.parametrize("refit", [True, False, "best"])
def test_hears_of_every_epoch_and_of_the_refit(refit):
    listener = Listener()
    assert rising(listener, refit=refit).fit(X, Y).n_epochs_ == 10
    epochs = [("epoch", i) for i in range(10)]
    tail = [("refit-with-best-params", 1)] if refit else []
    assert listener.ended == [*epochs, ("search", 0), *tail, ("fit", 0)]
    assert sorted(listener.begun) == sorted(listener.ended)
    assert listener.data[0].shape == X.shape
    assert not listener.is_set_up


def test_can_stop_the_search():
    listener = Listener(stop_after=4)
    search = rising(listener).fit(X, Y)
    assert search.n_epochs_ == 4
    assert search.stop_reason_ == "stopped before its end"
    assert search.best_estimator_ is not None
    assert listener.ended[-1] == ("fit", 0)


def test_a_stopped_search_can_continue():
    listener = Listener(stop_after=4)
    search = rising(listener).fit(X, Y)
    listener.stop_after = None
    assert search.continue_search(2).n_epochs_ == 12
    assert listener.count("epoch") == 12
    assert not listener.is_set_up


def test_errors_tear_it_down():
    listener = Listener()
    search = rising(listener, policy_params={"kept_share": -1.0})
    with pytest.raises(InvalidParameterError, match="kept_share"):
        search.fit(X, Y)
    assert not listener.is_set_up
    with pytest.raises(NotFittedError):
        search.continue_search(2)


class Heard(Callback):
    """Keeps what it hears of, and the model that is offered at the end."""

    def __init__(self, folder):
        self.folder = folder
        self.epochs, self.ended = [], []

    def on_epoch(self, epoch):
        self.epochs.append(epoch)

    def on_end(self, search):
        self.ended.append(search)
        if search.save_best is not None:
            search.save_best(self.folder)


def test_the_search_s_own_callbacks_hear_of_every_epoch_and_get_the_model(tmp_path):
    heard = Heard(tmp_path)
    search = rising(Listener(), callbacks=[heard]).fit(X, Y)
    told = [(epoch.arm, epoch.epoch, epoch.score) for epoch in heard.epochs]
    names = ("arm", "epoch", "score")
    assert told == [tuple(row[name] for name in names) for row in search.history_]
    assert heard.epochs[0].params.keys() == {"alpha"}
    [ended] = heard.ended
    assert ended.best_params == search.best_params_
    model = joblib.load(tmp_path / "model.joblib")
    assert (model.predict(X) == search.predict(X)).all()


def test_an_argument_that_is_no_callback():
    with pytest.raises(InvalidParameterError, match="callbacks must be a list"):
        rising(Listener(), callbacks=3).fit(X, Y)
