"""When a search has seen enough: every arm fails, so no arm is to blame."""

from __future__ import annotations

import math

from risingsearch.scheduling.scheduler import Scheduler

ENOUGH = 10
"""Arms that have to fail.

Where half of all configurations cannot be trained, so many fail in a row in one search
of a thousand. Their causes are not compared: one mistake has many messages, and they
name the arm's own values.
"""


class FirstFailures:
    """Says whether the first arms of a run have all failed, and none had a score.

    Where an arm may be tried again, as many failures are waited for as ten arms have
    before they are retired. The next run of the search begins anew: the mistake may
    have been mended, or made since.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.begin()

    def begin(self) -> None:
        """Forget the failures of earlier runs."""
        self._n_before = len(self._scheduler.history)  # rows
        self._had_score = False

    def are_enough(self) -> bool:
        """Return whether nothing more should be tried."""
        if self._had_score:
            return False
        scheduler = self._scheduler.settled()
        rows = scheduler.history[self._n_before :]
        self._had_score = any(math.isfinite(row["score"]) for row in rows)
        n_arms = len({row["arm"] for row in rows})
        enough = ENOUGH * (1 + scheduler.max_failures)
        return not self._had_score and n_arms >= ENOUGH and len(rows) >= enough
