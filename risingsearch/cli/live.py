"""The application behind ``risingsearch serve``: reports that reload on news.

Only a browser on this machine that knows the token sees them: other users do not have
it, and pages of the web are kept out by the check of the host (DNS rebinding) and by
the headers. The policies of the pages allow requests to this server alone.
"""

import html
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from risingsearch.cli.options import one_line
from risingsearch.cli.status import RUNNING, RunView, named
from risingsearch.errors import InvalidParameterError, RisingSearchError
from risingsearch.plotting.comparison import comparison_page
from risingsearch.plotting.html_report import report_page
from risingsearch.plotting.importance import Importances, parameter_importance
from risingsearch.plotting.parts import own_page
from risingsearch.search.following import RunVersion
from risingsearch.search.results import SearchResult

HOSTS = ["127.0.0.1", "localhost"]
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the pages bring the rest
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
REST = 20.0
"""Times as long as looking at a run and making its page has taken, until the next."""
COMPARISON = "comparison"
NO_TOKEN = "This page needs the whole URL, with its token."


class LiveRun:
    """A run that may come later, and its report, made again when its files change."""

    def __init__(self, name: str, run_dir: Path) -> None:
        self.name = name
        self.problem: str | None = None
        self._run_dir = run_dir
        self._run: RunView | None = None
        self._page: str | None = None
        self._importances: tuple[int, Importances] | None = None  # after so many epochs
        self._mark: RunVersion | None = None
        self._next = 0.0
        self.version()

    def version(self) -> str:
        """Return a text that changes with the page."""
        if time.monotonic() >= self._next:
            begun = time.monotonic()
            with self._noting_problems():
                run = self._run = self._run or RunView(self._run_dir, may_come=True)
                mark = run.reader.version()
                if mark != self._mark or self.problem is not None:
                    run.look()
                    self._mark = mark
                    self.problem = None
                    self._page = None
            self._rest(begun)
        return f"{self._mark} {self.problem}"

    @contextmanager
    def _noting_problems(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of any kind: the files may hold anything
            is_ours = isinstance(error, RisingSearchError)
            what = "" if is_ours else f"{type(error).__name__}: "
            self.problem = one_line(f"{what}{error}")
            self._page = None

    def words(self) -> str:
        """Return how the run is doing, for the user."""
        with self._noting_problems():
            if self.problem is None and (run := self._run) is not None:
                return f"{run.state}: {run.why_ended() or run.progress_text()}"
        return f"damaged: {self.problem}"

    def result(self) -> SearchResult | None:
        """Return the result so far, None before the first epoch."""
        with self._noting_problems():
            status = None if self._run is None else self._run.status
            if status is not None and status.result.history and not self.problem:
                return cast("RunView", self._run).result
        return None

    def page(self) -> str:
        """Return the report of the run as it is now."""
        version = self.version()
        if self._page is None and (result := self.result()) is not None:
            begun = time.monotonic()
            with self._noting_problems():
                settings, space = cast("RunView", self._run).settings_and_space()
                self._page = report_page(
                    result,
                    title=self.name,
                    settings=settings,
                    space=space,
                    version=version,
                    importances=self._important(result),
                )
            self._rest(begun)
        return self._page or note_page(self.name, html.escape(self.words()), version)

    def _important(self, result: SearchResult) -> Importances:
        """Return the importances, computed anew only when results have come."""
        n_epochs = len(result.history)
        if self._importances is None or self._importances[0] != n_epochs:
            self._importances = n_epochs, parameter_importance(result)
        return self._importances[1]

    def _rest(self, begun: float) -> None:
        """Limit the work after each change to a small share of a core."""
        now = time.monotonic()
        self._next = max(self._next, now) + REST * (now - begun)


class LiveRuns:
    """The list of several runs, or their comparison."""

    def __init__(self, runs: Sequence[LiveRun], page: Callable[..., str]) -> None:
        self._runs = runs
        self._page = page

    def version(self) -> str:
        """Return a text that changes with the page."""
        return "; ".join(run.version() for run in self._runs)

    def words(self) -> str:
        """Return how many runs are running."""
        running = sum(run.words().startswith(RUNNING) for run in self._runs)
        return f"{running} of {len(self._runs)} running"

    def page(self) -> str:
        """Return the page as it is now."""
        return self._page(self._runs, self.version())


def list_page(runs: Sequence[LiveRun], version: str) -> str:
    """Return the list of runs, with the best score of each."""
    items = []
    for number, run in enumerate(runs):
        result = run.result()
        best = ""
        if result is not None and result.best_arm is not None:
            best = f", best {result.metric} {result.best_score:.6g}"
        link = f'<a href="{number}/">{html.escape(run.name)}</a>'
        items.append(f"<li>{link}{html.escape(f'{best}; {run.words()}')}</li>")
    link = f'<p><a href="{COMPARISON}/">Compare the runs</a></p>'
    return note_page("All runs", f"<ul>{''.join(items)}</ul>{link}", version)


def compared_page(runs: Sequence[LiveRun], version: str) -> str:
    """Return the comparison of the runs that have an epoch."""
    results = {run.name: result for run in runs if (result := run.result()) is not None}
    title = "Comparison of the runs"
    if len(results) < 2:
        note = "There is nothing to compare before two runs have an epoch each."
        return note_page(title, note, version)
    return comparison_page(
        results,
        title=title,
        settings=None,
        version=version,
    )


def note_page(title: str, content: str, version: str) -> str:
    """Return a page with this content, which is HTML."""
    return own_page(
        "note.html",
        title,
        "",
        version=version,
        content=content,
    )


async def _with_headers(
    request: Request, call_next: RequestResponseEndpoint
) -> Response:
    """Add ``HEADERS`` to every answer, refusals included."""
    response = await call_next(request)
    response.headers.update(HEADERS)
    return response


def app_of(run_dirs: Sequence[Path], token: str) -> ASGIApp:
    """Return the application that serves runs below ``/TOKEN/``."""
    runs = [LiveRun(name, run_dir) for name, run_dir in named(run_dirs).items()]
    if all(run.problem for run in runs):
        raise InvalidParameterError(str(runs[0].problem))
    pages: dict[str, LiveRun | LiveRuns] = {"": runs[0]}
    if len(runs) > 1:
        pages = {str(number): run for number, run in enumerate(runs)}
        pages[""] = LiveRuns(runs, list_page)
        pages[COMPARISON] = LiveRuns(runs, compared_page)

    def found(request: Request) -> LiveRun | LiveRuns:
        received = request.path_params["token"].encode()
        if not secrets.compare_digest(received, token.encode()):
            raise HTTPException(403, NO_TOKEN)
        name = str(request.path_params.get("name", ""))
        if name not in pages:
            raise HTTPException(404)
        return pages[name]

    async def page(request: Request) -> Response:
        return HTMLResponse(found(request).page())

    async def version(request: Request) -> Response:
        live = found(request)
        return JSONResponse({"version": live.version(), "words": live.words()})

    async def no_token(request: Request) -> Response:
        raise HTTPException(403, NO_TOKEN)

    routes = [
        Route(f"/{{token}}/{below}{name}", answer)
        for below in ("", "{name}/")
        for name, answer in (("", page), ("version", version))
    ]
    return Starlette(
        routes=[*routes, Route("/{path:path}", no_token)],
        middleware=[
            Middleware(BaseHTTPMiddleware, dispatch=_with_headers),
            Middleware(
                TrustedHostMiddleware,
                allowed_hosts=HOSTS,
                www_redirect=False,
            ),
        ],
    )
