"""The command about the history: what is in it, and what is added or removed."""

from __future__ import annotations

import argparse
import shutil
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.json_output import print_json
from risingsearch.cli.options import add_command, add_json
from risingsearch.errors import InvalidParameterError, PriorError

if TYPE_CHECKING:
    from risingsearch.priors import EarlierSearch
    from risingsearch.priors.history import Entry

COLUMNS = ("date", "name", "runs", "best score", "parameters")
WIDEST = 30  # characters of a score with its metric
LEAST = 10  # characters of a name, and of the parameters, in a narrow terminal


def add_history(commands: Any) -> None:
    """Add the command to a parser's."""
    history = add_command(
        commands,
        "history",
        _list,
        "list the finished searches that prior='history' learns from, or change them",
    )
    history.description += (
        " A history is kept where the environment variable RISINGSEARCH_HISTORY names "
        "a folder: every search that is finished then writes one file of JSON there, "
        "and nothing is sent anywhere."
    )
    add_json(history)
    _add_folder(history, default=None)
    actions = history.add_subparsers(dest="action", metavar="ACTION")
    add = add_command(
        actions, "add", _add, "add earlier searches, or bring them up to date"
    )
    add.add_argument(
        "sources",
        nargs="+",
        metavar="RUN",
        help="a run directory, or whatever else can be given as prior= by its path: "
        "the folder of a Ray Tune experiment, mlruns, a CSV or parquet file, or the "
        "URL of an Optuna storage",
    )
    add.add_argument("--score", metavar="NAME", help="the metric that is the score")
    add.add_argument(
        "--direction",
        choices=("maximize", "minimize"),
        help="which scores are better (default: what the source says; needed where it "
        "does not)",
    )
    _add_folder(add, default=argparse.SUPPRESS)
    remove = add_command(actions, "remove", _remove, "remove searches by their names")
    remove.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help="as the list has it; with the date behind it where several share it",
    )
    _add_folder(remove, default=argparse.SUPPRESS)


def _add_folder(parser: argparse.ArgumentParser, default: Any) -> None:
    parser.add_argument(
        "--folder",
        type=Path,
        default=default,
        metavar="DIR",
        help="the folder of the history (default: what RISINGSEARCH_HISTORY says)",
    )


def _list(arguments: argparse.Namespace) -> None:
    from risingsearch.priors.history import OPT_IN

    folder = _folder(arguments)
    entries = [] if folder is None else _entries(folder)
    if folder is None:
        print(f"risingsearch: no history is kept: {OPT_IN}", file=sys.stderr)
    if arguments.json:
        print_json([_facts(entry) for entry in entries])
    elif entries:
        _print_table(entries)
    elif folder is not None:
        print(f"No search is in {folder} yet.")


def _add(arguments: argparse.Namespace) -> None:
    from risingsearch.priors import earlier_searches
    from risingsearch.priors.history import write_entry

    folder = _needed(arguments)
    for source in arguments.sources:
        asked = {"score": arguments.score, "direction": arguments.direction}
        read = source if "://" in source else Path(source)
        for search in earlier_searches(read, **asked):
            entry = _entry_of(search)
            try:
                write_entry(folder, entry)
            except OSError as error:
                raise _unwritable(folder, error) from error
            print(f"added {entry.name}, of {entry.date}")


def _entry_of(search: EarlierSearch) -> Entry:
    """Return the entry of a search: of a run directory, the one it made itself."""
    from risingsearch.priors.history import Entry, run_key, source_key
    from risingsearch.priors.run_directories import is_run_directory
    from risingsearch.storage.run_directory import JOURNAL, saved_header

    source = search.source or search.name
    key, time = source_key(source), datetime.now()
    if "://" not in source:
        path = Path(source)
        if is_run_directory(path):
            key = run_key(path, saved_header(path).get("entropy"))
            path /= JOURNAL
        time = datetime.fromtimestamp(path.stat().st_mtime)
    return Entry.of(search, key, search.name, time.astimezone())


def _remove(arguments: argparse.Namespace) -> None:
    from risingsearch.priors.history import remove_entry

    folder = _needed(arguments)
    entries = _entries(folder)
    chosen = [_chosen(name, entries, folder) for name in arguments.names]
    for entry in chosen:
        try:
            remove_entry(folder, entry)
        except OSError as error:
            raise _unwritable(folder, error) from error
        print(f"removed {entry.name}, of {entry.date}")


def _chosen(name: str, entries: list[Entry], folder: Path) -> Entry:
    found = [entry for entry in entries if name in (entry.name, entry.search.name)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(repr(entry.search.name) for entry in found)
        msg = f"{len(found)} searches in {folder} are called {name!r}: name one, of"
        raise InvalidParameterError(f"{msg} {names}")
    msg = f"no search in {folder} is called {name!r}: risingsearch history lists them"
    raise InvalidParameterError(msg)


def _folder(arguments: argparse.Namespace) -> Path | None:
    from risingsearch.priors.history import history_folder

    given: Path | None = arguments.folder
    return history_folder() if given is None else given


def _needed(arguments: argparse.Namespace) -> Path:
    from risingsearch.priors.history import OPT_IN

    folder = _folder(arguments)
    if folder is None:
        msg = f"no history is kept: {OPT_IN}; or name one with --folder"
        raise InvalidParameterError(msg)
    return folder


def _entries(folder: Path) -> list[Entry]:
    from risingsearch.priors.history import read_history, skipped

    entries, damaged = read_history(folder)
    if damaged:
        print(f"risingsearch: {skipped(damaged)}", file=sys.stderr)
    return entries


def _unwritable(folder: Path, error: OSError) -> PriorError:
    return PriorError(f"{folder} cannot be written ({error.strerror or error})")


def _facts(entry: Entry) -> dict[str, Any]:
    return {
        "date": entry.date,
        "name": entry.name,
        "name_with_date": entry.search.name,
        "runs": entry.n_runs,
        "epochs": entry.n_epochs,
        "parameters": entry.search.parameter_names,
        "direction": entry.search.direction,
        "metric": entry.search.metric,
        "best_score": entry.best_score,
        "best_params": entry.best_params,
    }


def _print_table(entries: list[Entry]) -> None:
    rows = [COLUMNS, *(_cells(entry) for entry in entries)]
    rows = _fitted(rows, shutil.get_terminal_size().columns)
    widths = _widths(rows)
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _cells(entry: Entry) -> tuple[str, ...]:
    from risingsearch.priors.history import printable

    names = printable(", ".join(entry.search.parameter_names))
    metric = printable(entry.search.metric or "")
    best = f"{entry.best_score:.6g}" + (f" ({metric})" if entry.search.metric else "")
    return entry.date, entry.name, f"{entry.n_runs:,}", _cut(best, WIDEST), names


def _fitted(rows: list[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """Return rows of which names and parameters are cut so that a line has room."""
    date, name, runs, best, parameters = _widths(rows)
    room = width - date - runs - best - 2 * (len(COLUMNS) - 1)
    name = max(LEAST, min(name, room - min(parameters, room // 2)))
    parameters = max(LEAST, room - name)
    return [
        (row[0], _cut(row[1], name), *row[2:4], _cut(row[4], parameters))
        for row in rows
    ]


def _widths(rows: list[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
