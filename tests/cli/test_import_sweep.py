"""A sweep file of W&B and its script run after one command."""

import json
import sys
from pathlib import Path

import pytest

from risingsearch.cli.import_sweep import imported
from risingsearch.cli.main import main
from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.sweep import checked_sweep
from risingsearch.scripts.trainable import filled

SCRIPT = """
import argparse
import json
import math

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--kind")
parser.add_argument("--batch_size", type=int)
parser.add_argument("--epochs", type=int)
parser.add_argument("--seed", type=int)
arguments = parser.parse_args()
assert arguments.batch_size % 8 == 0
error = 1.0 if arguments.kind == "adam" else 2.0
for epoch in range(1, arguments.epochs + 1):
    error *= 1.0 - arguments.lr
    print(json.dumps({"epoch": epoch, "val_loss": error}), flush=True)
"""
SWEEP = """
program: train.py
method: bayes
project: demo
metric: {name: val_loss, goal: minimize}
early_terminate: {type: hyperband, min_iter: 3}
run_cap: 12
parameters:
  lr: {distribution: log_uniform_values, min: 1e-3, max: 0.5}
  batch_size: {distribution: q_uniform, min: 8, max: 64, q: 8}
  seed: {min: 1, max: 9}
  epochs: {value: 6}
  kind: {values: [sgd, adam]}
command: [PYTHON, "${program}", "${args}"]
"""
LR = {"distribution": "log_uniform_values", "min": 1e-4, "max": 0.1}
GIVEN = {
    "program": "train.py",
    "method": "random",
    "metric": {"name": "val_loss"},
    "parameters": {"lr": LR},
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wandb.yaml").write_text(SWEEP.replace("PYTHON", sys.executable))


def sweep_of(given, budget=60, max_epochs=9, regex=None):
    notes = []
    return imported(given, notes.append, budget, max_epochs, regex), notes


def test_it_runs_after_the_import(capsys):
    Path("train.py").write_text(SCRIPT)
    command = ["import-sweep", "wandb.yaml", "-o", "sweep.yaml", "--budget", "24"]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "wandb.yaml: early_terminate: left out" in printed.err
    assert "wandb.yaml: parameters.seed: called seed_ here" in printed.err
    assert main(["run", "sweep.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["epochs"], found["failures"]) == (24, 0)
    assert set(found["best_params"]) == {"lr", "kind", "batch_size", "seed_"}
    assert main(["run", "sweep.yaml", "--json"]) == 0  # it is the same search
    assert json.loads(capsys.readouterr().out) == found


def test_without_a_file_it_is_printed(capsys):
    command = ["import-sweep", "wandb.yaml", "--budget", "24", "--max-epochs", "5"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    Path("sweep.yaml").write_text(printed)
    assert "max_epochs: 5\n" in printed
    assert main(["plan", "sweep.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["configurations"] == 12


def test_a_pattern_that_finds_the_metric():
    found, notes = sweep_of(GIVEN, regex="loss={number}")
    assert found["metric"] == {"regex": "loss={number}", "name": "val_loss"}
    assert any("in which 'loss={number}' finds val_loss" in note for note in notes)
    with pytest.raises(InvalidParameterError, match="one group, or one with"):
        sweep_of(GIVEN, regex="loss")


def test_words_that_may_be_switches_there_are_noted():
    values = ["SE", "NO", "off", True]
    found, notes = sweep_of(GIVEN | {"parameters": {"a": {"values": values}}})
    assert found["parameters"]["a"]["values"] == values
    assert [note[:21] for note in notes[:2]] == [
        "parameters.a: NO is t",
        "parameters.a: off is ",
    ]


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


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({"value": [1, 2]}, {"type": "choice", "values": [[1, 2]]}),
        ({"values": [1, None]}, {"type": "choice", "values": [1, None]}),
        ({"min": 1, "max": 6}, {"type": "int", "low": 1, "high": 6}),
        ({"min": 1, "max": 6.0}, {"type": "uniform", "low": 1, "high": 6.0}),
        (
            {"distribution": "q_uniform", "min": 0.0, "max": 0.5, "q": 0.1},
            {"type": "uniform", "low": 0.0, "high": 0.5, "step": 0.1},
        ),
        ({"distribution": "normal"}, {"type": "normal", "mu": 0.0, "sigma": 1.0}),
    ],
)
def test_distributions(given, parameter):
    found, _ = sweep_of(GIVEN | {"parameters": {"a": given}})
    assert found["parameters"]["a"] == parameter


@pytest.mark.parametrize(
    ("method", "run_cap", "candidates"),
    [("random", 7, 7), ("bayes", None, None), ("grid", None, "all"), ("grid", 2, 2)],
)
def test_methods(method, run_cap, candidates):
    parameters = {"a": {"values": [1, 2, 3]}, "b": {"min": 1, "max": 2}}
    given = GIVEN | {"parameters": parameters, "method": method, "run_cap": run_cap}
    assert sweep_of(given)[0].get("candidates") == candidates


def test_a_target_ends_the_run():
    metric = {"name": "acc", "goal": "maximize", "target": 0.9}
    found, _ = sweep_of(GIVEN | {"metric": metric})
    assert (found["direction"], found["target_score"]) == ("maximize", 0.9)


@pytest.mark.parametrize(
    ("macro", "words"),
    [
        ("${args}", ["--lr=0.5", "--seed=7"]),
        ("${args_no_equals}", ["--lr", "0.5", "--seed", "7"]),
        ("${args_no_hyphens}", ["lr=0.5", "seed=7"]),
        ("${env}", ["/usr/bin/env"]),
        ("${interpreter}", ["python"]),
        ("${program}", ["train.py"]),
        ("{x}", ["{x}"]),
    ],
)
def test_macros(macro, words):
    parameters = {"lr": LR, "seed": {"values": [7]}}
    found, _ = sweep_of(GIVEN | {"command": ["x", macro], "parameters": parameters})
    values = {"lr": 0.5, "seed_": 7}
    assert [filled(word, values) for word in found["command"]] == ["x", *words]
    assert checked_sweep(found, "a.yaml").draw()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": None}, "give --budget N and --max-epochs N: W&B has no keys"),
        ({"job": "j"}, "job has no equal here"),
        ({"method": "tpe"}, "method must be one of bayes, grid, random; got 'tpe'"),
        ({"method": "grid"}, "and lr has no end of them"),
        ({"metric": None}, "metric must be a mapping, and not empty; got None"),
        ({"metric": {"name": "a", "goal": "max"}}, "direction must be 'maximize' or"),
        ({"parameters": {"a": {"distribution": "log_uniform"}}}, "a has no equal here"),
        ({"parameters": {"a": {"parameters": {"b": LR}}}}, "parameters.a has no equal"),
        (
            {"parameters": {"a": LR | {"min": "1"}}},
            "parameters.a: low must be below high",
        ),
        ({"command": ["${args_json_file}"]}, "${args_json_file} has no equal here"),
        ({"program": None}, "command: ${program} has no equal here, or no program"),
    ],
)
def test_what_is_refused(changes, message):
    options = {k: changes[k] for k in ("budget", "max_epochs") if k in changes}
    given = GIVEN | {k: v for k, v in changes.items() if k not in options}
    with pytest.raises(InvalidParameterError) as raised:
        sweep_of(given, **options)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.yaml", "--budget", "9"], "none.yaml cannot be read (No such file"),
        (["wandb.yaml", "--budget", "9", "-o", "a/b.yaml"], "b.yaml cannot be written"),
        (["wandb.yaml"], "wandb.yaml: give --budget N"),
    ],
)
def test_errors_are_one_line(arguments, message, capsys):
    assert main(["import-sweep", *arguments]) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
