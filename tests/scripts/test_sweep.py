"""A sweep is what its file says, and an error names the place."""

import json
import math

import pytest

from risingsearch.arms import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.sweep import checked_sweep, read_sweep

SWEEP = {
    "command": ["train", "--lr={lr}", "--momentum={momentum}", "{checkpoint_dir}"],
    "parameters": {
        "lr": {"type": "log-uniform", "low": 1e-4, "high": 1.0},
        "layers": {"type": "int", "low": 1, "high": 3},
        "width": {"type": "int", "low": 8, "high": 512, "log": True},
        "optimizer": {"type": "choice", "values": ["sgd", "adam"]},
        "momentum": {
            "type": "uniform",
            "low": 0.5,
            "high": 0.9,
            "when": {"optimizer": "sgd"},
        },
    },
    "budget": 60,
    "max_epochs": 12,
}


def changed(**changes):
    return json.loads(json.dumps(SWEEP)) | changes


def test_configurations_are_within_the_space_and_always_the_same():
    sweep = checked_sweep(SWEEP | {"candidates": 400}, "a.yaml")
    drawn = sweep.draw()
    assert drawn == sweep.draw()
    assert len(drawn) == 400
    assert all(1e-4 <= one["lr"] <= 1.0 for one in drawn)
    below = sum(one["lr"] < 1e-2 for one in drawn)
    assert 160 <= below <= 240  # half of the logarithms
    assert {one["layers"] for one in drawn} == {1, 2, 3}
    assert all(8 <= one["width"] <= 512 for one in drawn)
    median = sorted(one["width"] for one in drawn)[200]
    assert 45 <= median <= 90  # the square root of 8 * 513
    for one in drawn:
        assert ("momentum" in one) == (one["optimizer"] == "sgd")


def test_the_number_of_configurations_is_the_policys_rule():
    assert checked_sweep(SWEEP, "a.yaml").n_candidates == 60
    halving = checked_sweep(changed(policy="successive-halving"), "a.yaml")
    assert halving.n_candidates < 60


def test_budgets_in_time_need_a_number_of_configurations():
    sweep = checked_sweep(changed(budget={"hours": 0.5}), "a.yaml")
    assert sweep.budget.budget.seconds == 1800
    with pytest.raises(InvalidParameterError, match="say how many configurations"):
        sweep.draw()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": {"epochs": 0}}, "budget.epochs: Input should be greater than or"),
        ({"budget": {}}, "budget: give one of epochs, seconds and hours; got none"),
        ({"budget": {"epochs": 1, "hours": 1}}, "budget: give one of epochs"),
        ({"budgets": 3}, "budgets: Extra inputs are not permitted; got 3"),
        ({"command": []}, "command: List should have at least 1 item"),
        ({"command": "train"}, "command: Input should be a valid list"),
        ({"command": ["{rate}"]}, "the command names {rate}, which is neither a param"),
        ({"command": ["{}"]}, "the command names {}, which is neither a parameter"),
        ({"command": ["{"]}, "write {{ and }} for braces"),
        (
            {"parameters": {"lr": {"type": "uniform", "low": 2, "high": 1}}},
            "parameters.lr: low must be below high; got 2 and 1",
        ),
        (
            {"parameters": {"lr": {"type": "log-uniform", "low": 0, "high": 1}}},
            "parameters.lr.low: Input should be greater than 0; got 0",
        ),
        (
            {"parameters": {"lr": {"type": "normal"}}},
            "parameters.lr: Input tag 'normal' found using 'type' does not match",
        ),
        (
            {"parameters": {"lr": {"type": "choice", "values": []}}},
            "parameters.lr.values: List should have at least 1 item",
        ),
        (
            {"parameters": {"seed": {"type": "choice", "values": [1]}}},
            "parameters.seed: a parameter is named with letters",
        ),
        ({"environment": [{"GPU": 0}]} | {"workers": 2}, "for 1 workers, and there ar"),
        ({"report_file": "."}, "report_file: it is a file in the checkpoint director"),
        ({"metric": "epoch"}, "metric: epoch is the key of the epoch in each line"),
        ({"timeout": 1e12}, "timeout: Input should be less than or equal to"),
        ({"command": ["a\0b"]}, "command: an argument cannot contain the character 0"),
        ({"command": ["{lr:d}"]}, "write {lr} and nothing else in it"),
        ({"environment": [{"A=B": 1}]}, "'A=B' cannot be a variable of the environ"),
        (
            {"parameters": {"lr": {"type": "uniform", "low": 0, "high": math.inf}}},
            "parameters.lr.high: Input should be a finite number",
        ),
        (
            {"parameters": {"lr": {"type": "uniform", "low": -1e308, "high": 1e308}}},
            "parameters.lr: from -1e+308 to 1e+308 is too far",
        ),
        (
            {"parameters": {"n": {"type": "int", "low": 1, "high": 10**29}}},
            "parameters.n.high: Input should be less than or equal to",
        ),
        ({"max_epochs": "many"}, "max_epochs: Input should be a valid integer"),
        ({"report_file": "/etc/x"}, "report_file: it is a file in the checkpoint dir"),
        ({"report_file": "../x"}, "report_file: it is a file in the checkpoint direct"),
        ({"order": "random"}, "order: Input should be 'ask' or 'completion'"),
    ],
)
def test_an_error_names_the_place_in_the_file(changes, message):
    given = changed(**changes)
    if "parameters" in changes:
        given["command"] = ["train"]
    with pytest.raises(InvalidParameterError) as raised:
        checked_sweep(given, "a.yaml")
    assert str(raised.value).startswith("a.yaml: ")
    assert message in str(raised.value)


