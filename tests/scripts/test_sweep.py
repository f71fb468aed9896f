"""A sweep is what its file says, and an error names the place."""

import json

import pytest

from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.sweep import checked_sweep, read_sweep
from risingsearch.scripts.yaml_files import load_yaml

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
    "seed": 0,
}

KNOWN = {"lr": 5.0, "layers": 2, "width": 64, "optimizer": "adam"}


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


def test_a_timeout_is_the_budget_only_where_there_is_no_other():
    both = checked_sweep(changed(timeout=600), "a.yaml")
    assert (both.budget, both.timeout) == (Budget(epochs=60), 600)
    alone = {name: value for name, value in SWEEP.items() if name != "budget"}
    sweep = checked_sweep(alone | {"timeout": 600}, "a.yaml")
    assert (sweep.budget, sweep.timeout) == (Budget(wall_seconds=600), None)
    with pytest.raises(InvalidParameterError, match=r"timeout: 600 for 600 seconds"):
        checked_sweep(alone, "a.yaml")


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("budget", "budgett"),
        ("command", "comand"),
        ("max_epochs", "max_epoch"),
        ("parameters", "params_"),
        ("metric", "metrics"),
        ("direction", "Direction"),
    ],
)
def test_a_misspelt_key_is_named_first(key, wrong):
    whole = {"metric": "score", "direction": "maximize", **SWEEP}
    given = {wrong if name == key else name: value for name, value in whole.items()}
    with pytest.raises(InvalidParameterError, match=f"^a.yaml: {wrong} is no key of a"):
        checked_sweep(given, "a.yaml")


def test_budgets_in_time_draw_a_number_of_their_own():
    sweep = checked_sweep(changed(budget={"hours": 0.5}), "a.yaml")
    assert sweep.budget == Budget(hours=0.5)
    assert len(sweep.draw()) == 500


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "a.yaml: budget is missing: say when the search ends, by budget: 300"),
        (
            {"parameters": {"lr": {"type": "choice", "value": [1]}}},
            "a.yaml: parameters.lr.value is no key of choice, which has type, values,",
        ),
        (
            {"metric": {"regexp": "a"}},
            "a.yaml: metric.regexp is no key of a sweep here",
        ),
        (
            {"budgett": 60},
            "a.yaml: budgett is no key of a sweep here (did you mean bud",
        ),
    ],
)
def test_misspelt_keys_are_named_before_a_missing_budget(changes, message):
    given = changed(**changes)
    del given["budget"]
    with pytest.raises(InvalidParameterError) as raised:
        checked_sweep(given, "a.yaml")
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"launcher": {"slurm": {"Partition": "gpu"}}},
            "launcher.slurm.Partition is no key of a sweep here (did you mean partit",
        ),
        ({"xyz": 3}, "xyz is no key of a sweep here; got 3"),
        (
            {"parameters": {"lr": {"type": "log-uniform", "log": True}}},
            "parameters.lr.log is no key of log-uniform, which has high, low, type,",
        ),
        ({"metric": {"regexp": "a"}}, "metric.regex is missing"),
        (
            {"parameters": {"lr": {"type": "loguniform", "low": 1, "high": 2}}},
            "parameters.lr.type must be one of 'uniform', 'log-uniform', 'int', "
            "'normal', 'choice'; got \"loguniform\" (did you mean log-uniform?)",
        ),
        ({"command": "train"}, "command must be a valid list such as [python, tra"),
        ({"workers": "many"}, "workers: must be a whole number from 1 to 1,000, or au"),
        ({"environment": {"A": 1}}, ", a mapping for each worker; got a mapping"),
        ({"timeout": "8h"}, "timeout must be a valid number such as 28800, in seco"),
        ({"candidates": 0}, "must be a whole number from 1 to 1,000,000, or auto or "),
        ({"budget": "8 hours"}, "epochs, {hours: 8}, or a time such as '8h', '90min'"),
        ({"parameters": {"lr": [0, 1]}}, "lr must be a mapping such as {type: choice,"),
        ({"command": ["{}"]}, "the command names {}, which is neither a parameter"),
        ({"command": ["{"]}, "write {{ and }} for braces"),
        ({"command": ["{lr:d}"]}, "write {lr} and nothing else in it"),
        (
            {"parameters": {"seed": {"type": "choice", "values": [1]}}},
            "parameters.seed: seed is what a script is told besides its parameters",
        ),
        ({"environment": [{"GPU": 0}]} | {"workers": 2}, "for 1 workers, and workers"),
        ({"report_file": "../x"}, "report_file: it is a file in the checkpoint direct"),
        ({"metric": "epoch"}, "metric: epoch is the key of the epoch in each line"),
        ({"enqueue": [{"rl": 0.1}]}, "'rl' is not one of lr, layers, width"),
        ({"enqueue": [KNOWN | {"lr": "a"}]}, "lr must be a number; got 'a'"),
        ({"enqueue": [KNOWN, dict(KNOWN)]}, "enqueue[1] was enqueued before"),
        (
            {"enqueue": [KNOWN | {"optimizer": "sgd"}]},
            "enqueue[0] is no configuration of the sweep: 'momentum' is missing",
        ),
        ({"metric": {"regex": "(a)(b)"}}, "this has 2"),
        ({"metric": {"regex": "{epoch}/9 | acc: {number}"}}, r"write \| where"),
        ({"metric": {"regex": "a ([0-9]+)"}}, "add resume: false, which keeps scripts"),
        (
            {"max_alive": 3},
            "max_alive is at least the number of workers, and needs res",
        ),
        (
            {"resume": False, "max_failures": 1},
            "max_failures and resume: false: leave out one",
        ),
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


