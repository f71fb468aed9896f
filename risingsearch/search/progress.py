"""A live line on a terminal, a bar in a notebook, and lines now and then in a log."""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from risingsearch.errors import missing

if TYPE_CHECKING:
    from risingsearch.scheduling.scheduler import Scheduler

FORMAT = "{{n:.10g}}/{total:.10g} {{unit}} [{{elapsed}}<{{remaining}}]{{postfix}}"
"""Of tqdm, which knows no total where more was spent."""
WIDTH, HEIGHT = 80, 24
"""Of a terminal that does not say."""
MINUTE = 60.0
"""Seconds between two lines in a log, if a tenth of the budget is not spent before."""


class Progress:
    """Budget used, time left, best score and its arm, arms by status.

    It goes to standard error or to a cell of a notebook, if it is enabled.
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
            from tqdm.auto import tqdm
            from tqdm.notebook import tqdm_notebook
        except ModuleNotFoundError as error:
            raise missing("tqdm", extra="cli") from error
        self._format = FORMAT.format(total=scheduler.budget)
        self._spent_before = self._spent_then = scheduler.spent
        in_notebook = issubclass(tqdm, tqdm_notebook)
        line = tqdm(
            total=scheduler.budget,
            initial=scheduler.spent,
            unit=scheduler.unit,
            bar_format=self._format,
            ncols=None if in_notebook else WIDTH,
            nrows=HEIGHT,
            dynamic_ncols=_has_size() and not in_notebook,
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
            bar = getattr(self._line, "container", None)
            if bar is not None and exception[0] is None:  # an early end is no failure
                bar.children[1].bar_style = "success"
        elif self._enabled and self._scheduler.spent > self._spent_then:
            self._print(time.monotonic())
        ended_early = exception[0] is None and self._scheduler.found_enough is not None
        if self._enabled and ended_early:
            print(self._scheduler.stop_reason, file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """Print a line that stays, above the live one."""
        if not self._enabled:
            return
        from tqdm import tqdm

        tqdm.write(text, file=sys.stderr)

    def show(self) -> None:
        """Bring the line up to date, or print another one, if it is time to."""
        now = time.monotonic()
        if not self._enabled or (now < self._due and not self._is_next_tenth()):
            return
        if self._line is None:
            self._print(now)
            return
        self._draw()
        # With very many arms drawing takes a while: spend little of the search on it.
        done = time.monotonic()
        self._due = done + max(self._line.mininterval, 50 * (done - now))

    def _is_next_tenth(self) -> bool:
        """Return whether a line in a log is due for what was spent since the last."""
        if self._line is not None:
            return False
        tenfold, total = 10 * self._scheduler.spent, self._scheduler.budget
        return tenfold // total > 10 * self._spent_then // total

    def _print(self, now: float) -> None:
        """Print a line that stays."""
        self._due, self._spent_then = now + MINUTE, self._scheduler.spent
        from tqdm import tqdm

        scheduler = self._scheduler
        line = tqdm.format_meter(
            self._spent_shown(),
            scheduler.budget,
            now - self._begun,
            unit=scheduler.unit,
            bar_format=self._format,
            postfix=", ".join(self._parts()),
            initial=self._spent_before,
        )
        print(line, file=sys.stderr, flush=True)

    def _spent_shown(self) -> float:
        """Return what is spent, to about a thousandth of the budget."""
        scheduler = self._scheduler
        digits = 3 - math.floor(math.log10(scheduler.budget))
        return round(scheduler.spent, max(1, digits))

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
        line.n = self._spent_shown()
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
