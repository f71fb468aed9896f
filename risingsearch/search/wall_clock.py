"""The clock of a search: how long it has taken, and whether its time is over."""

from __future__ import annotations

import math
import time

from risingsearch.arms import Job
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.trainable import Outcome


class WallClock:
    """Says when jobs came back, in seconds since the search has begun.

    It stands still between the runs of a search. The scheduler is told of it only where
    the budget is time by the clock.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._counts = scheduler.unit == "wall_seconds"
        self._zero = 0.0
        self._returned: dict[int, float] = {}  # by job: said once, whoever asks again

    def go_on(self, recorded: float) -> None:
        """Begin, or go on from where the last run of the search has ended.

        That is where the last recorded job came back; NaN where nobody measured it.
        """
        spent = self._scheduler.spent if self._counts else 0.0
        known = recorded if math.isfinite(recorded) else 0.0
        last = max([spent, known, *self._returned.values()])
        self._zero = time.monotonic() - last

    @property
    def now(self) -> float | None:
        """Seconds since the search has begun; None under another budget."""
        return self._seconds() if self._counts else None

    def stamped(self, job: Job, outcome: Outcome) -> Outcome:
        """Return what a job has brought back, with the time when it did."""
        clock = self._returned.setdefault(job.id, self._seconds())
        return outcome._replace(clock=clock, now=clock if self._counts else None)

    def is_over(self) -> bool:
        """Return whether the time has passed."""
        return (now := self.now) is not None and now >= self._scheduler.budget

    def _seconds(self) -> float:
        return max(0.0, time.monotonic() - self._zero)
