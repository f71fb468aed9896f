"""The early end of a search in which nothing can be trained."""

import math

from risingsearch.scheduling.scheduler import Scheduler

# Failed arms, without any score, that end a run. If half of all cannot be trained, so
# many fail in a row in one search of a thousand. Causes are not compared: one mistake
# has many messages, and they name the arm's own values.
ENOUGH = 10


class FirstFailures:
    """Early end of a run whose first arms have all failed, without any score."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.begin()

    def begin(self) -> None:
        """Forget the failures of earlier runs."""
        self._n_before = len(self._scheduler.with_all_results().history)  # rows

    def are_enough(self) -> bool:
        """Return whether nothing more should be tried."""
        rows = self._scheduler.with_all_results().history[self._n_before :]
        if any(math.isfinite(row["score"]) for row in rows):
            return False
        n_arms = len({row["arm"] for row in rows})
        least = ENOUGH * (1 + self._scheduler.max_failures)
        return n_arms >= ENOUGH and len(rows) >= least
