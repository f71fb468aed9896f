"""The wall-clock of a search."""

import math
import time
from collections.abc import Callable

from risingsearch.budget import SECONDS, WALL_CLOCK, in_words
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.training import Outcome

# Seconds that jobs in training have, at least and at most, once the time is over.
SHORTEST = 5.0
LONGEST = 600.0


class WallClock:
    """Wall-clock of a search: the seconds of its runs, not the time between them."""

    def __init__(
        self,
        scheduler: Scheduler,
        timeout: float | None,
        *,
        seconds_before: float = 0.0,  # of the first run
        seconds_besides: Callable[[], float] = float,
    ) -> None:
        self._scheduler = scheduler
        self._seconds_before = seconds_before
        self._seconds_besides = seconds_besides
        self._timeout = math.inf if timeout is None else timeout
        self._run_began = 0.0
        self._counts = scheduler.unit in WALL_CLOCK
        self._second = 1.0 / SECONDS.get(scheduler.unit, 1.0)  # in its unit
        self._zero = 0.0
        self.waited = 0.0  # in this run, until its first worker process had started
        self._returned: dict[int, float] = {}  # by job

    def resume(self, recorded: float) -> None:
        """Begin, or continue from the end of the last run of the search."""
        self._run_began = time.monotonic() - self._seconds_before
        self._seconds_before = 0.0
        self.waited = 0.0
        spent = 0.0
        if self._counts:
            spent = self._scheduler.spent / self._second
        measured = recorded if math.isfinite(recorded) else 0.0
        self._zero = self._run_began - max([spent, measured, *self._returned.values()])

    def seconds(self) -> float:
        """Return how long the search has run."""
        return max(0.0, time.monotonic() - self._zero)

    @property
    def now(self) -> float | None:
        """The spent part of a wall-clock budget; None under another."""
        if self._counts:
            return self.seconds() * self._second
        return None

    def with_timestamp(self, outcome: Outcome) -> Outcome:
        """Return the outcome of a job with the time when it came back."""
        clock = self._returned.setdefault(outcome.report.job.id, self.seconds())
        now = None
        if self._counts:
            now = clock * self._second
        return outcome._replace(clock=clock, now=now)

    @property
    def left(self) -> float:
        """Seconds until the search ends, or this run of it."""
        left = min(self._left_of_run, self._left_of_budget)
        if math.isinf(left):
            return left
        return left - self._seconds_besides()

    @property
    def ends_search(self) -> bool:
        """Whether the time of the budget passes before that of this run."""
        return self._left_of_budget <= self._left_of_run

    @property
    def _of_run(self) -> float:
        return time.monotonic() - self._run_began

    @property
    def _left_of_run(self) -> float:
        return self._timeout - self._of_run

    @property
    def _left_of_budget(self) -> float:
        if not self._counts:
            return math.inf
        return self._scheduler.budget / self._second - self.seconds()

    def why_over(self) -> str | None:
        """Return the reason for ending, as text; None while there is time left."""
        if self.left > 0.0:
            return None
        if self.ends_search:
            unit = in_words(self._scheduler.unit)
            return f"the budget of {self._scheduler.budget:g} {unit} is spent"
        return f"the timeout of {self._timeout:g} seconds is over"

    def grace(self, longest: float) -> float:
        """Return for how long jobs are waited for once the time is over."""
        total = self._of_run + self.left
        return max(SHORTEST, 2.0 * longest or min(total, LONGEST))

    @property
    def remark(self) -> str:
        """Addition to the reason for ending, if a process took most time to start."""
        if self.left > 0.0 or 2.0 * self.waited <= self._of_run:
            return ""
        return f"; a worker process took {self.waited:.1f} s to start"
