"""One live line on a terminal, and nothing elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from risingsearch.errors import missing

if TYPE_CHECKING:
    from risingsearch.scheduling.scheduler import Scheduler

FORMAT = "{n:.10g}/{total:.10g} {unit} [{elapsed}<{remaining}]{postfix}"


class Progress:
    """Budget used, time left, best score and its arm, arms by status.

    It is shown if it is enabled and standard error is a terminal.
    """

    def __init__(self, scheduler: Scheduler, *, enabled: bool) -> None:
        self._scheduler = scheduler
        self._line: Any = None
        self._due = 0.0
        if not enabled:
            return
        try:
            from tqdm import tqdm
        except ModuleNotFoundError as error:
            raise missing("tqdm", extra="cli") from error
        line = tqdm(
            total=scheduler.budget,
            initial=scheduler.spent,
            unit=scheduler.unit,
            bar_format=FORMAT,
            dynamic_ncols=True,
            disable=None,
        )
        self._line = None if line.disable else line

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._line is not None:
            self._draw()
            self._line.close()

    def show(self) -> None:
        """Bring the line up to date, if it is time to."""
        now = time.monotonic()
        if self._line is None or now < self._due:
            return
        self._draw()
        # With very many arms drawing takes a while: spend little of the search on it.
        done = time.monotonic()
        self._due = done + max(self._line.mininterval, 50 * (done - now))

    def _draw(self) -> None:
        line, scheduler = self._line, self._scheduler
        counts = Counter(scheduler.statuses())
        parts = []
        if scheduler.best_arm is not None:
            parts.append(f"best {scheduler.best_score:.4g} (arm {scheduler.best_arm})")
        parts.append(f"{counts['running']} running")
        parts += [f"{counts[name]} {name}" for name in ("paused", "finished")]
        if counts["failed"]:
            parts.append(f"{counts['failed']} failed")
        line.n = round(scheduler.spent, 1)
        shown = ""
        for part in parts:  # the last ones may find no room
            line.set_postfix_str(", ".join(filter(None, (shown, part))), refresh=False)
            if len(str(line)) >= (line.format_dict["ncols"] or 80):
                break
            shown = line.postfix
        line.set_postfix_str(shown, refresh=False)
        line.refresh()
