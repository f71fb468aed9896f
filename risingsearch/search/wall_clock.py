"""The clock of a search whose budget is time by the clock."""

from __future__ import annotations

import time

from risingsearch.arms import Job
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.trainable import Outcome


class WallClock:
    """Charges jobs the time that passes, and says when it is over.

    It stands still between the runs of a search. Under another budget it does nothing.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._counts = scheduler.unit == "wall_seconds"
        self._zero = 0.0
        self._asked: dict[int, float] = {}  # by job

    def go_on(self) -> None:
        """Begin, or go on from where the last run of the search has ended."""
        self._zero = time.monotonic() - self._scheduler.spent

    def start(self, job: Job) -> None:
        """Record when a job has started, by what the scheduler knows."""
        self._asked[job.id] = self._scheduler.spent

    def charged(self, job: Job, outcome: Outcome) -> Outcome:
        """Return the outcome of a job with the time that has passed since its start."""
        started = self._asked.pop(job.id)
        if not self._counts:
            return outcome
        return outcome._replace(elapsed=max(0.0, self._now() - started))

    def is_over(self) -> bool:
        """Return whether the time has passed."""
        return self._counts and self._now() >= self._scheduler.budget

    def _now(self) -> float:
        return time.monotonic() - self._zero
