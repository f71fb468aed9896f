"""A script that cannot resume is tuned as it is."""

import csv
import json
import signal
import sys
from pathlib import Path

import pytest

from risingsearch import RisingSearch
from risingsearch.cli.main import main
from risingsearch.priors import earlier_searches
from risingsearch.scripts import run
from tests.cli.sweeping import exported, json_of, started, still_alive, wait_for

PLAIN = """
import os, sys, time
top = int(sys.argv[1])
print(os.getpid(), file=open("pids", "a"))
for epoch in range(int(sys.argv[2])):
    print(f"Epoch {epoch}: train 0.9, validation {top * (epoch + 1) / (epoch + 3):.6f}")
"""
PLAIN_SWEEP = """
command: [PYTHON, train.py, "{top}", "{epochs}"]
parameters:
  top: {type: int, low: 1, high: 50}
metric: {regex: "validation {number}", name: accuracy}
resume: false
budget: 24
candidates: 6
max_epochs: 8
deterministic: true
seed: 0
"""


@pytest.fixture
def plain(folder):
    """A training script that knows nothing of searches, and its sweep."""
    Path("train.py").write_text(PLAIN)
    Path("plain.yaml").write_text(PLAIN_SWEEP.replace("PYTHON", sys.executable))
    return folder


def test_an_unmodified_script_is_tuned(plain, capsys):
    found = json_of(capsys, "run", "plain.yaml")
    assert (found["epochs"], found["failures"]) == (24, 0)
    assert found["metric"] == "accuracy"
    assert json_of(capsys, "status", "runs/plain")["metric"] == "accuracy"
    assert main(["report", "runs/plain"]) == 0
    capsys.readouterr()
    rows = exported("runs/plain", capsys)
    for row in rows:
        expected = row["param_top"] * row["epoch"] / (row["epoch"] + 2)
        assert abs(row["score"] - expected) < 1e-6
    n_started = len(Path("pids").read_text().split())
    assert n_started == len({row["arm"] for row in rows})
    assert still_alive() == []


def test_what_was_ended_to_make_room_is_not_called_paused(plain, capsys):
    sweep = Path("plain.yaml").read_text()
    Path("plain.yaml").write_text(f"{sweep}max_alive: 1\n")
    assert json_of(capsys, "plan", "plain.yaml")["processes_alive_at_most"] == 1
    arms = json_of(capsys, "run", "plain.yaml")["arms"]
    assert "paused" not in arms
    reasons = {arm.reason for arm in RisingSearch.saved_result("runs/plain").arms}
    assert any("made room for those of better arms" in reason for reason in reasons)
    assert json_of(capsys, "status", "runs/plain")["arms"] == arms


def test_a_pattern_that_finds_nothing_trains_one_script_in_vain(plain, capsys):
    sweep = Path("plain.yaml").read_text()
    Path("plain.yaml").write_text(sweep.replace('"validation', '"validaton'))
    assert main(["run", "plain.yaml"]) == 3
    said = capsys.readouterr().err
    assert "no line in which 'validaton {number}' finds a number; no script of" in said
    assert "with --retry-failed to try first those that have failed" in said
    assert len(Path("pids").read_text().split()) == 1
    Path("plain.yaml").write_text(sweep)
    found = json_of(capsys, "run", "plain.yaml", "--retry-failed")
    assert (found["epochs"], found["failures"]) == (24, 1)
    assert "failed" not in found["arms"]


def test_an_interrupt_after_the_end_says_that_it_has_ended(plain, capsys, monkeypatch):
    ctrl_c = signal.SIGINT
    monkeypatch.setattr(run, "_best_folder", lambda *_: signal.raise_signal(ctrl_c))
    assert main(["run", "plain.yaml"]) == 130
    said = capsys.readouterr().err
    assert "interrupted after its end: the budget of 24 epochs is spent" in said
    assert "resume" not in said


WAITS = "    while epoch > 2 and not os.path.exists('go'): time.sleep(0.01)\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_lived_when_a_sweep_ended_is_lost(plain, capsys, number):
    Path("train.py").write_text(PLAIN.replace("    print(", f"{WAITS}    print("))
    with started("run", "plain.yaml") as process:
        wait_for(process, "runs/plain", 5)
        process.send_signal(number)
        _, said = process.communicate()
    if number == signal.SIGINT:
        assert still_alive() == []
        assert "of their epochs cannot be continued; their scores are kept" in said
    Path("go").touch()
    with pytest.warns(RuntimeWarning, match="is lost"):
        found = json_of(capsys, "resume", "runs/plain")
    assert still_alive() == []
    assert found["epochs"] <= 24
    assert found["failures"] == 0


def test_processes_that_have_ended_are_not_called_paused(plain, capsys):
    sweep = Path("plain.yaml").read_text() + "policy: round-robin\n"
    Path("plain.yaml").write_text(sweep)
    found = json_of(capsys, "run", "plain.yaml")
    assert found["arms"] == {"finished": 6}
    assert found["checkpoint"] is None
    assert json_of(capsys, "status", "runs/plain")["arms"] == {"finished": 6}
    assert main(["report", "runs/plain"]) == 0
    page = Path("runs/plain/report.html").read_text()
    assert "its process has ended" in page
    assert '"paused"' not in page


def test_the_file_of_another_tool_is_not_replaced(plain, capsys):
    Path("sweep.json").write_text("mine")
    assert main(["run", "plain.yaml", "--run-dir", "."]) == 2
    assert "sweep.json is there, and . holds no search" in capsys.readouterr().err
    assert Path("sweep.json").read_text() == "mine"
    assert not Path("journal.jsonl").exists()


def test_a_disk_that_is_full_stops_a_sweep_that_continues(plain, capsys):
    program = Path("train.py").read_text()
    Path("train.py").write_text(
        "import errno, os\nraise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))"
    )
    assert main(["run", "plain.yaml"]) == 2
    said = capsys.readouterr().err
    assert "cannot be written (the script ended with exit code 1" in said
    assert "make room" in said
    Path("train.py").write_text(program)
    found = json_of(capsys, "run", "plain.yaml")
    assert (found["epochs"], found["failures"]) == (24, 0)


def test_an_exported_table_holds_no_formulas(folder, capsys):
    values = ["=1+1", "-x", "@a", "'=b", "-5", "+"]
    Path("train.py").write_text("""
import json, sys
print(json.dumps({"epoch": 1, "score": -float(sys.argv[1]), "=more": "+cmd"}))
""")
    sweep = {
        "command": [sys.executable, "train.py", "0.5", "{word}"],
        "parameters": {"word": {"type": "choice", "values": values}},
        "candidates": "all",
        "budget": 6,
        "max_epochs": 1,
    }
    Path("words.yaml").write_text(json.dumps(sweep))
    json_of(capsys, "run", "words.yaml")
    assert main(["export", "runs/words", "--out", "words.csv"]) == 0
    with open("words.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    words = {row["param_word"] for row in rows}
    assert words == {"'=1+1", "'-x", "'@a", "''=b", "-5", "'+"}
    assert {row["'=more"] for row in rows} == {"'+cmd"}
    assert {row["score"] for row in rows} == {"-0.5"}
    [read] = earlier_searches("words.csv")
    assert {params["word"] for params in read.params} == {*values, -5} - {"-5"}
