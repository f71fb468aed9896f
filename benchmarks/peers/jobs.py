"""The job of a runner: the searches of one peer, in an environment of its own.

A runner is a script that gets a ``Job`` as JSON and prints a line of JSON per search.
Whatever else the libraries print goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import audit
from benchmarks.peers.audit import AuditedClassifier
from benchmarks.shared.problems import BUDGET, candidates, load, make_model, space


class Job(NamedTuple):
    """What a runner is told to do."""

    problem: str
    searches: list[str]
    seeds: list[int]
    folder: str  # of the logs, and for what the libraries write
    data: str = ""  # the file with the rows, for problems that have one


class Run(NamedTuple):
    """What a runner reports about one search."""

    search: str
    problem: str
    seed: int
    log: str
    begin: float = 0.0  # seconds since the Unix epoch
    seconds: float = 0.0
    own_epochs: int | None = None  # as the tool itself counts, where it does
    error: str = ""


class Task(NamedTuple):
    """What a search works on."""

    job: Job
    seed: int
    log: Path
    X: Any
    y: Any
    split: tuple[Any, Any]

    @property
    def space(self) -> dict[str, dict[str, list[Any]]]:
        return space(self.job.problem)

    @property
    def candidates(self) -> list[dict[str, Any]]:
        return candidates(self.job.problem)

    @property
    def estimator(self) -> AuditedClassifier:
        return AuditedClassifier(str(self.log), self.seed)

    @property
    def budget_spent(self) -> bool:
        return audit.n_epochs(self.log) >= BUDGET

    def trainer(self, settings: Mapping[str, Any]) -> Callable[[], float]:
        """Return a function that trains a configuration one epoch and scores it."""
        estimator = self.estimator.set_params(**settings)
        train, valid = self.split
        X_train, X_valid = self.X[train], self.X[valid]
        y_train, y_valid = self.y[train], self.y[valid]

        def train_one() -> float:
            estimator.partial_fit(X_train, y_train)
            return estimator.score(X_valid, y_valid)

        return train_one


Search = Callable[[Task], int | None]


def main(searches: Mapping[str, Search]) -> None:
    """Run the searches of the job that the command line gives, and print the runs."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = Job(**json.loads(sys.argv[1]))
    for run in runs(job, searches):
        print(json.dumps(run._asdict()), file=lines, flush=True)


def runs(job: Job, searches: Mapping[str, Search]) -> Iterator[Run]:
    """Yield the runs of a job; a search that fails says why."""
    X, y, split = load(job.problem, job.data)
    warm_up(job.problem, X, y)
    for seed in job.seeds:
        for number, name in enumerate(job.searches):
            log = Path(job.folder) / f"{job.problem}-{number}-{seed}.log"
            log.unlink(missing_ok=True)
            log.touch()
            yield _run(name, searches[name], Task(job, seed, log, X, y, split))


def warm_up(problem: str, X: Any, y: Any) -> None:
    """Train each kind of model once, since libraries load some parts only then."""
    kinds = {settings["kind"]: settings for settings in candidates(problem)}
    for settings in kinds.values():
        make_model(settings, 0).partial_fit(X[:500], y[:500], classes=np.unique(y))


def _run(name: str, search: Search, task: Task) -> Run:
    run = Run(name, task.job.problem, task.seed, str(task.log), time.time())
    try:
        own_epochs = search(task)
    except Exception as error:
        traceback.print_exc()
        text = " ".join(str(error).split())
        return run._replace(error=f"{type(error).__name__}: {text}")
    return run._replace(seconds=time.time() - run.begin, own_epochs=own_epochs)
