"""A search as a notebook shows it: its best arms, without style or script."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from risingsearch.arms import sign_of
from risingsearch.plotting.words import (
    NOTHING,
    as_text,
    escaped,
    short,
    shown_metric,
    spendable,
)

LISTED = 10  # arms in the table
MOST_PARAMS = 10  # columns of them
LONGEST_CELL = 60

Point = tuple[int, float]


def result_html(result: Any) -> str:
    """Return the summary and the best arms of a ``SearchResult`` as HTML.

    Examples
    --------
    >>> from risingsearch import Functions, RisingSearch
    >>> search = RisingSearch(Functions(dict, len), [{"top": 0.5}], budget=9)
    >>> print(result_html(search.result()))
    <div class="risingsearch"><p>No score yet: 0 of 1 arms opened, 0 epochs used of a
    budget of 9 epochs.</p></div>
    """
    of = "" if result.budget is None else f" of a budget of {spendable(result.budget)}"
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
    """Return the summary and the best arms of a history as HTML.

    Parameters
    ----------
    history : sequence of dict
        One row per epoch in the order told, with ``arm``, ``epoch`` and ``score``.
    candidates : sequence of dict
        The parameters of every arm.
    direction : {"maximize", "minimize"}
        Which scores are the better ones.
    metric : str
        What the score is called.
    spent : str
        In words, what the search has used.

    Returns
    -------
    str
        HTML without scripts, styles or requests; what users wrote is escaped.
    """
    sign = sign_of(direction)
    last: dict[int, int] = {}  # epoch with a score, by arm; 0 without one
    best: dict[int, Point] = {}  # in the order reached, by which ties are broken
    for row in history:
        arm, point = row["arm"], (row["epoch"], row["score"])
        last.setdefault(arm, 0)
        if math.isfinite(row["score"]):
            last[arm] = row["epoch"]
            if arm not in best or sign * point[1] > sign * best[arm][1]:
                best.pop(arm, None)
                best[arm] = point
    ranked = sorted(best, key=lambda arm: -sign * best[arm][1])
    summary = f"{len(last):,} of {len(candidates):,} arms opened, {spent}"
    name = html.escape(shown_metric(metric))
    if not ranked:
        return _whole(f"No score yet: {escaped(summary)}.")
    epoch, score = best[ranked[0]]
    found = f"Best {name} <strong>{score:.6g}</strong>: arm {ranked[0]}, epoch {epoch}"
    table = _table(ranked, best, last, candidates, name)
    return _whole(f"{found}; {escaped(summary)}.", table)


def _whole(summary: str, *parts: str) -> str:
    return f'<div class="risingsearch"><p>{summary}</p>{"".join(parts)}</div>'


def _table(
    ranked: Sequence[int],
    best: Mapping[int, Point],
    last: Mapping[int, int],
    candidates: Sequence[Mapping[str, Any]],
    metric: str,
) -> str:
    shown = ranked[:LISTED]
    names = list(dict.fromkeys(name for arm in shown for name in candidates[arm]))
    listed = names[:MOST_PARAMS]
    params = "".join(f"<th>{_cell(name)}</th>" for name in listed)
    head = f"<th>arm</th><th>best {metric}</th><th>at epoch</th>{params}"
    rows = []
    for arm in shown:
        epoch, score = best[arm]
        values = "".join(f"<td>{_value(candidates[arm], name)}</td>" for name in listed)
        rows.append(
            f"<tr><td>{arm}</td><td>{score:.6g}</td>"
            f"<td>{epoch} of {last[arm]}</td>{values}</tr>"
        )
    left_out = len(names) - len(listed)
    more = f"<p>{left_out} parameters more are not shown.</p>" if left_out else ""
    return (
        f"<table><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>{more}"
    )


def _value(params: Mapping[str, Any], name: str) -> str:
    if name not in params:
        return NOTHING
    value = params[name]
    return _cell(f"{value:.6g}" if isinstance(value, float) else value)


def _cell(value: Any) -> str:
    return html.escape(short(as_text(value), LONGEST_CELL))
