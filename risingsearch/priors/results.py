"""Earlier searches in memory: results, and fitted searches of scikit-learn's kind.

They are known by what they hold, so that none of their packages is imported here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from risingsearch.errors import PriorError
from risingsearch.priors.earlier import EarlierSearch
from risingsearch.priors.runs import (
    Asked,
    Run,
    chosen,
    earlier_search,
    known_direction,
    mean,
)
from risingsearch.priors.values import as_number

SCORE = "score"
_TEST = "mean_test_"
_SPLIT = "split"


def of_result(result: Any, asked: Asked) -> EarlierSearch:
    """Return what a ``SearchResult`` has found."""
    candidates = result.candidates
    if result.left_out is not None:
        # Their only parameter is the text of them all.
        candidates = [_unless_text(params) for params in candidates]
    runs = list(_runs(candidates, result.history, asked.score))
    name, metric = "a SearchResult", asked.score or SCORE
    said = result.direction if metric == SCORE else None
    direction = known_direction(asked, name, metric=metric, said=said)
    return earlier_search(name, runs, asked, direction, metric=metric)


def of_fitted(search: Any, asked: Asked) -> EarlierSearch:
    """Return what a fitted search of scikit-learn's kind has found, ours or theirs."""
    name, results = type(search).__name__, search.cv_results_
    direction = known_direction(asked, name, said="maximize")  # as all scorers have it
    if hasattr(search, "history_"):
        runs = _runs(results["params"], search.history_, asked.score)
        most = search.scheduler_.max_epochs
        return earlier_search(name, runs, asked, direction, most or 0, asked.score)
    refit = getattr(search, "refit", None)
    by_itself = f"{_TEST}{refit}" if isinstance(refit, str) else None
    names = [column for column in results if column.startswith(_TEST)]
    score = asked.score or (by_itself if by_itself in names else None)
    if f"{_TEST}{score}" in names:
        score = f"{_TEST}{score}"
    column = chosen(score, names, name)
    rungs = results.get("iter", [0] * len(results["params"]))
    runs = _of_rungs(results["params"], rungs, results[column])
    return earlier_search(name, runs, asked, direction, metric=column)


def is_unfitted(search: Any) -> bool:
    """Return whether this is a search of scikit-learn's kind that is yet to be fit."""
    parts = ("fit", "estimator", "refit")  # a model has no such three
    return not hasattr(search, "cv_results_") and all(
        hasattr(search, part) for part in parts
    )


def _unless_text(params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {} if params.keys() == {"as_text"} else params


def _runs(
    candidates: Sequence[Mapping[str, Any]],
    history: Iterable[Mapping[str, Any]],
    score: str | None,
) -> Iterator[Run]:
    """Yield the arms of a history that have been opened."""
    scores: dict[int, list[float]] = {}
    seconds: dict[int, list[float]] = {}
    for row in history:
        arm, before = row["arm"], row["epoch"] - 1
        scores.setdefault(arm, [])[before:] = [_score(row, score)]
        seconds.setdefault(arm, [])[before:] = [row["seconds"]]
    for arm, curve in sorted(scores.items()):
        failed = not any(map(math.isfinite, curve))
        yield Run(candidates[arm], curve, mean(seconds[arm]), failed)


def _score(row: Mapping[str, Any], score: str | None) -> float:
    """Return the score of an epoch, or another metric of it; NaN where it was lost."""
    if score is None or score == SCORE or "failure" in row:
        return as_number(row["score"])
    splits = [name for name in row if _of_split(name) == f"test_{score}"]
    if splits:
        return sum(as_number(row[name]) for name in splits) / len(splits)
    numbers = [name for name in row if not math.isnan(as_number(row[name]))]
    return as_number(row[chosen(score, numbers, "the history of the search")])


def _of_split(name: str) -> str:
    """Return what a column of one split is of: test_score for split0_test_score."""
    split, _, rest = name.partition("_")
    return rest if split.startswith(_SPLIT) else ""


def _of_rungs(
    candidates: Sequence[Mapping[str, Any]], rungs: Iterable[Any], scores: Iterable[Any]
) -> Iterator[Run]:
    """Yield the runs of ``cv_results_``: a score each, or by halving one per rung."""
    curves: list[tuple[Mapping[str, Any], list[float]]] = []
    of_before: dict[str, list[float]] = {}  # by the text of the parameters
    for params, rung, score in zip(candidates, rungs, scores, strict=True):
        key = repr(params)
        if rung == 0:
            of_before[key] = []
            curves.append((params, of_before[key]))
        of_before[key].append(as_number(float(score)))
    for params, curve in curves:
        yield Run(params, curve, failed=not any(map(math.isfinite, curve)))


def no_results(search: Any) -> PriorError:
    """Return the error for a search that has found nothing yet."""
    return PriorError(
        f"this {type(search).__name__} is not fitted, so nothing can be learnt from "
        "it: call fit first"
    )
