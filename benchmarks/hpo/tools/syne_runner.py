"""Syne Tune's MOBSTER and DyHPO on a recorded table, in an environment of their own.

Gets a ``job`` as JSON, whose ``table`` is an npz file with ``features`` and ``scores``,
and prints the row of every epoch as a line of JSON. The schedulers are called as their
tuner calls them, in this process; whatever the library prints goes to standard error.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import uniform
from syne_tune.optimizer.baselines import MOBSTER, DyHPO
from syne_tune.optimizer.scheduler import SchedulerDecision

SCHEDULERS = {"mobster": (MOBSTER, {"type": "promotion"}), "dyhpo": (DyHPO, {})}
APART = 1e-9
"""Between configurations that are alike, so that each is one of its own."""


class Replay:
    """The trials of a search, and the epochs they trained.

    ``scores`` has a row per configuration, NaN after a curve's end. ``row_of`` finds
    the row of a new trial's configuration, or None when none is left.
    """

    def __init__(
        self, scores: Any, row_of: Callable[[dict[str, Any]], int | None]
    ) -> None:
        self._scores = scores
        self._lengths = np.sum(~np.isnan(scores), axis=1)
        self._row_of = row_of
        self._rows: dict[int, int] = {}
        self._trials: dict[int, Trial] = {}
        self._epochs: dict[int, int] = {}
        self.trained: list[int] = []

    def next_trial(self, scheduler: Any) -> Trial | None:
        """Return the trial that the scheduler starts or goes on with."""
        number = len(self._trials)
        suggestion = scheduler.suggest(number)
        if suggestion is None:
            return None
        if not suggestion.spawn_new_trial_id:
            return self._trials[suggestion.checkpoint_trial_id]
        row = self._row_of(suggestion.config)
        if row is None:
            return None
        trial = Trial(number, suggestion.config, datetime.datetime.now())
        self._trials[number], self._epochs[number] = trial, 0
        self._rows[number] = row
        scheduler.on_trial_add(trial)
        return trial

    def play(self, scheduler: Any, budget: int) -> list[int]:
        """Return the row of every epoch, once the budget is spent or no trial left."""
        while len(self.trained) < budget:
            trial = self.next_trial(scheduler)
            if trial is None:
                break
            self.train(scheduler, trial, budget)
        return self.trained

    def train(self, scheduler: Any, trial: Trial, budget: int) -> None:
        """Train a trial until it is stopped, its curve ends, or the budget is spent."""
        row = self._rows[trial.trial_id]
        result: dict[str, Any] = {}
        while len(self.trained) < budget:
            epoch = self._epochs[trial.trial_id]
            if epoch == self._lengths[row]:
                scheduler.on_trial_complete(trial, result)
                return
            self._epochs[trial.trial_id] += 1
            self.trained.append(row)
            result = {"score": float(self._scores[row, epoch]), "epoch": epoch + 1}
            decision = scheduler.on_trial_result(trial, result)
            if decision != SchedulerDecision.CONTINUE:
                return


def search(job: dict[str, Any]) -> list[int]:
    """Return the row of every epoch of one search."""
    with np.load(job["table"]) as table:
        features, scores = table["features"], table["scores"]
    np.random.seed(job["seed"])  # noqa: NPY002 (the searchers draw from it)
    features = features + APART * np.arange(len(features))[:, None]
    names = [f"x{i}" for i in range(features.shape[1])]
    candidates = [dict(zip(names, row, strict=True)) for row in features.tolist()]
    rows = {tuple(row): i for i, row in enumerate(features.tolist())}
    scheduler, options = SCHEDULERS[job["search"]]
    made = scheduler(
        {name: uniform(0.0, 1.0 + APART * len(features)) for name in names},
        metric="score",
        mode="max",
        resource_attr="epoch",
        max_t=scores.shape[1],
        random_seed=job["seed"],
        search_options={"restrict_configurations": candidates, "debug_log": False},
        **options,
    )
    replay = Replay(scores, lambda config: rows[tuple(config.values())])
    return replay.play(made, job["budget"])


def answer(search: Callable[[dict[str, Any]], list[int]]) -> None:
    """Print what a search of the job on the command line returns, and nothing else."""
    line = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps(search(json.loads(sys.argv[1]))), file=line, flush=True)


if __name__ == "__main__":
    answer(search)
