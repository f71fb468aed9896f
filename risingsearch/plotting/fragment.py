"""A search as a notebook shows it: its best arms, without style or script."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from risingsearch.arms import sign_of
from risingsearch.plotting import words

LISTED = 10  # arms in the table
MOST_PARAMS = 10  # columns of them
LONGEST_CELL = 60


def result_html(result: Any) -> str:
    """Return the summary and the best arms of a ``SearchResult`` as HTML."""
    of = (
        ""
        if result.budget is None
        else f" of a budget of {words.spendable(result.budget)}"
    )
    return search_html(
        result.history,
        result.candidates,
        direction=result.direction,
        metric=result.metric,
        spent=f"{result.n_epochs:,} epochs used{of}",
    )


def search_html(
    history: Sequence[Mapping[str, Any]],
    candidates: Sequence[Mapping[str, Any]],
    *,
    direction: str,
    metric: str,
    spent: str,
) -> str:
    """Return the best arms of a history and a summary, as HTML without scripts."""
    sign = sign_of(direction)
    name = html.escape(words.shown_metric(metric))
    n_opened = len({row["arm"] for row in history})
    summary = words.escaped(f"{n_opened:,} of {len(candidates):,} arms opened, {spent}")
    scored = [row for row in history if math.isfinite(row["score"])]
    if not scored:
        return f'<div class="risingsearch"><p>No score yet: {summary}.</p></div>'
    last = {row["arm"]: row["epoch"] for row in scored}
    best: dict[int, Mapping[str, Any]] = {}  # of equals, the first to reach it
    for row in sorted(scored, key=lambda row: -sign * row["score"]):
        best.setdefault(row["arm"], row)
    shown = list(best.values())[:LISTED]
    names = dict.fromkeys(name for row in shown for name in candidates[row["arm"]])
    listed = list(names)[:MOST_PARAMS]
    head = [
        "arm",
        f"best {name}",
        "at epoch",
        *map(_cell, listed),
    ]
    body = [
        [
            *(f"{row['arm']}", f"{row['score']:.6g}"),
            f"{row['epoch']} of {last[row['arm']]}",
            *(
                _cell(candidates[row["arm"]].get(name, words.NOTHING))
                for name in listed
            ),
        ]
        for row in shown
    ]
    at = f"arm {shown[0]['arm']}, epoch {shown[0]['epoch']}"
    found = f"Best {name} <strong>{shown[0]['score']:.6g}</strong>: {at}"
    left_out = len(names) - len(listed)
    more = f"<p>{left_out} parameters more are not shown.</p>" if left_out else ""
    rows = "".join(f"<tr>{_cells(row, 'td')}</tr>" for row in body)
    return (
        f'<div class="risingsearch"><p>{found}; {summary}.</p>'
        f"<table><thead><tr>{_cells(head, 'th')}</tr></thead>"
        f"<tbody>{rows}</tbody></table>{more}</div>"
    )


def _cells(texts: Sequence[str], tag: str) -> str:
    return "".join(f"<{tag}>{text}</{tag}>" for text in texts)


def _cell(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else words.as_text(value)
    return html.escape(words.short(text, LONGEST_CELL))
