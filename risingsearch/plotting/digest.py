"""The columns of candidates and epochs that a report draws."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from risingsearch.arms import ENQUEUED, OPENED, PRIOR, PROPOSED, REVIVED, sign_of
from risingsearch.plotting.words import number, plain, short, shown_metric

MOST_VALUES = 500_000  # of the other metrics, over all epochs
# of a job's first epoch
MARKS = {
    OPENED: 1,
    ENQUEUED: 1,
    PROPOSED: 1,
    PRIOR: 8,
    REVIVED: 2,
}
FEW = 8  # values that are listed; of more, the page says how many
FAILED = 4  # added to the mark of an epoch without a score
LONGEST_FAILURE = 2000  # characters of a failure's text

Values = Sequence[float | str]


def column(values: Iterable[Any]) -> dict[str, Any]:
    """Return the distinct values, and which of them stands where.

    >>> column("aab")
    {'distinct': ['a', 'b'], 'at': [0, 0, 1]}
    """
    place: dict[Any, int] = {}
    at = [place.setdefault(value, len(place)) for value in values]
    return {"distinct": list(place), "at": at}


def recorded_columns(result: Any) -> dict[str, Any]:
    """Return arm, epoch, score and marks of all epochs in the order told."""
    marks = []
    job = None
    for row in result.history:
        first, job = row["job"] != job, row["job"]
        mark = MARKS.get(row["reason"], 0) * first + FAILED * _is_lost(row)
        marks.append(f"{mark:x}")
    return {
        "arm": [row["arm"] for row in result.history],
        "epoch": [row["epoch"] for row in result.history],
        "score": [number(row["score"]) for row in result.history],
        "marks": "".join(marks),
    }


def other_metrics(result: Any) -> list[dict[str, Any]]:
    """Return the metrics that can be drawn in the place of the score."""
    most = MOST_VALUES // max(1, len(result.history))
    return [
        {
            "name": shown_metric(name),
            "values": [number(row.get(name), 6) for row in result.history],
        }
        for name in result.other_metrics[:most]
    ]


def projections(result: Any, most_epochs: int) -> list[list[Any]]:
    """Return arm, epoch, level, last epoch and end of every arm's last projection."""
    sign = sign_of(result.direction)
    epochs = None if result.budget is None else result.budget.epochs
    budget = max(result.n_epochs, epochs or 0)
    ends = {}
    job = None
    for row in result.history:
        first, job = row["job"] != job, row["job"]
        parts = [row.get(name) for name in ("recent_average", "expected_gain")]
        if not first or not all(
            isinstance(p, Real) and math.isfinite(p) for p in parts
        ):
            continue
        arm = row["arm"]
        epoch = row["epoch"] - 1
        level, gain = map(float, parts)
        left = max(0, min(most_epochs - epoch, budget - row["round"] + 1))
        ends[arm] = [
            arm,
            epoch,
            sign * level,
            epoch + left,
            sign * (level + gain),
        ]
    return list(ends.values())


class Lost(NamedTuple):
    """A job with a failure or without a score."""

    arm: int
    epochs: str
    text: str


def lost_jobs(result: Any) -> list[Lost]:
    """Return the jobs with a failure or without a score; last those not told yet."""
    failures = {report.job.id: report for report in result.failures}
    found = []
    for job, rows in groupby(result.history, lambda row: row["job"]):
        if bad := [row for row in rows if _is_lost(row)]:
            last = bad[-1]
            text = last.get("failure")
            text = text or f"the {shown_metric(result.metric)} is {last['score']}"
            if job in failures:
                text = _raised(failures.pop(job).failure)
            epochs = dict.fromkeys(str(row["epoch"]) for row in (bad[0], last))
            found.append(Lost(last["arm"], " to ".join(epochs), text))
    for report in failures.values():
        epoch = report.job.from_epoch + len(report.scores) + 1
        found.append(Lost(report.job.arm, str(epoch), _raised(report.failure)))
    return [one._replace(text=short(one.text, LONGEST_FAILURE)) for one in found]


def _raised(failure: BaseException | None) -> str:
    return f"{type(failure).__name__}: {failure}".removesuffix(": ")


def _is_lost(row: Mapping[str, Any]) -> bool:
    return "failure" in row or not math.isfinite(row["score"])


def values_of(candidates: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of every parameter; None in candidates without it."""
    names = dict.fromkeys(name for params in candidates for name in params)
    return {
        name: [plain(one[name]) if name in one else None for one in candidates]
        for name in names
    }


def in_short(values: Iterable[float | str]) -> str:
    """Return a few values one by one, and of more numbers how far they reach.

    >>> in_short(["sgd", "adam", "sgd"]), in_short(k / 100 for k in range(30))
    ('sgd, adam', '0 to 0.29, 30 values')
    """
    distinct = list(dict.fromkeys(values))
    numbers = [value for value in distinct if not isinstance(value, str)]
    if len(distinct) > FEW:
        n = f"{len(distinct):,} values"
        if len(numbers) < len(distinct):
            return n
        return f"{min(numbers):.6g} to {max(numbers):.6g}, {n}"
    if len(numbers) == len(distinct):
        distinct = sorted(numbers)
    return ", ".join(v if isinstance(v, str) else f"{v:.6g}" for v in distinct)


def scale_of(values: Values) -> str:
    """Return the scale on which values are spread most evenly.

    >>> scale_of([1e-4, 1e-3, 1e-2]), scale_of([10, 200, 600]), scale_of(["a", 1])
    ('log', 'linear', 'categories')
    """
    numbers = [value for value in values if not isinstance(value, str)]
    if len(numbers) < len(values):
        return "categories"
    if not numbers or min(numbers) <= 0 or max(numbers) < 10 * min(numbers):
        return "linear"
    return "log" if _unevenness(np.log(numbers)) < _unevenness(numbers) else "linear"


def _unevenness(numbers: ArrayLike) -> float:
    """Return how far numbers are from being evenly spread between their ends."""
    values = np.sort(np.asarray(numbers, dtype=float))
    places = (values - values[0]) / (values[-1] - values[0])
    return float(np.abs(places - np.linspace(0.0, 1.0, len(places))).max())
