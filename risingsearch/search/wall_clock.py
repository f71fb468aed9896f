"""Wall-clock time of a search, and the cost of its jobs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from risingsearch.arms import Job
from risingsearch.budget import SECONDS, WALL_CLOCK
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.trainable import COST, Outcome


class WallClock:
    """Says when jobs came back, in seconds since the search has begun.

    It stands still between the runs of a search. The scheduler is told of it only where
    the budget is time by the clock.
    A ``timeout`` ends each run after so many seconds, whatever the budget. Both ends
    leave the ``seconds_besides`` that are taken by what comes before a run and after.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        timeout: float | None,
        seconds_besides: Callable[[], float],
    ) -> None:
        self._scheduler = scheduler
        self._seconds_besides = seconds_besides
        self._timeout = math.inf if timeout is None else timeout
        self._run_began = 0.0
        self._counts = scheduler.unit in WALL_CLOCK
        self._second = 1.0 / SECONDS.get(scheduler.unit, 1.0)  # in its unit
        self._zero = 0.0
        self._returned: dict[int, float] = {}  # by job: said once, whoever asks again

    def go_on(self, recorded: float) -> None:
        """Begin, or go on from where the last run of the search has ended.

        That is where the last recorded job came back; NaN where nobody measured it.
        """
        self._run_began = time.monotonic()
        spent = self._scheduler.spent / self._second if self._counts else 0.0
        known = recorded if math.isfinite(recorded) else 0.0
        last = max([spent, known, *self._returned.values()])
        self._zero = self._run_began - last

    @property
    def now(self) -> float | None:
        """What the search has used of a budget by the clock; None under another."""
        return self._seconds() * self._second if self._counts else None

    def stamped(self, job: Job, outcome: Outcome) -> Outcome:
        """Return what a job has brought back, with the time when it did."""
        clock = self._returned.setdefault(job.id, self._seconds())
        now = clock * self._second if self._counts else None
        return outcome._replace(clock=clock, now=now)

    @property
    def left(self) -> float:
        """Seconds until the search ends, or this run of it."""
        left = min(self._left_of_run, self._left_of_budget)
        return left if math.isinf(left) else left - self._seconds_besides()

    def why_over(self) -> str | None:
        """Return which time has passed, in words; None while there is some left."""
        if self.left > 0.0:
            return None
        if self.ends_search:
            scheduler = self._scheduler
            return f"the budget of {scheduler.budget:g} {scheduler.unit} is spent"
        return f"the timeout of {self._timeout:g} seconds is over"

    @property
    def ends_search(self) -> bool:
        """Whether the time of the budget passes before that of this run."""
        return self._left_of_budget <= self._left_of_run

    @property
    def _left_of_run(self) -> float:
        return self._timeout - (time.monotonic() - self._run_began)

    @property
    def _left_of_budget(self) -> float:
        now = self.now
        if now is None:
            return math.inf
        return (self._scheduler.budget - now) / self._second

    def _seconds(self) -> float:
        return max(0.0, time.monotonic() - self._zero)


def with_cost(outcome: Outcome, unit: str, gpus: float) -> Outcome:
    """Return the outcome of a job with its cost in the unit of the budget.

    Under a budget in cost that is the sum of its epochs' costs, unknown if one has
    failed; else its training time, under a budget in epochs in seconds.
    """
    if unit != COST:
        per_second = (gpus if unit == "gpu_hours" else 1.0) / SECONDS.get(unit, 1.0)
        return outcome._replace(cost=outcome.elapsed * per_second)
    report = outcome.report
    if report.failure is not None:
        return outcome._replace(cost=None)
    return outcome._replace(cost=math.fsum(one[COST] for one in report.metrics))
