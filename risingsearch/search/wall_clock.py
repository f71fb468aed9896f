"""The clock of a search whose budget is time by the clock."""

from __future__ import annotations

import time

from risingsearch.arms import Job
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.trainable import Outcome


class WallClock:
    """Says when jobs came back, in seconds since the search has begun.

    It stands still between the runs of a search. Under another budget it says nothing.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._counts = scheduler.unit == "wall_seconds"
        self._zero = 0.0
        self._returned: dict[int, float] = {}  # by job: said once, whoever asks again

    def go_on(self) -> None:
        """Begin, or go on from where the last run of the search has ended."""
        last = max([self._scheduler.spent, *self._returned.values()])
        self._zero = time.monotonic() - last

    @property
    def now(self) -> float | None:
        """Seconds since the search has begun; None under another budget."""
        return max(0.0, time.monotonic() - self._zero) if self._counts else None

    def stamped(self, job: Job, outcome: Outcome) -> Outcome:
        """Return what a job has brought back, with the time when it did."""
        if (now := self.now) is None:
            return outcome
        return outcome._replace(now=self._returned.setdefault(job.id, now))

    def is_over(self) -> bool:
        """Return whether the time has passed."""
        return (now := self.now) is not None and now >= self._scheduler.budget
