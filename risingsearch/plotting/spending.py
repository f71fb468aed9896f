"""What a search has spent, what that bought, and what full training would have cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from risingsearch.arms import sign_of
from risingsearch.plotting.charts import Point


class Progress(NamedTuple):
    """The best score so far, where it has risen and at the end; none without a score.

    Against the epochs told, the seconds by the clock until then, where no earlier
    release has left them out, and the seconds of training until then, over all workers.
    """

    by_epochs: list[Point]
    by_clock: list[Point]
    by_training: list[Point]


class Cost(NamedTuple):
    """Epochs, their time in training and by the clock; NaN where that is not known."""

    name: str
    epochs: int
    training_seconds: float
    wall_seconds: float


def best_so_far(result: Any) -> Progress:
    """Return how the best score has risen with what was spent.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> rows = [{"job": k, "score": s, "seconds": 1800.0} for k, s in enumerate("132")]
    >>> for row in rows:
    ...     row["score"] = float(row["score"])
    >>> result = SimpleNamespace(history=rows, direction="maximize", returned_at={})
    >>> best_so_far(result).by_training
    [(1800.0, 1.0), (3600.0, 3.0), (5400.0, 3.0)]
    """
    sign = sign_of(result.direction)
    clock = result.returned_at
    best, trained, now = -math.inf, 0.0, 0.0
    progress = Progress([], [], [])
    last = len(result.history)
    for k, row in enumerate(result.history, 1):
        trained += row["seconds"] if math.isfinite(row["seconds"]) else 0.0
        now = max(now, clock.get(row["job"], 0.0))
        rises = math.isfinite(row["score"]) and sign * row["score"] > best
        if rises:
            best = sign * row["score"]
        if rises or (k == last and best > -math.inf):
            for points, x in zip(progress, (k, now, trained), strict=True):
                points.append((x, sign * best))
    known = all(row["job"] in clock for row in result.history)
    return progress if known else progress._replace(by_clock=[])


def costs(result: Any, most: int) -> list[Cost]:
    """Return what was spent, and what training every arm in full would have cost.

    An arm trains at most ``most`` epochs, and fewer if it has ended by itself; each as
    long as its own epochs have taken, one never opened as long as those of the others
    on average. The clock runs as fast, beside the training, as it did in the search.
    """
    opened = _full(result, most, list(result.curves))
    spent = Cost(
        "this search", result.n_epochs, result.training_seconds, result.wall_seconds
    )
    rows = [spent, _timed("every arm that was opened, in full", *opened, spent)]
    if len(result.curves) < len(result.candidates):
        every = _full(result, most, range(len(result.candidates)))
        rows.append(_timed("every candidate, in full", *every, spent))
    return rows


def _full(result: Any, most: int, arms: Sequence[int]) -> tuple[int, float]:
    """Return the epochs and seconds of training arms in full."""
    seconds: dict[int, list[float]] = {}
    for row in result.history:
        if math.isfinite(row["seconds"]):
            seconds.setdefault(row["arm"], []).append(row["seconds"])
    pace = {arm: math.fsum(times) / len(times) for arm, times in seconds.items()}
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
