"""Budgets: exact in epochs, expected in anything else."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from risingsearch.arms import Budget, Job
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.budgets import (
    CostBudget,
    EpochBudget,
    WallClockBudget,
    open_budget,
)
from risingsearch.scheduling.jobs import Result


def job(id: int, arm: int = 0, n_epochs: int = 1) -> Job:
    return Job(arm, 0, n_epochs, id)


def result(job: Job, cost: float | None, n_scores: int = 1) -> Result:
    return Result(job, (0.5,) * n_scores, cost, failure=None, ended=False)


def failure(job: Job, cost: float | None) -> Result:
    return Result(job, (), cost, failure="it broke", ended=False)


# ------------------------------------------------------------------------------ opening


@pytest.mark.parametrize("budget", [10, Budget(epochs=10), np.int64(10)])
def test_whole_numbers_are_epochs(budget: Any) -> None:
    spending = open_budget(budget, n_arms=3)
    assert isinstance(spending, EpochBudget)
    assert (spending.unit, spending.total, spending.spent, spending.reserved) == (
        "epochs",
        10,
        0,
        0,
    )
    assert type(spending.total) is int


@pytest.mark.parametrize("unit", ["seconds", "cost", "wall_seconds"])
def test_other_units_are_measured(unit: str) -> None:
    spending = open_budget(Budget(**{unit: 60}), n_arms=3)
    assert isinstance(spending, CostBudget)
    assert (spending.unit, spending.total, spending.spent, spending.reserved) == (
        unit,
        60.0,
        0.0,
        0,
    )


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (0, "budget must be a whole number of at least 1; got 0"),
        (-3, "budget must be a whole number of at least 1; got -3"),
        (2.5, "budget must be a whole number of at least 1; got 2.5"),
        (True, "budget must be a whole number of at least 1; got True"),
        ("10", "budget must be a whole number of at least 1; got '10'"),
        (Budget(epochs=0), "budget must be a whole number of at least 1; got 0"),
        (Budget(seconds=0), "budget must be a finite number above 0; got 0"),
        (Budget(seconds=math.inf), "budget must be a finite number above 0; got inf"),
        (Budget(cost=math.nan), "budget must be a finite number above 0; got nan"),
        (Budget(cost="1"), "budget must be a finite number above 0; got '1'"),  # type: ignore[arg-type]
        (
            Budget(),
            "a Budget has one of epochs, seconds, cost, wall_seconds, hours, wall_ho",
        ),
        (
            Budget(epochs=3, cost=1),
            "a Budget has one of epochs, seconds, cost, wall_seconds, hours, wall_ho",
        ),
    ],
)
def test_a_budget_that_is_none_is_refused(budget: Any, message: str) -> None:
    with pytest.raises(InvalidParameterError) as raised:
        open_budget(budget, n_arms=3)
    assert str(raised.value).startswith(message)


# ------------------------------------------------------------------------------- epochs


def test_reserved_epochs_are_gone_until_they_come_back() -> None:
    spending = EpochBudget(10, 3)
    spending.reserve(job(0, n_epochs=6))
    assert spending.affordable().tolist() == [4, 4, 4]
    spending.settle(result(job(0, n_epochs=6), cost=None, n_scores=2))
    assert (spending.spent, spending.reserved) == (2, 0)
    assert spending.affordable().tolist() == [8, 8, 8]


def test_the_horizon_in_epochs_is_the_budget() -> None:
    spending = EpochBudget(10, 3)
    spending.reserve(job(0, n_epochs=6))
    assert spending.horizon(6).tolist() == [10.0, 10.0, 10.0]
    spending.extend(5)
    assert spending.horizon(6).tolist() == [15.0, 15.0, 15.0]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (Budget(seconds=5), "the budget is in epochs: extend it by a whole number"),
        (Budget(), "a Budget has one of epochs, seconds, cost, wall_seconds, hours"),
        (0, "budget must be a whole number of at least 1; got 0"),
        (1.5, "budget must be a whole number of at least 1; got 1.5"),
    ],
)
def test_epochs_are_extended_by_epochs(extra: Any, message: str) -> None:
    spending = EpochBudget(10, 3)
    with pytest.raises(InvalidParameterError, match=message):
        spending.extend(extra)
    assert spending.total == 10


# --------------------------------------------------------------------------------- cost


def test_an_arm_costs_what_it_has_cost_on_average() -> None:
    spending = CostBudget(100.0, 3, "seconds")
    spending.reserve(job(0, arm=0, n_epochs=2))
    spending.settle(result(job(0, arm=0, n_epochs=2), cost=8.0, n_scores=2))
    spending.reserve(job(1, arm=1))
    spending.settle(result(job(1, arm=1), cost=1.0))
    # Arm 2 is expected to cost the average epoch, 9 seconds for 3.
    assert spending.cost_per_epoch().tolist() == [4.0, 1.0, 3.0]
    assert spending.spent == 9.0
    assert spending.affordable().tolist() == [22, 91, 30]
    assert spending.horizon(3).tolist() == [3 + 91 / 4, 3 + 91, 3 + 91 / 3]


def test_an_expensive_arm_has_a_shorter_horizon() -> None:
    spending = CostBudget(50.0, 2, "seconds")
    for arm, cost in enumerate([1.0, 10.0]):
        spending.reserve(job(arm, arm=arm))
        spending.settle(result(job(arm, arm=arm), cost=cost))
    cheap, expensive = spending.horizon(2)
    assert cheap == 2 + 39.0
    assert expensive == 2 + 3.9


def test_nothing_is_known_before_the_first_cost() -> None:
    spending = CostBudget(1.0, 2, "seconds")
    spending.reserve(job(0, n_epochs=100))
    assert spending.reserved == 0.0
    assert (spending.affordable() > 10**9).all()
    assert np.isfinite(spending.horizon(0)).all()


def test_jobs_in_flight_are_expected_to_cost_what_is_known_by_now() -> None:
    spending = CostBudget(25.0, 4, "seconds")
    for k in range(4):
        spending.reserve(job(k, arm=k, n_epochs=1 + k))
    spending.settle(result(job(0, arm=0), cost=10.0))
    assert spending.reserved == 90.0
    assert spending.affordable().tolist() == [0, 0, 0, 0]


def test_a_failure_is_paid_for_and_tells_nothing_about_an_epoch() -> None:
    spending = CostBudget(100.0, 2, "seconds")
    spending.reserve(job(0, arm=0))
    spending.settle(result(job(0, arm=0), cost=4.0))
    spending.reserve(job(1, arm=0, n_epochs=5))
    spending.settle(failure(job(1, arm=0, n_epochs=5), cost=0.5))
    assert spending.spent == 4.5
    assert spending.cost_per_epoch().tolist() == [4.0, 4.0]


def test_a_failure_of_unknown_cost_is_charged_what_was_expected() -> None:
    spending = CostBudget(100.0, 2, "seconds")
    spending.reserve(job(0, arm=0))
    spending.settle(result(job(0, arm=0), cost=4.0))
    spending.reserve(job(1, arm=1, n_epochs=3))
    spending.settle(failure(job(1, arm=1, n_epochs=3), cost=None))
    assert spending.spent == 16.0
    assert spending.reserved == 0


def test_a_job_without_an_epoch_tells_nothing_about_the_cost_of_one() -> None:
    spending = CostBudget(100.0, 2, "seconds")
    spending.reserve(job(0, arm=0))
    spending.settle(result(job(0, arm=0), cost=7.0, n_scores=0))
    assert spending.spent == 7.0
    assert spending.cost_per_epoch().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("cost", [0.0, 1e-310])
def test_epochs_that_cost_nothing_are_affordable_without_end(cost: float) -> None:
    spending = CostBudget(1.0, 1, "cost")
    spending.reserve(job(0))
    spending.settle(result(job(0), cost=cost))
    assert spending.affordable()[0] > 10**9
    assert np.isfinite(spending.horizon(1)).all()


def test_an_overdrawn_budget_affords_nothing() -> None:
    spending = CostBudget(1.0, 1, "cost")
    spending.reserve(job(0))
    spending.settle(result(job(0), cost=3.0))
    assert spending.affordable().tolist() == [0]
    assert spending.horizon(1).tolist() == [1.0]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (5, "this search has a budget in seconds; extend it by Budget(seconds=...)"),
        (Budget(cost=5), "this search has a budget in seconds; extend it by"),
        (Budget(), "this search has a budget in seconds; extend it by"),
        (Budget(seconds=-1), "budget must be a finite number above 0; got -1"),
        (
            Budget(seconds=1, cost=1),
            "this search has a budget in seconds; extend it by",
        ),
    ],
)
def test_seconds_are_extended_by_seconds(extra: Any, message: str) -> None:
    spending = CostBudget(10.0, 1, "seconds")
    with pytest.raises(InvalidParameterError) as raised:
        spending.extend(extra)
    assert str(raised.value).startswith(message)
    assert spending.total == 10.0
    spending.extend(Budget(seconds=2))
    assert spending.total == 12.0


# --------------------------------------------------------------------------- wall clock


def test_the_clock_stands_where_the_last_job_came_back() -> None:
    spending = WallClockBudget(100.0, 3, n_workers=2)
    for k in range(2):
        spending.reserve(job(k, arm=k))
    assert spending.advance(job(0, arm=0), now=4.0) == 4.0
    spending.settle(result(job(0, arm=0), cost=3.0))
    assert (spending.spent, spending.reserved) == (4.0, 0.0)
    spending.reserve(job(2, arm=2, n_epochs=2))
    assert spending.advance(job(2, arm=2, n_epochs=2), now=7.0) == 3.0
    assert spending.advance(job(1, arm=1), now=6.0) == 6.0
    spending.settle(result(job(1, arm=1), cost=6.0))
    spending.settle(result(job(2, arm=2, n_epochs=2), cost=3.0, n_scores=2))
    assert spending.spent == 7.0
    assert spending.cost_per_epoch().tolist() == [3.0, 6.0, 1.5]


def test_one_arm_has_the_time_left_and_all_workers_together_so_often_that() -> None:
    spending = WallClockBudget(100.0, 2, n_workers=4)
    spending.reserve(job(0))
    spending.advance(job(0), now=10.0)
    spending.settle(result(job(0), cost=10.0))
    assert spending.affordable().tolist() == [9, 9]
    assert spending.horizon(1).tolist() == [1 + 4 * 9.0] * 2
    busy = np.array([True, False])
    assert spending.pulls_left(np.array([50, 3]), busy).tolist() == [9, 3]


def test_as_many_workers_as_were_ever_in_flight() -> None:
    spending = WallClockBudget(100.0, 3, n_workers=None)
    for k in range(3):
        spending.reserve(job(k, arm=k))
    for k in range(3):
        spending.settle(result(job(k, arm=k), cost=1.0))
    assert spending.horizon(0).tolist() == [3 * 100.0] * 3


def test_a_failure_that_nobody_timed_leaves_the_clock_as_it_is() -> None:
    spending = WallClockBudget(100.0, 1, n_workers=1)
    spending.reserve(job(0))
    spending.settle(failure(job(0), cost=None))
    assert spending.spent == 0.0


# ------------------------------------------------------------------------- saved states


@pytest.mark.parametrize("budget", [20, Budget(cost=20), Budget(wall_seconds=20)])
def test_a_saved_spending_goes_on_where_it_was(budget: Any) -> None:
    spending = open_budget(budget, 3)
    spending.reserve(job(0, arm=0, n_epochs=2))
    spending.reserve(job(1, arm=1, n_epochs=3))
    spending.settle(result(job(0, arm=0, n_epochs=2), cost=3.0, n_scores=2))
    spending.reserve(job(2, arm=0))
    spending.settle(failure(job(2, arm=0), cost=None))
    restored = open_budget(budget, 3)
    restored.load_state_dict(json.loads(json.dumps(spending.state_dict())))
    for each in (spending, restored):
        each.settle(result(job(1, arm=1, n_epochs=3), cost=5.0))
        each.reserve(job(3, arm=2))
    assert restored.state_dict() == spending.state_dict()
    assert (restored.spent, restored.reserved) == (spending.spent, spending.reserved)
    assert (restored.affordable() == spending.affordable()).all()
