"""A search as a notebook shows it: its best arms, without style or script."""

import html
import math
from collections.abc import Sequence

from risingsearch.arms import sign_of
from risingsearch.plotting import words
from risingsearch.plotting.digest import parameter_names
from risingsearch.plotting.result import Row, ShownResult

LISTED = 10  # arms in the table
MOST_PARAMS = 10  # columns of them
LONGEST_CELL = 60


def result_html(result: ShownResult) -> str:
    """Return the summary and the best arms of a ``SearchResult`` as HTML.

    Parameters
    ----------
    result : SearchResult
        The result, or the result so far.

    Returns
    -------
    str
        A ``div`` element.

    Examples
    --------
    >>> from risingsearch import Functions, RisingSearch
    >>> flat = Functions(lambda params, seed: params["top"], lambda state: state)
    >>> search = RisingSearch(flat, [{"top": 0.5}, {"top": 0.7}], budget=2, seed=0)
    >>> "2 of 2 arms opened" in result_html(search.run())
    True
    """
    spent = f"{result.n_epochs:,} epochs used"
    if result.budget is not None:
        spent += f" of a budget of {words.spendable(result.budget)}"
    return search_html(
        result.history,
        result.candidates,
        direction=result.direction,
        metric=result.metric,
        spent=spent,
        standing=result.standing,
    )


def search_html(
    history: Sequence[Row],
    candidates: Sequence[Row],
    *,
    direction: str,
    metric: str,
    spent: str,
    standing: str = "",
) -> str:
    """Return the best arms of a history and a summary, as HTML without scripts.

    Parameters
    ----------
    history : sequence of dict
        One row per epoch, with ``arm``, ``epoch`` and ``score``.
    candidates : sequence of dict
        The parameters of every arm.
    direction : {"maximize", "minimize"}
        Which scores are better.
    metric : str
        The name of the score.
    spent : str
        What the search has spent, for the summary.
    standing : str
        How the best arm stands among all, as a clause.

    Returns
    -------
    str
        A ``div`` element, without style or script.
    """
    sign = sign_of(direction)
    name = html.escape(words.shown_metric(metric))
    n_opened = len({row["arm"] for row in history})
    opened = f"{n_opened:,} of {len(candidates):,} arms opened"
    summary = words.escaped(f"{opened}, {spent}")
    scored = [row for row in history if math.isfinite(row["score"])]
    if not scored:
        return f'<div class="risingsearch"><p>No score yet: {summary}.</p></div>'
    last = {row["arm"]: row["epoch"] for row in scored}
    best: dict[int, Row] = {}  # of equals, the first to reach it
    for row in sorted(scored, key=lambda row: -sign * row["score"]):
        best.setdefault(row["arm"], row)
    shown = list(best.values())[:LISTED]
    first = shown[0]
    names = parameter_names(candidates[row["arm"]] for row in shown)
    listed = names[:MOST_PARAMS]
    head = [
        "arm",
        f"best {name}",
        "at epoch",
        *map(_cell, listed),
    ]
    rows = ""
    for row in shown:
        params = candidates[row["arm"]]
        cells = [
            str(row["arm"]),
            f"{row['score']:.6g}",
            f"{row['epoch']} of {last[row['arm']]}",
        ]
        cells += [_cell(params.get(param, words.NOTHING)) for param in listed]
        rows += f"<tr>{_cells(cells, 'td')}</tr>"
    at = f"arm {first['arm']}, epoch {first['epoch']}"
    best_score = f"Best {name} <strong>{first['score']:.6g}</strong>: {at}"
    summary += f"; {words.escaped(standing)}" if standing else ""
    left_out = len(names) - len(listed)
    more = f"<p>{left_out} parameters more are not shown.</p>" if left_out else ""
    return (
        f'<div class="risingsearch"><p>{best_score}; {summary}.</p>'
        f"<table><thead><tr>{_cells(head, 'th')}</tr></thead>"
        f"<tbody>{rows}</tbody></table>{more}</div>"
    )


def _cells(texts: Sequence[str], tag: str) -> str:
    return "".join(f"<{tag}>{text}</{tag}>" for text in texts)


def _cell(value: object) -> str:
    text = words.as_text(value)
    if isinstance(value, float):
        text = f"{value:.6g}"
    return html.escape(words.short(text, LONGEST_CELL))
