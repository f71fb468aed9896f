"""A page about a search: one HTML file that needs nothing else, not even a network.

The page's text, style and program are files in ``page``. Text of a user
reaches them in two ways only: escaped for HTML, or as JSON that cannot end its element.
The page's own policy refuses every other program, and every request.
"""

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path

from risingsearch.arms import sign_of
from risingsearch.checks import checked_path, on_one_line
from risingsearch.plotting import sections
from risingsearch.plotting.digest import (
    Lost,
    Value,
    column,
    in_short,
    lost_jobs,
    other_metrics,
    parameter_names,
    projections,
    recorded_columns,
    scale_of,
    values_of,
)
from risingsearch.plotting.importance import Importances, parameter_importance
from risingsearch.plotting.parts import embedded, own_page, part
from risingsearch.plotting.result import ShownResult
from risingsearch.plotting.words import (
    LONGEST_NAME,
    as_text,
    described,
    duration,
    number,
    shown_metric,
    spendable,
)
from risingsearch.storage.files import atomic_write

PROGRAM = (
    "dom.js",
    "progress.js",
    "data.js",
    "figures.js",
    "strip.js",
    "curves.js",
    "parallel.js",
    "table.js",
    "page.js",
)
MOST_FAILURES = 500  # of which the page holds the texts


def write_report(
    result: ShownResult,
    path: str | Path,
    *,
    title: str = "Search report",
    settings: Mapping[str, object] | None = None,
    space: Mapping[str, str] | None = None,
) -> Path:
    """Write one HTML file about a search, its arms and costs, and return its path.

    ``docs/results.md`` lists its parts. It can be mailed and opened anywhere. The
    same result gives the same bytes.

    Parameters
    ----------
    result : SearchResult
        The result of a search, or the result so far.
    path : path
        The file; replaced if it is there.
    title : str, default "Search report"
        The page's heading.
    settings : dict, optional
        Other facts of the summary, such as ``policy``, ``command`` and ``seed``.
        A whole number called ``max_epochs`` also says how far an arm could have gone,
        for the ends expected and the cost of full training; by default that of
        the search, or else the most that one arm has been charged.
    space : dict of str to str, optional
        The text of the space, by parameter; by default the values that the
        candidates have.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    OSError
        If it cannot be written; then nothing has changed.

    Examples
    --------
    >>> import tempfile
    >>> from risingsearch import Functions, RisingSearch
    >>> flat = Functions(lambda params, seed: params["top"], lambda state: state)
    >>> search = RisingSearch(flat, [{"top": 0.5}, {"top": 0.7}], budget=2, seed=0)
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_report(search.run(), folder / "report.html").name
    'report.html'
    """
    path = checked_path("path", path)
    page = report_page(
        result,
        title=title,
        settings=settings or {},
        space=space,
    )
    atomic_write(path, page.encode("utf-8", "replace"))
    return path


def report_page(
    result: ShownResult,
    *,
    title: str,
    settings: Mapping[str, object],
    space: Mapping[str, str] | None,
    version: str | None = None,
    importances: Importances | None = None,
) -> str:
    """Return the page that ``write_report`` writes.

    Parameters
    ----------
    result, title, settings, space
        As in ``write_report``.
    version : str, optional
        As in ``own_page``, of a page that follows a search.
    importances : Importances, optional
        Those of the result, by default computed now.

    Returns
    -------
    str
        The page.
    """
    importances = importances or parameter_importance(result)
    known = settings.get("max_epochs")
    lost = lost_jobs(result)
    most = known if isinstance(known, Integral) else result.max_epochs
    most = int(most or max((arm.charged for arm in result.arms), default=0))
    names = parameter_names(result.candidates)
    values = {name: values_of(result.candidates, name) for name in names}
    if not space:
        space = {name: in_short(_present(each)) for name, each in values.items()}
    best = html.escape(_why_nothing(result, lost))
    if result.best_arm is not None:
        at = f"arm {result.best_arm}, epoch {result.best_epoch}"
        metric = html.escape(shown_metric(result.metric))
        best = f"Best {metric} <strong>{result.best_score:.6g}</strong>: {at}"
    return own_page(
        "page.html",
        as_text(title),
        "\n".join(part(name) for name in PROGRAM),
        version=version,
        best=best,
        facts=described([*facts_of(result), *settings.items()]),
        params=described(result.best_params.items()),
        space=described(space.items()),
        cost=sections.cost_section(sections.costs(result, most), most),
        importance=sections.importance_section(importances),
        failures=_failures(lost),
        data=embedded(
            {
                **_arms(result, values),
                "mattering": [parameter.name for parameter in importances.parameters],
                "recorded": recorded_columns(result),
                "progress": sections.progress_charts({"": result}),
                "projections": projections(result, most),
            }
        ),
    )


