from functools import partial

import numpy as np
import pytest

from benchmarks.hpo import decision_times, replay
from benchmarks.hpo.draws import draw_search
from benchmarks.hpo.methods import BASELINES, ORACLE, Method, everyone, shipped
from benchmarks.hpo.replay import (
    Setting,
    judge,
    search,
    simulated,
    spent_in_vain,
    train,
)
from benchmarks.hpo.tasks import make_task
from benchmarks.hpo.unknown_ends import UnknownEnds
from risingsearch import Scheduler
from risingsearch.policies import make_policy
from risingsearch.simulation import simulate

RULE = Method("rule", "trusted-damped-slope")


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
    ["auto", "successive-halving-3", "asha-3", "hyperband", "cure-ucb", "r-sr"],
)
def test_a_simulation_does_what_the_scheduler_does(name, task, interpreted):
    [method] = [one for one in everyone(shipped()) if one.name == name]
    for seed in range(3):
        run = draw_search(task, seed, 0.01)
        here, there = (search(run, method, 4, Setting(live=x)) for x in (False, True))
        assert here == there


def test_compiled_is_the_same(task, monkeypatch):
    run = draw_search(task, 0, 0.01)
    monkeypatch.setattr(replay, "simulate", partial(simulate, compiled=True))
    compiled = simulated(run, RULE, 50)
    monkeypatch.setattr(replay, "simulate", partial(simulate, compiled=False))
    assert np.array_equal(compiled, simulated(run, RULE, 50))


def test_no_search_beats_the_oracle(task, interpreted):
    for seed in range(3):
        run = draw_search(task, seed, 0.0)
        for multiple in (1, 3):
            oracle = search(run, Method(ORACLE, ORACLE), multiple, Setting())
            for method in (RULE, *BASELINES):
                found = search(run, method, multiple, Setting())
                assert oracle.regret <= found.regret


def test_noise_is_seen_but_the_clean_score_counts(task):
    run = draw_search(task, 0, 0.1)
    assert not np.array_equal(run.seen, task.curves, equal_nan=True)
    arms = run.order[:2]
    outcome = judge(run, arms, 2)
    picked = arms[run.seen[arms, 0].argmax()]
    assert outcome.regret == task.regret(task.curves[picked, 0])


def test_all_methods_meet_the_same_order_and_noise(task):
    one, again, other = (draw_search(task, seed, 0.1) for seed in (4, 4, 5))
    assert np.array_equal(one.order, again.order)
    assert np.array_equal(one.seen, again.seen, equal_nan=True)
    assert not np.array_equal(one.order, other.order)
    assert np.array_equal(one.order, np.random.default_rng(1004).permutation(40))


def test_an_outcome_counts_pauses_of_what_could_go_on(task):
    run = draw_search(task, 0, 0.0)
    long, short = int(task.lengths.argmax()), int(task.lengths.argmin())
    arms = [long, long, *[short] * int(task.lengths[short]), long]
    outcome = judge(run, np.array(arms), 2 * len(arms))
    assert (outcome.pauses, outcome.opened, outcome.used) == (1, 2, 0.5)
    assert outcome.winner_share in (3 / len(arms), 1 - 3 / len(arms))


def test_epochs_are_in_vain_once_an_arm_beats_nothing_any_more():
    scores = np.array([0.5, 0.1, 0.2, 0.3, 0.6, 0.6, 0.7, 0.4, 0.4, 0.4, 0.8])
    arms = np.array([0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 0])
    # Arm 1 leads on to .7 in the end; the third epoch of arm 2 comes to nothing.
    assert spent_in_vain(arms, scores) == 1 / 11
    flat = np.array([0.5, 0.5, 0.5, 0.4])
    assert spent_in_vain(np.zeros(4, int), flat) == 1 / 2
    assert spent_in_vain(np.arange(4), flat) == 0.0


def test_a_search_that_saw_nothing_in_time_has_found_nothing(task):
    nothing = judge(draw_search(task, 0, 0.0), np.array([], dtype=int), 10)
    assert (nothing.regret, nothing.opened, nothing.used) == (1.0, 0, 0.0)


