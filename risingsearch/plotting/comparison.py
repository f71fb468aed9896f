"""A page about several searches: their results and costs."""

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from risingsearch.checks import on_one_line
from risingsearch.errors import InvalidParameterError
from risingsearch.paths import checked_path
from risingsearch.plotting.fragment import result_html
from risingsearch.plotting.html_report import facts_of
from risingsearch.plotting.parts import embedded, own_page, part
from risingsearch.plotting.sections import progress_charts, table
from risingsearch.plotting.words import LONGEST_NAME, NOTHING, as_text, escaped
from risingsearch.storage.files import atomic_write

Row = tuple[str, Sequence[Any]]


def write_comparison(
    results: Mapping[str, Any],
    path: str | Path,
    *,
    title: str = "Comparison of searches",
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Path:
    """Write one HTML file about several searches, side by side; return its path.

    ``docs/results.md`` lists its parts.

    Parameters
    ----------
    results : dict of str to SearchResult
        The results of the searches, by name: at least two.
    path : path
        The file; replaced if it is there.
    title : str, default "Comparison of searches"
        The page's heading.
    settings : dict of str to dict, optional
        Other rows of the table about a search, such as ``policy`` and ``seed``.

    Raises
    ------
    InvalidParameterError
        If there are fewer than two searches.
    OSError
        If the file cannot be written; then nothing has changed.
    """
    if len(results) < 2:
        msg = f"a comparison needs at least two searches; got {len(results)}"
        raise InvalidParameterError(msg)
    page = comparison_page(
        results,
        title=title,
        settings=settings,
    )
    path = checked_path("path", path)
    atomic_write(path, page.encode("utf-8", "replace"))
    return path


def comparison_page(
    results: Mapping[str, Any],
    *,
    title: str,
    settings: Mapping[str, Mapping[str, Any]] | None,
    version: str | None = None,
) -> str:
    """Return the page that ``write_comparison`` writes; see ``own_page``."""
    return own_page(
        "comparison.html",
        as_text(title),
        "\n".join([part("dom.js"), part("progress.js")]),
        version=version,
        facts=_side_by_side(results, _facts(results, settings or {})),
        winners=_winners(results),
        data=embedded({"progress": _progress(results)}),
        runs="\n".join(
            f"<details><summary>{html.escape(on_one_line(name, LONGEST_NAME))}"
            f"</summary>{result_html(result)}</details>"
            for name, result in results.items()
        ),
    )


def _facts(
    results: Mapping[str, Any],
    settings: Mapping[str, Mapping[str, Any]],
) -> Iterable[Row]:
    every = []
    for name, result in results.items():
        facts = dict(facts_of(result))
        best = {
            "best": "",
            "of arm": "",
            "at epoch": "",
        }
        if result.best_arm is not None:
            at = result.best_arm, result.best_epoch
            best = dict(zip(best, (f"{result.best_score:.6g}", *at), strict=True))
        metric = {"metric": facts["metric"]}
        every.append(
            {
                **metric,
                **best,
                **facts,
                **settings.get(name, {}),
            }
        )
    for fact in dict.fromkeys(fact for facts in every for fact in facts):
        yield fact, [facts.get(fact, "") for facts in every]


def _winners(results: Mapping[str, Any]) -> str:
    """Return a table of the parameters in which the best arms differ."""
    best = [result.best_params for result in results.values()]
    names = dict.fromkeys(name for params in best for name in params)
    rows: list[Row] = [
        (name, [as_text(one[name]) if name in one else "" for one in best])
        for name in names
    ]
    differ = [row for row in rows if len(set(row[1])) > 1]
    same = [
        f"{as_text(name)} {values[0]}" for name, values in rows if len(set(values)) == 1
    ]
    note = f"The same in all: {escaped(', '.join(same))}." if same else ""
    if not differ:
        return f'<p class="note">They do not differ. {note}</p>'
    return f'{_side_by_side(results, differ)}<p class="note">{note}</p>'


def _side_by_side(results: Mapping[str, Any], rows: Iterable[Row]) -> str:
    body = "".join(
        f'<tr><th scope="row">{escaped(name)}</th>'
        + "".join(f"<td>{escaped(value) or NOTHING}</td>" for value in values)
        + "</tr>"
        for name, values in rows
    )
    return table(["", *(on_one_line(name, LONGEST_NAME) for name in results)], body)


def _progress(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the best scores so far over each other, for each metric by itself."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for name, result in results.items():
        group = groups.setdefault((result.metric, result.direction), {})
        group[on_one_line(name, LONGEST_NAME)] = result
    return [chart for runs in groups.values() for chart in progress_charts(runs)]
