"""The commands about sweeps: plan, run, resume, status, report and export."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.json_output import print_json
from risingsearch.errors import (
    InvalidParameterError,
    RunDirError,
    SearchFailedError,
    missing,
)

if TYPE_CHECKING:
    from risingsearch.arms import Budget
    from risingsearch.scripts.sweep import Sweep
    from risingsearch.search.results import SearchResult

SHOWN = ("policy", "budget", "max_epochs", "n_jobs", "seed")
FORMATS = ("csv", "json", "parquet")


def add_commands(commands: Any) -> None:
    """Add the commands to a parser's."""
    _add_sweep(commands, "plan", _plan, "say what a sweep would do, and do nothing")
    run = _add_sweep(
        commands,
        "run",
        _run,
        "search over a training script, as a file describes; run again, it goes on",
    )
    run.add_argument(
        "--run-dir",
        type=Path,
        metavar="DIR",
        help="where it is kept (default: runs/ and the file's name)",
    )
    resume = _add_run(commands, "resume", _resume, "go on with a run, or extend it")
    resume.add_argument(
        "--budget",
        type=_more,
        metavar="+N",
        help="add so many epochs, seconds or hours, whatever the budget is in",
    )
    resume.add_argument("--json", action="store_true", help="print JSON")
    status = _add_run(commands, "status", _status, "say how far a run is")
    status.add_argument("--json", action="store_true", help="print JSON")
    report = _add_run(commands, "report", _report, "write a run as one HTML page")
    report.add_argument(
        "--out", type=Path, metavar="FILE", help="(default: report.html in RUN)"
    )
    export = _add_run(
        commands, "export", _export, "write all epochs of a run to a file"
    )
    export.add_argument(
        "--format", choices=FORMATS, default="csv", help="(default: csv)"
    )
    export.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="(default: standard output; needed for parquet)",
    )


def _add_sweep(commands: Any, name: str, run: Any, does: str) -> Any:
    parser = _add(commands, name, run, does)
    parser.add_argument("sweep", type=Path, metavar="SWEEP.yaml")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_run(commands: Any, name: str, run: Any, does: str) -> Any:
    parser = _add(commands, name, run, does)
    parser.add_argument("run_dir", type=Path, metavar="RUN")
    return parser


def _add(commands: Any, name: str, run: Any, does: str) -> Any:
    description = f"{does[0].upper()}{does[1:]}."
    parser = commands.add_parser(name, help=does, description=description)
    parser.set_defaults(run=run)
    return parser


def _plan(arguments: argparse.Namespace) -> None:
    from risingsearch.scripts.sweep import read_sweep

    sweep = read_sweep(arguments.sweep)
    candidates = sweep.draw()
    facts: dict[str, Any] = {
        "policy": sweep.policy,
        "configurations": len(candidates),
        "epochs_each_at_most": sweep.max_epochs,
        "epochs_to_train_all_in_full": len(candidates) * sweep.max_epochs,
        "workers": sweep.workers,
        "first_configurations": candidates[:3],
    }
    if sweep.budget.epochs is not None:
        full = facts["epochs_to_train_all_in_full"]
        facts["budget_epochs"] = sweep.budget.epochs
        facts["share_of_training_all"] = round(sweep.budget.epochs / full, 4)
    else:
        facts["budget_seconds"] = sweep.budget.seconds or 3600 * (
            sweep.budget.hours or 0
        )
    _print(facts, as_json=arguments.json)


def _run(arguments: argparse.Namespace) -> None:
    from risingsearch.scripts.sweep import read_sweep
    from risingsearch.storage.run_directory import holds_search

    sweep = read_sweep(arguments.sweep)
    run_dir = arguments.run_dir or Path("runs", arguments.sweep.stem)
    cwd = str(Path.cwd())
    if holds_search(run_dir):
        cwd = _described(run_dir)["cwd"]
    _search(sweep, run_dir, cwd, None, as_json=arguments.json)


def _resume(arguments: argparse.Namespace) -> None:
    from risingsearch.scripts.sweep import checked_sweep

    run_dir = arguments.run_dir
    described = _described(run_dir)
    sweep = checked_sweep(described["sweep"], str(run_dir))
    more = None if arguments.budget is None else sweep.budget.more(arguments.budget)
    _search(sweep, run_dir, described["cwd"], more, as_json=arguments.json)


def _described(run_dir: Path) -> dict[str, Any]:
    """Return the sweep of a run and where its scripts run."""
    from risingsearch.storage.run_directory import saved_header

    described: dict[str, Any] = saved_header(run_dir)["settings"].get("identity", {})
    if not {"sweep", "cwd"} <= described.keys():
        msg = (
            f"{run_dir} is not the run of a sweep: go on with RisingSearch.resume in "
            "Python"
        )
        raise RunDirError(msg)
    return described


