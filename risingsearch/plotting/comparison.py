"""A page about several searches: their results and costs."""

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from risingsearch.checks import checked_path, on_one_line
from risingsearch.errors import InvalidParameterError
from risingsearch.plotting.digest import parameter_names
from risingsearch.plotting.fragment import result_html
from risingsearch.plotting.html_report import facts_of
from risingsearch.plotting.parts import embedded, own_page, part
from risingsearch.plotting.result import ShownResult
from risingsearch.plotting.sections import progress_charts, table
from risingsearch.plotting.words import (
    LONGEST_NAME,
    NOTHING,
    as_text,
    escaped,
    in_digits,
)
from risingsearch.storage.files import atomic_write

Line = tuple[str, Sequence[object]]


def write_comparison(
    results: Mapping[str, ShownResult],
    path: str | Path,
    *,
    title: str = "Comparison of searches",
    settings: Mapping[str, Mapping[str, object]] | None = None,
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

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    InvalidParameterError
        If there are fewer than two searches.
    OSError
        If the file cannot be written; then nothing has changed.

    Examples
    --------
    >>> import tempfile
    >>> from risingsearch import Functions, RisingSearch
    >>> flat = Functions(lambda params, seed: params["top"], lambda state: state)
    >>> results = {}
    >>> for top in (0.5, 0.7):
    ...     search = RisingSearch(flat, [{"top": top}], budget=2, seed=0)
    ...     results[f"up to {top}"] = search.run()
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_comparison(results, folder / "comparison.html").name
    'comparison.html'
    """
    if len(results) < 2:
        raise InvalidParameterError(
            f"a comparison needs at least two searches; got {len(results)}"
        )
    page = comparison_page(
        results,
        title=title,
        settings=settings,
    )
    path = checked_path("path", path)
    atomic_write(path, page.encode("utf-8", "replace"))
    return path


def comparison_page(
    results: Mapping[str, ShownResult],
    *,
    title: str,
    settings: Mapping[str, Mapping[str, object]] | None,
    version: str | None = None,
    links: str = "",
) -> str:
    """Return the page that ``write_comparison`` writes.

    Parameters
    ----------
    results, title, settings
        As in ``write_comparison``.
    version : str, optional
        As in ``own_page``, of a page that follows searches.
    links : str, default ""
        What leads to the pages of the searches, as HTML.

    Returns
    -------
    str
        The page.
    """
    return own_page(
        "comparison.html",
        as_text(title),
        "\n".join([part("dom.js"), part("progress.js")]),
        version=version,
        links=links,
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
    results: Mapping[str, ShownResult], settings: Mapping[str, Mapping[str, object]]
) -> Iterable[Line]:
    columns = []
    for name, result in results.items():
        facts = dict(facts_of(result))
        columns.append(
            {
                "metric": facts["metric"],
                **_best(result),
                **facts,
                **settings.get(name, {}),
            }
        )
    for fact in parameter_names(columns):
        yield fact, [facts.get(fact, "") for facts in columns]


def _best(result: ShownResult) -> dict[str, object]:
    if result.best_arm is None:
        return dict.fromkeys(("best", "of arm", "at epoch"), "")
    return {
        "best": f"{result.best_score:.6g}",
        "of arm": result.best_arm,
        "at epoch": result.best_epoch,
    }


def _winners(results: Mapping[str, ShownResult]) -> str:
    """Return a table of the parameters in which the best arms differ."""
    best = [result.best_params for result in results.values()]
    differ: list[Line] = []
    same = []
    for name in parameter_names(best):
        values = [params.get(name, "") for params in best]
        if len(set(map(as_text, values))) > 1:
            differ.append((name, values))
        else:
            same.append(f"{as_text(name)} {in_digits(values[0])}")
    note = ""
    if same:
        note = f"The same in all: {escaped(', '.join(same))}."
    if not differ:
        return f'<p class="note">They do not differ. {note}</p>'
    return f'{_side_by_side(results, differ)}<p class="note">{note}</p>'


def _side_by_side(results: Mapping[str, ShownResult], rows: Iterable[Line]) -> str:
    body = ""
    for name, values in rows:
        cells = "".join(
            f"<td>{html.escape(in_digits(value)) or NOTHING}</td>" for value in values
        )
        body += f'<tr><th scope="row">{escaped(name)}</th>{cells}</tr>'
    head = [on_one_line(name, LONGEST_NAME) for name in results]
    return table(["", *head], body)


def _progress(results: Mapping[str, ShownResult]) -> list[dict[str, object]]:
    """Return the best scores so far over each other, for each metric by itself."""
    groups: dict[tuple[str, str], dict[str, ShownResult]] = {}
    for name, result in results.items():
        group = groups.setdefault((result.metric, result.direction), {})
        group[on_one_line(name, LONGEST_NAME)] = result
    return [chart for runs in groups.values() for chart in progress_charts(runs)]
