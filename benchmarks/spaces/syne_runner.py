"""Syne Tune's BOHB and MOBSTER in an environment of their own: asks for epochs.

Gets a ``job`` as JSON. Each line that it prints asks for the next epoch of an arm, with
the parameters if the arm is new and the seconds of processor time so far; each line
that it reads is the score. It asks until it is ended. Whatever the library prints goes
to standard error.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from typing import Any

import numpy as np
from syne_tune import config_space
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.baselines import BOHB, MOBSTER
from syne_tune.optimizer.scheduler import SchedulerDecision

SCHEDULERS = {"BOHB": BOHB, "MOBSTER": MOBSTER}


def search(job: dict[str, Any], asks: Any, scores: Any) -> None:
    """Ask for epochs; several jobs are trials that train in turns, an epoch each."""
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
        asked = {"arm": arm, "seconds": time.process_time()}
        asked |= {} if epochs[arm] else {"params": trial.config}
        print(json.dumps(asked), file=asks, flush=True)
        epochs[arm] += 1
        result = {"score": json.loads(scores.readline()), "epoch": epochs[arm]}
        if scheduler.on_trial_result(trial, result) != SchedulerDecision.CONTINUE:
            continue
        if epochs[arm] == job["epochs"]:
            scheduler.on_trial_complete(trial, result)
        else:
            running.append(trial)


if __name__ == "__main__":
    line = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    search(json.loads(sys.argv[1]), line, sys.stdin)
