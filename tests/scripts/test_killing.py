"""A sweep that is killed leaves nothing running, and trains nothing twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = 15


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killing")
    command = [sys.executable, str(Path(__file__).with_name("killing.py")), folder]
    seeds = [str(seed) for seed in range(SEEDS)]
    done = subprocess.run(
        [*command, *seeds], stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_sweeps_are_killed(cases):
    assert len(cases) == SEEDS
    assert sum(case["killed"] for case in cases) > SEEDS / 2
    assert any(case["told"] for case in cases)


def test_no_script_of_before_runs_when_the_next_one_starts(cases):
    assert [case["survivors"] for case in cases] == [[]] * SEEDS


def test_nothing_runs_at_the_end(cases):
    assert [case["left"] + case["markers"] for case in cases] == [[]] * SEEDS


def test_no_epoch_that_was_told_is_trained_again(cases):
    for case in cases:
        assert not [epoch for epoch in case["trained_again"] if epoch in case["told"]]


def test_every_sweep_comes_to_the_same_end(cases):
    assert len(cases[0]["history"]) == 8
    assert all(case["history"] == cases[0]["history"] for case in cases)
