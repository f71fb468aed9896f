"""Runs as pages that keep themselves up to date."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.options import one_line
from risingsearch.cli.pace import Pace
from risingsearch.cli.standing import RUNNING, in_words, look, state_of, why_ended
from risingsearch.cli.sweeps import RUNNING as NOT_STOPPED
from risingsearch.cli.sweeps import named, settings_and_space
from risingsearch.errors import RisingSearchError
from risingsearch.plotting.comparison import comparison_page
from risingsearch.plotting.digest import Digest
from risingsearch.plotting.html_report import report_page
from risingsearch.plotting.importance import Importances, parameter_importance
from risingsearch.plotting.live import LivePage, live_app
from risingsearch.plotting.overview import Row, note_page, overview_page
from risingsearch.search.following import Follower, Mark, Standing
from risingsearch.search.results import SearchResult

if TYPE_CHECKING:
    from starlette.types import ASGIApp

SHARE = 0.035
"""Of a core, at most, that is spent on looking at the runs and making their pages."""
JUDGING = 0.005
"""And on which parameters matter, which takes longer and changes little by an epoch."""
DAMAGED = "damaged"
COMPARISON = "comparison"


def app_of(run_dirs: Sequence[Path], token: str) -> ASGIApp:
    """Return the application that serves runs; one that is damaged is an error."""
    pace, judging = Pace(SHARE), Pace(JUDGING)
    runs = [
        LiveRun(name, run_dir, pace, judging)
        for name, run_dir in named(run_dirs).items()
    ]
    if len(runs) == 1:
        return live_app(token, {"": runs[0]})
    pages: dict[str, LivePage] = {str(k): run for k, run in enumerate(runs)}
    pages[""], pages[COMPARISON] = _Overview(runs, pace), _Comparison(runs, pace)
    return live_app(token, pages)


class LiveRun:
    """A run whose page is made anew when there is news, and somebody asks."""

    def __init__(self, name: str, run_dir: Path, pace: Pace, judging: Pace) -> None:
        self.title = name
        self._follower = Follower(run_dir)
        self._pace, self._judging = pace, judging
        self._problem = ""
        self._page: str | None = None
        self._mark: Mark | None = self._follower.mark()
        self._digest: Digest | None = None
        self._importances: Importances | None = None
        self._judged = 0  # epochs that they are of
        self._look()

    def version(self) -> str:
        """Return what changes with the page, which is looked after first."""
        if self._pace.is_due:
            self._refresh()
        if self._judging.is_due and self._standing is not None and not self._problem:
            self._judge(self._standing.result)
        return f"{self._mark} {self._judged} {self._problem}"

    def state(self) -> tuple[str, str]:
        """Return how the run is doing in a word, and in words."""
        if self._problem:
            return DAMAGED, self._problem
        state = state_of(self._standing)
        if self._standing is None:
            return state, in_words(None)
        ended = why_ended(self._standing, self._follower.path)
        age = time.monotonic() - self._looked
        return state, f"{state}: {ended or in_words(self._standing, age)}"

    def row(self, link: str) -> Row:
        """Return what an overview shows of the run."""
        standing, curve = self._standing, []
        share = 0.0 if standing is None else standing.spent / standing.budget
        if self._digest is not None:
            curve = self._digest.spending.progress().by_epochs
        result = None if standing is None else standing.result
        return Row(self.title, link, *self.state(), share, result, curve)

    def found(self) -> tuple[SearchResult, dict[str, Any]] | None:
        """Return what the run has found, and its settings; None before an epoch."""
        standing = self._standing
        if standing is None or not standing.result.history or self._problem:
            return None
        return _shown(standing), settings_and_space(self._follower.path)[0]

    def page(self) -> str:
        """Return the report of the run as it is now."""
        if self._page is None:
            self._page = self._made()
        return self._page

    def _refresh(self) -> None:
        """Look at the run again if there is news."""
        try:
            mark = self._follower.mark()
            if mark != self._mark:
                with self._pace.measured():
                    self._look()
                self._mark, self._problem = mark, ""
        except RisingSearchError as error:
            self._mark, self._problem = None, one_line(str(error))
            self._page = None

    def _look(self) -> None:
        self._standing: Standing | None = look(self._follower)
        self._looked = time.monotonic()
        self._page = None
        if self._standing is None:
            return
        result = self._standing.result
        if self._digest is not None and self._digest.goes_on_with(result):
            self._digest.add(result)
        else:
            self._digest, self._importances, self._judged = Digest(result), None, 0

    def _judge(self, result: SearchResult) -> Importances:
        """Judge the parameters by all epochs that are known."""
        if self._importances is None or self._judged != len(result.history):
            with self._judging.measured():
                self._importances = parameter_importance(result)
            self._judged, self._page = len(result.history), None
        return self._importances

    def _made(self) -> str:
        if self._problem:
            return note_page(self.title, self._problem)
        standing, digest = self._standing, self._digest
        if standing is None or digest is None:
            return note_page(self.title, in_words(None))
        importances = self._importances or self._judge(standing.result)
        with self._pace.measured():
            settings, space = settings_and_space(self._follower.path)
            return report_page(
                _shown(standing),
                digest,
                importances,
                title=self.title,
                settings=settings,
                space=space,
            )


def _shown(standing: Standing) -> SearchResult:
    """Return the result of a run, which says so if it goes on."""
    if state_of(standing) == RUNNING:
        return replace(standing.result, stop_reason=NOT_STOPPED)
    return standing.result


class _Together(ABC):
    """A page about all runs, made anew when there is news of one."""

    def __init__(self, runs: Sequence[LiveRun], pace: Pace) -> None:
        self._runs = runs
        self._pace = pace
        self._page: tuple[str, str] | None = None  # of a version

    def version(self) -> str:
        return "; ".join(run.version() for run in self._runs)

    def state(self) -> tuple[str, str]:
        states = [run.state()[0] for run in self._runs]
        n_running = states.count(RUNNING)
        state = RUNNING if n_running else states[0]
        return state, f"{n_running} of {len(states)} running"

    def page(self) -> str:
        version = self.version()
        if self._page is None or self._page[0] != version:
            with self._pace.measured():
                self._page = version, self._made()
        return self._page[1]

    @abstractmethod
    def _made(self) -> str:
        """Return the page as it is now."""


class _Overview(_Together):
    """All runs side by side."""

    title = "All runs"

    def _made(self) -> str:
        rows = [run.row(f"{k}/") for k, run in enumerate(self._runs)]
        return overview_page(self.title, rows, f"{COMPARISON}/")


class _Comparison(_Together):
    """What the runs have found, side by side."""

    title = "Comparison of the runs"

    def _made(self) -> str:
        found = {run.title: one for run in self._runs if (one := run.found())}
        if len(found) < 2:
            note = "There is nothing to compare before two runs have an epoch each."
            return note_page(self.title, note)
        results = {name: result for name, (result, _) in found.items()}
        settings = {name: shown for name, (_, shown) in found.items()}
        return comparison_page(results, title=self.title, settings=settings)
