"""When a search has seen enough: every arm fails, so no arm is to blame."""

from __future__ import annotations

from risingsearch.scheduling.scheduler import Scheduler

ENOUGH = 10
"""Arms that have to fail.

Where half of all configurations cannot be trained, so many fail in a row in one search
of a thousand. Their causes are not compared: one mistake has many messages, and they
name the arm's own values.
"""


class FirstFailures:
    """Says whether the first arms of a run have all failed, and none ever had a score.

    The next run of the search begins anew: the mistake may have been mended.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._n_before = 0  # rows of the history

    def begin(self) -> None:
        """Forget the failures of earlier runs."""
        self._n_before = len(self._scheduler.history)

    def are_enough(self) -> bool:
        """Return whether nothing more should be tried."""
        if self._scheduler.best_arm is not None:
            return False
        rows = self._scheduler.history[self._n_before :]
        return len({row["arm"] for row in rows}) >= ENOUGH
