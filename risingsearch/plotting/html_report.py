"""A page about a search: one HTML file that needs nothing else, not even a network.

The page's text, style and program are files in ``page``. What a user has written
reaches them in two ways only: escaped for HTML, or as JSON that cannot end its element.
The page's own policy refuses every other program, and every request.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from itertools import groupby
from numbers import Integral, Real
from pathlib import Path
from string import Template
from typing import Any

from risingsearch.arms import sign_of
from risingsearch.checks import on_one_line
from risingsearch.storage.files import write_whole

PROGRAM = ("data.js", "figures.js", "strip.js", "curves.js", "table.js", "page.js")
LONGEST_VALUE = 200  # characters of a parameter or a reason
LONGEST_NAME = 40  # characters of an earlier search
LONGEST_IN_COLUMN = 60  # characters of a fact; a longer one gets a line to itself
LONGEST_FAILURE = 2000  # characters of a failure's text
MOST_FAILURES = 500  # of which the page holds the texts
LARGEST_WHOLE = 2**53  # up to here, a browser reads whole numbers as they are
MARKS = {"opened": 1, "opened by prior": 1, "revived": 2}  # of a job's first epoch
FAILED = 4  # added to the mark of an epoch without a score


Result = Any
"""A ``SearchResult``; its room lies above this one."""


def write_report(
    result: Result,
    path: str | Path,
    *,
    title: str = "Search report",
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Write one HTML file about a search: where its epochs went, what they bought.

    It holds a summary, the allocation of the epochs, all learning curves with the ends
    that the policy expected, a table of all arms and the failures. It can be mailed and
    opened anywhere. The same result gives the same bytes.

    Parameters
    ----------
    result : SearchResult
        What a search has found, or has found so far.
    path : path
        The file; replaced if it is there.
    title : str, default "Search report"
        The page's heading.
    settings : dict, optional
        What else the summary should name, such as ``policy``, ``budget`` and ``seed``.
        Whole numbers called ``budget`` and ``max_epochs`` also say how far an arm could
        have gone, for the ends expected; by default the epochs charged, and the most
        that one arm has been charged.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OSError
        If it cannot be written; then nothing has changed.
    """
    path = Path(path)
    page = _render(result, title, settings or {})
    write_whole(path, [page.encode("utf-8", "replace")])
    return path


def _render(result: Result, title: str, settings: Mapping[str, Any]) -> str:
    style, program = _part("page.css"), "\n".join(_part(name) for name in PROGRAM)
    best = "No epoch has had a finite score."
    if result.best_arm is not None:
        at = f"arm {result.best_arm}, epoch {result.best_epoch}"
        best = f"Best score <strong>{result.best_score:.6g}</strong>: {at}"
    return Template(_part("page.html")).substitute(
        allowed=f"style-src {_hash_of(style)}; script-src {_hash_of(program)}",
        title=_escaped(title),
        best=best,
        facts=_described(_facts(result, settings)),
        params=_described(result.best_params.items()),
        failures=_failures(result),
        data=_embedded(_data(result, settings)),
        style=style,
        program=program,
    )


def _part(name: str) -> str:
    page = resources.files("risingsearch.plotting") / "page"
    return (page / name).read_text(encoding="utf-8")


