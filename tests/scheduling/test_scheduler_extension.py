"""A search that gets more budget goes on where it has stopped."""

from __future__ import annotations

import math

import pytest
from scheduler_runs import ask, finish, pulls, run_by_cost, scores_of

from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.scheduler import Scheduler

# Their choice does not depend on the horizon, so a budget that comes later is the same.
MYOPIC = "asha", "epsilon-greedy", "r-ed-ucb", "random", "random-search", "round-robin"


@pytest.mark.parametrize("max_epochs", [None, 11])
@pytest.mark.parametrize("policy", MYOPIC)
@pytest.mark.parametrize("extra", [14, Budget(epochs=14)])
def test_an_extended_search_equals_one_with_the_larger_budget(
    policy: str, max_epochs: int | None, extra: int | Budget
) -> None:
    if (policy, max_epochs) == ("asha", None):
        max_epochs = 20  # its rungs depend on what an arm can use
    extended = Scheduler(policy, 4, 26, max_epochs, seed=5)
    jobs = finish(extended)
    extended.extend(extra)
    assert not extended.done
    jobs += finish(extended)
    whole = Scheduler(policy, 4, 40, max_epochs, seed=5)
    assert pulls(jobs) == pulls(finish(whole))
    assert extended.spent == extended.budget == whole.budget
    assert [row["score"] for row in extended.history] == [
        row["score"] for row in whole.history
    ]


@pytest.mark.parametrize(("n_arms", "budget"), [(10, 30), (20, 60)])
def test_the_default_gives_more_budget_to_no_look_that_was_had(
    n_arms: int, budget: int
) -> None:
    scheduler = Scheduler("auto", n_arms, budget, seed=0)
    finish(scheduler)
    scheduler.extend(budget // 3)
    assert len({job.arm for job in finish(scheduler)}) < 4
    assert scheduler.spent == budget + budget // 3


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_the_default_opens_no_arm_again_when_the_first_ones_fail(n_jobs: int) -> None:
    scheduler = Scheduler("auto", 12, 60, 10, seed=0, n_jobs=n_jobs, max_failures=1)
    opened: list[int] = []
    while len(opened) < 12:
        while (job := scheduler.ask()) is not None:
            opened.append(job.arm)
        job = scheduler.in_flight[0]
        scheduler.tell(job, [math.nan] if job.id < 3 else scores_of(job))
    assert sorted(opened[:12]) == list(range(12))


def test_a_search_by_cost_is_extended_by_cost() -> None:
    scheduler = Scheduler("round-robin", 2, Budget(cost=5), max_epochs=50)
    run_by_cost(scheduler, [1.0, 1.0])
    scheduler.extend(Budget(cost=3))
    run_by_cost(scheduler, [1.0, 1.0])
    assert scheduler.spent == scheduler.budget == 8
    with pytest.raises(InvalidParameterError, match="budget is in cost: extend it"):
        scheduler.extend(3)


def test_an_arm_that_ended_stays_ended_after_an_extension() -> None:
    scheduler = Scheduler("round-robin", n_arms=2, budget=4, epochs_per_job=4)
    job = ask(scheduler)
    scheduler.tell(job, [0.5])
    finish(scheduler)
    scheduler.extend(5)
    assert {job.arm for job in finish(scheduler)} == {1}
