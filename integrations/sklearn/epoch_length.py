"""Length of an epoch where the search chooses it: under a budget in time alone."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

from risingsearch.budget import Budget
from risingsearch.integrations.sklearn.epoch_methods import epochs_in_full
from risingsearch.integrations.sklearn.folds import Folds
from risingsearch.paths import checked_path
from risingsearch.search.run import Run

FIXED = 0.2  # share of an epoch, at most, that does not train: calls, binning, scores
DECISIONS = 10  # epochs of a full training, at least, to have some to make
SHORTEST = 100  # epochs that the budget pays for, at least
MEASURED = 0.1  # seconds of training that tell what a step takes


def steps_within(folds: Folds, budget: Budget, run_dir: Any) -> int:
    """Return the steps of an epoch under a budget in time, or those that are saved."""
    saved = None if run_dir is None else Run.at(checked_path("run_dir", run_dir))
    if saved is not None:
        begun = saved.header["settings"]["fingerprint"]
        return int(begun.get("steps_per_epoch", 1))
    in_seconds = budget.in_unit("wall_seconds" if budget.is_wall_clock else "seconds")
    assert in_seconds is not None
    seconds = in_seconds.amount / SHORTEST / len(folds.splits)
    try:
        most = epochs_in_full(folds.estimator, DECISIONS)
        one, step = _seconds(folds, seconds)
    except Exception:  # it may lack what every candidate sets
        return 1
    if not 0.0 < step < seconds:
        return 1
    enough = math.ceil((one - step) / step * (1.0 / FIXED - 1.0))
    paid = int(1 + (seconds - one) / step)
    return max(1, min(enough, paid, most))


def _seconds(folds: Folds, longest: float) -> tuple[float, float]:
    """Return the seconds of an epoch of one step, and of each more; 0 if unmeasured."""
    folds = replace(folds, steps_per_epoch=1)
    trainer = folds.start({}, seed=0)[0]
    folds.train_fold(0, trainer)  # does what is done once for all candidates
    one = _timed(folds, trainer)
    if one > longest:
        return one, 0.0
    more = max(2, min(50, int(MEASURED / one)))
    folds = replace(folds, steps_per_epoch=more)
    return one, (_timed(folds, folds.start({}, seed=0)[0]) - one) / (more - 1)


def _timed(folds: Folds, trainer: Any) -> float:
    begin = time.perf_counter()
    folds.train_fold(0, trainer)
    return time.perf_counter() - begin