def facts_of(result: ShownResult) -> Iterator[tuple[str, object]]:
    """Yield the facts about a search that its page and a comparison show."""
    statuses = Counter(arm.status for arm in result.arms)
    opened = len(result.arms) - statuses.pop("unopened", 0)
    yield "metric", f"{shown_metric(result.metric)}, to {result.direction}"
    if result.best_arm is not None:
        yield "standing", result.standing
    for arm, scores in result.repeats.items():
        repeated = ", ".join(f"{score:.4g}" for score in scores)
        yield f"repeats of arm {arm}", repeated
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
        yield "wall-clock time", duration(result.wall_seconds)
    yield "time in training", duration(result.training_seconds)
    yield "stopped because", result.stop_reason
    yield from prior_facts(result.trust_in_prior, result.opened_by_prior)
    if result.left_out is not None:
        yield "left out", result.left_out


def _why_nothing(result: ShownResult, lost: Sequence[Lost]) -> str:
    """Say why a search has no best epoch."""
    if not lost:
        return f"No epoch has been recorded: {result.stop_reason}."
    _, _, first = lost[0]
    which = "The failure" if len(lost) == 1 else f"The first of {len(lost):,} failures"
    nothing = f"No epoch has had a finite {shown_metric(result.metric)}."
    return f"{nothing} {which}: {as_text(first)}"


def prior_facts(
    trust: Mapping[str, float], opened: Sequence[int]
) -> Iterator[tuple[str, str]]:
    """Yield the facts on earlier searches, if there were any: for page and terminal."""
    for name, share in trust.items():
        yield f"trust in {on_one_line(name, LONGEST_NAME)}", f"{share:.2f}"
    if trust:
        numbers = ""
        if opened:
            numbers = f" ({', '.join(map(str, opened))})"
        yield "arms opened by prior", f"{len(opened)}{numbers}"


def _failures(lost: Sequence[Lost]) -> str:
    rows = "\n".join(
        f"<tr><td>{arm}</td><td>{epochs}</td><td><pre>{html.escape(text)}</pre></td></tr>"
        for arm, epochs, text in lost[:MOST_FAILURES]
    )
    if len(lost) > MOST_FAILURES:
        left_out = f"{len(lost) - MOST_FAILURES:,} more are not shown."
        rows += f'\n<tr><td colspan="3">{left_out}</td></tr>'
    return rows or '<tr><td colspan="3">None.</td></tr>'


def _present(values: Iterable[Value | None]) -> list[Value]:
    return [value for value in values if value is not None]


def _arms(
    result: ShownResult, values: Mapping[str, Sequence[Value | None]]
) -> dict[str, object]:
    """Return the arms and their parameters: as columns, because they are short."""
    arms = result.arms
    others = other_metrics(result)
    return {
        "maximize": sign_of(result.direction) > 0.0,
        "metric": shown_metric(result.metric),
        "bestArm": result.best_arm,
        "hasPrior": bool(result.trust_in_prior),
        "arms": {
            "status": column(arm.status for arm in arms),
            "why": column(as_text(arm.reason) for arm in arms),
            "epochs": [arm.epochs for arm in arms],
            "best": [number(arm.best_score) for arm in arms],
            "bestEpoch": [arm.best_epoch or None for arm in arms],
        },
        "params": [{"name": as_text(n)} | column(each) for n, each in values.items()],
        "scales": [scale_of(_present(each)) for each in values.values()],
        "others": others,
        "othersLeftOut": len(result.other_metrics) - len(others),
    }
