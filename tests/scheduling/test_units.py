"""Budgets as text, and the same budget in two units."""

import pytest

from risingsearch import Budget, Scheduler
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.units import budget_of, in_unit


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("8h", Budget(hours=8)),
        ("90min", Budget(hours=1.5)),
        ("45 s", Budget(seconds=45)),
        ("2.5 wall-h", Budget(wall_hours=2.5)),
        ("30wall-s", Budget(wall_seconds=30)),
        ("20gpu-h", Budget(gpu_hours=20)),
        ("1800gpu-s", Budget(gpu_hours=0.5)),
    ],
)
def test_a_time_is_written_with_its_unit(text, budget):
    assert budget_of(text) == budget


@pytest.mark.parametrize(
    "text", ["8", "", "8 hours", "-8h", "h", "1e3h", "8 gpus", "٣h"]
)
def test_other_text_is_refused_with_the_forms(text):
    with pytest.raises(InvalidParameterError, match="'8wall-h' by the clock"):
        budget_of(text)


def test_a_budget_is_shown_in_the_unit_of_its_user():
    scheduler = Scheduler(n_arms=2, budget="90min", max_epochs=3)
    assert (scheduler.budget, scheduler.unit) == (1.5, "hours")
    scheduler.tell(scheduler.ask(), 0.5, cost=1.6)
    assert scheduler.stop_reason == "the budget of 1.5 hours is spent"


def test_a_budget_grows_by_another_unit_of_its_kind():
    scheduler = Scheduler(n_arms=2, budget=Budget(hours=2), max_epochs=3)
    scheduler.extend("1800s")
    scheduler.extend(Budget(hours=1))
    assert scheduler.budget == 3.5


@pytest.mark.parametrize("other", ["1wall-h", "1gpu-h", Budget(cost=1), 3])
def test_a_budget_does_not_grow_by_another_kind(other):
    scheduler = Scheduler(n_arms=2, budget=Budget(hours=2), max_epochs=3)
    with pytest.raises(
        InvalidParameterError, match=r"extend it by Budget\(hours=\.\.\.\)"
    ):
        scheduler.extend(other)
    assert in_unit(other, "hours") is None


def test_the_clock_of_a_scheduler_is_in_the_unit_of_its_budget():
    scheduler = Scheduler(n_arms=2, budget="2wall-h", max_epochs=3)
    scheduler.tell(scheduler.ask(), 0.5, now=0.5)
    assert scheduler.spent == 0.5
    scheduler.advance(2.0)
    assert scheduler.stop_reason == "the budget of 2 wall_hours is spent"
