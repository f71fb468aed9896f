"""One frame of ``risingsearch watch``: where a run stands, as wide as the terminal."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from risingsearch.arms import Arm
from risingsearch.cli.options import one_line
from risingsearch.cli.status import (
    first_failure,
    progress_text,
    state_of,
    why_ended,
)
from risingsearch.plotting.figures import score_limits

if TYPE_CHECKING:
    from risingsearch.search.following import RunStatus

MOST_TRAINING = 4  # jobs in training that get a line each
FEWEST_ROWS = 5  # of arms, however low the terminal
FIXED = 38  # columns of the table besides the two drawings
NARROWEST = 8  # a drawing that is narrower is left out
STYLES = {"running": "bold cyan", "failed": "red", "paused": "dim", "finished": ""}


class Glyphs(NamedTuple):
    """Characters of drawings: eight levels, and the sign of a lost epoch."""

    levels: str
    lost: str


DRAWN = Glyphs("▁▂▃▄▅▆▇█", "\N{MULTIPLICATION SIGN}")
TYPED = Glyphs("_.-~=+*#", "x")  # where the terminal knows ASCII only


class Screen:
    """A frame, which ages: the time left runs down until there is news.

    Parameters
    ----------
    run_dir : Path
        The run directory.
    status : RunStatus, optional
        Where its search stands; None before anything is written.
    """

    def __init__(self, run_dir: Path, status: RunStatus | None) -> None:
        self.status = status
        self._run_dir = run_dir
        self._made = time.monotonic()

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Yield the lines of the frame."""
        lines = [*self._head()]
        status = self.status
        if status is not None and status.result.history:
            room = max(FEWEST_ROWS, options.size.height - len(lines) - 4)
            glyphs = DRAWN if options.encoding.startswith("utf") else TYPED
            lines += [Text(), _arms(status, options.max_width, room, glyphs)]
        yield Group(*lines)

    def _head(self) -> Iterable[RenderableType]:
        status, state = self.status, state_of(self.status)
        name = Text(one_line(str(self._run_dir)), style="bold")
        yield _line(name, (f"  {state}", STYLES.get(state, "")))
        if status is None:
            yield Text(progress_text(None))
            return
        result = status.result
        bar = Table.grid(expand=True)
        bar.add_row(ProgressBar(total=status.budget, completed=status.spent))
        yield bar
        yield _line(progress_text(status, time.monotonic() - self._made))
        yield _line(*_best(status))
        yield _line(_counts(status))
        for job in status.training[:MOST_TRAINING]:
            parts = "".join(
                f", {one_line(name).replace('_', ' ')} {value:.4g}"
                for name, value in job.parts.items()
            )
            now = f"arm {job.arm}, epoch {job.epoch}: {job.reason}{parts}"
            yield _line(("now  ", STYLES["running"]), now)
        if (more := len(status.training) - MOST_TRAINING) > 0:
            yield _line(f"     and {more:,} more")
        if failure := first_failure(result):
            yield _line(("failed  ", STYLES["failed"]), one_line(failure))
        if why := why_ended(status, self._run_dir):
            yield Text(one_line(why))  # whole: it may hold a command


