"""RisingSampler and RisingPruner beside Optuna's pruners, in the same run.

Each study replays a public table of learning curves with a budget of 5 or 10 times
``R``, the epochs of a full training. Regret is normalised as in the suite ``hpo``: 0 is
the best score of the table, 1 that of its typical configuration. Successive halving
appears twice: with Optuna's defaults, and with the first rung at one step, factor 3.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray

from benchmarks.adapters.optuna.studies import (
    ALONE,
    METHODS,
    OURS,
    POINTS,
    Studied,
    study,
)
from benchmarks.hpo import reference
from benchmarks.hpo.statistics import balanced, over_seeds, overall, per_task
from benchmarks.hpo.tables import with_half
from benchmarks.hpo.tasks import Task, load_tasks
from benchmarks.shared import figures, report
from benchmarks.shared.figures import Look

MULTIPLES = (5, 10)
SEEDS = {"quick": 1, "default": 5, "full": 20}
BAR = 0.75
"""Share of the tasks on which the regret must be below that of each rival."""
LOOKS = {
    OURS: Look("#D55E00", "-", "o"),
    ALONE: Look("#E69F00", "-", "D"),
    "HyperbandPruner": Look("#332288", "--", "v"),
    "SuccessiveHalvingPruner": Look("#009E73", "--", "s"),
    "SuccessiveHalvingPruner(1, 3)": Look("#56B4E9", "--", "P"),
    "MedianPruner": Look("#661100", ":", "^"),
    "no pruner": Look("#8C8C8C", ":", "o"),
}


def run(
    out: Path,
    *,
    scale: str,
    seed: int,
    jobs: int | None = None,
    data_dir: Path | None = None,
) -> None:
    """Run all studies; write results, a figure and a summary."""
    tasks = public(load_tasks(data_dir))
    seeds = range(seed, seed + SEEDS[scale])
    cells = list(product(METHODS, tasks, MULTIPLES, seeds))
    with ProcessPoolExecutor(jobs or os.cpu_count(), initializer=_quiet) as pool:
        found = list(pool.map(study, *zip(*cells, strict=True), chunksize=4))
    shape = (len(METHODS), len(tasks), len(MULTIPLES), len(seeds), POINTS)
    regret = np.array([studied.regrets for studied in found]).reshape(shape)
    families = np.array([task.family for task in tasks])
    report.write_results(out, list(_rows(cells, found)))
    last = regret[..., -1]
    parts = [
        f"{len(tasks)} tasks, {len(seeds)} seeds from {seed}, TPE for all. "
        f"{_audit(cells, found)}",
        report.table(list(_means(last, families))),
        f"Tasks on which {OURS} has less regret than each, ties halved; the bar is "
        f"{BAR:.0%}.",
        report.table(list(_wins(last))),
        _draw(out, regret[:, :, -1], families),
    ]
    report.write_summary(out, "Optuna: recorded curves, side by side", parts)


def public(tasks: Sequence[Task]) -> list[Task]:
    """Return the public tasks whose configurations are known."""
    return [
        task
        for task in tasks
        if task.features is not None
        and task.name in reference.TASKS.get(task.family, ())
    ]


def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def _rows(
    cells: Sequence[tuple[str, Task, int, int]], found: Sequence[Studied]
) -> Iterator[dict[str, Any]]:
    for (method, task, multiple, seed), studied in zip(cells, found, strict=True):
        yield {
            "method": method,
            "family": task.family,
            "task": task.name,
            "budget": multiple * task.max_epochs,
            "seed": seed,
            "regret": studied.regrets[-1],
            "epochs": studied.epochs,
            "trials": studied.trials,
        }


def _audit(
    cells: Sequence[tuple[str, Task, int, int]], found: Sequence[Studied]
) -> str:
    """Return which methods left some of their budget, and how much, in words."""
    spent = {name: [0, 0, 0] for name in METHODS}
    for (method, task, multiple, _), studied in zip(cells, found, strict=True):
        left = multiple * task.max_epochs - studied.epochs
        spent[method][0] += 1
        spent[method][1] += left != 0
        spent[method][2] += left
    less = [
        f"{name} left {epochs} epochs in {n_less} of {n} studies"
        for name, (n, n_less, epochs) in spent.items()
        if n_less
    ]
    return (
        f"Budgets, counted in the objective: {'; '.join(less) or 'all spent exactly'}."
    )


def _means(
    regret: NDArray[np.float64], families: NDArray[np.str_]
) -> Iterator[dict[str, Any]]:
    for name, own in zip(METHODS, regret, strict=True):
        by_budget = balanced(own, families).mean(axis=-1)
        yield {
            "method": name,
            **{f"{m} R": f"{by_budget[i]:.3f}" for i, m in enumerate(MULTIPLES)},
            "mean": with_half(over_seeds(overall(own, families))),
            **{
                family: f"{per_task(own[families == family]).mean():.3f}"
                for family in np.unique(families)
            },
        }


def _wins(regret: NDArray[np.float64]) -> Iterator[dict[str, Any]]:
    means = dict(zip(METHODS, regret.mean(axis=-1), strict=True))
    for name in METHODS:
        if name == OURS:
            continue
        shares = [
            float(np.mean(np.where(ours == theirs, 0.5, ours < theirs)))
            for ours, theirs in zip(means[OURS].T, means[name].T, strict=True)
        ]
        yield {
            "against": name,
            **{
                f"{m} R": f"{share:.0%}"
                for m, share in zip(MULTIPLES, shares, strict=True)
            },
            "holds": "yes" if min(shares) >= BAR else "no",
        }


def _draw(out: Path, regret: NDArray[np.float64], families: NDArray[np.str_]) -> str:
    """Draw regret while the largest budget is spent, mean over seeds and tasks."""
    figure, [ax] = figures.new(6.4, 4.0)
    shares = MULTIPLES[-1] * np.arange(1, POINTS + 1) / POINTS
    for name, own in zip(METHODS, regret, strict=True):
        look = LOOKS[name]
        line = balanced(own.mean(axis=1), families)
        ax.plot(shares, line, color=look.color, linestyle=look.line, label=name)
    ax.set_xlabel("epochs trained, in full trainings R")
    ax.set_ylabel("normalised regret of the best so far")
    figures.legend(figure, ax)
    return figures.save(figure, out, "regret")
