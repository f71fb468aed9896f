"""Progress of a search, on a terminal, in a notebook or a log, and advice on jobs."""

from __future__ import annotations

import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from risingsearch.budget import in_words
from risingsearch.errors import needed
from risingsearch.scheduling.events import Event, Failed, Returned

if TYPE_CHECKING:
    from risingsearch.scheduling.scheduler import Scheduler
    from risingsearch.search.training import Outcome

UNTIMED = "{n:.10g}/{total:.10g} {unit}{postfix}"
FORMAT = UNTIMED.replace("{postfix}", " [{elapsed}<{remaining}]{postfix}")
# Of a terminal that does not report its size.
WIDTH = 80
HEIGHT = 24
IN_NOTEBOOK = 1000  # columns: there the line wraps
SHORTEST_NOTE = 9
MINUTE = 60.0  # between two lines in a log, unless a tenth of the budget is spent
N_JOBS = 5  # whose start was measured before there is any advice
WORTH_SAYING = 1 / 3  # of the time that starts take
FEWEST_SECONDS = 5.0  # of all starts together


class ProgressLine:
    """Budget used, time left, best score and its arm, arms by status."""

    def __init__(self, scheduler: Scheduler, note: Callable[[], str] = str) -> None:
        self._scheduler = scheduler
        self._note = note
        self._starts: Starts | None = Starts(scheduler.max_epochs or 1)

    def __enter__(self) -> ProgressLine:
        scheduler = self._scheduler
        self._begun = time.monotonic()
        self._due = 0.0
        with needed("tqdm", "cli"):
            from tqdm.auto import tqdm
            from tqdm.notebook import tqdm_notebook
        self._spent_before = self._spent_then = scheduler.spent
        in_notebook = issubclass(tqdm, tqdm_notebook)
        line = tqdm(
            total=scheduler.budget,
            initial=scheduler.spent,
            unit=in_words(scheduler.unit),
            bar_format=FORMAT,
            ncols=None if in_notebook else WIDTH,
            nrows=HEIGHT,
            dynamic_ncols=_has_size() and not in_notebook,
            disable=None,
        )
        self._line: Any = None if line.disable else line
        if line.disable:
            self._due = self._begun + MINUTE
        return self

    def __exit__(self, *exception: object) -> None:
        if self._line is not None:
            self._draw()
            self._line.close()
            bar = getattr(self._line, "container", None)
            if bar is not None and exception[0] is None:  # an early end is no failure
                bar.children[1].bar_style = "success"
        elif self._scheduler.spent > self._spent_then:
            self._print(time.monotonic())
        if exception[0] is None and self._scheduler.stop_rule is not None:
            print(self._scheduler.stop_reason, file=sys.stderr, flush=True)

    def advise(self, outcome: Outcome) -> None:
        """Say once if jobs start so slowly that they should be longer."""
        if self._starts is None:
            return
        self._starts.add(len(outcome.report.scores), outcome.elapsed, outcome.startup)
        advice = self._starts.advice(self._scheduler.epochs_per_job)
        if advice is not None:
            write_advice(advice)
            self._starts = None

    def show(self) -> None:
        """Bring the line up to date, or print another one, if it is time to."""
        now = time.monotonic()
        tenfold = 10 * self._scheduler.spent
        total = self._scheduler.budget
        is_next_tenth = tenfold // total > 10 * self._spent_then // total
        if now < self._due and not (self._line is None and is_next_tenth):
            return
        if self._line is None:
            self._print(now)
            return
        self._draw()
        # With very many arms drawing takes a while: spend little of the search on it.
        done = time.monotonic()
        self._due = done + max(self._line.mininterval, 50 * (done - now))

    def _print(self, now: float) -> None:
        """Print a line that stays."""
        self._due = now + MINUTE
        self._spent_then = self._scheduler.spent
        from tqdm import tqdm

        scheduler = self._scheduler
        best, arm, state = self._parts()
        line = tqdm.format_meter(
            self._spent_shown(),
            scheduler.budget,
            now - self._begun,
            unit=in_words(scheduler.unit),
            bar_format=FORMAT,
            postfix=", ".join(filter(None, [best + arm, state, self._note()])),
            initial=self._spent_before,
        )
        print(line, file=sys.stderr, flush=True)

    def _spent_shown(self) -> float:
        """Return the spent budget, at most all, to about a thousandth of it."""
        spent = self._scheduler.spent
        budget = self._scheduler.budget
        digits = 3 - math.floor(math.log10(budget))
        return min(budget, round(spent, max(1, digits)))

    def _parts(self) -> tuple[str, str, str]:
        """Return the best score, its arm, and the numbers of arms by status."""
        scheduler = self._scheduler
        counts = Counter[str](scheduler.statuses())
        best = arm = ""
        if scheduler.best_arm is not None:
            best = f"best {scheduler.best_score:.4g}"
            arm = f" (arm {scheduler.best_arm})"
        names = ["running", "paused", "finished"]
        if counts["failed"]:
            names.append("failed")
        return best, arm, ", ".join(f"{counts[name]} {name}" for name in names)

    def _draw(self) -> None:
        """Draw all that there is room for; the numbers of arms go last."""
        line = self._line
        line.n = self._spent_shown()
        best, arm, state = self._parts()
        for line.bar_format, found in (
            (FORMAT, best + arm),
            (FORMAT, best),
            (UNTIMED, best),
            (UNTIMED, ""),
        ):
            line.set_postfix_str("", refresh=False)
            room = (line.format_dict["ncols"] or IN_NOTEBOOK) - len(str(line)) - 3
            text = ", ".join(filter(None, [found, state]))
            if len(text) <= room:
                break
        note = self._note()
        left = room - len(text) - 2
        if note and left >= SHORTEST_NOTE:
            text += f", {shorten(note, left, placeholder='...')}"
        line.set_postfix_str(shorten(text, max(room, 9), placeholder="..."))


