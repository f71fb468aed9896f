"""The pages of ``risingsearch report --watch``: made again when their runs change."""

import html
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from risingsearch.cli.options import one_line
from risingsearch.cli.server import LivePage
from risingsearch.cli.status import RUNNING, RunView, named
from risingsearch.errors import InvalidParameterError, RisingSearchError
from risingsearch.plotting.comparison import comparison_page
from risingsearch.plotting.html_report import report_page
from risingsearch.plotting.importance import Importances, parameter_importance
from risingsearch.plotting.parts import own_page
from risingsearch.plotting.sections import small_curve, table
from risingsearch.plotting.words import NOTHING, escaped
from risingsearch.search.results import SearchResult

REST = 20.0
"""Times as long as looking at a run and making its page has taken, until the next."""


class LiveRun:
    """A run that may come later, and its report."""

    def __init__(self, name: str, run_dir: Path) -> None:
        self.name = name
        self.problem = ""  # why there is no run
        self._run_dir = run_dir
        self._run: RunView | None = None
        self._importances: dict[int, Importances] = {}  # after so many epochs
        self._pages: dict[str, str] = {}  # the last one, by its version
        self._due = 0.0
        self.version()

    def version(self) -> str:
        """Return a text that changes with the page."""
        if time.monotonic() >= self._due:
            with self._working():
                self._run = self._run or RunView(self._run_dir, may_come=True)
                self._run.refresh()
        if self._run:
            return str(self._run.version)
        return self.problem

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Note an error, and limit the work on a run to a small share of a core."""
        begun = time.monotonic()
        try:
            yield
        except Exception as error:  # of any kind: the files may hold anything
            is_ours = isinstance(error, RisingSearchError)
            kind = ""
            if not is_ours:
                kind = f"{type(error).__name__}: "
            self.problem = one_line(f"{kind}{error}")
            self._run = None
        self._due = max(self._due, until_rested(begun))

    def words(self) -> str:
        """Return how the run is doing, for the user."""
        run = self._run
        if run is None:
            return f"damaged: {self.problem}"
        return f"{run.state}: {run.why_ended() or run.progress_text()}"

    def result(self) -> SearchResult | None:
        """Return the result so far, None before the first epoch."""
        run = self._run
        has_epoch = run and run.status and run.status.result.history
        return run.result if run and has_epoch else None

    def page(self) -> str:
        """Return the report of the run as it is now."""
        version = self.version()
        if version not in self._pages and self.result() is not None:
            with self._working():
                self._pages = {version: self._report(version)}
        if version in self._pages:
            return self._pages[version]
        return note_page(self.name, html.escape(self.words()), version)

    def _report(self, version: str) -> str:
        run = cast("RunView", self._run)
        n_epochs = len(run.result.history)
        if n_epochs not in self._importances:  # else only jobs have started
            self._importances = {n_epochs: parameter_importance(run.result)}
        settings, space = run.settings_and_space()
        return report_page(
            run.result,
            title=self.name,
            settings=settings,
            space=space,
            version=version,
            importances=self._importances[n_epochs],
        )


class LiveRuns:
    """Several runs: a list that leads to their pages, and their comparison."""

    def __init__(self, runs: Sequence[LiveRun]) -> None:
        self._runs = runs
        self._version = ""
        self._due = 0.0

    def version(self) -> str:
        """Return a text that changes with the page."""
        if time.monotonic() >= self._due:
            self._version = "; ".join(run.version() for run in self._runs)
        return self._version

    def words(self) -> str:
        """Return how many runs are running."""
        running = sum(run.words().startswith(RUNNING) for run in self._runs)
        return f"{running} of {len(self._runs)} running"

    def page(self) -> str:
        """Return the page as it is now."""
        begun = time.monotonic()
        version = self.version()
        title = "Comparison of the runs"
        results = {}
        rows = ""
        for number, run in enumerate(self._runs):
            best = NOTHING
            curve = ""
            result = run.result()
            if result is not None:
                results[run.name] = result
                curve = small_curve(result)
                if result.best_arm is not None:
                    best = f"{result.metric} {result.best_score:.6g}"
            state, _, more = run.words().partition(": ")
            link = f'<a href="{number}/">{html.escape(run.name)}</a>'
            rows += (
                f'<tr><th scope="row">{link}</th><td>{html.escape(state)}</td>'
                f"<td>{escaped(best)}</td><td>{curve}</td></tr>"
                f'<tr class="why"><td colspan="4"><div>{escaped(more)}</div></td></tr>'
            )
        links = table(("run", "state", "best", "best so far"), rows)
        if len(results) < 2:
            return note_page("All runs", links, version)
        page = comparison_page(
            results, title=title, settings=None, version=version, links=links
        )
        self._due = max(self._due, until_rested(begun))
        return page


def until_rested(begun: float) -> float:
    """Return when the work since then has been a small share of a core."""
    now = time.monotonic()
    return now + REST * (now - begun)


def note_page(title: str, content: str, version: str) -> str:
    """Return a page with this content, which is HTML."""
    return own_page("note.html", title, "", version=version, content=content)


def live_pages(run_dirs: Sequence[Path]) -> dict[str, LivePage]:
    """Return the pages of runs, by their addresses below the server's."""
    runs = [LiveRun(name, run_dir) for name, run_dir in named(run_dirs).items()]
    if all(run.problem for run in runs):
        raise InvalidParameterError(str(runs[0].problem))
    if len(runs) == 1:
        return {"": runs[0]}
    pages: dict[str, LivePage] = {f"{number}/": run for number, run in enumerate(runs)}
    return {"": LiveRuns(runs), **pages}
