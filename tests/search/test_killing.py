"""A search that is killed at any write ends, once resumed, as if it had not been."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the harness forks")
@pytest.mark.parametrize("n_workers", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_killed_at_any_write_it_ends_the_same(tmp_path, n_workers):
    harness = Path(__file__).with_name("killing.py")
    done = subprocess.run(
        [sys.executable, harness, tmp_path, str(n_workers)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    expected, *cases = map(json.loads, done.stdout.splitlines())
    assert not expected["killed"]
    assert not expected["trained_again"]
    assert {"failed", "finished", "paused"} <= set(expected["arms"])
    killed = [case for case in cases if case["killed"]]
    assert len(killed) == len(cases) >= 30  # of some 300 writes
    for case in killed:
        for name in ("history", "best", "state", "arms", "calls", "epochs"):
            assert case[name] == expected[name]
        again = Counter(map(tuple, case["trained_again"]))
        assert not again.keys() & set(map(tuple, case["told"]))
        assert case["trained_before"] + again.total() >= expected["trained_before"]
    # They are killed in all of it: before the first epoch and after the last.
    assert killed[0]["trained_before"] == 0
    assert len(killed[-1]["told"]) == len(expected["told"])
