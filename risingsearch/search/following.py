"""The status of a run, read from its directory while any process works on it."""

import math
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from risingsearch.budget import SECONDS, WALL_CLOCK
from risingsearch.checks import kept_path
from risingsearch.errors import InvalidParameterError, RisingSearchError
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.results import SearchResult
from risingsearch.search.run import Run
from risingsearch.search.search import Replayed
from risingsearch.storage.run_directory import (
    JOURNAL,
    LOCK,
    STATE,
    holds_search,
    is_held,
)


class Training(NamedTuple):
    """A job in training, and the reason why it was started."""

    arm: int
    epoch: int  # the first one of the job
    reason: str  # as in the history
    parts: dict[str, float]  # of the arm's index when it was chosen


class RunStatus(NamedTuple):
    """How far a search is, and whether a process works on it."""

    result: SearchResult
    is_running: bool  # or other programs have jobs of it
    is_done: bool  # nothing starts any more, unless the budget or a rule is changed
    training: list[Training]
    spent: float  # in the unit of the budget
    budget: float
    unit: str
    seconds_left: float  # at the pace so far; NaN if unknown
    is_asked: bool  # by programs that train by themselves


class RunVersion(NamedTuple):
    """Version of a run directory: it differs as soon as anything is added."""

    journal: tuple[int, int, int] | None  # file, bytes, time; None: not there yet
    is_running: bool


class RunReader:
    """Reader of the search in a run directory, which changes nothing there."""

    def __init__(self, run_dir: str | Path, *, may_come: bool = False) -> None:
        self.path = kept_path("run_dir", run_dir)
        self._replayed: Replayed | None = None
        if may_come and not os.path.lexists(self.path):
            return
        if not holds_search(self.path) and not _has_just_begun(self.path):
            what = "holds no search" if self.path.exists() else "does not exist"
            raise InvalidParameterError(
                f"{self.path} {what}: name the run directory of one"
            )

    def version(self) -> RunVersion:
        """Return a value that changes with the directory; the journal is not read."""
        try:
            facts = os.stat(self.path / JOURNAL)
        except (FileNotFoundError, NotADirectoryError):
            return RunVersion(None, False)
        written = facts.st_ino, facts.st_size, facts.st_mtime_ns
        return RunVersion(written, is_held(self.path))

    def read(self) -> RunStatus | None:
        """Return the status of the search, None before anything is written."""
        if self._replayed is None and not os.path.lexists(self.path):
            return None
        is_running = is_held(self.path)  # before the journal: its end is then known
        if self._replayed is None and _has_just_begun(self.path):
            return None
        self._replayed = replayed = self._read()
        search = replayed.search
        is_running = is_running or bool(search._log.asked)
        result = replayed.result(is_running=is_running)
        scheduler = search.scheduler
        ended = scheduler if is_running else search._log  # it may have other rules
        repeat = search._log.reserve.next(scheduler, ())
        jobs = scheduler.in_flight if is_running else ()
        training = [
            Training(start.job.arm, start.job.from_epoch + 1, start.reason, start.parts)
            for start in map(scheduler.why, jobs)
        ]
        return RunStatus(
            result,
            is_running,
            is_done=ended.stop_reason is not None and repeat is None,
            training=training,
            spent=result.spent,
            budget=scheduler.budget + search._log.reserve.kept,
            unit=scheduler.unit,
            seconds_left=self._seconds_left(scheduler, result.wall_seconds),
            is_asked=search._log.is_asked,
        )

    def _read(self) -> Replayed:
        """Return the search with all that is written by now."""
        replayed, self._replayed = self._replayed, None
        if replayed is not None:
            # The journal may be another one by now. Then it is read from its beginning
            # below, and what is damaged is raised there.
            with suppress(RisingSearchError):
                return replayed.refreshed()
        return Replayed.of(Run.open(self.path))

    def _seconds_left(self, scheduler: Scheduler, wall_seconds: float) -> float:
        """Return how long the rest of the budget takes at the pace so far."""
        rest = scheduler.budget - scheduler.spent
        if scheduler.unit in WALL_CLOCK:
            rest *= SECONDS[scheduler.unit]
        else:
            rest *= wall_seconds / scheduler.spent if scheduler.spent else math.nan
        left = rest - max(0.0, time.time() - os.stat(self.path / JOURNAL).st_mtime)
        return max(left, 0.0)  # which keeps NaN


def _has_just_begun(path: Path) -> bool:
    """Return whether a directory is empty, or as it is before the journal is made."""
    try:
        names = set(os.listdir(path))
    except OSError:  # not there, no folder, or not for this user
        return False
    return not names or (LOCK in names and names.isdisjoint({JOURNAL, STATE}))
