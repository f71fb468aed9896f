import csv
import shutil

import pytest

from benchmarks.cost.speed import processes, suite, transcription
from benchmarks.cost.speed.processes import CACHED, GROWTH, MACHINE, THREADS, Measured
from benchmarks.cost.speed.stepping import (
    HORIZON,
    AbsentToolError,
    Run,
    own,
)
from benchmarks.cost.speed.suite import MABWISER, OURS, SMPYBANDITS, C
from risingsearch.policies import policy_info

OTHERS = [
    Measured(CACHED, 1.0, "s"),
    Measured(THREADS, 1.9, "times"),
    Measured(MACHINE, 1.8, "times"),
    Measured(GROWTH, None, "kB"),
]


def runs(*nanoseconds):
    return [Run(value, 1.0, [1, 2]) for value in nanoseconds]


@pytest.fixture
def times():
    return {
        ("cure-ucb", OURS): runs(40, 48, 80),
        ("cure-ucb", C): runs(32, 40, 64),
        ("ucb1", OURS): runs(20, 30, 20),
        ("ucb1", SMPYBANDITS): runs(2000, 12_000, 8000),
        ("random", OURS): runs(10, 10, 10),
        ("random", SMPYBANDITS): runs(900, 900, 900),
    }


def test_ratios_are_medians_over_the_rounds(times):
    assert suite.ratio(times, "cure-ucb", OURS, C) == 1.25
    assert suite.ratio(times, "ucb1", SMPYBANDITS, OURS) == 400
    assert suite.ratio(times, "cure-ucb", SMPYBANDITS, OURS) is None
    assert suite.nanoseconds(times, "cure-ucb", OURS) == 48
    assert suite.nanoseconds(times, "ucb1", C) is None


def test_bars_are_computed_from_what_was_measured(times):
    each, together, c, start, threads, memory = suite.bars(times, OTHERS)
    assert each["measured"] == "90 times (random)"
    assert each["verdict"] == "holds"
    assert together["measured"] == "190 times (2 policies)"
    assert together["verdict"] == "does not hold"
    assert c["measured"] == "1.25 times"
    assert (c["verdict"], start["verdict"], threads["verdict"]) == ("holds",) * 3
    assert memory["verdict"] == "not measured"


def test_c_plays_the_same_run_or_says_why_not():
    info = policy_info("cure-ucb")
    if not any(map(shutil.which, transcription.COMPILERS)):
        with pytest.raises(AbsentToolError, match="no compiler found"):
            transcription.contestant(C)
        return
    theirs = transcription.contestant(C).play(7)
    ours = own(info, OURS, HORIZON, compiled=True).play(7)
    assert theirs.total == ours.total
    assert theirs.pulls == ours.pulls
    assert sum(theirs.pulls) == HORIZON


def test_suite_leaves_results_a_figure_and_a_summary(times, monkeypatch, tmp_path):
    absent = dict.fromkeys((SMPYBANDITS, MABWISER), "too old")
    monkeypatch.setattr(suite, "contestants", lambda steps: ([], absent))
    monkeypatch.setattr(suite, "race", lambda players, rounds, seed: times)
    parts = {"starts": OTHERS[:1], "threads": OTHERS[1:3], "memory": OTHERS[3:]}
    for part, found in parts.items():
        monkeypatch.setattr(processes, part, lambda *_, found=found: found)
    suite.run(tmp_path, scale="quick", seed=0)
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {
        "policy": "cure-ucb",
        "tool": OURS,
        "measure": "ns per step, median",
        "value": "48",
    }
    summary = (tmp_path / "summary.md").read_text()
    assert "20.8" in summary  # million steps a second
    assert "MABWiser: not measured, too old." in summary
    assert "![steps](steps.png)" in summary
    assert {path.name for path in tmp_path.glob("steps.*")} == {
        "steps.png",
        "steps.svg",
    }
