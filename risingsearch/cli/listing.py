"""The command that lists the runs below a folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from risingsearch.cli.options import PATHS, add_command, add_json, one_line
from risingsearch.cli.printing import print_json
from risingsearch.cli.status import WAITING, RunView, facts_of, runs_below
from risingsearch.errors import InvalidParameterError, RisingSearchError

if TYPE_CHECKING:
    from risingsearch.json_values import Json

HEAD = ("run", "best", "metric", "epochs", "state")


def add_list(commands: object) -> None:
    """Add the command to a parser's."""
    parser = add_command(commands, "list", _list, "list the runs below a folder")
    folder = parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        default=Path("runs"),
        metavar="DIR",
        help="folder of runs, at any depth (default: runs)",
    )
    folder.complete = PATHS
    add_json(parser)


def _list(arguments: argparse.Namespace) -> None:
    folder = arguments.folder
    runs = runs_below(folder)
    if not runs:
        raise InvalidParameterError(f"there is no run below {folder}: name its folder")
    facts = [_facts(run_dir) for run_dir in runs]
    if arguments.json:
        print_json(facts)
        return
    rows = [HEAD, *map(_row, facts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = map(str.ljust, row, widths)
        print("  ".join(cells).rstrip())


def _facts(run_dir: Path) -> Json:
    try:
        run = RunView(run_dir)
        if run.status is None:
            return {"run": str(run_dir), "state": WAITING}
        return {"state": run.state, **facts_of(run.result, run_dir)}
    except RisingSearchError as error:
        return {"run": str(run_dir), "state": f"damaged: {error}"}


def _row(facts: Json) -> list[str]:
    best = epochs = ""
    if facts.get("best_arm") is not None:
        best = f"{facts['best_score']:.6g}"
    if facts.get("epochs") is not None:
        epochs = f"{facts['epochs']:,}"
        if most := (facts["budget"] or {}).get("epochs"):
            epochs += f" of {most:,}"
    named = [facts["run"], best, facts.get("metric", ""), epochs, facts["state"]]
    return [one_line(text) for text in named]