def _hash_of(source: str) -> str:
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _embedded(data: Any) -> str:
    """Return JSON that cannot leave its script element."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&":  # all that is not ASCII is escaped already
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _text(value: Any) -> str:
    """Return any value as a text of one line."""
    try:
        text = " ".join(str(value).split())
    except Exception:
        text = f"a {type(value).__name__} that cannot be shown"
    return _short(text, LONGEST_VALUE)


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def _escaped(value: Any) -> str:
    return html.escape(_text(value))


def _described(facts: Iterable[tuple[Any, Any]]) -> str:
    """Return names and values as items of a description list."""
    items = []
    for name, value in facts:
        text = _text(value)
        wide = ' class="wide"' if len(text) > LONGEST_IN_COLUMN else ""
        dd = f"<dd>{html.escape(text)}</dd>"
        items.append(f"<div{wide}><dt>{_escaped(name)}</dt>{dd}</div>")
    return "\n".join(items)


def _facts(result: Result, settings: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    statuses = Counter(arm.status for arm in result.arms)
    opened = len(result.arms) - statuses.pop("unopened", 0)
    seconds = sum(s for s in result.history["seconds"] if math.isfinite(s))
    yield "arms opened", f"{opened:,} of {len(result.arms):,}"
    for status in ("finished", "paused", "running", "failed"):
        if statuses[status] or status != "running":
            yield f"arms {status}", f"{statuses[status]:,}"
    yield "epochs used", f"{result.n_epochs:,}"
    yield "time in training", f"{seconds:,.1f} s"
    yield "direction", result.direction
    yield "stopped because", result.stop_reason
    yield from prior_facts(result)
    if result.left_out is not None:
        yield "left out", result.left_out
    yield from settings.items()


def prior_facts(result: Result) -> Iterator[tuple[str, str]]:
    """Yield what came of earlier searches, if there were any: for page and terminal.

    How far each is trusted, and the arms that were opened for what they say together.
    """
    for name, share in result.trust_in_prior.items():
        yield f"trust in {on_one_line(name, LONGEST_NAME)}", f"{share:.2f}"
    if result.trust_in_prior:
        arms = result.opened_by_prior
        numbers = f" ({', '.join(map(str, arms))})" if arms else ""
        yield "arms opened by prior", f"{len(arms)}{numbers}"


def _failures(result: Result) -> str:
    lost = _lost(result)
    rows = "\n".join(
        f"<tr><td>{arm}</td><td>{epochs}</td><td><pre>{html.escape(text)}</pre></td></tr>"
        for arm, epochs, text in lost[:MOST_FAILURES]
    )
    if len(lost) > MOST_FAILURES:
        left_out = f"{len(lost) - MOST_FAILURES:,} more are not shown."
        rows += f'\n<tr><td colspan="3">{left_out}</td></tr>'
    return rows or '<tr><td colspan="3">None.</td></tr>'


def _lost(result: Result) -> list[tuple[int, str, str]]:
    """Return arm, epochs and text of every job with a failure or without a score."""
    reports = {report.job.id: report for report in result.failures}
    lost = []
    for rows in _jobs(result):
        bad = [row for row in rows if _is_lost(row)]
        if bad:
            text = bad[-1].get("failure", f"the score is {bad[-1]['score']}")
            if report := reports.pop(rows[0]["job"], None):
                text = _raised(report.failure)
            epochs = {str(row["epoch"]): None for row in (bad[0], bad[-1])}
            lost.append((bad[0]["arm"], " to ".join(epochs), text))
    for report in reports.values():  # that are not recorded yet
        epoch = report.job.from_epoch + len(report.scores) + 1
        lost.append((report.job.arm, str(epoch), _raised(report.failure)))
    return [(arm, epochs, _short(text, LONGEST_FAILURE)) for arm, epochs, text in lost]


def _raised(failure: BaseException | None) -> str:
    return f"{type(failure).__name__}: {failure}".removesuffix(": ")


def _jobs(result: Result) -> list[list[dict[str, Any]]]:
    """Return the rows of every job, in the order told."""
    return [list(rows) for _, rows in groupby(result.history, lambda row: row["job"])]


def _is_lost(row: dict[str, Any]) -> bool:
    return "failure" in row or not math.isfinite(row["score"])


def _data(result: Result, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page draws: columns, because they are short."""
    arms, history = result.arms, result.history
    names = dict.fromkeys(name for params in result.candidates for name in params)
    marks = (
        MARKS.get(row["reason"], 0) * (k == 0) + FAILED * _is_lost(row)
        for rows in _jobs(result)
        for k, row in enumerate(rows)
    )
    return {
        "maximize": sign_of(result.direction) > 0.0,
        "bestArm": result.best_arm,
        "arms": {
            "status": _column(arm.status for arm in arms),
            "why": _column(_text(arm.reason) for arm in arms),
            "epochs": [arm.epochs for arm in arms],
            "best": [_number(arm.best_score) for arm in arms],
            "bestEpoch": [arm.best_epoch or None for arm in arms],
        },
        "params": [
            {"name": _text(name)}
            | _column(_plain(p[name]) if name in p else None for p in result.candidates)
            for name in names
        ],
        "told": {
            "arm": [row["arm"] for row in history],
            "epoch": [row["epoch"] for row in history],
            "score": [_number(row["score"]) for row in history],
            "marks": "".join(map(str, marks)),
        },
        "projections": _projections(result, settings),
    }


def _column(values: Iterable[Any]) -> dict[str, Any]:
    """Return the distinct values, and which of them stands where."""
    place: dict[Any, int] = {}
    at = [place.setdefault(value, len(place)) for value in values]
    return {"distinct": list(place), "at": at}


def _plain(value: Any) -> float | str:
    """Return a number that a browser reads as it is, or a text."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value) if abs(int(value)) <= LARGEST_WHOLE else _text(value)
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return _text(value)


def _number(value: float) -> float | None:
    return float(f"{value:.9g}") if math.isfinite(value) else None


def _projections(result: Result, settings: Mapping[str, Any]) -> list[list[Any]]:
    """Return arm, epoch, level, last epoch and end of every arm's last projection."""
    sign = sign_of(result.direction)
    most = max((arm.charged for arm in result.arms), default=0)
    limit = _whole(settings.get("max_epochs")) or most
    budget = max(result.n_epochs, _whole(settings.get("budget")))
    last = {}
    for row, *_ in _jobs(result):
        parts = row.get("recent_average"), row.get("expected_gain")
        level, gain = (float(p) if isinstance(p, Real) else math.nan for p in parts)
        if math.isfinite(level + gain):
            epoch = row["epoch"] - 1
            left = max(0, min(limit - epoch, budget - row["round"] + 1))
            ends = [sign * level, epoch + left, sign * (level + gain)]
            last[row["arm"]] = [row["arm"], epoch, *ends]
    return list(last.values())


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, Integral) else 0
