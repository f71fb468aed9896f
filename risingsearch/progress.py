"""One live line on a terminal, and nothing elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from risingsearch.scheduler import Scheduler

INTERVAL = 0.1  # seconds between two looks at the arms, at least


class Progress:
    """Budget used, time left, best score and its arm, arms by status.

    Parameters
    ----------
    scheduler : Scheduler
        Whose progress is shown.
    enabled : bool
        Show it, if standard error is a terminal.
    """

    def __init__(self, scheduler: Scheduler, *, enabled: bool) -> None:
        self._scheduler = scheduler
        self._terminal: Any = None
        if enabled and sys.stderr is not None and sys.stderr.isatty():
            self._terminal = sys.stderr
        self._began = self._due = time.monotonic()
        self._spent_before = scheduler.spent

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._terminal is not None:
            self._draw(f"in {_clock(time.monotonic() - self._began)}")
            self._terminal.write("\n")

    def show(self) -> None:
        """Bring the line up to date, if it is time to."""
        now = time.monotonic()
        if self._terminal is None or now < self._due:
            return
        scheduler = self._scheduler
        spent = scheduler.spent - self._spent_before
        left = "? left"
        if spent > 0:
            pace = (now - self._began) / spent
            rest = max(0.0, scheduler.budget - scheduler.spent)
            left = f"{_clock(pace * rest)} left"
        self._draw(left)
        # With very many arms a look takes a while: spend little of the search on it.
        done = time.monotonic()
        self._due = done + max(INTERVAL, 50 * (done - now))

    def _draw(self, when: str) -> None:
        scheduler = self._scheduler
        counts = Counter(scheduler.statuses())
        spent, budget = round(scheduler.spent, 1), round(scheduler.budget, 1)
        line = f"{spent:.10g}/{budget:.10g} {scheduler.unit}"
        parts = [f", {when}"]
        if scheduler.best_arm is not None:
            best = f"best {scheduler.best_score:.4g} (arm {scheduler.best_arm})"
            parts.append(f", {best}")
        parts.append(f", {counts['running']} running")
        parts += [f" {counts[name]} {name}" for name in ("paused", "finished")]
        if counts["failed"]:
            parts.append(f" {counts['failed']} failed")
        width = self._columns() - 1
        for part in parts:  # the last ones may find no room
            if len(line) + len(part) > width:
                break
            line += part
        self._terminal.write("\r" + line[:width].ljust(width))
        self._terminal.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._terminal.fileno()).columns or 80
        except OSError:
            return 80


def _clock(seconds: float) -> str:
    """Return a duration as people read it.

    Examples
    --------
    >>> _clock(59.6), _clock(3725)
    ('1:00', '1:02:05')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{seconds:02}"
    return f"{minutes}:{seconds:02}"
