from functools import partial

import numpy as np
import pytest

from benchmarks.hpo import one_epoch, replay
from benchmarks.hpo.draws import draw_search
from benchmarks.hpo.methods import BASELINES, ORACLE, Method, everyone, shipped
from benchmarks.hpo.replay import Setting, judge, search, spent_in_vain
from benchmarks.hpo.tasks import make_task
from risingsearch.simulation import simulate

RULE = Method("rule", "looks-then-slope")


@pytest.fixture
def task():
    """Return 40 noisy rising curves of 3 to 12 epochs; epochs cost 1 to 2 seconds."""
    rng = np.random.default_rng(0)
    epochs = np.arange(1, 13)
    ends, rates = rng.uniform(0.2, 0.9, (40, 1)), rng.uniform(1, 6, (40, 1))
    table = ends * (1 - np.exp(-epochs / rates)) + rng.uniform(0, 0.02, (40, 12))
    table[epochs > rng.integers(3, 18, (40, 1))] = np.nan
    cost = rng.uniform(1.0, 2.0, (40, 1)) * np.ones(12)
    return make_task("one", "a", table, cost=cost, features=rng.random((40, 2)))


@pytest.fixture
def interpreted(monkeypatch):
    monkeypatch.setattr(replay, "simulate", partial(simulate, compiled=False))


@pytest.mark.parametrize(
    "name",
    [
        *("looks-then-slope", "successive-halving-3", "asha-3"),
        *("hyperband", "cure-ucb", "r-sr"),
    ],
)
def test_a_simulation_does_what_the_scheduler_does(name, task, interpreted):
    [method] = [one for one in everyone(shipped()) if one.name == name]
    for seed in range(3):
        run = draw_search(task, seed, 0.01)
        here, there = (search(run, method, 4, Setting(live=x)) for x in (False, True))
        assert here == there


def test_no_search_beats_the_oracle(task, interpreted):
    for seed in range(3):
        run = draw_search(task, seed, 0.0)
        for multiple in (1, 3):
            oracle = search(run, Method(ORACLE, ORACLE), multiple, Setting())
            for method in (RULE, *BASELINES):
                found = search(run, method, multiple, Setting())
                assert oracle.regret <= found.regret


@pytest.mark.parametrize("budget", [4, 24, 60])
def test_one_epoch_opens_arms_first_and_then_trains_the_best_to_its_end(task, budget):
    run = draw_search(task, 0, 0.0)
    trained = one_epoch.play(run, budget)
    assert len(trained) == budget
    opened, rest = np.split(trained, [len(set(trained))])
    assert list(opened) == list(run.order[: len(opened)])
    firsts = task.curves[opened, 0]
    assert rest[0] == opened[firsts.argmax()]
    counts = np.bincount(trained, minlength=len(task.curves))
    assert np.all(counts <= task.lengths)


def test_noise_is_seen_but_the_clean_score_counts(task):
    run = draw_search(task, 0, 0.1)
    assert not np.array_equal(run.seen, task.curves, equal_nan=True)
    arms = run.order[:2]
    outcome = judge(run, arms, 2)
    picked = arms[run.seen[arms, 0].argmax()]
    assert outcome.regret == task.regret(task.curves[picked, 0])


def test_epochs_are_in_vain_once_an_arm_beats_nothing_any_more():
    scores = np.array([0.5, 0.1, 0.2, 0.3, 0.6, 0.6, 0.7, 0.4, 0.4, 0.4, 0.8])
    arms = np.array([0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 0])
    # Arm 1 leads on to .7 in the end; the third epoch of arm 2 comes to nothing.
    assert spent_in_vain(arms, scores) == 1 / 11
    flat = np.array([0.5, 0.5, 0.5, 0.4])
    assert spent_in_vain(np.zeros(4, int), flat) == 1 / 2
    assert spent_in_vain(np.arange(4), flat) == 0.0
