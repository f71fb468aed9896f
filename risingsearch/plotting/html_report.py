"""A page about a search: one HTML file that needs nothing else, not even a network.

The page's text, style and program are files in ``page``. What a user has written
reaches them in two ways only: escaped for HTML, or as JSON that cannot end its element.
The page's own policy refuses every other program, and every request.
"""

from __future__ import annotations

import html
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from numbers import Integral, Real
from pathlib import Path
from string import Template
from typing import Any

from risingsearch.arms import sign_of
from risingsearch.checks import on_one_line
from risingsearch.plotting.importance import Importances, parameter_importance
from risingsearch.plotting.parts import hash_of, part
from risingsearch.plotting.scales import is_logarithmic
from risingsearch.plotting.sections import (
    cost_section,
    importance_section,
    progress_section,
)
from risingsearch.plotting.spending import costs
from risingsearch.plotting.words import (
    LONGEST_NAME,
    as_text,
    described,
    duration,
    escaped,
    number,
    plain,
    short,
    shown_metric,
    spendable,
)
from risingsearch.storage.files import write_whole

PROGRAM = (
    "data.js",
    "figures.js",
    "strip.js",
    "curves.js",
    "parallel.js",
    "table.js",
    "page.js",
)
LONGEST_FAILURE = 2000  # characters of a failure's text
MOST_FAILURES = 500  # of which the page holds the texts
MOST_VALUES = 500_000  # of the other metrics, over all epochs
FEW = 8  # values that are listed; of more, the page says how many
MARKS = {"opened": 1, "opened by prior": 8, "revived": 2}  # of a job's first epoch
FAILED = 4  # added to the mark of an epoch without a score


Result = Any
"""A ``SearchResult``; its room lies above this one."""


