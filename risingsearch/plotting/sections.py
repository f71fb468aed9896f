"""Parts of the pages about searches, as HTML: costs, and parameters that matter."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from string import Template
from typing import NamedTuple

from risingsearch.arms import Arm, sign_of
from risingsearch.plotting.figures import score_limits
from risingsearch.plotting.importance import LEVEL, Importance, Importances
from risingsearch.plotting.parts import part
from risingsearch.plotting.result import ShownResult
from risingsearch.plotting.words import NOTHING, duration, escaped, plural, shown_metric

UNITS = {
    "hours": 3600.0,
    "minutes": 60.0,
    "seconds": 1.0,
}
Point = tuple[float, float]


def table(
    head: Sequence[str],
    body: str,
    *,
    numeric: bool = False,
) -> str:
    """Return a table that scrolls by itself where it is wide.

    Parameters
    ----------
    head : sequence of str
        The names of the columns, as text; "" for an empty cell.
    body : str
        The rows, as HTML.
    numeric : bool, default False
        Whether the columns are aligned to the right.

    Returns
    -------
    str
        A ``div`` element.
    """
    right = ' class="number"' if numeric else ""
    cells = ""
    for name in head:
        cell = "<td></td>"
        if name:
            cell = f'<th scope="col"{right}>{escaped(name)}</th>'
        cells += cell
    return (
        '<div class="scroll" tabindex="0"><table class="plain">'
        f"<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>"
    )


class Cost(NamedTuple):
    """Epochs, their time in training and wall-clock time; NaN if that is not known."""

    name: str
    epochs: int
    training_seconds: float
    wall_seconds: float


def costs(result: ShownResult, most: int) -> list[Cost]:
    """Return the cost of a search, and that of training every arm in full.

    Parameters
    ----------
    result : SearchResult
        The result, or the result so far.
    most : int
        Epochs of an arm in full.

    Returns
    -------
    list of Cost
        Of the search first.
    """
    seconds_of: dict[int, list[float]] = {}
    for row in result.history:
        measured = seconds_of.setdefault(row["arm"], [])
        if math.isfinite(row["seconds"]):
            measured.append(row["seconds"])
    pace = {arm: _mean(times) for arm, times in seconds_of.items() if times}
    typical = _mean(pace.values())
    training = result.training_seconds
    clock = math.nan
    if training > 0.0:
        clock = result.wall_seconds / training
    groups = {"every arm that was opened, in full": list(seconds_of)}
    if len(seconds_of) < len(result.candidates):
        groups["every candidate, in full"] = list(range(len(result.candidates)))
    rows = [
        Cost(
            "this search",
            result.n_epochs,
            training,
            result.wall_seconds,
        )
    ]
    for name, numbers in groups.items():
        n_epochs = 0
        times = []
        for number in numbers:
            in_full = _in_full(result.arms[number], most)
            n_epochs += in_full
            times.append(in_full * pace.get(number, typical))
        seconds = math.fsum(times)
        rows.append(Cost(name, n_epochs, seconds, seconds * clock))
    return rows


def _mean(values: Collection[float]) -> float:
    if not values:
        return math.nan
    return math.fsum(values) / len(values)


def _in_full(arm: Arm, most: int) -> int:
    """Return the epochs of an arm that is trained in full."""
    if arm.status == "finished":
        return arm.epochs
    return max(most, arm.epochs)


def cost_section(rows: Sequence[Cost], most: int) -> str:
    """Return a table of the cost, beside that of full training.

    Parameters
    ----------
    rows : sequence of Cost
        As ``costs`` returns them.
    most : int
        Epochs of an arm in full.

    Returns
    -------
    str
        A note and a table, as HTML.
    """
    spent = rows[0]
    opened = rows[1]
    each = plural(most, "epoch")
    note = (
        f"In full is {each}, or fewer where an arm has ended by itself; times "
        "are those of the arms' own epochs."
    )
    if spent.epochs and opened.epochs > spent.epochs:
        times = f"{opened.epochs / spent.epochs:.1f} times as many epochs"
        note = f"Training in full all that was opened takes {times}. {note}"
    body = "".join(
        f'<tr><th scope="row">{escaped(row.name)}</th>'
        f'<td class="number">{row.epochs:,}</td>'
        f'<td class="number">{_time(row.training_seconds)}</td>'
        f'<td class="number">{_time(row.wall_seconds)}</td></tr>'
        for row in rows
    )
    head = ("", "epochs", "time in training", "wall-clock time")
    return f'<p class="note">{note}</p>{table(head, body, numeric=True)}'


def _time(seconds: float) -> str:
    if math.isnan(seconds):
        return NOTHING
    return duration(seconds)


def small_curve(result: ShownResult) -> str:
    """Return the best score so far against epochs as a small curve, in HTML."""
    rises = progress_of(result).by_epochs
    if not rises:
        return ""
    scores = [score for _, score in rises]
    low, high = min(scores), max(scores)
    steps = ""
    for epochs, score in rises:
        x = 100.0 * epochs / rises[-1][0]
        y = 2.0 + 20.0 * (high - score) / (high - low or 1.0)
        steps += f"H{x:.1f}V{y:.1f}" if steps else f"M{x:.1f} {y:.1f}"
    name = escaped(
        f"best {shown_metric(result.metric)} so far, {low:.6g} to {high:.6g}"
    )
    return (
        f'<svg viewBox="0 0 100 24" width="100" height="24" role="img" '
        f'aria-label="{name}"><path class="rs-lead-0" fill="none" stroke-width="2" '
        f'd="{steps}"/></svg>'
    )


class Progress(NamedTuple):
    """The best score so far, at every rise and at the end; none without a score."""

    by_epochs: list[Point]
    by_clock: list[Point]  # empty if some times are unknown
    by_training: list[Point]


def progress_of(result: ShownResult) -> Progress:
    """Return how the best score has risen."""
    sign = sign_of(result.direction)
    best = -math.inf
    clock = 0.0
    training = 0.0
    progress = Progress([], [], [])
    for told, row in enumerate(result.history, 1):
        clock = max(clock, result.returned_at.get(row["job"], math.inf))
        if math.isfinite(row["seconds"]):
            training += row["seconds"]
        score = sign * row["score"]
        rises = math.isfinite(score) and score > best
        if rises:
            best = score
        is_end = told == len(result.history) and math.isfinite(best)
        if rises or is_end:
            for points, spent in zip(progress, (told, clock, training), strict=True):
                points.append((spent, sign * best))
    if math.isfinite(clock):
        return progress
    return progress._replace(by_clock=[])


def progress_charts(runs: Mapping[str, ShownResult]) -> list[dict[str, object]]:
    """Return the best scores so far of runs with one metric, as the page draws them.

    Parameters
    ----------
    runs : dict of str to SearchResult
        The results by name.

    Returns
    -------
    list of dict
        One with the names of the lines and the charts; none without a score.
    """
    progress = {name: progress_of(result) for name, result in runs.items()}
    progress = {name: rises for name, rises in progress.items() if rises.by_epochs}
    if not progress:
        return []
    epochs, clock, training = zip(*progress.values(), strict=True)
    y = _score_axis([runs[name] for name in progress], epochs)
    charts = [
        {
            "x": "epochs spent",
            **y,
            "lines": list(epochs),
        }
    ]
    if any(clock):
        charts.append(_over_time(clock, "of wall-clock time", y))
    if any(training):
        charts.append(_over_time(training, "in training, all workers", y))
    return [
        {
            "names": list(progress),
            "charts": charts,
        }
    ]


def _score_axis(
    results: Sequence[ShownResult], lines: Iterable[Sequence[Point]]
) -> dict[str, object]:
    """Return label and limits in which no bad first score flattens the later ones."""
    first = results[0]
    scores = [row["score"] for result in results for row in result.history]
    low, high = score_limits(scores, maximize=sign_of(first.direction) > 0.0)
    values = [value for points in lines for _, value in points]
    return {
        "y": f"best {shown_metric(first.metric)} so far",
        "limits": (max(low, min(values)), min(high, max(values))),
    }


def _over_time(
    lines: Iterable[Sequence[Point]],
    what: str,
    y: Mapping[str, object],
) -> dict[str, object]:
    """Return lines over seconds in the largest unit that fits."""
    lines = list(lines)
    longest = max(seconds for points in lines for seconds, _ in points)
    unit = next((unit for unit in UNITS if longest >= UNITS[unit]), "seconds")
    return {
        "x": f"{unit} {what}",
        **y,
        "lines": [
            [(float(f"{seconds / UNITS[unit]:.6g}"), y) for seconds, y in points]
            for points in lines
        ],
    }


def importance_section(importances: Importances) -> str:
    """Return how much each parameter matters, with the method, or why that is open."""
    parameters = importances.parameters
    if not parameters:
        return f'<p class="note">No importance is computed: {importances.reason}.</p>'
    most = max(0.01, *(parameter.high for parameter in parameters))
    body = "".join(_row(parameter, most) for parameter in parameters)
    head = ("parameter", "importance", f"with {100 * LEVEL:.0f} % interval")
    n_arms = f"{importances.n_arms:,}"
    more = ""
    if importances.n_arms < importances.n_opened:
        more += f" Of {importances.n_opened:,} opened arms, {n_arms} are compared, "
        more += "spread evenly."
    if importances.unjudged:
        names = ", ".join(map(escaped, importances.unjudged))
        more += f" Not judged, for too few or too many different values: {names}."
    return Template(part("importance.html")).substitute(
        n_arms=n_arms,
        predicted=f"{100 * max(0.0, importances.predicted):.0f} %",
        table=table(head, body),
        more=more,
    )


def _row(parameter: Importance, most: float) -> str:
    """Return a row of the table; the bar's coordinates go from 0 to 100."""

    def x(value: float) -> str:
        return f"{100.0 * max(0.0, value) / most:.1f}"

    share = _percent(parameter.share)
    high = _percent(parameter.high)
    said = f"{share} % ({_percent(parameter.low)} to {high} %)"
    if share <= 0:
        said = f"none seen, at most {high} %" if high else "none seen"
    elif parameter.low <= 0.0:
        said += ", may be none"
    line = 'stroke="currentColor" vector-effect="non-scaling-stroke"'
    return (
        f'<tr><th scope="row">{escaped(parameter.name)}</th><td class="bars">'
        '<svg class="bar" viewBox="0 0 100 14" width="100" height="14" '
        'preserveAspectRatio="none" aria-hidden="true">'
        '<path class="rs-bar" fill="#0072b2" fill-opacity="0.55" '
        f'd="M{x(0.0)} 3H{x(parameter.share)}V11H{x(0.0)}Z"/>'
        f'<path {line} stroke-width="1.5" '
        f'd="M{x(parameter.low)} 7H{x(parameter.high)}"/>'
        f'<path {line} d="M{x(0.0)} 0V14"/></svg>'
        f"</td><td>{said}</td></tr>"
    )


def _percent(share: float) -> int:
    """Return a share in percent; less than none is none."""
    return max(0, round(100.0 * share))
