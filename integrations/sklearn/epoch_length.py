"""Length of an epoch: chosen under a budget in time, advised under one in epochs."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from risingsearch.arms import Configuration
from risingsearch.budget import Budget
from risingsearch.checks import kept_path
from risingsearch.integrations.sklearn.epoch_methods import (
    epochs_in_full,
    trains_in_one_fit,
)
from risingsearch.integrations.sklearn.families import Families, chosen
from risingsearch.integrations.sklearn.fitted_transformers import total
from risingsearch.integrations.sklearn.folds import Folds, Trainer, configured
from risingsearch.json_values import Json
from risingsearch.search.run import Run

FIXED = 0.2  # share of an epoch, at most, that does not train: calls, binning, scores
DECISIONS = 10  # epochs of a full training, at least, to have some to make
SHORTEST = 100  # epochs that the budget pays for, unless half of one does not train
OF_TREES = 4, 40  # the same of trees: each epoch copies or predicts the earlier ones
MEASURED = 0.1  # seconds of training that tell what a step takes
PREFIXES = 10  # of an epoch's trees that are scored, unless that takes too long
MEASURING = 0.2  # share of the budget that this may take


def steps_within(
    folds: Folds,
    budget: Budget,
    run_dir: object,
    min_epochs: int,
) -> int:
    """Return the steps of an epoch under a budget in time, or those that are saved.

    The folds keep how long a step of a single estimator takes, where that is measured.
    """
    saved = _saved(run_dir)
    if saved is not None:
        return int(saved.get("steps_per_epoch", 1))
    in_seconds = budget.in_unit("wall_seconds" if budget.is_wall_clock else "seconds")
    assert in_seconds is not None
    trees = trains_in_one_fit(chosen(folds.estimator))
    decisions, shortest = OF_TREES if trees else (DECISIONS, SHORTEST)
    seconds = in_seconds.amount / shortest / len(folds.splits)
    try:
        in_full = folds.in_full({})
        longest = max(2.0 * seconds, MEASURING / 4.0 * in_seconds.amount)
        epoch, step = _seconds(folds, {}, longest)
    except Exception:  # it may lack what every candidate sets
        return 1
    if not isinstance(folds.estimator, Families):
        folds.seconds_per_step = step
    longest_epoch = max(1, in_full // max(decisions, min_epochs))
    fixed = epoch / step - 1.0  # in steps
    paid = int(1.0 + (seconds - epoch) / step)
    enough = longest_epoch
    if not trees:
        enough = math.ceil(fixed * (1.0 / FIXED - 1.0))
    steps = min(longest_epoch, max(1, math.ceil(fixed), min(enough, paid)))
    return in_full // (in_full // steps)  # else a full training would lack some


def prefixes_within(folds: Folds, run_dir: object) -> int:
    """Return how often the trees of an epoch are scored, or how often a saved one is.

    The scores take as long as the training at most, where their time is measured.
    """
    saved = _saved(run_dir)
    if saved is not None:
        return int(saved.get("prefixes_per_epoch", 0))
    if not folds.seconds_per_score:
        return PREFIXES
    seconds = folds.steps_per_epoch * folds.seconds_per_step
    return int(max(1, min(PREFIXES, seconds / folds.seconds_per_score)))


def _saved(run_dir: object) -> Json | None:
    """Return the fingerprint of a saved search; None where there is none."""
    saved = None
    if run_dir is not None:
        saved = Run.at(kept_path("run_dir", run_dir))
    return saved and saved.header["settings"]["fingerprint"]


def advice_on_steps(
    folds: Folds,
    params: Configuration,
    n_epochs: int,
    details: Configuration,
) -> str:
    """Return which ``steps_per_epoch`` would save time, or "" where that is little."""
    seconds = total(details, "fit_time") + total(details, "score_time")
    if n_epochs * seconds < 10.0 * (3.0 * seconds / len(folds.splits) + MEASURED):
        return ""  # measuring would take too much of the search
    try:
        epoch, step = _seconds(folds, params, math.inf)
        longest = epochs_in_full(configured(folds.estimator, params), DECISIONS)
    except Exception:  # advice must not end a search
        return ""
    fixed = epoch / step - 1.0
    n = min(math.ceil(fixed * (1.0 / FIXED - 1.0)), longest)
    share = fixed / (fixed + 1.0)
    if share <= FIXED or n < 2:
        return ""
    return (
        f"{share:.0%} of an epoch does not train (calls, scores, preparations), and "
        f"{fixed / (fixed + n):.0%} with steps_per_epoch={n}: set it, with a budget "
        "and max_epochs as much smaller, or give a time, timeout=600, which does it"
    )


def _seconds(
    folds: Folds,
    params: Configuration,
    longest: float,
) -> tuple[float, float]:
    """Return the seconds of an epoch of one step, and of each more; inf if too long.

    The folds keep how long a score takes.
    """
    measured = folds
    folds = replace(folds, steps_per_epoch=1)
    trainer = folds.start(params, seed=0)[0]
    folds.train_fold(0, trainer)  # does what is done once for all candidates
    epoch = _timed(folds, trainer)
    if epoch > longest:
        return epoch, math.inf
    [scored] = folds.train_fold(0, trainer)
    measured.seconds_per_score = scored["split0_score_time"]
    more = max(2, min(50, int(MEASURED / epoch)))
    epoch = min(epoch, _timed(folds, trainer))  # others' jobs only make it longer
    folds = replace(folds, steps_per_epoch=more)
    step = (_timed(folds, folds.start(params, seed=0)[0]) - epoch) / (more - 1)
    return epoch, min(
        epoch, max(step, epoch / 1000)
    )  # too short or long to be measured


def _timed(folds: Folds, trainer: Trainer) -> float:
    begin = time.perf_counter()
    folds.train_fold(0, trainer)
    return time.perf_counter() - begin
