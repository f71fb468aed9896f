"""A sweep that is killed leaves nothing running, and trains nothing twice."""

import json
import subprocess
import sys
from pathlib import Path

SEEDS = 5
ROOT = Path(__file__).parents[2]


def killed_sweeps(folder):
    """Return what came of every sweep that was to be killed."""
    command = [sys.executable, "-m", "tests.scripts.killing", folder]
    seeds = [str(seed) for seed in range(SEEDS)]
    output = {"stdout": subprocess.PIPE, "text": True, "check": True}
    done = subprocess.run([*command, *seeds], cwd=ROOT, **output)
    return [json.loads(line) for line in done.stdout.splitlines()]


# One test, because several may run in several processes, each with sweeps of its own.
def test_killed_anywhere_they_leave_nothing_running_and_train_nothing_twice(tmp_path):
    cases = killed_sweeps(tmp_path)
    assert len(cases) == SEEDS
    assert sum(case["killed"] for case in cases) > SEEDS / 2
    assert any(case["told"] for case in cases)
    # No script of before runs when the next one starts, and nothing at the end.
    assert [case["survivors"] for case in cases] == [[]] * SEEDS
    assert [case["left"] + case["markers"] for case in cases] == [[]] * SEEDS
    for case in cases:
        told = [(arm, epoch) for arm, epoch, _ in case["told"]]
        assert not [epoch for epoch in case["trained_again"] if tuple(epoch) in told]
        # A script counts its epochs in its checkpoint, and scores by the count.
        assert all(score == epoch for _, epoch, score in case["history"])
    assert len(cases[0]["history"]) == 8
    assert all(case["history"] == cases[0]["history"] for case in cases)
