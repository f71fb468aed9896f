"""Runs as pages that keep themselves up to date."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from risingsearch.cli.options import one_line
from risingsearch.cli.pace import Pace
from risingsearch.cli.standing import RUNNING, in_words, look, state_of, why_ended
from risingsearch.cli.sweeps import RUNNING as NOT_STOPPED
from risingsearch.cli.sweeps import settings_and_space
from risingsearch.errors import RisingSearchError
from risingsearch.plotting.html_report import report_page
from risingsearch.plotting.live import live_app
from risingsearch.plotting.overview import Row, note_page, overview_page
from risingsearch.search.following import Follower, Mark, Standing

if TYPE_CHECKING:
    from starlette.types import ASGIApp

SHARE = 0.04
"""Of a core, at most, that is spent on looking at the runs and making their pages."""
DAMAGED = "damaged"


def app_of(run_dirs: Sequence[Path], token: str) -> ASGIApp:
    """Return the application that serves runs; one that is damaged is an error."""
    pace = Pace(SHARE)
    runs = [LiveRun(run_dir, pace) for run_dir in run_dirs]
    return live_app(token, runs, _Overview(runs) if len(runs) > 1 else None)


class LiveRun:
    """A run whose page is made anew when there is news, and somebody asks."""

    def __init__(self, run_dir: Path, pace: Pace) -> None:
        self.title = run_dir.resolve().name
        self._follower = Follower(run_dir)
        self._pace = pace
        self._problem = ""
        self._page: str | None = None
        self._mark: Mark | None = self._follower.mark()
        self._look()

    def version(self) -> str:
        """Return what changes with the page, which is looked after first."""
        if self._pace.is_due:
            self._refresh()
        return f"{self._mark} {self._problem}"

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
        standing = self._standing
        share = 0.0 if standing is None else standing.spent / standing.budget
        result = None if standing is None else standing.result
        return Row(self.title, link, *self.state(), share, result)

    def page(self) -> str:
        """Return the report of the run as it is now."""
        if self._page is None:
            with self._pace.measured():
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

    def _made(self) -> str:
        if self._problem:
            return note_page(self.title, self._problem)
        standing, run_dir = self._standing, self._follower.path
        if standing is None:
            return note_page(self.title, in_words(None))
        result = standing.result
        if state_of(standing) == RUNNING:
            result = replace(result, stop_reason=NOT_STOPPED)
        settings, space = settings_and_space(run_dir)
        return report_page(result, title=self.title, settings=settings, space=space)


class _Overview:
    """All runs side by side."""

    title = "All runs"

    def __init__(self, runs: Sequence[LiveRun]) -> None:
        self._runs = runs

    def version(self) -> str:
        return "; ".join(run.version() for run in self._runs)

    def state(self) -> tuple[str, str]:
        states = [run.state()[0] for run in self._runs]
        n_running = states.count(RUNNING)
        return RUNNING if n_running else states[
            0
        ], f"{n_running} of {len(states)} running"

    def page(self) -> str:
        rows = [run.row(f"{k}/") for k, run in enumerate(self._runs)]
        return overview_page(self.title, rows)
