"""The command that shows a run in a terminal while it goes on."""

from __future__ import annotations

import argparse
import io
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.json_output import print_json
from risingsearch.cli.options import add_command, add_json
from risingsearch.cli.pace import Pace
from risingsearch.cli.standing import FINISHED, STOPPED, facts, look, state_of
from risingsearch.errors import missing

if TYPE_CHECKING:
    from rich.console import Console

    from risingsearch.search.following import Follower

PERIOD = 0.5
"""Seconds between two frames."""
SHARE = 0.1
"""Of a core, for searches so long that a look at one takes a while."""


def add_watch(commands: Any) -> None:
    """Add the command to a parser's."""
    watch = add_command(
        commands, "watch", _watch, "show a run in the terminal while it goes on"
    )
    watch.description += (
        " It ends with the run; Ctrl-C ends it before, and the search goes on. Where "
        "standard output is no terminal, it prints one frame and ends."
    )
    watch.add_argument("run_dir", type=Path, metavar="RUN")
    watch.add_argument("--once", action="store_true", help="print one frame and end")
    add_json(watch, "print what one frame shows as JSON, and end")


def _watch(arguments: argparse.Namespace) -> None:
    from risingsearch.search.following import Follower

    follower = Follower(arguments.run_dir)
    if arguments.json:
        print_json(facts(look(follower), follower.path))
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
        with suppress(KeyboardInterrupt):  # leaving is no failure: the search goes on
            _follow(follower, console)
    else:
        console.print(Screen(follower.path, look(follower)))


def _follow(follower: Follower, console: Console) -> None:
    """Show one frame after the other, until the run has ended."""
    from rich.live import Live

    from risingsearch.cli.screen import Screen

    pace, mark, screen = Pace(SHARE), None, None
    n_stopped = 0
    with Live(console=console, auto_refresh=False) as live:
        while True:
            if screen is None or (mark != follower.mark() and pace.is_due):
                mark = follower.mark()
                with pace.measured():
                    screen = Screen(follower.path, look(follower))
            live.update(screen, refresh=True)
            state = state_of(screen.standing)
            # A loop in Python lets go of its directory between two calls of run.
            n_stopped = n_stopped + 1 if state == STOPPED else 0
            if state == FINISHED or n_stopped > 1:
                return
            time.sleep(PERIOD)
