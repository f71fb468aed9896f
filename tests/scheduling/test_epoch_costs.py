"""Epochs of an arm that do not all cost the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

from risingsearch import Budget, Scheduler
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.epoch_costs import EpochCosts

COSTS = [0.5, 1.0, 2.0, 4.0]


def scheduler(**changes):
    arguments = {"n_arms": 12, "budget": 20, "max_epochs": 4, "epoch_costs": COSTS}
    return Scheduler(**arguments | {"seed": 0, "policy": "asha"} | changes)


def train(search, n_jobs=None):
    """Train until the search is done or has been asked for so many jobs."""
    jobs = []
    while n_jobs is None or len(jobs) < n_jobs:
        job = search.ask()
        if job is None:
            break
        jobs.append(job)
        epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
        search.tell(job, [epoch + job.arm / 100 for epoch in epochs])
    return jobs


def cost_of(jobs):
    return sum(sum(COSTS[j.from_epoch : j.from_epoch + j.n_epochs]) for j in jobs)


@pytest.mark.parametrize("policy", ["asha", "auto", "cure-ucb", "random"])
def test_the_budget_is_charged_what_the_epochs_cost_and_never_exceeded(policy):
    search = scheduler(policy=policy)
    jobs = train(search)
    assert search.spent == pytest.approx(cost_of(jobs))
    assert search.spent <= 20
    assert search.stop_reason == "the budget of 20 epochs is spent"


def test_what_is_in_flight_is_reserved():
    search = scheduler(budget=3, n_jobs=9)
    jobs = []
    while (job := search.ask()) is not None:
        jobs.append(job)
    assert cost_of(jobs) <= 3
    for job in jobs:
        search.fail(job, "broken")
    assert search.spent == pytest.approx(cost_of(jobs))


def test_an_arm_can_use_no_more_than_the_rest_of_the_budget_pays():
    search = scheduler(budget=3, n_arms=1)
    assert [job.n_epochs for job in train(search)] == [1, 1]
    assert search.spent == 1.5
    search.extend(1)
    assert len(train(search)) == 1
    assert search.spent == 3.5


def test_a_saved_search_goes_on_as_if_it_had_not_been():
    whole, first, second = scheduler(), scheduler(), scheduler()
    expected = train(whole)
    begun = train(first, n_jobs=7)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.spent == first.spent
    assert begun + train(second) == expected


def test_another_cost_is_another_search():
    with pytest.raises(Exception, match="epoch_costs"):
        scheduler().load_state_dict(scheduler(epoch_costs=[1, 1, 1, 2]).state_dict())


@pytest.mark.parametrize(("seconds", "epochs"), [(13.9, 3), (15.1, 4)])
@pytest.mark.parametrize("policy", ["asha", "auto"])
def test_other_costs_are_expected_in_proportion(policy, seconds, epochs):
    budget = Budget(seconds=seconds)
    search = scheduler(policy=policy, budget=budget, n_arms=1)
    n_epochs = 0
    while (job := search.ask()) is not None:
        n_epochs += job.n_epochs
        search.tell(job, [0.1] * job.n_epochs, cost=2 * cost_of([job]))
    assert n_epochs == epochs  # 1, 2, 4 and 8 seconds
    assert search.spent <= seconds


def test_a_plan_of_all_rounds_needs_epochs_that_cost_the_same():
    with pytest.raises(InvalidParameterError, match="do not all cost the same"):
        scheduler(policy="successive-halving")


@pytest.mark.parametrize(
    "costs", [[1, 2], [1, 2, 3, 0], [1, 2, 3, np.inf], [1, 2, 3, np.nan]]
)
def test_costs_are_one_above_0_for_each_epoch(costs):
    with pytest.raises(InvalidParameterError, match="for each of max_epochs=4; got"):
        scheduler(epoch_costs=costs)


def test_rounding_does_not_cost_an_epoch():
    costs = EpochCosts([0.1] * 10)
    assert costs.affordable(np.array([0]), left=0.3).tolist() == [3]
