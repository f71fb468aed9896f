"""The columns of candidates and epochs that a report draws."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from risingsearch.plotting.spending import Spending
from risingsearch.plotting.words import as_text, number, plain, short, shown_metric

MOST_VALUES = 500_000  # of the other metrics, over all epochs
MARKS = {"opened": 1, "opened by prior": 8, "revived": 2}  # of a job's first epoch
FEW = 8  # values that are listed; of more, the page says how many
FAILED = 4  # added to the mark of an epoch without a score
LONGEST_FAILURE = 2000  # characters of a failure's text

Row = Mapping[str, Any]


class Projection(NamedTuple):
    """Gain that was expected of an arm when it was last chosen."""

    epoch: int  # of the arm, by then
    round: int
    level: float
    gain: float


class Lost(NamedTuple):
    """A job with a failure or without a score."""

    arm: int
    epochs: str
    text: str


class Digest:
    """The candidates of a search, and its epochs told so far.

    Parameters
    ----------
    result : SearchResult
        What the search has found by now.
    """

    def __init__(self, result: Any) -> None:
        self.params, self.scales = _candidates(result.candidates)
        self.space = _searched(result.candidates)
        self.arm: list[int] = []
        self.epoch: list[int] = []
        self.score: list[float | None] = []
        self.marks: list[str] = []
        self.lost: list[Lost] = []
        self.projections: dict[int, Projection] = {}
        self.spending = Spending(result.direction)
        self._others: dict[str, list[float | None]] = {}
        self._explained: set[int] = set()  # jobs whose failure is among the lost
        failures = {report.job.id: report.failure for report in result.failures}
        for job, rows in groupby(result.history, lambda row: row["job"]):
            self._add_job(job, list(rows), failures.get(job), result)
        for name in result.other_metrics:
            self._others[name] = [number(row.get(name), 6) for row in result.history]

    def _add_job(
        self, job: int, rows: Sequence[Row], failure: BaseException | None, result: Any
    ) -> None:
        first = rows[0]
        for k, row in enumerate(rows):
            self.arm.append(row["arm"])
            self.epoch.append(row["epoch"])
            self.score.append(number(row["score"]))
            mark = MARKS.get(row["reason"], 0) * (k == 0) + FAILED * _is_lost(row)
            self.marks.append(f"{mark:x}")
            self.spending.add(row, result.returned_at.get(job))
        parts = first.get("recent_average"), first.get("expected_gain")
        level, gain = (float(p) if isinstance(p, Real) else math.nan for p in parts)
        if math.isfinite(level + gain):
            expected = Projection(first["epoch"] - 1, first["round"], level, gain)
            self.projections[first["arm"]] = expected
        if bad := [row for row in rows if _is_lost(row)]:
            no_score = f"the {shown_metric(result.metric)} is {bad[-1]['score']}"
            text = bad[-1].get("failure", no_score)
            if failure is not None:
                self._explained.add(job)
                text = _raised(failure)
            epochs = {str(row["epoch"]): None for row in (bad[0], bad[-1])}
            self.lost.append(_lost(first["arm"], " to ".join(epochs), text))

    def all_lost(self, result: Any) -> list[Lost]:
        """Return the jobs lost, with those that are not told yet."""
        untold = [r for r in result.failures if r.job.id not in self._explained]
        return self.lost + [
            _lost(
                report.job.arm,
                str(report.job.from_epoch + len(report.scores) + 1),
                _raised(report.failure),
            )
            for report in untold
        ]

    def others(self) -> Iterator[dict[str, Any]]:
        """Yield the metrics that can be drawn in the place of the score."""
        most = MOST_VALUES // max(1, len(self.arm))
        for name in list(self._others)[:most]:
            yield {"name": shown_metric(name), "values": self._others[name]}


def column(values: Iterable[Any]) -> dict[str, Any]:
    """Return the distinct values, and which of them stands where.

    >>> column("aab")
    {'distinct': ['a', 'b'], 'at': [0, 0, 1]}
    """
    place: dict[Any, int] = {}
    at = [place.setdefault(value, len(place)) for value in values]
    return {"distinct": list(place), "at": at}


def _candidates(
    candidates: Sequence[Mapping[str, Any]],
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the columns of all parameters, and how their axes are spread."""
    names = dict.fromkeys(name for params in candidates for name in params)
    params = [
        {"name": as_text(name)}
        | column(plain(one[name]) if name in one else None for one in candidates)
        for name in names
    ]
    return params, [
        _scale([plain(one[name]) for one in candidates if name in one])
        for name in names
    ]


def _searched(candidates: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the text of the candidates' values, by parameter."""
    names = dict.fromkeys(name for params in candidates for name in params)
    return {
        name: _in_words([plain(p[name]) for p in candidates if name in p])
        for name in names
    }


def _in_words(values: Iterable[float | str]) -> str:
    """Return a few values one by one, and of more numbers how far they reach.

    >>> _in_words(["sgd", "adam", "sgd"]), _in_words(k / 100 for k in range(30))
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


def _scale(values: Sequence[float | str]) -> str:
    """Return the scale on which values are spread most evenly.

    >>> _scale([1e-4, 1e-3, 1e-2]), _scale([10, 200, 400, 600]), _scale(["a", 1])
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


def _lost(arm: int, epochs: str, text: str) -> Lost:
    return Lost(arm, epochs, short(text, LONGEST_FAILURE))


def _raised(failure: BaseException | None) -> str:
    return f"{type(failure).__name__}: {failure}".removesuffix(": ")


def _is_lost(row: Row) -> bool:
    return "failure" in row or not math.isfinite(row["score"])
