"""Syne Tune's BOHB and MOBSTER, which another interpreter runs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.hpo.tools.syne import ROOT
from benchmarks.peers.environments import NotInstalledError, python_of
from benchmarks.spaces.methods import PART, Training
from benchmarks.spaces.problems import Params, Problem

PACKAGES = ("numpy==1.26.4", "syne-tune[gpsearchers,kde]==0.13.0")
SEARCHES = ("BOHB", "MOBSTER")
RUNNER = "benchmarks.spaces.syne_runner"


def installed(cache: Path) -> dict[str, Callable[[Training, int, int], None]]:
    """Return the searches by name; none if Syne Tune cannot be installed."""
    try:
        python = str(python_of("syne", PACKAGES, cache))
    except NotInstalledError as error:
        print(f"left out: {', '.join(SEARCHES)}: not installed: {error}")
        return {}
    return {name: of_syne(name, python) for name in SEARCHES}


def of_syne(name: str, python: str) -> Callable[[Training, int, int], None]:
    """Return a search by a scheduler of Syne Tune."""

    def search(training: Training, seed: int, n_jobs: int) -> None:
        job = {
            "search": name,
            "seed": seed,
            "jobs": n_jobs,
            "epochs": training.problem.n_epochs,
        }
        job |= {"space": declared(training.problem)}
        with subprocess.Popen(
            [python, "-m", RUNNER, json.dumps(job)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            for line in child.stdout:
                if not line.startswith("{"):  # of an import
                    continue
                asked = json.loads(line)
                if "params" in asked:
                    training.start(active(training.problem, asked["params"]))
                training.seconds_elsewhere = asked["seconds"]
                score = training.train(asked["arm"])
                if training.is_over:
                    child.kill()
                    return
                print(score, file=child.stdin, flush=True)
        msg = f"{name} ended before its budget, on {training.problem.name}"
        raise RuntimeError(msg)

    return search


def declared(problem: Problem) -> dict[str, Any]:
    """Return the space as names of Syne Tune's distributions and their arguments."""
    found: dict[str, Any] = {}
    if len(problem.parts) > 1:
        found[PART] = "choice", [list(range(len(problem.parts)))]
    for part, space in enumerate(problem.parts):
        for name, kind in space.items():
            key = f"{part} {name}"
            if hasattr(kind, "choices"):
                if len(kind.choices) > 1:
                    found[key] = "choice", [list(kind.choices)]
            else:
                whole = "randint" if isinstance(kind.low, int) else "uniform"
                found[key] = ("log" if kind.log else "") + whole, [kind.low, kind.high]
    return found


def active(problem: Problem, params: Params) -> Params:
    """Return the parameters of the part that was chosen."""
    part = params.get(PART, 0)
    return {
        name: params.get(f"{part} {name}", getattr(kind, "choices", [None])[0])
        for name, kind in problem.parts[part].items()
    }
