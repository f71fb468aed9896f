"""The command that shows a run in a terminal while it runs."""

from __future__ import annotations

import argparse
import io
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.options import add_command, add_json
from risingsearch.cli.printing import print_json
from risingsearch.cli.status import (
    FINISHED,
    STOPPED,
    read_status,
    state_of,
    watch_facts,
)
from risingsearch.errors import missing

if TYPE_CHECKING:
    from rich.console import Console

    from risingsearch.search.following import RunReader

PERIOD = 0.5
"""Seconds between two frames."""
REST = 9.0
"""Times as long as looking at the run has taken, until the next look."""


def add_watch(commands: Any) -> None:
    """Add the command to a parser's."""
    watch = add_command(
        commands, "watch", _watch, "show a run in the terminal, also while it runs"
    )
    watch.description += (
        " It ends with the run; Ctrl-C ends it before, but not the search. If standard "
        "output is not a terminal, it prints one frame and ends."
    )
    watch.add_argument("run_dir", type=Path, metavar="RUN")
    watch.add_argument("--once", action="store_true", help="print one frame and end")
    add_json(watch, "print what one frame shows as JSON, and end")


def _watch(arguments: argparse.Namespace) -> None:
    from risingsearch.search.following import RunReader

    reader = RunReader(arguments.run_dir)
    if arguments.json:
        print_json(watch_facts(read_status(reader), reader.path))
        return
    try:
        from rich.console import Console
    except ModuleNotFoundError as error:
        raise missing("rich", extra="cli") from error
    from risingsearch.cli.screen import Screen

    if isinstance(sys.stdout, io.TextIOWrapper):  # it may know ASCII only
        sys.stdout.reconfigure(errors="replace")
    console = Console()
    if console.is_terminal and not arguments.once:
        with suppress(KeyboardInterrupt):  # the search itself continues
            _follow(reader, console)
    else:
        console.print(Screen(reader.path, read_status(reader)))


def _follow(reader: RunReader, console: Console) -> None:
    """Show one frame after another until the run has ended."""
    from rich.live import Live

    from risingsearch.cli.screen import Screen

    mark, screen, due = None, None, 0.0
    n_stopped = 0
    with Live(console=console, auto_refresh=False) as live:
        while True:
            now = time.monotonic()
            if screen is None or (mark != reader.version() and now >= due):
                mark = reader.version()
                screen = Screen(reader.path, read_status(reader))
                due = time.monotonic() + REST * (time.monotonic() - now)
            live.update(screen, refresh=True)
            state = state_of(screen.status)
            # Between two calls of run, a search in Python looks stopped.
            n_stopped = n_stopped + 1 if state == STOPPED else 0
            if state == FINISHED or n_stopped > 1:
                return
            time.sleep(PERIOD)
