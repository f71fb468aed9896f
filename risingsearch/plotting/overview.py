"""Several runs side by side on one page: how far each has come, and its best score."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from string import Template
from typing import Any, NamedTuple

from risingsearch.arms import sign_of
from risingsearch.plotting.parts import hash_of, part
from risingsearch.plotting.words import escaped, shown_metric

WIDTH, HEIGHT, LABELS = 320, 110, 14
"""Of the drawing of a run, in its own units, and of its lines of text."""
MOST_POINTS = 160


class Row(NamedTuple):
    """What the overview shows of a run."""

    title: str
    link: str
    state: str  # in a word
    words: str  # how it is doing
    share: float  # of the budget that is spent
    result: Any  # SearchResult; None while nothing is written


def overview_page(title: str, rows: Sequence[Row]) -> str:
    """Return a page about several runs.

    Where all have the same metric and direction, they are drawn on one scale.
    """
    curves = [_best_so_far(row.result) for row in rows]
    scores = {(r.metric, r.direction) for row in rows if (r := row.result) is not None}
    common = [score for curve in curves for score in curve if math.isfinite(score)]
    longest = max(map(len, curves), default=0)
    shared = (longest, common) if len(scores) == 1 else None
    cards = [_card(row, curve, shared) for row, curve in zip(rows, curves, strict=True)]
    note = "Best score so far against the epochs spent"
    note += ", all on one scale." if shared else ", each on a scale of its own."
    content = f'<p class="note">{note}</p>\n<div class="runs">{"".join(cards)}</div>'
    return _page(title, content)


def note_page(title: str, note: str) -> str:
    """Return a page that says why there is nothing to show."""
    return _page(title, f'<p class="note">{html.escape(note)}</p>')


def _page(title: str, content: str) -> str:
    style = part("page.css") + part("overview.css")
    return Template(part("overview.html")).substitute(
        allowed=f"style-src {hash_of(style)}",
        title=escaped(title),
        style=style,
        content=content,
    )


def _card(
    row: Row, curve: Sequence[float], shared: tuple[int, list[float]] | None
) -> str:
    link = f'<a href="{html.escape(row.link)}" target="_top">{escaped(row.title)}</a>'
    result, best, drawing = row.result, "", ""
    if result is not None and result.best_arm is not None:
        at = f"arm {result.best_arm}, epoch {result.best_epoch}"
        metric = html.escape(shown_metric(result.metric))
        best = f"Best {metric} <strong>{result.best_score:.6g}</strong>: {at}"
        n_epochs, scores = shared or (len(curve), [s for s in curve if s == s])
        drawing = _drawing(curve, n_epochs, min(scores), max(scores))
    return (
        f'<section class="run" data-state="{row.state}"><h2>{link}</h2>'
        f'<p class="best">{best}</p>{drawing}'
        f'<progress max="1" value="{min(1.0, row.share):.4f}" '
        f'aria-label="share of the budget that is spent"></progress>'
        f'<p class="note">{html.escape(row.words)}</p></section>\n'
    )


def _best_so_far(result: Any) -> list[float]:
    """Return the best score after every epoch of a search, NaN before the first."""
    if result is None:
        return []
    sign, best, curve = sign_of(result.direction), math.nan, []
    for score in result.history["score"] if result.history else ():
        if math.isfinite(score) and not sign * score <= sign * best:
            best = score
        curve.append(best)
    return curve


def _drawing(curve: Sequence[float], n_epochs: int, low: float, high: float) -> str:
    """Return the best score so far as a drawing."""
    top, bottom = LABELS + 2, HEIGHT - LABELS - 2
    wide = WIDTH / max(1, n_epochs)
    tall = (bottom - top - 4) / (high - low) if high > low else 0.0
    last = len(curve) - 1
    every = max(1, len(curve) // MOST_POINTS)
    points = " ".join(
        f"{(k + 1) * wide:.1f},{bottom - 2 - (score - low) * tall:.1f}"
        for k, score in enumerate(curve)
        if score == score and (k % every == 0 or k == last)
    )
    end = f"{n_epochs:,} epochs"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="best so far, from {low:.6g} to {high:.6g}">'
        f'<rect x="0.5" y="{top}" width="{WIDTH - 1}" height="{bottom - top}"/>'
        f'<polyline points="{points}"/>'
        f'<text x="0" y="{LABELS - 3}">{high:.6g}</text>'
        f'<text x="0" y="{HEIGHT - 3}">{low:.6g}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 3}" text-anchor="end">{end}</text></svg>'
    )
