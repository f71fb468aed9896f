"""The columns of candidates and epochs that a report draws."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from numbers import Real
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import ENQUEUED, OPENED, PRIOR, PROPOSED, REVIVED, sign_of
from risingsearch.plotting.result import Row, ShownResult
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

Value = float | str
"""A number or a text, as a browser can read it."""


def column(values: Iterable[object]) -> dict[str, object]:
    """Return the distinct values, and which of them stands where.

    Examples
    --------
    >>> column("aab")
    {'distinct': ['a', 'b'], 'at': [0, 0, 1]}
    """
    place: dict[object, int] = {}
    at = [place.setdefault(value, len(place)) for value in values]
    return {
        "distinct": list(place),
        "at": at,
    }


def recorded_columns(result: ShownResult) -> dict[str, object]:
    """Return arm, epoch, score and marks of all epochs in the order told."""
    marks = ""
    for row, is_first in _with_first(result.history):
        mark = 0
        if is_first:
            mark = MARKS.get(row["reason"], 0)
        if _is_lost(row):
            mark += FAILED
        marks += f"{mark:x}"
    return {
        "arm": [row["arm"] for row in result.history],
        "epoch": [row["epoch"] for row in result.history],
        "score": [number(row["score"]) for row in result.history],
        "marks": marks,
    }


def _with_first(history: Iterable[Row]) -> Iterator[tuple[Row, bool]]:
    """Yield the rows of a history, and whether each is the first of its job."""
    job = None
    for row in history:
        yield row, row["job"] != job
        job = row["job"]


def other_metrics(result: ShownResult) -> list[dict[str, object]]:
    """Return the metrics that can be drawn in the place of the score."""
    most = MOST_VALUES // max(1, len(result.history))
    return [
        {
            "name": shown_metric(name),
            "values": [number(row.get(name), 6) for row in result.history],
        }
        for name in result.other_metrics[:most]
    ]


def projections(result: ShownResult, most_epochs: int) -> list[list[float]]:
    """Return the last projection of every arm.

    Parameters
    ----------
    result : SearchResult
        The result, or the result so far.
    most_epochs : int
        How far an arm can go.

    Returns
    -------
    list of list
        Arm, epoch, level, last epoch and expected end.
    """
    sign = sign_of(result.direction)
    budget = result.n_epochs
    if result.budget is not None and result.budget.epochs is not None:
        budget = max(budget, result.budget.epochs)
    projected: dict[int, list[float]] = {}
    for row, is_first in _with_first(result.history):
        level = row.get("recent_average")
        gain = row.get("expected_gain")
        if is_first and _is_finite(level) and _is_finite(gain):
            arm = row["arm"]
            epoch = row["epoch"] - 1
            unspent = budget - row["round"] + 1
            n_left = max(0, min(most_epochs - epoch, unspent))
            last = epoch + n_left
            end = level + gain
            projected[arm] = [arm, epoch, sign * level, last, sign * end]
    return list(projected.values())


def _is_finite(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and math.isfinite(value)


class Lost(NamedTuple):
    """A job with a failure or without a score."""

    arm: int
    epochs: str
    text: str


def lost_jobs(result: ShownResult) -> list[Lost]:
    """Return the jobs with a failure or without a score; last those not told yet."""
    failures = {report.job.id: report for report in result.failures}
    lost = []
    for job, rows in groupby(result.history, lambda row: row["job"]):
        bad = [row for row in rows if _is_lost(row)]
        if not bad:
            continue
        last = bad[-1]
        text = last.get("failure")
        if job in failures:
            text = _raised(failures.pop(job).failure)
        elif not text:
            text = f"the {shown_metric(result.metric)} is {last['score']}"
        epochs = str(last["epoch"])
        if len(bad) > 1:
            epochs = f"{bad[0]['epoch']} to {epochs}"
        lost.append(Lost(last["arm"], epochs, short(text, LONGEST_FAILURE)))
    for report in failures.values():
        epoch = str(report.job.from_epoch + len(report.scores) + 1)
        text = short(_raised(report.failure), LONGEST_FAILURE)
        lost.append(Lost(report.job.arm, epoch, text))
    return lost


def _raised(failure: BaseException | None) -> str:
    return f"{type(failure).__name__}: {failure}".removesuffix(": ")


def _is_lost(row: Row) -> bool:
    return "failure" in row or not math.isfinite(row["score"])


def parameter_names(candidates: Iterable[Row]) -> list[str]:
    """Return the names of all parameters, in the order in which they come up."""
    return list(dict.fromkeys(chain.from_iterable(candidates)))


def values_of(candidates: Sequence[Row], name: str) -> list[Value | None]:
    """Return the values of a parameter; None in candidates without it.

    Examples
    --------
    >>> values_of([{"rate": 0.1}, {}], "rate")
    [0.1, None]
    """
    return [plain(params[name]) if name in params else None for params in candidates]


def in_short(values: Iterable[Value]) -> str:
    """Return a few values one by one, and of more numbers how far they reach.

    Examples
    --------
    >>> in_short(["sgd", "adam", "sgd"]), in_short(k / 100 for k in range(30))
    ('sgd, adam', '0 to 0.29, 30 values')
    """
    distinct = list(dict.fromkeys(values))
    numbers = sorted(value for value in distinct if not isinstance(value, str))
    is_numeric = len(numbers) == len(distinct)
    if len(distinct) <= FEW:
        listed = numbers if is_numeric else distinct
        return ", ".join(v if isinstance(v, str) else f"{v:.6g}" for v in listed)
    n_values = f"{len(distinct):,} values"
    if not is_numeric:
        return n_values
    return f"{numbers[0]:.6g} to {numbers[-1]:.6g}, {n_values}"


def scale_of(values: Sequence[Value]) -> str:
    """Return the scale on which values are spread most evenly.

    Examples
    --------
    >>> scale_of([1e-4, 1e-3, 1e-2]), scale_of([10, 200, 600]), scale_of(["a", 1])
    ('log', 'linear', 'categories')
    """
    numbers = [value for value in values if not isinstance(value, str)]
    if len(numbers) < len(values):
        return "categories"
    if not numbers or min(numbers) <= 0 or max(numbers) < 10 * min(numbers):
        return "linear"
    off_centre = _off_centre(np.asarray(numbers))
    off_centre_of_logs = _off_centre(np.log(numbers))
    if off_centre_of_logs < off_centre:
        return "log"
    return "linear"


def _off_centre(numbers: NDArray[np.float64]) -> float:
    """Return how far the mean is from the middle, as a share of the range."""
    place = (numbers.mean() - numbers.min()) / np.ptp(numbers)
    return float(abs(place - 0.5))
