"""Budgets: their units, as text, as JSON, and the same budget in two units."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

from risingsearch import Budget, InvalidParameterError
from risingsearch.budget import UNITS, budget_within, epochs_of


@pytest.mark.parametrize("given", [10, np.int64(10), Budget(epochs=10)])
def test_a_whole_number_is_epochs(given):
    budget = Budget.of(given)
    assert (budget.unit, budget.amount, budget.epochs) == ("epochs", 10, 10)
    assert type(budget.amount) is int


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
    assert Budget.of(text) == budget


@pytest.mark.parametrize("text", ["10", "", "8 hours", "-8h", "h", "1e3h", "٣h"])
def test_other_text_is_refused_with_the_forms(text):
    with pytest.raises(InvalidParameterError, match="'8wall-h' of wall-clock time"):
        Budget.of(text)


def test_what_a_sweep_file_writes_is_refused_with_what_python_writes():
    with pytest.raises(InvalidParameterError, match=r"is Budget\(hours=1.0\); got {"):
        Budget.of({"hours": 1})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epochs": 0}, "budget must be a whole number of at least 1; got 0"),
        ({"epochs": 2.5}, "budget must be a whole number of at least 1; got 2.5"),
        ({"epochs": True}, "budget must be a whole number of at least 1; got True"),
        ({"seconds": 0}, "budget must be a finite number above 0; got 0"),
        ({"cost": math.nan}, "budget must be a finite number above 0; got nan"),
        ({"cost": "1"}, "budget must be a finite number above 0; got '1'"),
        ({}, "a Budget has one of epochs, seconds, .* and gpu_hours; got none of them"),
        ({"epochs": 3, "cost": 1}, r"write Budget\(epochs=3\) or Budget\(cost=1\)"),
    ],
)
def test_an_invalid_budget_is_refused(given, message):
    with pytest.raises(InvalidParameterError, match=message):
        Budget(**given)


@pytest.mark.parametrize("unit", UNITS)
def test_a_budget_travels_and_is_shown_in_its_unit(unit):
    budget = Budget(**{unit: 3})
    assert Budget.from_json(json.loads(json.dumps(budget.to_json()))) == budget
    assert pickle.loads(pickle.dumps(budget)) == budget
    assert repr(budget) in (f"Budget({unit}=3)", f"Budget({unit}=3.0)")


def test_a_key_that_is_no_unit_is_refused():
    with pytest.raises(InvalidParameterError, match="days is no unit of a budget"):
        Budget.from_json({"days": 3})


def test_only_times_of_one_kind_can_be_converted():
    assert Budget(hours=1.5).in_unit("seconds") == Budget(seconds=5400)
    assert Budget(wall_seconds=1800).in_unit("wall_hours") == Budget(wall_hours=0.5)
    for other in (Budget(wall_hours=1), Budget(gpu_hours=1), Budget(cost=1)):
        assert other.in_unit("hours") is None


def test_a_number_is_in_the_unit_of_another_budget():
    assert Budget(hours=2).like(1.5) == Budget(hours=1.5)
    assert Budget(epochs=2).like(15.0) == Budget(epochs=15)
    assert Budget(epochs=2).like("8h") == Budget(hours=8)
    with pytest.raises(InvalidParameterError, match="budget must be a whole number"):
        Budget(epochs=2).like(1.5)


def test_a_timeout_can_be_the_budget():
    assert budget_within(None, timeout=60) == Budget(wall_seconds=60)
    assert budget_within(20, timeout=60) == Budget(epochs=20)
    with pytest.raises(InvalidParameterError, match=r"budget=300 .* or timeout=600"):
        budget_within(None)
    with pytest.raises(InvalidParameterError, match="timeout, in seconds, must be"):
        budget_within(20, timeout=0)


def test_a_budget_that_has_to_be_in_epochs():
    assert epochs_of(60, "") == epochs_of(Budget(epochs=60), "") == 60
    with pytest.raises(InvalidParameterError, match="limit time by a clock"):
        epochs_of("8h", "a clock")
