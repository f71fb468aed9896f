"""The command about the history: what is in it, and what is added or removed."""

from __future__ import annotations

import argparse
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

COLUMNS = ("date", "name", "runs", "epochs", "parameters", "best score")
WIDEST = 40  # characters of the parameters


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
        help="which scores are better (default: what the source says, or maximize)",
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
        for search in earlier_searches(source, **asked):
            entry = _entry_of(search, source, arguments.direction)
            try:
                write_entry(folder, entry)
            except OSError as error:
                raise _unwritable(folder, error) from error
            print(f"added {entry.name}, of {entry.date}")


def _entry_of(search: EarlierSearch, source: str, direction: str | None) -> Entry:
    """Return the entry of a search: of a run directory, the one it made itself."""
    from risingsearch.priors.folders import subfolders
    from risingsearch.priors.history import Entry, run_key, source_key
    from risingsearch.priors.run_directories import is_run_directory
    from risingsearch.storage.run_directory import JOURNAL, saved_header

    if "://" in source:
        key, time = source_key(source, search.name), datetime.now()
        return Entry.of(search, key, search.name, time.astimezone(), direction)
    path = Path(source).resolve()
    inner = [one for one in subfolders(path) if one.name == search.name]
    for run_dir in (path, *inner):
        if is_run_directory(run_dir):
            header = saved_header(run_dir)
            key = run_key(run_dir, header.get("entropy"))
            direction = direction or header["settings"]["direction"]
            path = run_dir / JOURNAL
            break
    else:
        key = source_key(str(path), search.name)
    time = datetime.fromtimestamp(path.stat().st_mtime)
    return Entry.of(search, key, search.name, time.astimezone(), direction)


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
        "direction": entry.direction,
        "best_score": entry.best_score,
        "best_params": entry.best_params,
    }


def _print_table(entries: list[Entry]) -> None:
    rows = [COLUMNS, *(_cells(entry) for entry in entries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _cells(entry: Entry) -> tuple[str, ...]:
    names = ", ".join(entry.search.parameter_names)
    if len(names) > WIDEST:
        names = f"{names[: WIDEST - 3]}..."
    shown = "".join(one if one.isprintable() else "?" for one in names)
    counts = f"{entry.n_runs:,}", f"{entry.n_epochs:,}"
    return entry.date, entry.name, *counts, shown, f"{entry.best_score:.6g}"
