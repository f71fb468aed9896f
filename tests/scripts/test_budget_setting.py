"""What a sweep may spend: in its file, on the command line, and more of it."""

import pytest

from risingsearch import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.sweep import checked_sweep

SWEEP = {
    "command": ["train"],
    "parameters": {"a": {"type": "choice", "values": [1, 2]}},
    "max_epochs": 3,
    "candidates": 2,
}


def sweep_with(budget, **more):
    return checked_sweep(SWEEP | {"budget": budget} | more, "a.yaml")


@pytest.mark.parametrize(
    ("given", "budget"),
    [
        (60, 60),
        ({"epochs": 60}, 60),
        ("8h", Budget(hours=8)),
        ({"hours": 8}, Budget(hours=8)),
        ("90min", Budget(hours=1.5)),
        ("8wall-h", Budget(wall_hours=8)),
        ({"cost": 50}, Budget(cost=50)),
    ],
)
def test_forms_of_a_budget(given, budget):
    assert sweep_with(given).budget.budget == budget


def test_gpu_hours_need_the_gpus_of_a_worker():
    assert sweep_with("20gpu-h", gpus=0.5).budget.budget == Budget(gpu_hours=20)
    with pytest.raises(InvalidParameterError, match="gpu_hours needs gpus"):
        sweep_with("20gpu-h")


@pytest.mark.parametrize(
    ("begun", "added", "more"),
    [
        (60, 15.0, 15),
        ("2h", 1.5, Budget(hours=1.5)),
        ("2h", Budget(seconds=60), Budget(seconds=60)),
        ({"cost": 5}, 2.5, Budget(cost=2.5)),
    ],
)
def test_more_of_a_budget(begun, added, more):
    assert sweep_with(begun).budget.more(added) == more


@pytest.mark.parametrize(
    ("begun", "added", "message"),
    [
        (60, 1.5, "epochs must be a whole number"),
        (60, 0.0, "epochs must be at least 1"),
        ("2h", 0.0, "hours must be greater than 0"),
        (60, Budget(hours=2), "the budget is in epochs, and cannot grow by 2 hours"),
        (
            "2h",
            Budget(wall_hours=2),
            "cannot grow by 2 wall_hours: add a number of hou",
        ),
    ],
)
def test_what_a_budget_cannot_grow_by(begun, added, message):
    with pytest.raises(InvalidParameterError, match=message):
        sweep_with(begun).budget.more(added)


def test_another_budget_than_that_of_the_file():
    sweep = sweep_with({"hours": 2})
    assert sweep.with_budget(3.0).budget.budget == Budget(hours=3)
    assert sweep.with_budget(Budget(wall_hours=3)).budget.budget == Budget(wall_hours=3)
    assert sweep.with_budget(3.0).draw() == sweep.draw()
    with pytest.raises(InvalidParameterError, match=r"with --budget: .*needs gpus"):
        sweep.with_budget(Budget(gpu_hours=3))