def test_what_is_enqueued_comes_before_what_is_drawn():
    plain = checked_sweep(SWEEP, "a.yaml")
    sweep = checked_sweep(SWEEP | {"enqueue": [KNOWN]}, "a.yaml")
    assert sweep.draw() == [KNOWN, *plain.draw()]
    few = {"command": ["train"], "parameters": {"n": {"type": "choice", "values": [1]}}}
    again = checked_sweep(SWEEP | few | {"enqueue": [{"n": 1}]}, "a.yaml")
    assert again.draw() == [{"n": 1}]


def test_numbers_in_the_command_are_text():
    sweep = checked_sweep(changed(command=["train", 3, 0.5]), "a.yaml")
    assert sweep.command == ["train", "3", "0.5"]


def test_scripts_that_cannot_resume():
    plain = {"regex": "accuracy ([0-9.]+)"}
    sweep = checked_sweep(changed(metric=plain, resume=False, workers=3), "a.yaml")
    assert sweep.n_alive(3) == 12
    assert checked_sweep(changed(resume=False, max_alive=1), "a.yaml").n_alive(1) == 1
    named = {"regex": "epoch (?P<epoch>[0-9]+): (?P<score>[0-9.]+)"}
    assert checked_sweep(changed(metric=named), "a.yaml").metric.pattern.groups == 2
    for metric in ({"regex": "{epoch}: {number}"}, {"regex": "{epoch}: ({number})"}):
        sweep = checked_sweep(changed(metric=metric), "a.yaml")
        assert sweep.metric_name == metric["regex"]
        named = checked_sweep(changed(metric={**metric, "name": "loss"}), "a.yaml")
        assert named.metric_name == "loss"


@pytest.mark.parametrize(
    "word", ["on", "OFF", "yes", "NO", "y", "N", "2001-01-01", "12:30", "=", "1.2.3"]
)
def test_words_of_a_file_stay_words(word):
    assert load_yaml(f"{{{word}: 1, values: [{word}, '{word}']}}") == {
        word: 1,
        "values": [word, word],
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e-4", 1e-4), ("5.e-2", 0.05), ("+2E-2", 0.02), ("1_000", 1000), ("TRUE", True)],
)
def test_numbers_and_switches_of_a_file(text, value):
    assert load_yaml(f"- {text}") == [value]


def test_a_file_of_an_older_yaml_is_refused(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("# a comment\n%YAML 1.1\n---\nland: NO\n")
    with pytest.raises(InvalidParameterError, match=r"%YAML 1.1 would have words such"):
        read_sweep(path)


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
    with pytest.raises(InvalidParameterError, match="is not valid YAML: line 2: "):
        read_sweep(file)
    with pytest.raises(InvalidParameterError, match="cannot be read"):
        read_sweep(tmp_path / "none.yaml")
    file.write_text("!!python/object/apply:os.system ['true']")
    with pytest.raises(InvalidParameterError, match=r"line 1: .* for the tag"):
        read_sweep(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: \xff", "is not valid YAML: 'utf-8' codec can't decode"),
        (b"a: \0", "is not valid YAML: unacceptable character"),
        (b"a: {lr: 1,\n  lr: 2}", 'line 2: found duplicate key "lr"'),
        (b"a: 1\n---\nb: 1", "line 2: expected a single document"),
        (b"budget: &a {b: *a}", "an alias stands inside of what it names"),
        (b"", "a.yaml: the file must be a mapping"),
    ],
)
def test_a_file_that_is_no_sweep(tmp_path, content, message):
    file = tmp_path / "a.yaml"
    file.write_bytes(content)
    with pytest.raises(InvalidParameterError) as raised:
        read_sweep(file)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 1000


WHEN = {
    "a": {"type": "choice", "values": [1, 2]},
    "b": {"type": "uniform", "low": 0, "high": 1},
}


@pytest.mark.parametrize("form", ["[{}]", "{{<<: [{}], own: 1}}"])
def test_aliases_that_multiply_take_no_time(form):
    lines = [f"a0: &a0 {'[1, 2]' if form[0] == '[' else '{b: 1, c: 2}'}"]
    lines += [
        f"a{i}: &a{i} {form.format(', '.join([f'*a{i - 1}'] * 9))}"
        for i in range(1, 40)
    ]
    if form[0] == "[":
        with pytest.raises(ValueError, match="aliases stand for more than 1,000,000"):
            load_yaml("\n".join(lines))
    else:
        assert load_yaml("\n".join(lines))["a39"] == {"b": 1, "c": 2, "own": 1}


def test_merges_keep_their_order_of_precedence():
    text = "a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b, *a], y: 3}"
    assert load_yaml(text)["c"] == {"x": 1, "y": 3, "z": 2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"command": ["x", "a\0b"]}, "'command.1' holds a NUL byte"),
        ({"environment": [{"A": "\ud800"}]}, "'environment.0.A' holds a NUL byte or"),
        ({"environment": [{"A=B": "1"}]}, "'A=B' cannot be the name of a variable"),
        ({"learning_rate": [1]}, "learning_rate: it is the name of a parameter, a"),
        ({"enqueue": [{"lr": None}]}, "enqueue.0.lr: it is a number, text, true or"),
        (
            {"parameters": WHEN | {"b": WHEN["b"] | {"when": {"a": {}}}}},
            "when.a: it is",
        ),
        (
            {"parameters": WHEN | {"b": WHEN["b"] | {"when": 3}}},
            "when must be a mapping",
        ),
    ],
)
def test_one_sentence_about_a_value_of_another_form(changes, message):
    given = {"command": ["x"], "parameters": WHEN, "budget": 9, "max_epochs": 3}
    with pytest.raises(InvalidParameterError) as raised:
        checked_sweep(given | changes, "a.yaml")
    assert message in str(raised.value)
    assert ";" not in str(raised.value).partition("; got")[0]
