"""One live line on a terminal, and a line per minute elsewhere, such as in a log."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from risingsearch.errors import missing

if TYPE_CHECKING:
    from risingsearch.scheduling.scheduler import Scheduler

FORMAT = "{n:.10g}/{total:.10g} {unit} [{elapsed}<{remaining}]{postfix}"
WIDTH, HEIGHT = 80, 24
"""Of a terminal that does not say."""
MINUTE = 60.0
"""Seconds between two lines where there is no terminal."""


class Progress:
    """Budget used, time left, best score and its arm, arms by status.

    It goes to standard error, if it is enabled.
    """

    def __init__(self, scheduler: Scheduler, *, enabled: bool) -> None:
        self._scheduler = scheduler
        self._enabled = enabled
        self._line: Any = None
        self._begun = time.monotonic()
        self._due = 0.0
        if not enabled:
            return
        try:
            from tqdm import tqdm
        except ModuleNotFoundError as error:
            raise missing("tqdm", extra="cli") from error
        self._spent_before = scheduler.spent
        line = tqdm(
            total=scheduler.budget,
            initial=scheduler.spent,
            unit=scheduler.unit,
            bar_format=FORMAT,
            ncols=WIDTH,
            nrows=HEIGHT,
            dynamic_ncols=_has_size(),
            disable=None,
        )
        self._line = None if line.disable else line
        if line.disable:
            self._due = self._begun + MINUTE

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._line is not None:
            self._draw()
            self._line.close()

    def show(self) -> None:
        """Bring the line up to date, or print another one, if it is time to."""
        now = time.monotonic()
        if not self._enabled or now < self._due:
            return
        if self._line is None:
            self._print(now)
            self._due = now + MINUTE
            return
        self._draw()
        # With very many arms drawing takes a while: spend little of the search on it.
        done = time.monotonic()
        self._due = done + max(self._line.mininterval, 50 * (done - now))

    def _print(self, now: float) -> None:
        """Print a line that stays."""
        from tqdm import tqdm

        scheduler = self._scheduler
        line = tqdm.format_meter(
            round(scheduler.spent, 1),
            scheduler.budget,
            now - self._begun,
            unit=scheduler.unit,
            bar_format=FORMAT,
            postfix=", ".join(self._parts()),
            initial=self._spent_before,
        )
        print(line, file=sys.stderr, flush=True)

    def _parts(self) -> list[str]:
        """Return what the line says of the arms, the most important first."""
        scheduler = self._scheduler
        counts = Counter(scheduler.statuses())
        parts = []
        if scheduler.best_arm is not None:
            parts.append(f"best {scheduler.best_score:.4g} (arm {scheduler.best_arm})")
        parts.append(f"{counts['running']} running")
        parts += [f"{counts[name]} {name}" for name in ("paused", "finished")]
        if counts["failed"]:
            parts.append(f"{counts['failed']} failed")
        return parts

    def _draw(self) -> None:
        line = self._line
        line.n = round(self._scheduler.spent, 1)
        shown = ""
        for part in self._parts():  # the last ones may find no room
            line.set_postfix_str(", ".join(filter(None, (shown, part))), refresh=False)
            if len(str(line)) >= (line.format_dict["ncols"] or 80):
                break
            shown = line.postfix
        line.set_postfix_str(shown, refresh=False)
        line.refresh()


def _has_size() -> bool:
    """Return whether standard error is a terminal that says how large it is."""
    try:
        return 0 not in os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