def _search(
    sweep: Sweep, run_dir: Path, cwd: str, more: int | Budget | None, *, as_json: bool
) -> None:
    from risingsearch.scripts.run import run_sweep

    try:
        result, checkpoint = run_sweep(sweep, run_dir, Path(cwd), more)
    except KeyboardInterrupt:
        print(
            f"risingsearch: interrupted; go on with: risingsearch resume {run_dir}",
            file=sys.stderr,
        )
        raise
    except SearchFailedError as error:
        msg = f"{error}; mend the script and start anew with another --run-dir"
        raise SearchFailedError(msg) from error
    facts = _facts(result, run_dir)
    _print(facts | {"checkpoint": str(checkpoint)}, as_json=as_json)


def _status(arguments: argparse.Namespace) -> None:
    from risingsearch.storage.run_directory import is_held

    result = _saved_result(arguments.run_dir)
    facts = _facts(result, arguments.run_dir)
    if is_held(arguments.run_dir):
        facts["stop_reason"] = "none: it is running"
    _print(facts, as_json=arguments.json)


def _report(arguments: argparse.Namespace) -> None:
    from risingsearch.plotting.html_report import write_report
    from risingsearch.search.search import RisingSearch
    from risingsearch.storage.run_directory import saved_header

    run_dir = arguments.run_dir
    result = RisingSearch.saved_result(run_dir)
    settings = saved_header(run_dir)["settings"]
    shown = {name: settings[name] for name in SHOWN if settings[name] is not None}
    out = arguments.out or run_dir / "report.html"
    try:
        title = run_dir.resolve().name
        path = write_report(result, out, title=title, settings=shown)
    except OSError as error:
        raise _unwritable(out, error) from error
    print(path)


def _unwritable(path: Path, error: OSError) -> InvalidParameterError:
    return InvalidParameterError(f"{path} cannot be written ({error.strerror})")


def _saved_result(run_dir: Path) -> SearchResult:
    from risingsearch.search.search import RisingSearch

    return RisingSearch.saved_result(run_dir)


def _facts(result: SearchResult, run_dir: Path) -> dict[str, Any]:
    return {
        "run": str(run_dir),
        "epochs": result.n_epochs,
        "best_score": result.best_score,
        "best_arm": result.best_arm,
        "best_epoch": result.best_epoch,
        "best_params": result.best_params,
        "arms": dict(Counter(arm.status for arm in result.arms)),
        "failures": len(result.failures),
        "stop_reason": result.stop_reason,
    }


def _export(arguments: argparse.Namespace) -> None:
    result = _saved_result(arguments.run_dir)
    rows = [
        {**row, **_prefixed(result.candidates[row["arm"]])} for row in result.history
    ]
    out = arguments.out
    if out is None:
        if arguments.format == "parquet":
            msg = "parquet is no text: name a file with --out"
            raise InvalidParameterError(msg)
        _write(rows, sys.stdout, arguments.format)
        return
    try:
        if arguments.format == "parquet":
            _write_parquet(rows, out)
            return
        with out.open("w", newline="", errors="backslashreplace") as file:
            _write(rows, file, arguments.format)
    except OSError as error:
        raise _unwritable(out, error) from error


def _write(rows: list[dict[str, Any]], file: Any, kind: str) -> None:
    if kind == "json":
        print_json(rows, file)
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(file, names)
    writer.writeheader()
    writer.writerows(rows)


def _write_parquet(rows: list[dict[str, Any]], out: Path) -> None:
    frame = _frame(rows)
    try:
        frame.to_parquet(out)
    except ImportError as error:
        raise missing("pyarrow", extra="sim") from error


def _frame(rows: list[dict[str, Any]]) -> Any:
    from risingsearch.search.results import History

    frame = History(rows).to_frame()
    for name, column in frame.items():
        kinds = {type(value) for value in column if value == value}
        if column.dtype == object and len(kinds) > 1:  # a file has one kind in a column
            frame[name] = [value if value != value else str(value) for value in column]
    return frame


def _prefixed(params: Mapping[str, Any]) -> dict[str, Any]:
    return {f"param_{name}": value for name, value in params.items()}


def _print(facts: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(facts)
        return
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        if name == "arms":
            value = ", ".join(f"{n} {status}" for status, n in value.items())
        print(f"{name.replace('_', ' '):{width}}  {value}")


def _more(text: str) -> float:
    try:
        more = float(text.removeprefix("+"))
    except ValueError:
        more = 0.0
    if not 0.0 < more < math.inf:
        msg = f"how much is added, such as +100; got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return more
