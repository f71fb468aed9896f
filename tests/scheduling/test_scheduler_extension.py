"""A search that gets more budget goes on where it has stopped."""

from __future__ import annotations

import pytest
from scheduler_runs import (
    ask,
    finish,
    pulls,
    run_by_cost,
    scores_of,
)

from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.scheduler import Scheduler

# Their choice does not depend on the horizon, so a budget that comes later is the same.
MYOPIC = [
    "asha",
    "epsilon-greedy",
    "r-ed-ucb",
    "random",
    "random-search",
    "round-robin",
]


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


def test_a_search_can_be_extended_while_jobs_are_in_flight() -> None:
    scheduler = Scheduler("cure-ucb", 3, budget=6)
    jobs = [ask(scheduler) for _ in range(3)]
    scheduler.extend(4)
    for job in jobs:
        scheduler.tell(job, scores_of(job))
    finish(scheduler)
    assert scheduler.spent == 10


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