def write_advice(advice: str) -> None:
    """Write a line above the progress."""
    from tqdm import tqdm

    tqdm.write(advice, file=sys.stderr)


def _has_size() -> bool:
    """Return whether standard error is a terminal that says how large it is."""
    try:
        return 0 not in os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return False


@dataclass
class Starts:
    """Measured starts of jobs: the share of the time they take, and advice on it."""

    max_epochs: int
    startups: list[float] = field(default_factory=list)
    seconds: float = 0.0
    n_epochs: int = 0

    @classmethod
    def of_events(cls, events: Iterable[Event], max_epochs: int) -> Starts:
        """Return the starts in the events of a journal."""
        starts = cls(max_epochs)
        for event in events:
            if isinstance(event, Returned) and not isinstance(event, Failed):
                seconds = event.elapsed or 0.0
                starts.add(len(event.scores), seconds, event.startup)
        return starts

    def add(self, n_epochs: int, seconds: float, startup: float | None) -> None:
        """Add a job and the part of its seconds before its first epoch, if known."""
        if startup is None or math.isnan(startup) or not n_epochs:
            return
        self.startups.append(startup)
        self.seconds += seconds
        self.n_epochs += n_epochs

    @property
    def share(self) -> float:
        """Share of the time of jobs that their starts take; NaN while none is known."""
        if self.seconds:
            return sum(self.startups) / self.seconds
        return math.nan

    @property
    def _epoch(self) -> float:
        """Mean seconds of an epoch."""
        return (self.seconds - sum(self.startups)) / self.n_epochs

    def wanted(self) -> int | None:
        """Return how long jobs should be; None if starts are few, or short."""
        are_few = len(self.startups) < N_JOBS or sum(self.startups) < FEWEST_SECONDS
        if are_few or not self.share >= WORTH_SAYING:
            return None
        # half of an arm for a start: pausing the arm saves too little
        worth = median(self.startups) / max(self._epoch, 1e-9)
        if worth >= self.max_epochs / 2:
            return self.max_epochs
        return max(1, math.ceil(worth / 2))

    def advice(self, epochs_per_job: int | None) -> str | None:
        """Return the setting to change, unless jobs are about as long already."""
        wanted = self.wanted()
        if wanted is None:
            return None
        if wanted <= (epochs_per_job or self.n_epochs / len(self.startups)):
            return None
        return (
            f"jobs take {self.share:.0%} of their time to start "
            f"({median(self.startups):.3g} s a start, {self._epoch:.3g} s an epoch): "
            f"to train more in the same time, set epochs_per_job to {wanted}"
        ).replace("%", " %")
