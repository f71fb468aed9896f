"""Several runs side by side on one page: how far each has come, and its best score."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

from risingsearch.plotting.charts import Point, steps, thinned
from risingsearch.plotting.parts import own_page, part
from risingsearch.plotting.words import as_text, escaped, shown_metric

WIDTH, HEIGHT, LABELS = 320, 110, 14
"""Of the drawing of a run, in its own units, and of its lines of text."""
MOST_POINTS = 300


class Row(NamedTuple):
    """What the overview shows of a run."""

    title: str
    link: str
    state: str  # in a word
    words: str  # how it is doing
    share: float  # of the budget that is spent
    result: Any  # SearchResult; None while nothing is written
    curve: Sequence[Point]  # the best score so far against the epochs told


def overview_page(title: str, rows: Sequence[Row], comparison: str) -> str:
    """Return a page about several runs, with a link to their comparison.

    Where all have the same metric and direction, they are drawn on one scale.
    """
    scores = {(r.metric, r.direction) for row in rows if (r := row.result) is not None}
    common = [point for row in rows for point in row.curve]
    alike = len(scores) == 1
    cards = [_card(row, common if alike else row.curve) for row in rows]
    note = "Best score so far against the epochs spent"
    note += ", all on one scale." if alike else ", each on a scale of its own."
    link = f'<a href="{html.escape(comparison)}" target="_top">Compare the runs</a>'
    content = f"""<p class="note">{note}</p>
<p>{link}: what each has found, what that took, and in what the best arms differ.</p>
<div class="runs">{"".join(cards)}</div>"""
    return _page(title, content)


def note_page(title: str, note: str) -> str:
    """Return a page that says why there is nothing to show."""
    return _page(title, f'<p class="note">{html.escape(note)}</p>')


def _page(title: str, content: str) -> str:
    style = part("page.css") + part("overview.css")
    return own_page("overview.html", as_text(title), style, content=content)


def _card(row: Row, scale: Sequence[Point]) -> str:
    """Return what is shown of a run; its drawing has room for all points of a scale."""
    link = f'<a href="{html.escape(row.link)}" target="_top">{escaped(row.title)}</a>'
    result, best, drawing = row.result, "", ""
    if result is not None and result.best_arm is not None:
        at = f"arm {result.best_arm}, epoch {result.best_epoch}"
        metric = html.escape(shown_metric(result.metric))
        best = f"Best {metric} <strong>{result.best_score:.6g}</strong>: {at}"
        drawing = _drawing(row.curve, scale)
    return (
        f'<section class="run" data-state="{row.state}"><h2>{link}</h2>'
        f'<p class="best">{best}</p>{drawing}'
        f'<progress max="1" value="{min(1.0, row.share):.4f}" '
        f'aria-label="share of the budget that is spent"></progress>'
        f'<p class="note">{html.escape(row.words)}</p></section>\n'
    )


def _drawing(curve: Sequence[Point], scale: Sequence[Point]) -> str:
    """Return the best score so far as a drawing."""
    n_epochs = int(max(told for told, _ in scale))
    low, high = min(best for _, best in scale), max(best for _, best in scale)
    top, bottom = LABELS + 2, HEIGHT - LABELS - 2
    wide = WIDTH / n_epochs
    tall = (bottom - top - 4) / (high - low) if high > low else 0.0
    points = " ".join(
        f"{told * wide:.1f},{bottom - 2 - (best - low) * tall:.1f}"
        for told, best in thinned(steps(curve), MOST_POINTS)
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