def test_a_method_may_search_by_itself(task):
    def first_in_order(run, budget):
        return np.repeat(run.order, run.lengths)[:budget]

    run = draw_search(task, 0, 0.0)
    method = Method("own", "none", play=first_in_order)
    found = search(run, method, 2, Setting())
    assert (found.used, found.pauses) == (1.0, 0)


def test_a_budget_that_the_table_does_not_hold_is_left_out(task):
    run = draw_search(task, 0, 0.0)
    assert search(run, RULE, 40, Setting()) is None


def test_a_budget_that_is_not_known_is_spent_to_the_epoch(task):
    run = draw_search(task, 0, 0.0)
    for multiple in (1, 2, 5):
        found = search(run, RULE, multiple, Setting(known=False))
        assert found.used == 1.0


def test_seconds_are_not_overrun(task):
    run = draw_search(task, 0, 0.0)
    budget = 3 * task.max_epochs
    arms, _ = replay.scheduled(run, RULE, budget, Setting(unit="seconds"))
    average = np.nanmean(np.where(np.isnan(task.curves), np.nan, task.cost))
    assert 0.8 < task.cost[arms, 0].sum() / (budget * average) < 1.1


def test_jobs_come_back_in_the_order_of_their_ends():
    curves = np.array([[0.1] * 5, [0.2] * 5, [0.3] * 5])
    order = []

    class Listening(Scheduler):
        def tell(self, job, scores, cost=None, *, ended=True):
            order.append(job.arm)
            super().tell(job, scores, cost, ended=ended)

    scheduler = Listening("random-search", n_arms=3, budget=12, max_epochs=5, n_jobs=2)
    curves[0, 4:] = np.nan  # ends first, so the third starts before the second ends
    assert train(scheduler, curves, n_jobs=2) == 7
    assert order == [0, 1, 2]
    assert scheduler.n_epochs == 12


def test_several_jobs_spend_the_same_budget(task):
    run = draw_search(task, 0, 0.0)
    for n_jobs in (1, 4, 16):
        found = search(run, RULE, 3, Setting(n_jobs=n_jobs, live=True))
        assert found.used == 1.0
        assert (found.idle > 0.0) == (n_jobs > 1)


def test_a_proposer_is_made_from_the_features_of_all_configurations(task, monkeypatch):
    taken = []

    class Proposed(Scheduler):
        def __init__(self, *args, proposer=None, **kwargs):
            taken.append(proposer)
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(replay, "Scheduler", Proposed)
    method = RULE._replace(proposer=np.copy)
    run = draw_search(task, 0, 0.0)
    assert search(run, method, 2, Setting()).used == 1.0
    assert np.array_equal(taken[0], task.features[run.order])
    bare = draw_search(task._replace(features=None), 0, 0.0)
    assert search(bare, method, 2, Setting(live=True)).used == 1.0
    assert taken[1:] == [None]


def test_ends_are_not_told_before_they_are_seen():
    policy = make_policy("round-robin", n_arms=2, horizon=9, max_pulls=5)
    blind = UnknownEnds.around(policy, np.array([1, 5]))
    rng = np.random.default_rng(0)
    assert blind.select(1, rng) == 0
    assert policy.pulls_left.tolist() == [5, 5]
    blind.pulls_left[0] -= 1
    blind.available[0] = False
    blind.update(1, 0, 0.5, rng)
    assert policy.pulls_left.tolist() == [4, 5]
    for t in (2, 3):
        assert blind.select(t, rng) == 1  # the second time after a look at the first
        blind.pulls_left[1] -= 1
        blind.update(t, 1, 0.5, rng)
    assert policy.pulls_left.tolist() == [0, 3]


def test_decisions_are_timed_on_as_many_arms_as_asked_for(task):
    timed = decision_times.measure(task, RULE, 100)
    assert (timed.method, timed.n_arms) == ("rule", 100)
    assert 0.0 < timed.mean <= timed.slowest_percent * 100
