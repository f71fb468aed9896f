"""Results of a fitted search: ``cv_results_`` and warnings about failures."""

import math
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning

from risingsearch.arms import Arm
from risingsearch.search.results import History, SearchResult

Row = Mapping[str, Any]
"""Facts of an epoch, as in the history of a search."""


def on_average(result: SearchResult) -> SearchResult:
    """Return a result by the means of the arms' best halves, at the last epoch of each.

    The best single score is often an early one, while the learning rate is high and the
    scores jump, and a refit jumps elsewhere.
    """
    rows = {(row["arm"], row["epoch"]): row for row in result.history}
    arms = list(result.arms)
    means = {}
    for arm, curve in result.curves.items():
        mean, epochs = best_half(curve)
        if epochs:
            last = epochs[-1]
            half = [rows[arm, epoch] for epoch in epochs]
            means[arm, last] = _means(half)
            arms[arm] = replace(arms[arm], best_epoch=last, best_score=mean)
    history = []
    for row in result.history:
        epoch = row["arm"], row["epoch"]
        history.append(row | means.get(epoch, {}))
    scored = [arm for arm in arms if arm.best_epoch]
    best = max(scored, key=lambda arm: arm.best_score)
    return replace(
        result,
        arms=arms,
        history=History(history),
        best_arm=best.arm,
        best_score=best.best_score,
    )


def _means(rows: Sequence[Row]) -> dict[str, float]:
    """Return the means of the scores of some epochs, of every split."""
    found = {}
    for name in filter(_SCORE.fullmatch, rows[0]):
        scores = [row.get(name, math.nan) for row in rows]
        found[name] = float(np.mean(scores))
    return found


def best_half(scores: list[float]) -> tuple[float, list[int]]:
    """Return the best mean of half of an arm's scores in a row, and their epochs."""
    finite = [k for k, score in enumerate(scores) if math.isfinite(score)]
    if not finite:
        return 0.0, []
    n = (len(finite) + 1) // 2
    sums = np.convolve(np.take(scores, finite), np.ones(n), "valid")
    first = int(np.argmax(sums))
    epochs = [k + 1 for k in finite[first : first + n]]
    return float(sums[first]) / n, epochs


_SCORE = re.compile(r"split\d+_(?:test|train)_(.*)")
_OF_FAILED = re.compile(r"(mean|std|split\d+)_(test|train)_")


def cv_results(search: Any, result: SearchResult) -> dict[str, Any]:
    """``cv_results_`` in the format of scikit-learn: scores at the best epochs."""
    rows: list[list[Row]] = [[] for _ in result.arms]
    for row in result.history:
        rows[row["arm"]].append(row)
    best = list(map(_row_of_best_epoch, result.arms, rows))
    columns = list(dict.fromkeys(name for row in result.history for name in row))
    scorers = _names_of_scorers(columns)
    fits = [
        _scores_and_times(split, scorers, row, of_arm)
        for row, of_arm in zip(best, rows, strict=True)
        for split in range(search.n_splits_)
    ]
    more: dict[str, list[Any]] = {
        name: [getattr(arm, name) for arm in result.arms]
        for name in ("epochs", "best_epoch", "status")
    }
    if "n_resources" in columns:
        more["n_resources"] = [
            row.get("n_resources", math.nan) / search.n_splits_ for row in best
        ]
        more["n_resources_fitted"] = [
            sum(row.get("n_resources", 0) for row in of_arm) for of_arm in rows
        ]
    with warnings.catch_warnings():  # candidates without a score are warned of below
        warnings.filterwarnings("ignore", "One or more of the", UserWarning)
        table: dict[str, Any] = search._format_results(
            list(result.candidates), search.n_splits_, fits, more
        )
    if search.error_score != "raise":
        _give_error_score(table, result, search.error_score)
    return table


def _row_of_best_epoch(arm: Arm, rows: Sequence[Row]) -> Row:
    """Return the row of the history that an arm counts by; empty without a score."""
    return next((row for row in rows if row["epoch"] == arm.best_epoch), {})


def _names_of_scorers(columns: Iterable[str]) -> list[str]:
    """Return the names of the scorers among the columns of a history."""
    matches = filter(None, map(_SCORE.fullmatch, columns))
    names = [match[1] for match in matches]
    return list(dict.fromkeys(names))


def _scores_and_times(
    split: int,
    scorers: Iterable[str],
    best: Row,
    rows: Sequence[Row],
) -> dict[str, Any]:
    """Return the scores of a split at the best epoch, and its times in all epochs."""
    of_split = f"split{split}"
    fit: dict[str, Any] = {}
    for part in ("test", "train"):
        fit[f"{part}_scores"] = {
            name: best.get(f"{of_split}_{part}_{name}", math.nan) for name in scorers
        }
    for time in ("fit_time", "score_time"):
        fit[time] = math.fsum(row.get(f"{of_split}_{time}", 0.0) for row in rows)
    return fit


def _give_error_score(
    table: dict[str, Any], result: SearchResult, error_score: float
) -> None:
    """Give the arms without a score the score of an error; they keep the last rank."""
    opened = (arm for arm in result.arms if arm.charged)
    failed = [arm.arm for arm in opened if not arm.best_epoch]
    for column in filter(_OF_FAILED.match, table):
        table[column][failed] = 0.0 if column.startswith("std") else error_score


def warn_of_failures(result: SearchResult) -> None:
    """Warn of configurations that failed or had scores that are not finite."""
    level = 7  # the line that called fit
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
    lost = (row for row in result.history if not math.isfinite(row["score"]))
    not_finite = sorted({row["arm"] for row in lost if "failure" not in row})
    if not_finite:
        warnings.warn(
            f"one or more of the test scores are not finite, for candidates "
            f"{not_finite}; they {_were_retired(not_finite, result)}",
            UserWarning,
            stacklevel=level,
        )


def _were_retired(arms: Collection[int], result: SearchResult) -> str:
    again = [arm for arm in arms if result.arms[arm].status != "failed"]
    if not again:
        return "were retired"
    return f"were tried again, {len(again)} of {len(arms)} with success"
