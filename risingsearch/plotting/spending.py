"""Costs of a search, the scores they bought, and the cost of full training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from risingsearch.arms import sign_of

Point = tuple[float, float]


class Progress(NamedTuple):
    """The best score so far, where it has risen and at the end; none without a score.

    Against the epochs told, the wall-clock seconds until then (empty if some are
    unknown), and the seconds of training until then, over all workers.
    """

    by_epochs: list[Point]
    by_clock: list[Point]
    by_training: list[Point]


class Cost(NamedTuple):
    """Epochs, their time in training and wall-clock time; NaN if that is not known."""

    name: str
    epochs: int
    training_seconds: float
    wall_seconds: float


class Spending:
    """Costs of the epochs told and the scores they bought; it grows with them."""

    def __init__(self, direction: str) -> None:
        self.seconds: dict[int, list[float]] = {}
        """By arm, of those of its epochs that were measured."""
        self._sign = sign_of(direction)
        self._best = -math.inf
        self._at = (0, 0.0, 0.0)  # epochs, wall-clock seconds, seconds of training
        self._all_clocked = True
        self._rises = Progress([], [], [])

    def add(self, row: Mapping[str, Any], clock: float | None) -> None:
        """Take in a row, whose job came back at that time, if that is known."""
        seconds = row["seconds"] if math.isfinite(row["seconds"]) else None
        measured = self.seconds.setdefault(row["arm"], [])
        if seconds is not None:
            measured.append(seconds)
        told, now, trained = self._at
        self._at = told + 1, max(now, clock or 0.0), trained + (seconds or 0.0)
        self._all_clocked &= clock is not None
        if math.isfinite(row["score"]) and self._sign * row["score"] > self._best:
            self._best = self._sign * row["score"]
            self._reach(self._rises)

    def progress(self) -> Progress:
        """Return how the best score has risen."""
        progress = Progress(*(list(points) for points in self._rises))
        if self._best > -math.inf and self._rises.by_epochs[-1][0] < self._at[0]:
            self._reach(progress)
        return progress if self._all_clocked else progress._replace(by_clock=[])

    def _reach(self, progress: Progress) -> None:
        for points, x in zip(progress, self._at, strict=True):
            points.append((x, self._sign * self._best))


def spending_of(result: Any) -> Spending:
    """Return the costs of all epochs of a search and the scores they bought.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> rows = [{"arm": 0, "job": k, "score": s, "seconds": 1800.0}
    ...         for k, s in enumerate([1.0, 3.0, 2.0])]
    >>> result = SimpleNamespace(history=rows, direction="maximize", returned_at={})
    >>> spending_of(result).progress().by_training
    [(1800.0, 1.0), (3600.0, 3.0), (5400.0, 3.0)]
    """
    spending = Spending(result.direction)
    for row in result.history:
        spending.add(row, result.returned_at.get(row["job"]))
    return spending


def costs(result: Any, spending: Spending, most: int) -> list[Cost]:
    """Return the cost of a search, and that of training every arm in full.

    An arm trains at most ``most`` epochs, and fewer if it has ended by itself; each as
    long as its own epochs have taken, one never opened as long as those of the others
    on average. The clock runs as fast, beside the training, as it did in the search.
    """
    measured = spending.seconds
    pace = {arm: math.fsum(took) / len(took) for arm, took in measured.items() if took}
    spent = Cost(
        "this search", result.n_epochs, result.training_seconds, result.wall_seconds
    )
    opened = _full(result, most, list(measured), pace)
    rows = [spent, _timed("every arm that was opened, in full", *opened, spent)]
    if len(measured) < len(result.candidates):
        every = _full(result, most, range(len(result.candidates)), pace)
        rows.append(_timed("every candidate, in full", *every, spent))
    return rows


def _full(
    result: Any, most: int, arms: Sequence[int], pace: Mapping[int, float]
) -> tuple[int, float]:
    """Return the epochs and seconds of training arms in full."""
    typical = math.fsum(pace.values()) / len(pace) if pace else math.nan
    epochs = {}
    for arm in arms:
        where = result.arms[arm]
        ended = where.status == "finished"
        epochs[arm] = where.epochs if ended else max(most, where.epochs)
    total = math.fsum(n * pace.get(arm, typical) for arm, n in epochs.items())
    return sum(epochs.values()), total


def _timed(name: str, epochs: int, seconds: float, spent: Cost) -> Cost:
    known = spent.training_seconds > 0.0
    pace = spent.wall_seconds / spent.training_seconds if known else math.nan
    return Cost(name, epochs, seconds, seconds * pace)
