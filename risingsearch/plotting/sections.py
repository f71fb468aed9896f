"""Parts of the pages about searches, as HTML: what it took, and what mattered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from risingsearch.arms import sign_of
from risingsearch.plotting.epochs import score_limits
from risingsearch.plotting.importance import (
    FEWEST_ARMS,
    LEVEL,
    Importance,
    Importances,
)
from risingsearch.plotting.spending import Cost, Point, Progress
from risingsearch.plotting.words import NOTHING, duration, escaped, shown_metric

UNITS = {"hours": 3600.0, "minutes": 60.0, "seconds": 1.0}


def table(head: Sequence[str], body: str, *, numeric: bool = False) -> str:
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


def cost_section(rows: Sequence[Cost], most: int) -> str:
    """Return a table of what was spent beside what full training would have cost."""
    spent, opened, *_ = rows
    note = (
        f"In full is {_epochs(most)}, or fewer where an arm has ended by itself; times "
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


def _epochs(n: int) -> str:
    return "1 epoch" if n == 1 else f"{n:,} epochs"


def _time(seconds: float) -> str:
    return NOTHING if math.isnan(seconds) else duration(seconds)


def progress_charts(runs: Sequence[tuple[str, Any, Progress]]) -> dict[str, Any]:
    """Return the best scores so far of runs with one metric, as the page draws them."""
    y, limits = f"best {shown_metric(runs[0][1].metric)} so far", _limits(runs)
    epochs, clock, training = (
        [progress[axis] for *_, progress in runs] for axis in range(3)
    )
    charts = [{"x": "epochs spent", "y": y, "limits": limits, "lines": epochs}]
    for lines, of in (
        (clock, "of wall-clock time"),
        (training, "in training, all workers"),
    ):
        if any(lines):
            unit, scaled = _in_units(lines)
            x = f"{unit} {of}"
            charts.append({"x": x, "y": y, "limits": limits, "lines": scaled})
    return {"names": [name for name, *_ in runs], "charts": charts}


def _limits(runs: Sequence[tuple[str, Any, Progress]]) -> tuple[float, float]:
    """Return a range in which no first score, however bad, flattens what came after."""
    values = [value for *_, p in runs for _, value in p.by_epochs]
    scores = [row["score"] for _, result, _ in runs for row in result.history]
    maximize = sign_of(runs[0][1].direction) > 0.0
    low, high = score_limits(scores, maximize=maximize)
    return max(low, min(values)), min(high, max(values))


def _in_units(lines: Sequence[Sequence[Point]]) -> tuple[str, list[list[Point]]]:
    """Return the largest unit of time that the lines reach, and the lines in it."""
    longest = max(x for points in lines for x, _ in points)
    unit = next((unit for unit in UNITS if longest >= UNITS[unit]), "seconds")
    size = UNITS[unit]
    return unit, [[(float(f"{x / size:.6g}"), y) for x, y in one] for one in lines]


def importance_section(found: Importances) -> str:
    """Return how much each parameter matters, with the method, or why that is open."""
    if not found.parameters:
        return f'<p class="note">{_why_none(found)}</p>'
    low = min(0.0, *(p.low for p in found.parameters))
    high = max(0.01, *(p.high for p in found.parameters))
    body = "".join(_row(p, low, high) for p in found.parameters)
    head = ("parameter", "importance", f"with {LEVEL:.0%} interval")
    note = (
        f"How much worse it can be predicted which of the {found.n_arms:,} arms are "
        "better, where a parameter is not known: what it does alone, and together "
        f"with others. With all parameters {max(0.0, found.predicted):.0%} of their "
        "differences is predicted. An interval that includes 0 says that the parameter "
        "may not matter at all; its ends are estimates, and may lie beyond 0 and 100 %."
    )
    return f'<p class="note">{note}</p>{table(head, body)}{_method(found)}'


def _why_none(found: Importances) -> str:
    if found.n_arms < FEWEST_ARMS:
        return (
            f"Too few arms to say: {found.n_arms:,} opened, and with fewer than "
            f"{FEWEST_ARMS} hardly anything can be told from chance."
        )
    return "Nothing to say: no parameter varies, or all arms are equally good."


def _row(parameter: Importance, low: float, high: float) -> str:
    interval = f"{_percent(parameter.low)} to {_percent(parameter.high)} %"
    doubt = "" if parameter.low > 0.0 else ", may be none"
    return (
        f'<tr><th scope="row">{escaped(parameter.name)}</th>'
        f'<td class="bars">{_bar(parameter, low, high)}</td>'
        f"<td>{_percent(parameter.share)} % ({interval}){doubt}</td></tr>"
    )


def _bar(parameter: Importance, low: float, high: float) -> str:
    zero, at, left, right = (
        f"{100.0 * (value - low) / (high - low):.1f}"
        for value in (0.0, parameter.share, parameter.low, parameter.high)
    )
    line = 'stroke="currentColor" vector-effect="non-scaling-stroke"'
    return (
        '<svg class="bar" viewBox="0 0 100 14" width="100" height="14" '
        'preserveAspectRatio="none" aria-hidden="true">'
        '<path class="rs-bar" fill="#0072b2" fill-opacity="0.55" '
        f'd="M{zero} 3H{at}V11H{zero}Z"/><path {line} stroke-width="1.5" '
        f'd="M{left} 7H{right}"/><path {line} d="M{zero} 0V14"/></svg>'
    )


def _percent(share: float) -> str:
    r"""Return a share in percent.

    >>> _percent(0.414), _percent(-0.001), _percent(-0.02) == "\N{MINUS SIGN}2"
    ('41', '0', True)
    """
    return f"{round(100.0 * share)}".replace("-", "\N{MINUS SIGN}")


def _method(found: Importances) -> str:
    parts = [
        "Arms that have trained for different lengths cannot be compared by their last "
        "score. So any two are compared by their best score in as many epochs as both "
        "have trained, and an arm is worth the share of the others that it beats; one "
        "that has failed loses against all that have not. What matters only late in "
        "training is seen only where arms have trained that long.",
        "This is predicted of every arm from all others, by kernel ridge regression "
        "over effects of one parameter and of two, with and without the parameter "
        "(leave-one-covariate-out importance, Lei et al. 2018). Of two parameters that "
        "always go together, neither is missed. Below 0, knowing the parameter only "
        "confuses the prediction. The interval is a bootstrap over the arms; it always "
        "reaches up to 0, because nothing matters less than not at all.",
    ]
    if found.n_arms < found.n_opened:
        compared = f"{found.n_arms} are compared, spread evenly."
        parts.append(f"Of {found.n_opened:,} opened arms, {compared}")
    if found.unjudged:
        names = ", ".join(map(escaped, found.unjudged))
        parts.append(f"Not judged, for too few or too many different values: {names}.")
    summary = "<summary>How this is computed</summary>"
    return f'<details class="note">{summary}{" ".join(parts)}</details>'
