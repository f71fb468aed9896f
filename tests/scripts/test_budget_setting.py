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
        (60, Budget(epochs=60)),
        ("8h", Budget(hours=8)),
        ("8wall-h", Budget(wall_hours=8)),
        ({"cost": 50}, Budget(cost=50)),
    ],
)
def test_forms_of_a_budget(given, budget):
    assert sweep_with(given).budget == budget


def test_gpu_hours_need_the_gpus_of_a_worker():
    assert sweep_with("20gpu-h", gpus=0.5).budget == Budget(gpu_hours=20)
    with pytest.raises(InvalidParameterError, match="gpu_hours needs gpus"):
        sweep_with("20gpu-h")


def test_another_budget_than_that_of_the_file():
    sweep = sweep_with({"hours": 2}, seed=0)
    assert sweep.with_budget(3.0).budget == Budget(hours=3)
    assert sweep.with_budget(Budget(wall_hours=3)).budget == Budget(wall_hours=3)
    assert sweep.with_budget(3.0).draw() == sweep.draw()
    with pytest.raises(InvalidParameterError, match=r"with --budget: .*needs gpus"):
        sweep.with_budget(Budget(gpu_hours=3))


def test_an_invalid_budget_is_refused():
    with pytest.raises(InvalidParameterError, match="days is no unit of a budget"):
        sweep_with({"days": 3})
