"""Results of a fitted search: ``cv_results_`` and warnings about failures."""

import math
import re
import warnings
from collections.abc import Container, Sequence
from dataclasses import replace

import numpy as np
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection._search import BaseSearchCV

from risingsearch.arms import Configuration
from risingsearch.integrations.sklearn.folds import N_TREES
from risingsearch.integrations.sklearn.scoring import tested_metrics
from risingsearch.json_values import Json
from risingsearch.search.results import SearchResult

_OF_FAILED = re.compile(r"(mean|std|split\d+)_(test|train)_")


def on_average(result: SearchResult, averaged: Container[int]) -> SearchResult:
    """Return a result by the means of arms' best halves, at the last epoch of each.

    The best single score is often an early one, while the learning rate is high and the
    scores jump, and a refit jumps elsewhere.
    """
    arms = list(result.arms)
    for arm, curve in result.curves.items():
        mean, epochs = best_half(curve)
        if epochs and arm in averaged:
            arms[arm] = replace(arms[arm], best_epoch=epochs[-1], best_score=mean)
    scored = [arm for arm in arms if arm.best_epoch]
    best = max(scored, key=lambda arm: arm.best_score)
    return replace(result, arms=arms, best_arm=best.arm, best_score=best.best_score)


def best_half(scores: list[float]) -> tuple[float, list[int]]:
    """Return the best mean of half of an arm's scores in a row, and their epochs."""
    finite = np.flatnonzero(np.isfinite(scores))
    if len(finite) == 0:
        return 0.0, []
    n = (len(finite) + 1) // 2
    sums = np.convolve(np.take(scores, finite), np.ones(n), "valid")
    first = int(np.argmax(sums))
    epochs = finite[first : first + n] + 1
    return float(sums[first]) / n, epochs.tolist()


def cheapest(result: SearchResult, arms: Sequence[int], by: str) -> int:
    """Return the arm that has trained, or predicted, in the least time.

    The first of equals. To train is to reach the best epoch, as a refit does.
    """
    part = {"cheapest": "_fit_time", "fastest": "_score_time"}[by]
    seconds: dict[int, list[float]] = {arm: [] for arm in arms}
    for row in result.history:
        of_arm = seconds.get(row["arm"])
        if of_arm is not None and row["epoch"] <= result.arms[row["arm"]].best_epoch:
            times = [value for name, value in row.items() if name.endswith(part)]
            of_arm.append(math.fsum(times))
    if by == "cheapest":
        return min(arms, key=lambda arm: math.fsum(seconds[arm]))
    return min(arms, key=lambda arm: np.mean(seconds[arm]))


def cv_results(
    search: BaseSearchCV,
    result: SearchResult,
    averaged: Container[int] = (),
) -> Json:
    """``cv_results_`` in the format of scikit-learn.

    The scores are those of the best epochs, of some arms means over the best halves.
    """
    n_splits = search.n_splits_
    columns = dict.fromkeys(name for row in result.history for name in row)
    metrics = tested_metrics(columns)
    rows = _rows_by_arm(result)
    counted = []
    fits: list[Json] = []
    for arm, of_arm in zip(result.arms, rows, strict=True):
        epochs = [arm.best_epoch] if arm.best_epoch else []
        if arm.arm in averaged and epochs:
            epochs = best_half(result.curves[arm.arm])[1]
        by_epoch = {row["epoch"]: row for row in of_arm}
        best = [by_epoch[epoch] for epoch in epochs]
        counted.append(best)
        fits += [_fit(split, metrics, of_arm, best) for split in range(n_splits)]
    more: Json = {
        "epochs": [arm.epochs for arm in result.arms],
        "best_epoch": [arm.best_epoch for arm in result.arms],
        "status": [arm.status for arm in result.arms],
    }
    if N_TREES in columns:
        more[N_TREES] = _n_trees(counted, search.steps_per_epoch_)
    amount = "n_resources"
    if amount in columns:
        more[amount] = [_mean(amount, best) / n_splits for best in counted]
        more["n_resources_fitted"] = [int(_total(amount, of_arm)) for of_arm in rows]
    with warnings.catch_warnings():  # candidates without a score are warned of below
        warnings.filterwarnings("ignore", "One or more of the", UserWarning)
        table: Json = search._format_results(
            list(result.candidates),
            n_splits,
            fits,
            more,
        )
    if search.error_score != "raise":
        _give_error_score(table, result, search.error_score)
    return table


def best_row(result: SearchResult, arm: int) -> Configuration:
    """Return the row of the history with an arm's best epoch; an empty one if none."""
    best_epoch = result.arms[arm].best_epoch
    rows = _rows_by_arm(result)[arm]
    return next((row for row in rows if row["epoch"] == best_epoch), {})


def _n_trees(counted: Sequence[Sequence[Configuration]], steps: int) -> list[int]:
    """Return the trees of each arm's best score, 0 without one."""
    return [
        sum(row.get(N_TREES, row["epoch"] * steps) for row in best) for best in counted
    ]


def _rows_by_arm(result: SearchResult) -> list[list[Configuration]]:
    rows: list[list[Configuration]] = [[] for _ in result.arms]
    for row in result.history:
        rows[row["arm"]].append(row)
    return rows


def _fit(
    split: int,
    metrics: Sequence[str],
    rows: Sequence[Configuration],
    best: Sequence[Configuration],
) -> Json:
    """Return the times of a split in all epochs, and its scores in the best."""
    name = f"split{split}"
    return {
        "fit_time": _total(f"{name}_fit_time", rows),
        "score_time": _total(f"{name}_score_time", rows),
        "test_scores": {m: _mean(f"{name}_test_{m}", best) for m in metrics},
        "train_scores": {m: _mean(f"{name}_train_{m}", best) for m in metrics},
    }


def _mean(name: str, rows: Sequence[Configuration]) -> float:
    values = [row.get(name, math.nan) for row in rows]
    if values:
        return float(np.mean(values))
    return math.nan


def _total(name: str, rows: Sequence[Configuration]) -> float:
    return math.fsum(row.get(name, 0.0) for row in rows)


def _give_error_score(
    table: Json,
    result: SearchResult,
    error_score: float,
) -> None:
    """Give the arms without a score the score of an error; they keep the last rank."""
    failed = [arm.arm for arm in result.arms if arm.charged and not arm.best_epoch]
    for column in filter(_OF_FAILED.match, table):
        table[column][failed] = 0.0 if column.startswith("std") else error_score


def warn_of_failures(result: SearchResult) -> None:
    """Warn of configurations that failed or had scores that are not finite."""
    level = 6  # the line that called fit
    if result.failures:
        first = result.failures[0]
        failed = {report.job.arm for report in result.failures}
        warnings.warn(
            f"{len(failed)} of {len(result.curves)} opened configurations failed and "
            f"{_were_retired(failed, result)}; the first, "
            f"{result.candidates[first.job.arm]}: {first.failure!r}",
            FitFailedWarning,
            stacklevel=level,
        )
    not_finite = {
        row["arm"]
        for row in result.history
        if not math.isfinite(row["score"]) and "failure" not in row
    }
    if not_finite:
        warnings.warn(
            f"one or more of the test scores are not finite, for candidates "
            f"{sorted(not_finite)}; they {_were_retired(not_finite, result)}",
            UserWarning,
            stacklevel=level,
        )


def _were_retired(arms: set[int], result: SearchResult) -> str:
    again = [arm for arm in arms if result.arms[arm].status != "failed"]
    if not again:
        return "were retired"
    return f"were tried again, {len(again)} of {len(arms)} with success"
