"""Syne Tune's searches, run by an interpreter that has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.draws import Search
from benchmarks.peers.environments import last_line

PACKAGES = ("numpy==1.26.4", "syne-tune[gpsearchers]==0.13.0")
"""The last version that has MOBSTER and DyHPO, and what it goes with."""
SEARCHES = ("mobster", "dyhpo")
RUNNER = "benchmarks.hpo.tools.syne_runner"
ROOT = Path(__file__).parents[3]


def play(
    run: Search,
    budget: int,
    *,
    search: str,
    python: str,
    runner: str = RUNNER,
    more: Mapping[str, NDArray[np.float64]] | None = None,
) -> NDArray[np.int64] | None:
    """Return the configuration of every epoch; None if the search fails.

    A ``runner`` gets ``more`` arrays with those of the table.
    """
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.npz"
        features = run.task.features
        assert features is not None
        arrays = {"features": features[run.order], "scores": run.seen[run.order]}
        np.savez(table, **arrays, **(more or {}))
        job = {"table": str(table), "search": search, "budget": budget}
        done = subprocess.run(
            [python, "-m", runner, json.dumps(job | {"seed": run.seed})],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        reason = last_line(done.stderr)
        print(f"hpo: {search} failed on {run.task.name}: {reason}", file=sys.stderr)
        return None
    rows = json.loads(last_line(done.stdout))
    return run.order[np.array(rows, dtype=np.int64)]
