"""A sweep file of W&B and its script run after one command."""

import json
import sys
from pathlib import Path

import pytest

from risingsearch.cli.main import main

SCRIPT = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--optimizer.kind", dest="kind")
parser.add_argument("--batch_size", type=int)
parser.add_argument("--epochs", type=int)
parser.add_argument("--amp", action="store_true")
arguments = parser.parse_args()
assert arguments.batch_size % 8 == 0
error = 1.0 if arguments.kind == "adam" else 2.0
for epoch in range(1, arguments.epochs + 1):
    error *= 1.0 - arguments.lr
    print(LINE, flush=True)
"""
TEXT = 'f"epoch {epoch}: val_loss={error + 0.1 * arguments.amp:.6f}"'
JSON = """json.dumps({"epoch": epoch, "val_loss": error})"""
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
  amp: {values: [true, false]}
  epochs: {value: 6}
  optimizer:
    parameters:
      kind: {values: [sgd, adam], probabilities: [0.5, 0.5]}
command: [PYTHON, "${program}", "${args_no_boolean_flags}"]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wandb.yaml").write_text(SWEEP.replace("PYTHON", sys.executable))


@pytest.mark.parametrize(
    ("line", "options"),
    [(TEXT, ["--regex", "val_loss=([0-9.]+)"]), (JSON, [])],
)
def test_it_runs_after_the_import(line, options, capsys):
    Path("train.py").write_text("import json\n" + SCRIPT.replace("LINE", line))
    command = ["import-sweep", "wandb.yaml", "-o", "sweep.yaml", "--budget", "24"]
    assert main([*command, *options]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "wandb.yaml: early_terminate: left out" in told.err
    assert main(["run", "sweep.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["epochs"], found["failures"]) == (24, 0)
    assert set(found["best_params"]) >= {"lr", "amp", "batch_size", "optimizer.kind"}
    assert found["best_score"] < 1.0
    assert main(["run", "sweep.yaml", "--json"]) == 0  # it is the same search
    assert json.loads(capsys.readouterr().out) == found
    assert main(["report", "runs/sweep"]) == 0


def test_without_a_file_it_is_printed(capsys):
    command = ["import-sweep", "wandb.yaml", "--budget", "24", "--max-epochs", "5"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    Path("sweep.yaml").write_text(printed)
    assert "max_epochs: 5\n" in printed
    assert main(["plan", "sweep.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["configurations"] == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wandb.yaml"], "wandb.yaml: give --budget N, the epochs over all"),
        (["none.yaml", "--budget", "9"], "none.yaml cannot be read (No such file"),
        (
            ["wandb.yaml", "--budget", "9", "-o", "a/b.yaml"],
            "a/b.yaml cannot be written",
        ),
        (["wandb.yaml", "--budget", "9", "--regex", "("], "metric.regex: it is no reg"),
    ],
)
def test_what_is_refused(arguments, message, capsys):
    assert main(["import-sweep", *arguments]) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
