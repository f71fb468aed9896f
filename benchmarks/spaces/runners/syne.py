"""Syne Tune's BOHB and MOBSTER; several jobs are trials that train in turns."""

from __future__ import annotations

import datetime

import numpy as np
from syne_tune import config_space
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.baselines import BOHB, MOBSTER
from syne_tune.optimizer.scheduler import SchedulerDecision

from benchmarks.spaces.runners.asking import Arms, Job, main

SCHEDULERS = {"BOHB": BOHB, "MOBSTER": MOBSTER}


def search(job: Job, arms: Arms) -> None:
    """Ask for epochs without end."""
    np.random.seed(job["seed"])  # noqa: NPY002 (the searchers draw from it)
    scheduler = SCHEDULERS[job["search"]](
        {
            name: getattr(config_space, kind)(*given)
            for name, (kind, given) in job["space"].items()
        },
        metric="score",
        mode="max",
        resource_attr="epoch",
        max_t=job["epochs"],
        type="promotion",
        random_seed=job["seed"],
        search_options={"debug_log": False},
    )
    trials: list[Trial] = []
    epochs: list[int] = []
    running: list[Trial] = []
    while True:
        while len(running) < job["jobs"]:
            suggestion = scheduler.suggest(len(trials))
            if suggestion.spawn_new_trial_id:
                now = datetime.datetime.now()
                trials.append(Trial(len(trials), suggestion.config, now))
                epochs.append(0)
                scheduler.on_trial_add(trials[-1])
                running.append(trials[-1])
            else:
                running.append(trials[suggestion.checkpoint_trial_id])
        trial = running.pop(0)
        arm = trial.trial_id
        epochs[arm] += 1
        [*_, score] = arms.scores(trial.config, epochs[arm])
        result = {"score": score, "epoch": epochs[arm]}
        if scheduler.on_trial_result(trial, result) != SchedulerDecision.CONTINUE:
            continue
        if epochs[arm] == job["epochs"]:
            scheduler.on_trial_complete(trial, result)
        else:
            running.append(trial)


if __name__ == "__main__":
    main(search)
