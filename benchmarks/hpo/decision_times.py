"""How long a decision takes, proposals included, with many arms to choose from."""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np

from benchmarks.hpo.draws import draw_search
from benchmarks.hpo.methods import Method
from benchmarks.hpo.replay import make_scheduler
from benchmarks.hpo.tasks import Task

OPENED = 0.3
"""Share of the budget that opens arms."""
FURTHER = 500
"""Decisions that are timed beyond the first ``n_arms``."""


class Decisions(NamedTuple):
    """Milliseconds per decision, telling the results included."""

    method: str
    n_arms: int
    mean: float
    slowest_percent: float  # the 99 % quantile


def measure(task: Task, method: Method, n_arms: int) -> Decisions:
    """Time a search among ``n_arms``; a table that has fewer is repeated.

    The first ``n_arms + FURTHER`` decisions are timed; the budget is large enough to
    open all arms.
    """
    run = draw_search(task, 0, 0.0)
    rows = np.arange(n_arms) % len(task.curves)
    features = None if task.features is None else task.features[rows]
    wide = task._replace(curves=task.curves[rows], features=features)
    order = np.arange(n_arms)
    budget = math.ceil(n_arms * max(1, task.max_epochs // 50) / OPENED)
    scheduler = make_scheduler(run._replace(task=wide), method, order, budget)
    seconds = []
    while len(seconds) < n_arms + FURTHER:
        first = time.perf_counter()
        job = scheduler.ask()
        if job is None:
            break
        last = job.from_epoch + job.n_epochs
        scores = wide.curves[job.arm, job.from_epoch : last]
        scheduler.tell(job, scores[~np.isnan(scores)].tolist())
        seconds.append(time.perf_counter() - first)
    spent = 1e3 * np.array(seconds)
    return Decisions(
        method.name, n_arms, float(spent.mean()), float(np.quantile(spent, 0.99))
    )
