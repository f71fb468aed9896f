import csv
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.cost.speed import processes, rivals, suite, transcription
from benchmarks.cost.speed.processes import CACHED, GROWTH, MACHINE, THREADS, Measured
from benchmarks.cost.speed.stepping import (
    HORIZON,
    N_ARMS,
    AbsentToolError,
    Contestant,
    Run,
    in_python,
    own,
    own_policy,
    race,
)
from benchmarks.cost.speed.suite import INTERPRETED, MABWISER, OURS, SMPYBANDITS, C
from risingsearch.policies import list_policies, policy_info

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


def test_bars_of_absent_tools_are_not_measured(times):
    ours = {key: found for key, found in times.items() if key[1] == OURS}
    each, together, c, *_ = suite.bars(ours, OTHERS)
    assert {row["verdict"] for row in (each, together, c)} == {"not measured"}


@pytest.mark.parametrize(
    ("ours", "machine", "verdict"),
    [
        (1.7, 1.0, "holds"),
        (1.6, 1.9, "does not hold"),
        (1.0, 1.1, "not measured"),
    ],
)
def test_threads_are_judged_on_an_idle_machine(times, ours, machine, verdict):
    others = [
        Measured(CACHED, 1.0, "s"),
        Measured(THREADS, ours, "times"),
        Measured(MACHINE, machine, "times"),
        Measured(GROWTH, 0.1, "kB"),
    ]
    row = suite.bars(times, others)[4]
    assert row["verdict"] == verdict
    if verdict == "not measured":
        assert row["measured"] == "machine not idle: SHA-256 1.10 times"


def test_summary_says_why_a_tool_is_absent(times):
    text = suite.notes(times, {C: "no compiler found"}, "a machine")
    assert "- C: not measured, no compiler found." in text
    assert "3 of 3 runs" in text


def test_race_warms_up_and_takes_turns():
    played = []

    def contestant(tool):
        def play(seed):
            played.append((tool, seed))
            return Run(float(len(played)), 0.0, [])

        return Contestant("p", tool, play)

    times = race([contestant("a"), contestant("b")], rounds=2, seed=5)
    assert played == [(tool, seed) for seed in (5, 5, 6) for tool in "ab"]
    assert [run.nanoseconds for run in times["p", "a"]] == [3, 5]


def test_a_library_plays_the_same_game():
    info = policy_info("round-robin")
    expected = own(info, INTERPRETED, 50, compiled=False).play(3)
    policy, rng, t = own_policy(info), np.random.default_rng(0), iter(range(1, 51))
    library = SimpleNamespace(
        choose=lambda: policy.select(next(t), rng),
        take=lambda arm, reward: policy.update(1, arm, reward, rng),
    )
    found = in_python(library.choose, library.take, 50, seed=3)
    assert found.pulls == expected.pulls == [10] * N_ARMS
    assert found.total == pytest.approx(expected.total, rel=1e-12)


def test_rivals_are_built_for_registered_policies():
    names = {info.name for info in list_policies()}
    assert names >= set(rivals.SMPYBANDITS) | set(rivals.MABWISER)

    class Anything:
        def __getattr__(self, name):
            return lambda *args, **kwargs: (name, args, kwargs)

    for table in (rivals.SMPYBANDITS, rivals.MABWISER):
        for name, build in table.items():
            assert build(Anything(), own_policy(policy_info(name)))
    name, _, parameters = rivals.SMPYBANDITS["sw-ucb"](
        Anything(), own_policy(policy_info("sw-ucb"))
    )
    assert name == "SWUCB"
    assert parameters["tau"] == len(own_policy(policy_info("sw-ucb")).window_arms)


def test_a_library_that_is_not_installed_is_absent(monkeypatch):
    def missing(module):
        raise ModuleNotFoundError(f"No module named {module!r}")

    monkeypatch.setattr(rivals, "import_module", missing)
    message = r"No module named 'mabwiser.mab' \(pip install mabwiser\)"
    with pytest.raises(AbsentToolError, match=message):
        list(rivals.mabwiser(MABWISER, {}, 10))


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


def test_without_a_compiler_there_is_no_c(monkeypatch):
    monkeypatch.setattr(transcription.shutil, "which", lambda name: None)
    with pytest.raises(AbsentToolError, match="no compiler found, looked for cc, gcc"):
        transcription.contestant(C)


def test_a_compiler_that_fails_is_quoted(monkeypatch):
    def fails(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "warning\nld: no such file")

    monkeypatch.setattr(transcription.shutil, "which", lambda name: name)
    monkeypatch.setattr(transcription.subprocess, "run", fails)
    with pytest.raises(AbsentToolError, match="cc failed: ld: no such file"):
        transcription.contestant(C)


def test_growth_is_memory_per_further_run(monkeypatch):
    peaks = {processes.FEW_RUNS: 100.0, 6000: 104.0}
    monkeypatch.setattr(processes, "one_process", peaks.get)
    assert processes.memory(6000)[-1].value == 1024 * 4 / 4000
    monkeypatch.setattr(processes, "one_process", lambda n_runs: None)
    assert processes.memory(5000)[-1].value is None
    assert processes.row(processes.memory(5000)[-1])["value"] == "not known"


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
