"""Searches of libraries that another interpreter runs, in their own environments."""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.hpo.tools.syne import ROOT
from benchmarks.peers.environments import NotInstalledError, python_of
from benchmarks.spaces.methods import PART, Training
from benchmarks.spaces.problems import Params, Problem


class Peer(NamedTuple):
    """The module of ``runners`` that searches, and what it needs."""

    runner: str
    packages: tuple[str, ...]


SYNE = Peer("syne", ("numpy==1.26.4", "syne-tune[gpsearchers,kde]==0.13.0"))
PEERS = {
    "BOHB": SYNE,
    "MOBSTER": SYNE,
    "NGOpt": Peer("nevergrad", ("nevergrad==1.0.12",)),
    "DEHB": Peer("dehb", ("DEHB==0.1.2",)),
    "SMAC3": Peer(
        "smac", ("smac==2.4.0", "scikit-learn==1.7.2", "--no-binary=pynisher")
    ),
}


def installed(
    names: Iterable[str], cache: Path
) -> dict[str, Callable[[Training, int, int], None]]:
    """Return the searches by name, without those that cannot be installed."""
    found = {}
    for name in names:
        peer = PEERS[name]
        try:
            python = str(python_of(peer.runner, peer.packages, cache))
        except NotInstalledError as error:
            print(f"left out: {name}: not installed: {error}")
        else:
            found[name] = of_peer(name, python)
    return found


def of_peer(name: str, python: str) -> Callable[[Training, int, int], None]:
    """Return the search of a peer."""

    def search(training: Training, seed: int, n_jobs: int) -> None:
        problem = training.problem
        job = {"search": name, "seed": seed, "jobs": n_jobs, "epochs": problem.n_epochs}
        job |= {"space": declared(problem), "budget": training.budget}
        with (
            TemporaryDirectory() as folder,
            subprocess.Popen(
                [
                    python,
                    "-m",
                    f"benchmarks.spaces.runners.{PEERS[name].runner}",
                    json.dumps(job),
                ],
                env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=folder,
            ) as child,
        ):
            assert child.stdin is not None
            assert child.stdout is not None
            for line in child.stdout:
                if not line.startswith("{"):  # of an import
                    continue
                asked = json.loads(line)
                if "params" in asked:
                    training.start(active(problem, asked["params"]))
                training.seconds_elsewhere = asked["seconds"]
                try:
                    score = training.train(asked["arm"])
                except ArithmeticError:
                    score = math.nan
                if training.is_over:
                    child.kill()
                    return
                print(json.dumps(score), file=child.stdin, flush=True)
        msg = f"{name} ended before its budget, on {problem.name}"
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
