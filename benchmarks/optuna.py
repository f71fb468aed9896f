"""Optuna studies on recorded curves: RisingSampler beside TPE with Optuna's pruners.

Every method searches through ``study.optimize`` with the same objective, space, seeds
and budget, and every epoch is counted where it is trained. A parameter is a feature of
the configurations, from 0 to 1, or the configuration's number where a table has none;
the nearest configuration is trained. Scores are the recorded ones. Regret is that of
the suite ``hpo``, by the best epoch that was trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.pruners import (
    BasePruner,
    HyperbandPruner,
    MedianPruner,
    NopPruner,
    SuccessiveHalvingPruner,
)

import risingsearch.integrations.optuna as rising
from benchmarks import report
from benchmarks.hpo_tasks import Task, load_tasks

MULTIPLES = (5, 10)
OURS = "RisingSampler"
PRUNERS: dict[str, Callable[[int], BasePruner]] = {
    "TPE, Hyperband": lambda limit: HyperbandPruner(1, limit),
    "TPE, halving": lambda limit: SuccessiveHalvingPruner(),
    "TPE, median": lambda limit: MedianPruner(),
    "TPE, no pruner": lambda limit: NopPruner(),
    "TPE, RisingPruner": rising.RisingPruner,
}
RIVALS = tuple(PRUNERS)[:4]
METHODS = (OURS, *PRUNERS)


class Scale(NamedTuple):
    """How much is searched."""

    n_seeds: int
    most: int | None  # tasks of a family


SCALES = {"quick": Scale(1, 1), "default": Scale(5, 4), "full": Scale(20, None)}


class Run(NamedTuple):
    """A study to be searched."""

    task: Task
    method: str
    multiple: int
    seed: int


def run(
    out: Path,
    *,
    scale: str,
    seed: int,
    jobs: int | None = None,
    data_dir: Path | None = None,
) -> None:
    """Search the tasks with all methods; write each regret and who was better where."""
    n_seeds, most = SCALES[scale]
    tasks = list(some_of_each(load_tasks(data_dir), most))
    seeds = range(seed, seed + n_seeds)
    runs = [Run(*each) for each in product(tasks, METHODS, MULTIPLES, seeds)]
    with ProcessPoolExecutor(jobs) as executor:
        regrets = list(executor.map(search, runs, chunksize=4))
    rows = [
        {
            "family": run.task.family,
            "task": run.task.name,
            "method": run.method,
            "multiple": run.multiple,
            "seed": run.seed,
            "regret": regret,
        }
        for run, regret in zip(runs, regrets, strict=True)
    ]
    report.write_results(out, rows)
    notes = f"{len(tasks)} tasks, {n_seeds} seeds; better: share of tasks where the "
    notes += "mean regret of RisingSampler is lower, ties as half"
    tables = [report.table(summary(rows, multiple)) for multiple in MULTIPLES]
    report.write_summary(out, "Optuna studies on recorded curves", [*tables, notes])


def some_of_each(tasks: Sequence[Task], most: int | None) -> Iterator[Task]:
    """Return the first tasks of each family."""
    seen: dict[str, int] = {}
    for task in tasks:
        seen[task.family] = seen.get(task.family, 0) + 1
        if most is None or seen[task.family] <= most:
            yield task


def search(run: Run) -> float:
    """Return the regret of a study that trains ``multiple * R`` epochs."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    limit = run.task.max_epochs
    objective = Objective(run.task, run.multiple * limit)
    if run.method == OURS:
        sampler: Any = rising.RisingSampler(objective.budget, limit, seed=run.seed)
        pruner: BasePruner = rising.RisingPruner()
    else:
        sampler = optuna.samplers.TPESampler(seed=run.seed)
        pruner = PRUNERS[run.method](limit)
    study = optuna.create_study(
        study_name=f"seed {run.seed}",  # Hyperband draws brackets from the name
        direction="maximize",
        sampler=sampler,
        pruner=pruner,
    )
    study.optimize(objective)
    if objective.n_trained != objective.budget:
        msg = f"{run.method} trained {objective.n_trained} of {objective.budget} epochs"
        raise AssertionError(msg)
    return run.task.regret(objective.best)


class Objective:
    """Trains recorded configurations, and counts."""

    def __init__(self, task: Task, budget: int) -> None:
        self.task = task
        self.budget = budget
        self.n_trained = 0
        self.best = -np.inf

    def __call__(self, trial: optuna.Trial) -> float:
        """Train an epoch after the other until the trial should end."""
        curve = self.task.curves[self.suggest(trial)]
        length = int(np.sum(~np.isnan(curve)))
        arm = rising.arm(trial)
        for epoch in range(arm.from_epoch, length):
            self.n_trained += 1
            self.best = max(self.best, curve[epoch])
            trial.report(curve[epoch], epoch)
            pruned = trial.should_prune()
            if self.n_trained == self.budget:
                trial.study.stop()
                raise optuna.TrialPruned
            if pruned and epoch + 1 < length:
                raise optuna.TrialPruned
        return float(curve[length - 1])

    def suggest(self, trial: optuna.Trial) -> int:
        """Return the number of a configuration."""
        features = self.task.features
        if features is None:
            numbers = list(range(len(self.task.curves)))
            return int(trial.suggest_categorical("configuration", numbers))
        point = [
            trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(features.shape[1])
        ]
        return int(np.linalg.norm(features - point, axis=1).argmin())


def summary(rows: Sequence[dict[str, Any]], multiple: int) -> list[dict[str, Any]]:
    """Return the mean regret of each method, and how often ours is lower."""
    means = {method: task_means(rows, method, multiple) for method in METHODS}
    ours = means[OURS]
    return [
        {
            "method": method,
            "budget": f"{multiple} R",
            "mean regret": float(np.mean(list(theirs.values()))),
            "better": float(
                np.mean([np.sign(theirs[t] - ours[t]) / 2 + 0.5 for t in ours])
            ),
        }
        for method, theirs in means.items()
    ]


def task_means(
    rows: Sequence[dict[str, Any]], method: str, multiple: int
) -> dict[tuple[str, str], float]:
    """Return the mean regret of a method on each task."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if (row["method"], row["multiple"]) == (method, multiple):
            found.setdefault((row["family"], row["task"]), []).append(row["regret"])
    return {task: float(np.mean(regrets)) for task, regrets in found.items()}
