import shutil

import pytest

from benchmarks.cost.speed import suite, transcription
from benchmarks.cost.speed.processes import CACHED, GROWTH, MACHINE, THREADS, Measured
from benchmarks.cost.speed.stepping import HORIZON, AbsentToolError, Run, own
from benchmarks.cost.speed.suite import OURS, SMPYBANDITS, C
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


def test_bars_are_computed_from_what_was_measured(times):
    each, together, c, start, threads, memory = suite.bars(times, OTHERS)
    assert each["measured"] == "90 times (random)"
    assert each["verdict"] == "holds"
    assert together["measured"] == "190 times (2 policies)"
    assert together["verdict"] == "does not hold"
    assert c["measured"] == "1.25 times"
    assert (c["verdict"], start["verdict"], threads["verdict"]) == ("holds",) * 3
    assert memory["verdict"] == "not measured"


@pytest.mark.slow
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
