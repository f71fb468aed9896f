"""Studies of Optuna replayed on recorded learning curves, every epoch counted.

TPE suggests a number from 0 to 1 for each column of the table's configurations, and
the nearest configuration that no arm has yet is trained: the same space and the same
sampler for all methods. What a study trains is counted in the objective.

A table can be exhausted, a space of numbers cannot: ``RisingSampler``, which opens the
most arms, is told how many configurations there are.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import optuna

import risingsearch.integrations.optuna as rising
from benchmarks.hpo.tasks import Task

POINTS = 40
"""Points of the curve of regret over a budget."""


class Setup(NamedTuple):
    """A sampler and a pruner, for a task, a budget and a seed."""

    sampler: Callable[[Task, int, int], Any]
    pruner: Callable[[int], Any]


def _tpe(task: Task, budget: int, seed: int) -> Any:
    return optuna.samplers.TPESampler(seed=seed)


def _rising(task: Task, budget: int, seed: int) -> Any:
    return rising.RisingSampler(
        budget,
        task.max_epochs,
        base=_tpe(task, budget, seed),
        n_candidates=len(task.curves),
        seed=seed,
    )


def _stock(pruner: Any) -> Setup:
    return Setup(_tpe, lambda max_epochs: pruner())


OURS, ALONE = "RisingSampler", "RisingPruner"
METHODS = {
    OURS: Setup(_rising, lambda max_epochs: rising.RisingPruner()),
    ALONE: Setup(_tpe, lambda max_epochs: rising.RisingPruner(max_epochs)),
    "HyperbandPruner": Setup(
        _tpe,
        lambda max_epochs: optuna.pruners.HyperbandPruner(1, max_epochs, 3),
    ),
    "SuccessiveHalvingPruner": _stock(optuna.pruners.SuccessiveHalvingPruner),
    "SuccessiveHalvingPruner(1, 3)": _stock(
        partial(optuna.pruners.SuccessiveHalvingPruner, 1, reduction_factor=3)
    ),
    "MedianPruner": _stock(optuna.pruners.MedianPruner),
    "no pruner": _stock(optuna.pruners.NopPruner),
}


class Replayed:
    """An objective that reads a table of curves, and counts the epochs it reads.

    Parameters
    ----------
    task : Task
        The table, with features of its configurations.
    budget : int
        Epochs after which the study is stopped.
    """

    def __init__(self, task: Task, budget: int) -> None:
        self.task = task
        self.budget = budget
        self.best: list[float] = []  # after each epoch
        self.trained: list[tuple[int, int]] = []  # row and its epoch, of each
        self._row: dict[int, int] = {}  # of an arm
        assert task.features is not None
        self._features = task.features

    def __call__(self, trial: optuna.Trial) -> float:
        """Train an arm's configuration until its curve ends or it is stopped."""
        columns = range(self._features.shape[1])
        suggested = [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in columns]
        arm = rising.arm(trial)
        row = self._row.setdefault(arm.id, self._nearest(suggested))
        curve = self.task.curves[row, : self.task.lengths[row]]
        for epoch in range(arm.from_epoch, len(curve)):
            score = float(curve[epoch])
            self.trained.append((row, epoch))
            self.best.append(max([score, *self.best[-1:]]))
            trial.report(score, epoch)
            if len(self.best) == self.budget:
                trial.study.stop()
                return score
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(curve[-1])

    def _nearest(self, suggested: list[float]) -> int:
        """Return the nearest configuration that no arm has; if all are taken, any."""
        far = np.sum((self._features - suggested) ** 2, axis=1)
        taken = list(self._row.values())
        if len(set(taken)) < len(far):
            far[taken] = math.inf
        return int(far.argmin())

    def regrets(self) -> list[float]:
        """Return the regret at evenly spaced shares of the budget, the last at 1."""
        shares = np.arange(1, POINTS + 1) / POINTS
        last = len(self.best) - 1
        at = np.minimum(np.ceil(shares * self.budget).astype(int) - 1, last)
        return [self.task.regret(self.best[i]) for i in at]


class Studied(NamedTuple):
    """The outcome of one study."""

    regrets: list[float]  # at shares of the budget
    epochs: int
    trials: int


def study(method: str, task: Task, multiple: int, seed: int) -> Studied:
    """Run one study with a budget of so many times ``R``."""
    replayed, trials = replay(method, task, multiple * task.max_epochs, seed)
    return Studied(replayed.regrets(), len(replayed.best), trials)


def replay(
    method: str,
    task: Task,
    budget: int,
    seed: int,
    first: Sequence[Sequence[float]] = (),
) -> tuple[Replayed, int]:
    """Run one study; return what it trained, and its number of trials.

    The configurations ``first`` are suggested before the sampler's own.
    """
    setup = METHODS[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        made = optuna.create_study(
            study_name=f"seed {seed}",  # Hyperband draws brackets from the name
            direction="maximize",
            sampler=setup.sampler(task, budget, seed),
            pruner=setup.pruner(task.max_epochs),
        )
    for point in first:
        made.enqueue_trial({f"x{i}": value for i, value in enumerate(point)})
    replayed = Replayed(task, budget)
    made.optimize(replayed)
    return replayed, len(made.trials)
