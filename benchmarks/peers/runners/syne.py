"""Syne Tune's ASHA as a runner.

Its scheduler is called as its tuner calls it, in this process. The tuner itself starts
a Python process per configuration, which trains on until it is stopped: with epochs of
milliseconds that would be many more seconds, and epochs past the decision.
"""

from __future__ import annotations

import datetime

import numpy as np
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import choice
from syne_tune.optimizer.baselines import ASHA
from syne_tune.optimizer.scheduler import SchedulerDecision

from benchmarks.peers.jobs import Task, main
from benchmarks.shared.problems import BUDGET, MAX_EPOCHS


def asha(task: Task) -> int:
    """Try the configurations in random order, until the budget is spent."""
    np.random.seed(task.seed)  # noqa: NPY002 (the scheduler draws from it)
    n = len(task.candidates)
    order = np.random.default_rng(task.seed).permutation(n).tolist()
    scheduler = ASHA(
        {"candidate": choice(list(range(n)))},
        metric="score",
        time_attr="epoch",
        max_t=MAX_EPOCHS,
        do_minimize=False,
        random_seed=task.seed,
        points_to_evaluate=[{"candidate": candidate} for candidate in order],
    )
    spent = 0
    for number in range(n):
        suggestion = scheduler.suggest()
        trial = Trial(number, suggestion.config, datetime.datetime.now())
        scheduler.on_trial_add(trial)
        train = task.trainer(task.candidates[suggestion.config["candidate"]])
        for epoch in range(1, MAX_EPOCHS + 1):
            result = {"score": train(), "epoch": epoch}
            spent += 1
            if spent == BUDGET:
                return spent
            if scheduler.on_trial_result(trial, result) != SchedulerDecision.CONTINUE:
                break
    return spent


if __name__ == "__main__":
    main({"Syne Tune ASHA": asha})