def test_a_condition_may_name_what_stands_before():
    parameters = {
        "b": {"type": "choice", "values": [1], "when": {"a": 1}},
        "a": {"type": "choice", "values": [1]},
    }
    with pytest.raises(InvalidParameterError, match=r"parameters\.b\.when names"):
        checked_sweep(changed(parameters=parameters, command=["x"]), "a.yaml")


def test_a_condition_can_hold():
    parameters = {
        "a": {"type": "choice", "values": ["sgd", "adam"]},
        "b": {"type": "choice", "values": [1], "when": {"a": ["sgd", "SGD"]}},
    }
    with pytest.raises(InvalidParameterError, match=r"when\.a: 'SGD' is none of its"):
        checked_sweep(changed(parameters=parameters, command=["x"]), "a.yaml")


def test_files_are_yaml_or_json(tmp_path):
    file = tmp_path / "sweep.json"
    file.write_text(json.dumps(SWEEP))
    assert read_sweep(file).max_epochs == 12
    file.write_text("command: [a\nbudget: 3")
    with pytest.raises(InvalidParameterError, match="is not YAML"):
        read_sweep(file)
    with pytest.raises(InvalidParameterError, match="cannot be read"):
        read_sweep(tmp_path / "none.yaml")
    file.write_text("!!python/object/apply:os.system ['true']")
    with pytest.raises(InvalidParameterError, match="is not YAML"):
        read_sweep(file)


def test_numbers_may_be_written_as_yaml_does_not_know_them(tmp_path):
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "command: [train, '{lr}']\n"
        "parameters: {lr: {type: log-uniform, low: 1e-5, high: 1e-1}}\n"
        "budget: 10\nmax_epochs: 5\n"
    )
    low = read_sweep(file).parameters["lr"].low
    assert math.isclose(low, 1e-5)


def test_configurations_differ_as_long_as_there_are_others():
    parameters = {"a": {"type": "choice", "values": [1, 2]}}
    sweep = checked_sweep(changed(parameters=parameters, command=["x"]), "a.yaml")
    assert sorted(params["a"] for params in sweep.draw()) == [1, 2]


def test_what_is_added_has_the_unit_of_the_budget():
    assert checked_sweep(changed(budget=9), "a.yaml").budget.more(3.0) == 3
    for unit, seconds in (("seconds", 1.5), ("hours", 5400.0)):
        sweep = checked_sweep(changed(budget={unit: 2}), "a.yaml")
        assert sweep.budget.more(1.5) == Budget(seconds=seconds)
    with pytest.raises(InvalidParameterError, match="no whole number"):
        checked_sweep(changed(budget=9), "a.yaml").budget.more(1.5)
