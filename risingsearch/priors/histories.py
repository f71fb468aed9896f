"""Runs in the history of a search: a row per epoch."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from risingsearch.priors.earlier import EarlierRun, as_number, checked_score
from risingsearch.priors.matching import Configurations

SCORE = "score"
Row = Mapping[str, Any]
"""An epoch of a history."""


def runs_of(
    candidates: Configurations,
    history: Iterable[Row],
    score: str,
    where: str,
) -> Iterator[EarlierRun]:
    """Yield the arms of a history that have been opened.

    Parameters
    ----------
    candidates : sequence of dict
        The parameters of every arm.
    history : iterable of dict
        A row per epoch, with ``arm``, ``epoch``, the score and other metrics.
    score : str
        The score or another metric.
    where : str
        The search, for messages.

    Yields
    ------
    EarlierRun
        By arm.

    Raises
    ------
    InvalidParameterError
        If a row has no such metric.

    Examples
    --------
    >>> history = [{"arm": 1, "epoch": 1, "score": 0.5}]
    >>> list(runs_of([{"a": 1}, {"a": 2}], history, "score", "May"))
    [EarlierRun(params={'a': 2}, scores=[0.5])]
    """
    curves: dict[int, list[float]] = {}
    for row in history:
        curve = curves.setdefault(row["arm"], [])
        # An epoch that was trained once more replaces what came after it.
        curve[row["epoch"] - 1 :] = [_value(row, score, where)]
    for arm, curve in sorted(curves.items()):
        yield EarlierRun(candidates[arm], curve)


def _value(
    row: Row,
    score: str,
    where: str,
) -> float:
    """Return the score of an epoch, or another metric of it; NaN if it was lost."""
    if score == SCORE or "failure" in row:
        return as_number(row[SCORE])
    ending = f"_test_{score}"
    splits = [as_number(row[name]) for name in row if name.endswith(ending)]
    if splits:  # of cross-validation
        return sum(splits) / len(splits)
    known = [name for name in row if not math.isnan(as_number(row[name]))]
    return as_number(row[checked_score(score, known, where)])