def _line(*parts: Any) -> Text:
    """Return a text of one line, cut where the terminal ends."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _best(status: RunStatus) -> Iterable[Any]:
    result = status.result
    metric = f"{one_line(result.metric)}, to {result.direction}"
    if result.best_arm is None:
        return ["best  none yet: ", metric]
    params = [f"{one_line(str(k))} {_short(v)}" for k, v in result.best_params.items()]
    at = f": arm {result.best_arm}, epoch {result.best_epoch} ({metric})"
    best = f"{result.best_score:.6g}"
    return ["best  ", (best, "bold green"), at, (f"  {', '.join(params)}", "dim")]


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else one_line(str(value))


def _counts(status: RunStatus) -> str:
    arms = status.result.arms
    counts = Counter[str](arm.status for arm in arms)
    opened = len(arms) - counts["unopened"]
    statuses = ("running", "paused", "finished", "failed")
    each = ", ".join(f"{counts[status]:,} {status}" for status in statuses)
    return f"arms  {opened:,} opened of {len(arms):,}: {each}"


# ---------------------------------------------------------------------------- the arms


def _arms(status: RunStatus, width: int, room: int, glyphs: Glyphs) -> Table:
    """Return a table of the arms that were opened: when each trained, what it got."""
    result = status.result
    opened = _in_order(status)
    shown = opened if len(opened) <= room else opened[: room - 1]
    n_told = len(result.history)
    strip, curve = _widths(width - FIXED, n_told)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name in ("arm", "epochs", "best"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    has_room = min(strip, curve) >= NARROWEST
    if has_room:
        table.add_column(f"when, of {n_told:,} epochs", no_wrap=True, width=strip)
        table.add_column("curve", no_wrap=True, width=curve)
    told, curves = _told(result.history), result.curves
    scale = _Scale([curves[arm.arm] for arm in shown], result.direction, curve)
    for arm in shown:
        is_best = arm.arm == result.best_arm
        style = "bold green" if is_best else STYLES[arm.status]
        best = "" if math.isnan(arm.best_score) else f"{arm.best_score:.5g}"
        cells = [f"{arm.arm}", f"{arm.epochs}", best, arm.status]
        if has_room:
            cells.append(_strip(told[arm.arm], n_told, strip, glyphs))
            cells.append(scale.drawn(curves[arm.arm], glyphs))
        table.add_row(*cells, style=style)
    if len(opened) > len(shown):
        table.add_row("", "", "", f"{len(opened) - len(shown):,} more", style="dim")
    return table


def _in_order(status: RunStatus) -> list[Arm]:
    """Return the opened arms: those in training, the best, then the most trained."""
    result = status.result
    opened = [arm for arm in result.arms if arm.charged]
    return sorted(
        opened,
        key=lambda arm: (
            arm.arm != result.best_arm,
            arm.status != "running",
            -arm.charged,
            arm.arm,
        ),
    )


def _widths(room: int, n_told: int) -> tuple[int, int]:
    """Return how wide the strip and the curve are, too narrow where there is no room.

    >>> _widths(50, 1000), _widths(50, 10), _widths(9, 1000)
    ((30, 20), (10, 25), (5, 4))
    """
    strip = min(max(NARROWEST, n_told), 3 * room // 5)
    return strip, min(room - strip, room // 2)


def _told(history: Iterable[dict[str, Any]]) -> dict[int, list[int]]:
    """Return by arm when it trained, counted in the epochs of the search."""
    told: dict[int, list[int]] = {}
    for place, row in enumerate(history):
        told.setdefault(row["arm"], []).append(place)
    return told


def _strip(places: Sequence[int], n_told: int, width: int, glyphs: Glyphs) -> str:
    """Return how much of each stretch of the search an arm has got.

    >>> _strip([0, 1, 2, 6], 8, 4, TYPED)
    '#= ='
    """
    wide = max(1.0, n_told / width)
    counts = Counter(int(place / wide) for place in places)
    top = len(glyphs.levels) - 1
    return "".join(
        glyphs.levels[min(top, round(top * counts[k] / wide))] if counts[k] else " "
        for k in range(min(width, n_told))
    ).rstrip()


class _Scale:
    """The scale that all curves are drawn on, so that they can be compared."""

    def __init__(
        self, curves: Sequence[Sequence[float]], direction: str, width: int
    ) -> None:
        scores = [score for curve in curves for score in curve]
        is_max = direction == "maximize"
        self._low, self._high = score_limits(scores, maximize=is_max)
        longest = max((len(curve) for curve in curves), default=1)
        self._wide = max(1.0, longest / max(1, width))

    def drawn(self, curve: Sequence[float], glyphs: Glyphs) -> str:
        """Return a curve, of each stretch the last epoch."""
        ends = {int(k / self._wide): score for k, score in enumerate(curve)}
        return "".join(self._level(score, glyphs) for score in ends.values())

    def _level(self, score: float, glyphs: Glyphs) -> str:
        if not math.isfinite(score):
            return glyphs.lost
        top = len(glyphs.levels) - 1
        reach = self._high - self._low
        share = (score - self._low) / reach if reach > 0.0 else 1.0
        return glyphs.levels[round(top * min(1.0, max(0.0, share)))]
