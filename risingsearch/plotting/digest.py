"""The columns of candidates and epochs that a report draws."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from numbers import Real
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import ENQUEUED, OPENED, PRIOR, PROPOSED, REVIVED, sign_of
from risingsearch.plotting.result import Row, ShownResult
from risingsearch.plotting.words import (
    as_text,
    in_digits,
    number,
    plain,
    short,
    shown_metric,
)

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
NO_SCORE = "no finite score"
LONGEST_FAILURE = 2000  # characters of a failure's text

PERCENTAGE = re.compile("accuracy|(?<![a-z])acc(?![a-z])|percent|%", re.IGNORECASE)
"""Of the name of a metric that may be counted up to 100."""
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
    low, high = bounds_of(result)
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
            end = min(high, max(low, sign * (level + gain)))
            projected[arm] = [arm, epoch, sign * level, last, end]
    return list(projected.values())


def bounds_of(result: ShownResult) -> tuple[float, float]:
    """Return the bounds that the scores seem to have: 0, 1, or 100 of a percentage."""
    scores = [row["score"] for row in result.history if math.isfinite(row["score"])]
    low = min(scores, default=0.0)
    high = max(scores, default=0.0)
    bounds = [0.0, 1.0]
    if PERCENTAGE.search(result.metric):
        bounds.append(100.0)
    return (
        0.0 if low >= 0.0 else -math.inf,
        next((bound for bound in bounds if high <= bound), math.inf),
    )


def _is_finite(value: object) -> TypeGuard[float]:
    return isinstance(value, Real) and math.isfinite(value)


class Lost(NamedTuple):
    """A job with a failure or without a score."""

    kind: str
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
        kind = "Failure"
        text = last.get("failure")
        if job in failures:
            failure = failures.pop(job).failure
            kind = type(failure).__name__
            text = _raised(failure)
        elif not text:
            kind = NO_SCORE
            text = f"the {shown_metric(result.metric)} is {last['score']}"
        epochs = str(last["epoch"])
        if len(bad) > 1:
            epochs = f"{bad[0]['epoch']} to {epochs}"
        lost.append(Lost(kind, last["arm"], epochs, short(text, LONGEST_FAILURE)))
    for report in failures.values():
        epoch = str(report.job.from_epoch + len(report.scores) + 1)
        text = short(_raised(report.failure), LONGEST_FAILURE)
        kind = type(report.failure).__name__
        lost.append(Lost(kind, report.job.arm, epoch, text))
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


def declared(candidates: Sequence[Row]) -> dict[str, str]:
    """Return the space that candidates are from as text, by parameter, if there is one.

    Examples
    --------
    >>> from risingsearch.space import Configurations, Space
    >>> space = Space.of({"depth": range(1, 5), "loss": ["hinge", "log"]})
    >>> declared(Configurations([], space))
    {'depth': '1, 2, 3, 4', 'loss': 'hinge, log'}
    """
    space = getattr(candidates, "space", None)
    if space is None:
        return {}
    return {name: _of_kind(kind) for name, kind in space.description.items()}


def _of_kind(kind: object) -> str:
    """Return how a description of a space says where values are from."""
    match kind:
        case {"when": when, **rest}:
            return f"{_of_kind(rest)}, when {as_text(when)}"
        case {"values": values}:
            return ", ".join(map(in_digits, values))
        case {"distribution": name, "of": {"$tuple": [{"$tuple": given}, named]}}:
            options = [f"{key}={in_digits(value)}" for key, value in named.items()]
            return f"{name}({', '.join([*map(in_digits, given), *options])})"
        case {"distribution": text}:
            return as_text(text)
        case Mapping() if {
            "low",
            "high",
        } & kind.keys():  # the one that is 0 is left out
            text = " to ".join(in_digits(kind.get(end, 0)) for end in ("low", "high"))
            if "step" in kind:
                text += f", step {in_digits(kind['step'])}"
            return f"{text}, log" if "log" in kind else text
        case [*clauses]:
            return "; ".join(map(as_text, clauses))
    return as_text(kind)


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
