"""Optuna's TPE with its pruners as a runner.

TPE gets the parameters themselves, values from the same lists as everybody: numbers by
their place in the list, so that it knows their order. It may propose a configuration
again, which then trains again.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import optuna

from benchmarks.peers.jobs import Task, main
from benchmarks.shared.problems import BUDGET, MAX_EPOCHS


def search(make_pruner: Any, task: Task) -> int:
    """Train trials until the budget is spent, and report every epoch."""
    study = optuna.create_study(
        study_name=f"seed {task.seed}",  # Hyperband draws brackets from the name
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=task.seed),
        pruner=make_pruner(),
    )
    spent = 0

    def objective(trial: optuna.Trial) -> float:
        nonlocal spent
        train = task.trainer(suggest(trial, task))
        for epoch in range(1, MAX_EPOCHS + 1):
            score = train()
            trial.report(score, epoch)
            spent += 1
            if spent == BUDGET:
                study.stop()
                break
            if trial.should_prune():
                raise optuna.TrialPruned
        return score

    study.optimize(objective)
    return spent


def suggest(trial: optuna.Trial, task: Task) -> dict[str, Any]:
    """Return a configuration of the space."""
    kind = trial.suggest_categorical("kind", list(task.space))
    settings = {"kind": kind}
    for name, values in task.space[kind].items():
        key = f"{kind} {name}"
        if isinstance(values[0], str):
            settings[name] = trial.suggest_categorical(key, values)
        else:
            settings[name] = values[trial.suggest_int(key, 0, len(values) - 1)]
    return settings


PRUNERS = {
    "Optuna TPE, Hyperband": partial(
        optuna.pruners.HyperbandPruner, 1, MAX_EPOCHS, reduction_factor=3
    ),
    "Optuna TPE, halving": partial(
        optuna.pruners.SuccessiveHalvingPruner, 1, reduction_factor=3
    ),
    "Optuna TPE, median": optuna.pruners.MedianPruner,
}

if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    main({name: partial(search, pruner) for name, pruner in PRUNERS.items()})
