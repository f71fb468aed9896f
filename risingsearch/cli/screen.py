"""One frame of ``risingsearch watch``: how far a run is, as wide as the terminal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from risingsearch.cli.options import one_line
from risingsearch.cli.status import first_failure
from risingsearch.plotting.figures import score_limits

if TYPE_CHECKING:
    from risingsearch.cli.status import RunView
    from risingsearch.search.results import SearchResult

MOST_TRAINING = 4  # jobs in training that get a line each
FEWEST_ROWS = 5  # of arms, however low the terminal
FIXED = 38  # columns of the table besides the two drawings
NARROWEST = 8  # a drawing that is narrower is left out
STYLES = {
    "running": "bold cyan",
    "failed": "red",
    "paused": "dim",
    "finished": "",
}


LEVELS = "▁▂▃▄▅▆▇█"
LOST = "\N{MULTIPLICATION SIGN}"  # of an epoch without a score


class Screen:
    """A frame about a run, as it was last looked at."""

    def __init__(self, run: RunView) -> None:
        self.run = run

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Yield the lines of the frame."""
        lines = list(self._head(options.max_width))
        yield from lines
        status = self.run.status
        if status is not None and status.result.history:
            room = max(FEWEST_ROWS, options.size.height - len(lines) - 4)
            yield Text()
            yield _arms(status.result, options.max_width, room)

    def _head(self, width: int) -> Iterator[RenderableType]:
        run = self.run
        status = self.run.status
        name = Text(one_line(str(run.path)), style="bold")
        name.truncate(max(1, width - len(run.state) - 2), overflow="ellipsis")
        yield _line(name, (f"  {run.state}", STYLES.get(run.state, "")))
        if status is None:
            yield Text(run.progress_text())
            return
        bar = Table.grid(expand=True)
        bar.add_row(
            ProgressBar(
                total=status.budget,
                completed=status.spent,
            )
        )
        yield bar
        yield _line(run.progress_text())
        yield _line(*_best(status.result))
        yield _line(_counts(status.result))
        for job in status.training[:MOST_TRAINING]:
            parts = "".join(
                f", {one_line(name).replace('_', ' ')} {value:.4g}"
                for name, value in job.parts.items()
            )
            now = f"arm {job.arm}, epoch {job.epoch}: {job.reason}{parts}"
            yield _line(("now  ", STYLES["running"]), now)
        if (more := len(status.training) - MOST_TRAINING) > 0:
            yield _line(f"     and {more:,} more")
        if failure := first_failure(status.result):
            yield _line(("failed  ", STYLES["failed"]), one_line(failure))
        if why := run.why_ended():
            yield Text(one_line(why))  # whole: it may hold a command


def _line(*parts: Any) -> Text:
    """Return a text of one line, cut where the terminal ends."""
    return Text.assemble(
        *parts,
        no_wrap=True,
        overflow="ellipsis",
    )


def _best(result: SearchResult) -> Iterable[Any]:
    metric = f"{one_line(result.metric)}, to {result.direction}"
    if result.best_arm is None:
        return ["best  none yet: ", metric]
    params = [
        f"{one_line(str(name))} "
        + (f"{value:.4g}" if isinstance(value, float) else one_line(str(value)))
        for name, value in result.best_params.items()
    ]
    at = f": arm {result.best_arm}, epoch {result.best_epoch} ({metric})"
    best = f"{result.best_score:.6g}"
    return [
        "best  ",
        (best, "bold green"),
        at,
        (f"  {', '.join(params)}", "dim"),
    ]


def _counts(result: SearchResult) -> str:
    counts = Counter[str](arm.status for arm in result.arms)
    opened = len(result.arms) - counts["unopened"]
    statuses = ("running", "paused", "finished", "failed")
    each = ", ".join(f"{counts[status]:,} {status}" for status in statuses)
    return f"arms  {opened:,} opened of {len(result.arms):,}: {each}"


def _arms(
    result: SearchResult,
    width: int,
    room: int,
) -> Table:
    """Return a table of the opened arms: when each trained, and its scores."""
    opened = sorted(  # the best, those in training, then the most trained
        (arm for arm in result.arms if arm.charged),
        key=lambda arm: (
            arm.arm != result.best_arm,
            arm.status != "running",
            -arm.charged,
            arm.arm,
        ),
    )
    shown = opened if len(opened) <= room else opened[: room - 1]
    n_epochs = len(result.history)
    strip, wide = _widths(width - FIXED, n_epochs)
    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        header_style="dim",
    )
    for name in ("arm", "epochs", "best"):
        table.add_column(
            name,
            justify="right",
            no_wrap=True,
        )
    table.add_column("status", no_wrap=True)
    has_room = min(strip, wide) >= NARROWEST
    if has_room:
        table.add_column(
            f"when, of {n_epochs:,} epochs",
            no_wrap=True,
            width=strip,
        )
        table.add_column(
            "curve",
            no_wrap=True,
            width=wide,
        )
    arms = result.history["arm"]
    curves = result.curves
    drawn = _curves([curves[arm.arm] for arm in shown], result.direction, wide)
    for arm, curve in zip(shown, drawn, strict=True):
        is_best = arm.arm == result.best_arm
        best = "" if math.isnan(arm.best_score) else f"{arm.best_score:.5g}"
        cells = [
            f"{arm.arm}",
            f"{arm.epochs}",
            best,
            arm.status,
        ]
        if has_room:
            told = [place for place, trained in enumerate(arms) if trained == arm.arm]
            cells += [_strip(told, n_epochs, strip), curve]
        table.add_row(*cells, style="bold green" if is_best else STYLES[arm.status])
    if len(opened) > len(shown):
        table.add_row(
            "",
            "",
            "",
            f"{len(opened) - len(shown):,} more",
            style="dim",
        )
    return table


def _widths(room: int, n_epochs: int) -> tuple[int, int]:
    """Return how wide the strip and the curve are, too narrow where there is no room.

    >>> _widths(50, 1000), _widths(50, 10), _widths(9, 1000)
    ((30, 20), (10, 25), (5, 4))
    """
    strip = min(max(NARROWEST, n_epochs), 3 * room // 5)
    return strip, min(room - strip, room // 2)


def _strip(
    places: Sequence[int],
    n_epochs: int,
    width: int,
) -> str:
    """Return how much of each stretch of the search an arm has got.

    >>> _strip([0, 1, 2, 6], 8, 4)
    '█▅ ▅'
    """
    wide = max(1.0, n_epochs / width)
    counts = Counter(int(place / wide) for place in places)
    return "".join(
        _level(counts[k] / wide) if counts[k] else " "
        for k in range(min(width, n_epochs))
    ).rstrip()


def _curves(
    curves: Sequence[Sequence[float]],
    direction: str,
    width: int,
) -> Iterator[str]:
    """Yield the curves on one scale: of each stretch the last epoch."""
    scores = [score for curve in curves for score in curve]
    low, high = score_limits(scores, maximize=direction == "maximize")
    wide = max(1.0, max((len(curve) for curve in curves), default=1) / max(1, width))
    for curve in curves:
        ends = {int(k / wide): score for k, score in enumerate(curve)}
        yield "".join(
            _level((score - low) / (high - low) if high > low else 1.0)
            if math.isfinite(score)
            else LOST
            for score in ends.values()
        )


def _level(share: float) -> str:
    """Return the character of a share between 0 and 1."""
    return LEVELS[round((len(LEVELS) - 1) * min(1.0, max(0.0, share)))]
