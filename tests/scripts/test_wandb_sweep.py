"""A sweep file of W&B becomes one of ours, and what was chosen is said."""

import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.sweep import checked_sweep
from risingsearch.scripts.wandb_sweep import imported

LR = {"distribution": "log_uniform_values", "min": 1e-4, "max": 0.1}
GIVEN = {
    "program": "train.py",
    "method": "random",
    "metric": {"name": "val_loss", "goal": "minimize"},
    "parameters": {"lr": LR},
}


def sweep_of(given, budget=60, max_epochs=9, **options):
    notes = []
    found = imported(
        given, notes.append, budget=budget, max_epochs=max_epochs, **options
    )
    assert checked_sweep(found, "a.yaml").draw()
    return found, notes


def said(notes, beginning):
    return [note for note in notes if note.startswith(beginning)]


def test_the_plainest():
    found, notes = sweep_of(GIVEN)
    assert found == {
        "command": ["/usr/bin/env", "python", "train.py", "--lr={lr}"],
        "parameters": {"lr": {"type": "log-uniform", "low": 1e-4, "high": 0.1}},
        "metric": "val_loss",
        "direction": "minimize",
        "budget": 60,
        "max_epochs": 9,
        "resume": False,
    }
    places = [note.partition(":")[0] for note in notes]
    assert places == ["command", "metric", "method", "resume"]


def test_keys_without_an_equal_are_said_and_left_out():
    more = {
        "apiVersion": "v1",
        "controller": {"type": "local"},
        "description": "d",
        "early_terminate": {"type": "hyperband", "min_iter": 3},
        "entity": "e",
        "kind": "sweep",
        "name": "n",
        "project": "p",
        "scheduler": {"num_workers": 2},
    }
    found, notes = sweep_of(GIVEN | more)
    assert found == sweep_of(GIVEN)[0]
    for name in more:
        assert len(said(notes, f"{name}: left out")) == 1


@pytest.mark.parametrize(
    ("changes", "candidates"),
    [
        ({"method": "random", "run_cap": 7}, 7),
        ({"method": "bayes"}, None),
        ({"method": "custom"}, None),
        ({"method": "grid"}, "all"),
        ({"method": "grid", "run_cap": 2}, 2),
    ],
)
def test_methods(changes, candidates):
    parameters = {"a": {"values": [1, 2, 3]}, "b": {"min": 1, "max": 2}}
    found, notes = sweep_of(GIVEN | {"parameters": parameters} | changes)
    assert found.get("candidates") == candidates
    assert len(said(notes, "method")) == 1
    assert len(said(notes, "run_cap")) == ("run_cap" in changes)


def test_a_grid_of_all_numbers_is_refused():
    with pytest.raises(
        InvalidParameterError, match=r"parameters\.lr has no end of them"
    ):
        sweep_of(GIVEN | {"method": "grid"})


def test_the_goal_of_wandb_is_to_minimize():
    found, notes = sweep_of(GIVEN | {"metric": {"name": "err", "impute": "worst"}})
    assert (found["metric"], found["direction"]) == ("err", "minimize")
    assert said(notes, "metric.goal: minimize")
    assert said(notes, "metric.impute: left out")


@pytest.mark.parametrize("regex", [None, "loss ([0-9.]+)"])
def test_a_target_ends_the_run(regex):
    metric = {"name": "acc", "goal": "maximize", "target": 0.9}
    found, notes = sweep_of(GIVEN | {"metric": metric}, regex=regex)
    assert found["target_score"] == 0.9
    assert said(notes, "metric.target: target_score")


def test_a_pattern_finds_the_score():
    found, notes = sweep_of(GIVEN, regex="loss ([0-9.]+)")
    assert found["metric"] == {"regex": "loss ([0-9.]+)"}
    assert said(notes, "metric: val_loss is what the pattern finds")