def write_report(
    result: Result,
    path: str | Path,
    *,
    title: str = "Search report",
    settings: Mapping[str, Any] | None = None,
    space: Mapping[str, str] | None = None,
) -> Path:
    """Write one HTML file about a search: where its epochs went, what they bought.

    It holds a summary, the search space, the best score against epochs and hours, what
    full training would have cost, how much each parameter matters, all arms in parallel
    coordinates, the allocation of the epochs, all learning curves with the ends that
    the policy expected and those of the other metrics, a table of all arms and the
    failures. It can be mailed and opened anywhere. The same
    result gives the same bytes.

    Parameters
    ----------
    result : SearchResult
        What a search has found, or has found so far.
    path : path
        The file; replaced if it is there.
    title : str, default "Search report"
        The page's heading.
    settings : dict, optional
        What else the summary should name, such as ``policy``, ``command`` and ``seed``.
        A whole number called ``max_epochs`` also says how far an arm could have gone,
        for the ends expected and the cost of full training; by default what the search
        was given, or else the most that one arm has been charged.
    space : dict of str to str, optional
        What was searched, by parameter, in words; by default the values that the
        candidates have.

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
    page = report_page(result, title=title, settings=settings, space=space)
    write_whole(path, [page.encode("utf-8", "replace")])
    return path


def report_page(
    result: Result,
    *,
    title: str,
    settings: Mapping[str, Any] | None = None,
    space: Mapping[str, str] | None = None,
) -> str:
    """Return the page that ``write_report`` writes."""
    return _render(result, title, settings or {}, space or _searched(result.candidates))


def _render(
    result: Result, title: str, settings: Mapping[str, Any], space: Mapping[str, str]
) -> str:
    style, program = part("page.css"), "\n".join(part(name) for name in PROGRAM)
    most, importances = _most_epochs(result, settings), parameter_importance(result)
    lost = _lost(result)
    best = html.escape(_why_nothing(result, lost))
    if result.best_arm is not None:
        at = f"arm {result.best_arm}, epoch {result.best_epoch}"
        metric = html.escape(shown_metric(result.metric))
        best = f"Best {metric} <strong>{result.best_score:.6g}</strong>: {at}"
    return Template(part("page.html")).substitute(
        allowed=f"style-src {hash_of(style)}; script-src {hash_of(program)}",
        title=escaped(title),
        best=best,
        facts=described(_facts(result, settings)),
        params=described(result.best_params.items()),
        space=described(space.items()),
        cost=cost_section(costs(result, most), most),
        progress=progress_section(result),
        importance=importance_section(importances),
        failures=_failures(lost),
        data=_embedded(_data(result, most, importances)),
        style=style,
        program=program,
    )


def _embedded(data: Any) -> str:
    """Return JSON that cannot leave its script element."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&":  # all that is not ASCII is escaped already
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _facts(result: Result, settings: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    statuses = Counter(arm.status for arm in result.arms)
    opened = len(result.arms) - statuses.pop("unopened", 0)
    yield "metric", f"{shown_metric(result.metric)}, to {result.direction}"
    yield "arms opened", f"{opened:,} of {len(result.arms):,}"
    for status in ("finished", "paused", "running", "failed"):
        if statuses[status] or status != "running":
            yield f"arms {status}", f"{statuses[status]:,}"
    yield "epochs used", f"{result.n_epochs:,}"
    if result.budget is not None:
        yield "budget", spendable(result.budget)
    if result.begun is not None:
        yield "begun", str(result.begun).replace("T", " ")
    if math.isfinite(result.wall_seconds):
        yield "time by the clock", duration(result.wall_seconds)
    yield "time in training", duration(result.training_seconds)
    yield "stopped because", result.stop_reason
    yield from prior_facts(result)
    if result.left_out is not None:
        yield "left out", result.left_out
    yield from settings.items()


def _why_nothing(result: Result, lost: Sequence[tuple[int, str, str]]) -> str:
    """Say why a search has no best epoch."""
    if not lost:
        return f"No epoch has been recorded: {result.stop_reason}."
    _, _, first = lost[0]
    which = "The failure" if len(lost) == 1 else f"The first of {len(lost):,} failures"
    nothing = f"No epoch has had a finite {shown_metric(result.metric)}."
    return f"{nothing} {which}: {as_text(first)}"


def _searched(candidates: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return in words which values the candidates have, by parameter."""
    names = dict.fromkeys(name for params in candidates for name in params)
    return {
        name: _in_words([plain(p[name]) for p in candidates if name in p])
        for name in names
    }


def _in_words(values: Iterable[float | str]) -> str:
    """Return a few values one by one, and of more numbers how far they reach.

    >>> _in_words(["sgd", "adam", "sgd"]), _in_words(k / 100 for k in range(30))
    ('sgd, adam', '0 to 0.29, 30 values')
    """
    distinct = list(dict.fromkeys(values))
    numbers = [value for value in distinct if not isinstance(value, str)]
    if len(distinct) > FEW:
        n = f"{len(distinct):,} values"
        if len(numbers) < len(distinct):
            return n
        return f"{min(numbers):.6g} to {max(numbers):.6g}, {n}"
    if len(numbers) == len(distinct):
        distinct = sorted(numbers)
    return ", ".join(v if isinstance(v, str) else f"{v:.6g}" for v in distinct)


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


def _failures(lost: Sequence[tuple[int, str, str]]) -> str:
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
            no_score = f"the {shown_metric(result.metric)} is {bad[-1]['score']}"
            text = bad[-1].get("failure", no_score)
            if report := reports.pop(rows[0]["job"], None):
                text = _raised(report.failure)
            epochs = {str(row["epoch"]): None for row in (bad[0], bad[-1])}
            lost.append((bad[0]["arm"], " to ".join(epochs), text))
    for report in reports.values():  # that are not recorded yet
        epoch = report.job.from_epoch + len(report.scores) + 1
        lost.append((report.job.arm, str(epoch), _raised(report.failure)))
    return [(arm, epochs, short(text, LONGEST_FAILURE)) for arm, epochs, text in lost]


def _raised(failure: BaseException | None) -> str:
    return f"{type(failure).__name__}: {failure}".removesuffix(": ")


def _jobs(result: Result) -> list[list[dict[str, Any]]]:
    """Return the rows of every job, in the order told."""
    return [list(rows) for _, rows in groupby(result.history, lambda row: row["job"])]


def _is_lost(row: dict[str, Any]) -> bool:
    return "failure" in row or not math.isfinite(row["score"])


def _data(result: Result, most: int, importances: Importances) -> dict[str, Any]:
    """Return what the page draws: columns, because they are short."""
    arms, history, others = result.arms, result.history, _others(result)
    names = dict.fromkeys(name for params in result.candidates for name in params)
    marks = (
        MARKS.get(row["reason"], 0) * (k == 0) + FAILED * _is_lost(row)
        for rows in _jobs(result)
        for k, row in enumerate(rows)
    )
    return {
        "maximize": sign_of(result.direction) > 0.0,
        "metric": shown_metric(result.metric),
        "bestArm": result.best_arm,
        "hasPrior": bool(result.trust_in_prior),
        "arms": {
            "status": _column(arm.status for arm in arms),
            "why": _column(as_text(arm.reason) for arm in arms),
            "epochs": [arm.epochs for arm in arms],
            "best": [number(arm.best_score) for arm in arms],
            "bestEpoch": [arm.best_epoch or None for arm in arms],
        },
        "params": [
            {"name": as_text(name)}
            | _column(plain(p[name]) if name in p else None for p in result.candidates)
            for name in names
        ],
        "scales": [
            _scale([plain(p[name]) for p in result.candidates if name in p])
            for name in names
        ],
        "mattering": [parameter.name for parameter in importances.parameters],
        "told": {
            "arm": [row["arm"] for row in history],
            "epoch": [row["epoch"] for row in history],
            "score": [number(row["score"]) for row in history],
            "marks": "".join(f"{mark:x}" for mark in marks),
        },
        "others": others,
        "othersLeftOut": len(result.other_metrics) - len(others),
        "projections": _projections(result, most),
    }


def _others(result: Result) -> list[dict[str, Any]]:
    """Return the metrics that can be drawn in the place of the score."""
    most = MOST_VALUES // max(1, len(result.history))
    return [
        {
            "name": shown_metric(name),
            "values": [number(row.get(name), 6) for row in result.history],
        }
        for name in result.other_metrics[:most]
    ]


def _column(values: Iterable[Any]) -> dict[str, Any]:
    """Return the distinct values, and which of them stands where."""
    place: dict[Any, int] = {}
    at = [place.setdefault(value, len(place)) for value in values]
    return {"distinct": list(place), "at": at}


def _scale(values: Sequence[float | str]) -> str:
    """Return how an axis of these values is spread."""
    numbers = [value for value in values if not isinstance(value, str)]
    if len(numbers) < len(values):
        return "categories"
    return "log" if is_logarithmic(numbers) else "linear"


def _most_epochs(result: Result, settings: Mapping[str, Any]) -> int:
    """Return how many epochs an arm could have trained, as far as that is known."""
    given = _whole(settings.get("max_epochs")) or result.max_epochs
    return given or max((arm.charged for arm in result.arms), default=0)


def _projections(result: Result, limit: int) -> list[list[Any]]:
    """Return arm, epoch, level, last epoch and end of every arm's last projection."""
    sign = sign_of(result.direction)
    epochs = None if result.budget is None else result.budget.epochs
    budget = max(result.n_epochs, epochs or 0)
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
