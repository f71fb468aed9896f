"""Small charts of lines, as SVG that needs neither script nor style.

Colours are attributes, which the style of a page may replace by class; what is not
coloured has the colour of the text around it, on light and dark ground.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from risingsearch.plotting.words import escaped, short

# Okabe and Ito's palette, as in the figures, dark enough for white and for black.
COLOURS = ("#d55e00", "#0072b2", "#b8860b", "#9d4fa0", "#009e73")
DASHES = ("", "6 3", "2 3")
GREY = "#949ca6"
WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 58, 24, 12, 44
LONGEST_LABEL = 48

Point = tuple[float, float]


class Line(NamedTuple):
    """Points from left to right, and what they are called in the legend.

    ``number`` chooses colour and dashes; a line without one is thin and grey.
    """

    points: Sequence[Point]
    label: str = ""
    number: int | None = None


def line_chart(
    lines: Sequence[Line],
    *,
    x: str,
    y: str,
    limits: tuple[float, float] | None = None,
) -> str:
    """Return lines over common axes; the last is drawn on top.

    Parameters
    ----------
    lines : sequence of Line
        At least one, with at least one point.
    x, y : str
        What the axes are called.
    limits : tuple of float, optional
        The range of y; what lies outside is drawn at the edge. By default all of it.

    Returns
    -------
    str
        An ``svg`` element.

    Examples
    --------
    >>> steps = Line([(0, 0.5), (3, 0.9)], "score", number=0)
    >>> line_chart([steps], x="epochs", y="score")[:27]
    '<svg class="rs-chart" viewB'
    """
    last = max(point[0] for line in lines for point in line.points) or 1.0
    values = [point[1] for line in lines for point in line.points]
    low, high = limits or (min(values), max(values))
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    low, high = low - margin, high + margin

    def across(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / last

    def up(value: float) -> float:
        share = (min(high, max(low, value)) - low) / (high - low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    parts = [
        f'<svg class="rs-chart" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" aria-label="{escaped(y)}, over {escaped(x)}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">',
        *_axes(across, up, last, (low, high), x, y),
        *(_drawn(line, across, up) for line in lines),
        "</svg>",
    ]
    return "".join(parts)


def legend(lines: Iterable[Line]) -> str:
    """Return the names of the lines that have one, each behind a piece of its line."""
    items = "".join(
        f"<li>{swatch(line.number)} {escaped(short(line.label, LONGEST_LABEL))}</li>"
        for line in lines
        if line.label
    )
    return f'<ul class="rs-legend">{items}</ul>' if items else ""


def swatch(number: int | None) -> str:
    """Return a piece of the line that has this number."""
    return (
        '<svg viewBox="0 0 24 10" width="24" height="10" aria-hidden="true">'
        f'<path d="M0 5H24" {_stroke(number)}/></svg>'
    )


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Return at most so many of the points, the first and the last among them.

    Examples
    --------
    >>> thinned([(k, 0.0) for k in range(9)], 3)
    [(0, 0.0), (4, 0.0), (8, 0.0)]
    """
    if len(points) <= most:
        return list(points)
    step = (len(points) - 1) / (most - 1)
    return [points[round(k * step)] for k in range(most)]


def steps(points: Sequence[Point]) -> list[Point]:
    """Return the corners of a line that keeps each value until the next point.

    Examples
    --------
    >>> steps([(0, 1.0), (5, 2.0)])
    [(0, 1.0), (5, 1.0), (5, 2.0)]
    """
    corners = list(points[:1])
    for (_, before), (x, value) in pairwise(points):
        corners += [(x, before), (x, value)] if value != before else [(x, value)]
    return corners


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers in a range, about so many.

    Examples
    --------
    >>> ticks(0.0, 60.0, 4), ticks(0.83, 0.97, 4)
    ([0.0, 20.0, 40.0, 60.0], [0.85, 0.9, 0.95])
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def _axes(
    across: Callable[[float], float],
    up: Callable[[float], float],
    last: float,
    limits: tuple[float, float],
    x: str,
    y: str,
) -> Iterable[str]:
    for value in ticks(*limits, 6):
        at = up(value)
        yield (
            f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="currentColor" '
            'stroke-opacity="0.2"/>'
            f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">'
            f"{value:.5g}</text>"
        )
    for value in ticks(0.0, last, 5):
        yield (
            f'<text x="{across(value):.1f}" y="{HEIGHT - BOTTOM + 16}" '
            f'text-anchor="middle">{value:,.10g}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield (
        f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escaped(x)}</text>'
    )
    height = (TOP + HEIGHT - BOTTOM) / 2
    yield (
        f'<text transform="translate(12 {height}) rotate(-90)" '
        f'text-anchor="middle">{escaped(y)}</text>'
    )


def _drawn(
    line: Line, across: Callable[[float], float], up: Callable[[float], float]
) -> str:
    corners = [f"{across(x):.1f} {up(y):.1f}" for x, y in line.points]
    path = f'<path d="M{"L".join(corners)}" {_stroke(line.number)}/>'
    if len(corners) > 1:
        return path
    x, y = corners[0].split()
    return f'<circle cx="{x}" cy="{y}" r="2" {_stroke(line.number)}/>'


def _stroke(number: int | None) -> str:
    if number is None:
        return f'fill="none" stroke="{GREY}" stroke-opacity="0.5"'
    colour, dash = number % len(COLOURS), number // len(COLOURS) % len(DASHES)
    dashes = f' stroke-dasharray="{DASHES[dash]}"' if dash else ""
    return (
        f'class="rs-lead-{colour}" fill="none" stroke="{COLOURS[colour]}" '
        f'stroke-width="2"{dashes}'
    )