@pytest.mark.parametrize("given", [9, None])
def test_epochs_are_those_of_a_full_training(given):
    parameters = {"lr": LR, "epochs": {"value": 9}}
    found, notes = sweep_of(GIVEN | {"parameters": parameters}, max_epochs=given)
    assert found["max_epochs"] == 9
    assert found["command"][-1] == "--epochs={epochs}"
    assert list(found["parameters"]) == ["lr"]
    assert said(notes, "parameters.epochs: no parameter any more")


def test_a_taken_name_gets_another():
    parameters = {"seed": {"values": [1, 2]}, "params": {"value": 3}}
    found, notes = sweep_of(GIVEN | {"parameters": parameters})
    assert list(found["parameters"]) == ["seed_", "params_"]
    assert found["command"][-2:] == ["--seed={seed_}", "--params={params_}"]
    assert said(notes, "parameters.seed: called seed_ here")


def test_nested_parameters_are_passed_one_by_one():
    inside = {"lr": LR, "nesterov": {"values": [True, False]}}
    given = GIVEN | {
        "parameters": {"optimizer": {"parameters": inside}},
        "command": ["x", "${args_no_boolean_flags}"],
    }
    found, notes = sweep_of(given)
    words = ["x", "--optimizer.lr={optimizer.lr}", "{optimizer.nesterov_flag}"]
    assert found["command"] == words
    assert said(notes, "parameters.optimizer: nested")
    assert said(notes, "parameters.optimizer.nesterov_flag: added")
    for one in checked_sweep(found, "a.yaml").draw():
        assert ("optimizer.nesterov_flag" in one) == one["optimizer.nesterov"]


def test_a_dot_in_a_name_is_a_group_as_json():
    found, notes = sweep_of(GIVEN | {"parameters": {"net.lr": LR}})
    assert found["command"][-1] == "--net.lr={net.lr}"
    assert said(notes, "parameters.net.lr: nested where parameters are passed as JSON")


def test_a_command_that_passes_nothing():
    _, notes = sweep_of(GIVEN | {"command": ["python", "${program}"]})
    assert said(notes, "command: it passes no parameters")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": None}, "give --budget N, the epochs over all configurations"),
        (
            {"budget": None, "run_cap": 10},
            "10 runs in full, as run_cap has it, are 90",
        ),
        ({"max_epochs": None}, "give --max-epochs N, the epochs of a full training"),
        (
            {"max_epochs": None, "parameters": {"epochs": {"min": 1, "max": 9}}},
            "parameters.epochs has no single whole number",
        ),
        ({"job": "j"}, "job has no equal here: give a program or a command"),
        ({"metrics": []}, "metrics has no equal here: a search has one metric"),
        ({"metod": 3}, "metod is no key of a sweep of W&B"),
        ({"method": "tpe"}, "method must be one of bayes, custom, grid, random; got"),
        ({"metric": None}, "metric must have a name, which the search needs"),
        ({"metric": {"name": "a", "gaol": 1}}, "metric.gaol is no key of W&B"),
        ({"metric": {"name": "a", "goal": "max"}}, "direction must be 'maximize' or"),
        ({"metric": {"name": "a", "target": "best"}}, "target_score must be a number"),
        ({"parameters": None}, "parameters must be a mapping, and not empty"),
        ({"run_cap": 0}, "candidates must be at least 1"),
        (
            {"parameters": {"a": {"values": [1], "probabilities": [2]}}},
            "parameters.a: the probabilities must sum to 1; got 2",
        ),
        (
            {"parameters": {"a": LR | {"min": 0}}},
            "parameters.a.low must be greater than 0; got 0",
        ),
    ],
)
def test_what_is_refused(changes, message):
    options = {k: changes[k] for k in ("budget", "max_epochs") if k in changes}
    given = GIVEN | {k: v for k, v in changes.items() if k not in options}
    with pytest.raises(InvalidParameterError) as raised:
        sweep_of(given, **options)
    assert message in str(raised.value)


def test_what_is_no_mapping():
    with pytest.raises(InvalidParameterError, match="a sweep of W&B is a mapping with"):
        sweep_of(["lr"])
