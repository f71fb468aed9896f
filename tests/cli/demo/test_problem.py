"""What the models of the demo write down is what they have trained and scored."""

import numpy as np
import pytest
from sklearn.model_selection import ParameterSampler

from risingsearch.cli.demo.problem import MAX_EPOCHS, SPACE, Classifier, Log, load


@pytest.fixture(scope="module")
def problem():
    return load()


@pytest.fixture
def log(problem, monkeypatch):
    log = Log(problem)
    monkeypatch.setattr(Classifier, "log", log, raising=False)
    return log


def test_no_row_is_in_two_parts_and_all_are_generated_alike(problem):
    assert [len(rows) for rows in problem[2:]] == [4000, 2000, 2000]
    assert np.array_equal(np.concatenate(problem[2:]), np.arange(len(problem.X)))
    assert len(np.unique(problem.X, axis=0)) == len(problem.y)
    assert np.array_equal(problem.X, load().X)


def test_every_epoch_and_the_best_scores_are_written_down(problem, log):
    scores = list(problem.epochs({"rate": 0.01}, seed=0))
    assert log.epochs == len(scores) == MAX_EPOCHS
    assert len(log.tried) == 1
    best = [score for _, score in log.best]
    assert best == sorted(set(best))
    assert best[-1] == max(scores)
    assert log.best[-1][0] == scores.index(max(scores)) + 1
    assert 0.5 < log.test_score < 1.0


def test_a_fit_starts_afresh_and_tries_nothing_new(problem, log):
    model = Classifier(epochs=2, random_state=0)
    X, y = problem.X[problem.train], problem.y[problem.train]
    once = model.fit(X, y).predict(X)
    assert np.array_equal(model.set_params(epochs=2).fit(X, y).predict(X), once)
    model.set_params(epochs=1).fit(X, y)
    assert (log.epochs, len(log.tried)) == (5, 1)


def test_every_configuration_of_the_space_trains(problem, log):
    X, y = problem.X[:512], problem.y[:512]
    for params in ParameterSampler(SPACE, 30, random_state=0):
        model = Classifier(**params, random_state=0)
        model.partial_fit(X, y, classes=np.arange(4))
    assert (log.epochs, len(log.tried)) == (30, 30)


def test_a_network_that_diverges_costs_its_epochs_and_scores_badly(problem, log):
    steep = {"depth": 3, "solver": "sgd", "rate": 1e12}
    scores = list(problem.epochs(steep, seed=0))
    assert log.epochs == MAX_EPOCHS
    assert max(scores) < 0.3
