"""Parts of the pages about searches, as HTML: costs, and parameters that matter."""

import math
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any, NamedTuple

from risingsearch.arms import sign_of
from risingsearch.plotting.figures import score_limits
from risingsearch.plotting.importance import LEVEL, Importance, Importances
from risingsearch.plotting.parts import part
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
    """Return a table that scrolls by itself where it is wide; the body is HTML."""
    right = ' class="number"' if numeric else ""
    cells = "".join(
        f'<th scope="col"{right}>{escaped(name)}</th>' if name else "<td></td>"
        for name in head
    )
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


def costs(result: Any, most: int) -> list[Cost]:
    """Return the cost of a search, and that of training every arm in full."""
    measured: dict[int, list[float]] = {}
    for row in result.history:
        took = measured.setdefault(row["arm"], [])
        if math.isfinite(row["seconds"]):
            took.append(row["seconds"])
    pace = {arm: math.fsum(took) / len(took) for arm, took in measured.items() if took}
    training = result.training_seconds
    wall = result.wall_seconds
    clock = wall / training if training > 0.0 else math.nan
    kinds = {"every arm that was opened, in full": list(measured)}
    if len(measured) < len(result.candidates):
        kinds["every candidate, in full"] = list(range(len(result.candidates)))
    found = [Cost("this search", result.n_epochs, training, wall)]
    typical = math.fsum(pace.values()) / len(pace) if pace else math.nan
    for name, arms in kinds.items():  # trained in full
        epochs = {}
        for arm in arms:
            trained = result.arms[arm].epochs
            status = result.arms[arm].status
            epochs[arm] = trained if status == "finished" else max(most, trained)
        seconds = math.fsum(n * pace.get(arm, typical) for arm, n in epochs.items())
        found.append(Cost(name, sum(epochs.values()), seconds, seconds * clock))
    return found


def cost_section(rows: Sequence[Cost], most: int) -> str:
    """Return a table of the cost, beside that of full training."""
    spent, opened, *_ = rows
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
    return NOTHING if math.isnan(seconds) else duration(seconds)


class Progress(NamedTuple):
    """The best score so far, at every rise and at the end; none without a score."""

    by_epochs: list[Point]
    by_clock: list[Point]  # empty if some times are unknown
    by_training: list[Point]


def progress_of(result: Any) -> Progress:
    """Return how the best score has risen."""
    sign = sign_of(result.direction)
    best = -math.inf
    is_clocked = True
    progress = Progress([], [], [])
    clock = 0.0
    trained = 0.0
    n_epochs = len(result.history)
    for told, row in enumerate(result.history, 1):
        returned = result.returned_at.get(row["job"])
        is_clocked &= returned is not None
        clock = max(clock, returned or 0.0)
        trained += row["seconds"] if math.isfinite(row["seconds"]) else 0.0
        rises = math.isfinite(row["score"]) and sign * row["score"] > best
        best = sign * row["score"] if rises else best
        if rises or (told == n_epochs and best > -math.inf):
            for points, x in zip(progress, (told, clock, trained), strict=True):
                points.append((x, sign * best))
    return progress if is_clocked else progress._replace(by_clock=[])


def progress_charts(runs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the best scores so far of runs with one metric, as the page draws them."""
    found = {name: progress_of(result) for name, result in runs.items()}
    found = {name: progress for name, progress in found.items() if progress.by_epochs}
    if not found:
        return []
    first = next(iter(runs.values()))
    # A range in which no bad first score flattens the later ones.
    values = [value for one in found.values() for _, value in one.by_epochs]
    scores = [row["score"] for name in found for row in runs[name].history]
    maximize = sign_of(runs[next(iter(found))].direction) > 0.0
    low, high = score_limits(scores, maximize=maximize)
    shared = {
        "y": f"best {shown_metric(first.metric)} so far",
        "limits": (max(low, min(values)), min(high, max(values))),
    }
    epochs, clock, training = map(list, zip(*found.values(), strict=True))
    charts = [
        {
            "x": "epochs spent",
            **shared,
            "lines": epochs,
        }
    ]
    for lines, of in (
        (clock, "of wall-clock time"),
        (training, "in training, all workers"),
    ):
        if any(lines):
            longest = max(x for points in lines for x, _ in points)
            unit = next((unit for unit in UNITS if longest >= UNITS[unit]), "seconds")
            size = UNITS[unit]
            lines = [[(float(f"{x / size:.6g}"), y) for x, y in one] for one in lines]
            charts.append(
                {
                    "x": f"{unit} {of}",
                    **shared,
                    "lines": lines,
                }
            )
    return [{"names": list(found), "charts": charts}]


def importance_section(found: Importances) -> str:
    """Return how much each parameter matters, with the method, or why that is open."""
    if not found.parameters:
        return f'<p class="note">No importance is computed: {found.reason}.</p>'
    low = min(0.0, *(p.low for p in found.parameters))
    high = max(0.01, *(p.high for p in found.parameters))
    body = "".join(_row(p, low, high) for p in found.parameters)
    head = ("parameter", "importance", f"with {100 * LEVEL:.0f} % interval")
    more = ""
    if found.n_arms < found.n_opened:
        more += f" Of {found.n_opened:,} opened arms, {found.n_arms} are compared, "
        more += "spread evenly."
    if found.unjudged:
        names = ", ".join(map(escaped, found.unjudged))
        more += f" Not judged, for too few or too many different values: {names}."
    return Template(part("importance.html")).substitute(
        n_arms=f"{found.n_arms:,}",
        predicted=f"{100 * max(0.0, found.predicted):.0f} %",
        table=table(head, body),
        more=more,
    )


def _row(
    parameter: Importance,
    low: float,
    high: float,
) -> str:
    share, least, most = (
        f"{round(100.0 * value)}".replace("-", "\N{MINUS SIGN}")
        for value in (parameter.share, parameter.low, parameter.high)
    )
    zero, at, left, right = (
        f"{100.0 * (value - low) / (high - low):.1f}"
        for value in (0.0, parameter.share, parameter.low, parameter.high)
    )
    line = 'stroke="currentColor" vector-effect="non-scaling-stroke"'
    doubt = "" if parameter.low > 0.0 else ", may be none"
    return (
        f'<tr><th scope="row">{escaped(parameter.name)}</th><td class="bars">'
        '<svg class="bar" viewBox="0 0 100 14" width="100" height="14" '
        'preserveAspectRatio="none" aria-hidden="true">'
        '<path class="rs-bar" fill="#0072b2" fill-opacity="0.55" '
        f'd="M{zero} 3H{at}V11H{zero}Z"/><path {line} stroke-width="1.5" '
        f'd="M{left} 7H{right}"/><path {line} d="M{zero} 0V14"/></svg>'
        f"</td><td>{share} % ({least} to {most} %){doubt}</td></tr>"
    )
