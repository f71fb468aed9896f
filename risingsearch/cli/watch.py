"""The command that shows a run in a terminal while it runs."""

from __future__ import annotations

import argparse
import io
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from risingsearch.cli.options import add_run_command
from risingsearch.cli.status import FINISHED, STOPPED, RunView
from risingsearch.errors import needed

if TYPE_CHECKING:
    from rich.console import Console

PERIOD = 0.5
"""Seconds between two frames."""
REST = 9.0
"""Times as long as looking at the run has taken, until the next look."""


def add_watch(commands: object) -> None:
    """Add the command to a parser's."""
    watch = add_run_command(
        commands, "watch", _watch, "show a run in the terminal, also while it runs"
    )
    watch.description += (
        " It waits for a run that has not begun, and ends with it; Ctrl-C ends it "
        "before, but not the search. If standard "
        "output is not a terminal, it prints one frame and ends."
    )
    watch.add_argument("--once", action="store_true", help="print one frame and end")


def _watch(arguments: argparse.Namespace) -> None:
    run = RunView(arguments.run_dir, may_come=True)
    with needed("rich", "cli"):
        from rich.console import Console
    from risingsearch.cli.screen import Screen

    if isinstance(sys.stdout, io.TextIOWrapper):  # it may not know all characters
        sys.stdout.reconfigure(errors="replace")
    console = Console()
    if console.is_terminal and not arguments.once:
        with suppress(KeyboardInterrupt):  # the search itself continues
            _follow(run, console)
    else:
        console.print(Screen(run))


def _follow(run: RunView, console: Console) -> None:
    """Show one frame after another until the run has ended."""
    from rich.live import Live

    from risingsearch.cli.screen import Screen

    due = 0.0
    n_stopped = 0
    with Live(console=console, auto_refresh=False) as live:
        while True:
            now = time.monotonic()
            if now >= due:
                run.refresh()
                due = time.monotonic() + REST * (time.monotonic() - now)
            live.update(Screen(run), refresh=True)
            # Between two calls of run, a search in Python looks stopped.
            n_stopped = n_stopped + 1 if run.state == STOPPED else 0
            if run.state == FINISHED or n_stopped > 1:
                return
            time.sleep(PERIOD)
