"""The commands that write a run to a file: report and export."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.options import add_json, add_run_command, whole, writing
from risingsearch.cli.printing import print_json
from risingsearch.cli.status import RunView, facts_of, named, runs_below
from risingsearch.errors import InvalidParameterError, needed

if TYPE_CHECKING:
    from risingsearch.json_values import Json

LAST_PORT = 65_535
FORMATS = ("csv", "json", "parquet")


def add_report_and_export(commands: object) -> None:
    """Add the commands to a parser's."""
    does = "write a run as one HTML page, or the runs of a folder side by side"
    report = add_run_command(
        commands,
        "report",
        _report,
        does,
        nargs="+",
    )
    report.description += (
        " With --watch it prints a URL of the pages instead, which follow the runs. "
        "This machine alone can open it, and only with the secret in it. Ctrl-C ends "
        "it, not the searches."
    )
    report.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="(default: report.html in RUN; of several, comparison.html here)",
    )
    report.add_argument(
        "--watch",
        action="store_true",
        help="show the runs in a browser, also while they run",
    )
    report.add_argument(
        "--port",
        type=partial(whole, low=0, high=LAST_PORT),
        metavar="N",
        help="of the URL (default: any that is free)",
    )
    add_json(report, "print the facts of the page instead of writing it")
    export = add_run_command(
        commands,
        "export",
        _export,
        "write all epochs of a run to a file",
    )
    export.add_argument(
        "--format",
        choices=FORMATS,
        help="(default: as FILE ends, else csv)",
    )
    export.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="as --format json",
    )
    export.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="(default: standard output; needed for parquet)",
    )


def _report(arguments: argparse.Namespace) -> None:
    run_dirs: list[Path] = []
    for path in arguments.run_dir:
        run_dirs += runs_below(path) or [path]
    if arguments.json:
        _print_data(arguments, run_dirs)
        return
    if arguments.watch and arguments.out is not None:
        raise InvalidParameterError("--out is for a file: leave it out with --watch")
    if arguments.watch:
        _serve(run_dirs, arguments.port or 0)
        return
    if arguments.port is not None:
        raise InvalidParameterError("--port is for --watch: give both, or neither")
    if len(run_dirs) > 1:
        _compare(run_dirs, arguments.out or Path("comparison.html"))
        return
    from risingsearch.plotting.html_report import write_report

    (run_dir,) = run_dirs
    run = RunView(run_dir)
    result = run.result
    settings, space = run.settings_and_space()
    out = arguments.out or run_dir / "report.html"
    title = run_dir.resolve().name
    with writing(out):
        print(write_report(result, out, title=title, settings=settings, space=space))


def _print_data(arguments: argparse.Namespace, run_dirs: list[Path]) -> None:
    """Print the content of the page of each run, as JSON."""
    given = {"--out": arguments.out, "--watch": arguments.watch or None}
    if both := [name for name, value in given.items() if value is not None]:
        raise InvalidParameterError(
            f"{both[0]} is for a page: leave it out with --json"
        )
    data = {name: _data(RunView(path)) for name, path in named(run_dirs).items()}
    if len(data) > 1:
        print_json(data)
        return
    [alone] = data.values()
    print_json(alone)


def _data(run: RunView) -> Json:
    from risingsearch.plotting.importance import parameter_importance

    result = run.result
    settings, space = run.settings_and_space()
    curves = result.curves
    arms = [asdict(arm) | {"curve": curves.get(arm.arm, [])} for arm in result.arms]
    importance = parameter_importance(result).parameters
    return facts_of(result, run.path) | {
        "settings": settings,
        "space": space,
        "importance": [parameter._asdict() for parameter in importance],
        "all_arms": arms,
    }


def _serve(run_dirs: Sequence[Path], port: int) -> None:
    from risingsearch.cli.live import live_pages
    from risingsearch.cli.server import PageServer

    for path in run_dirs:
        if not path.exists():
            print(f"risingsearch: {path} does not exist yet", file=sys.stderr)
    with PageServer(port, live_pages(run_dirs)) as server:
        print(server.url, flush=True)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def _compare(run_dirs: Sequence[Path], out: Path) -> None:
    from risingsearch.plotting.comparison import write_comparison

    runs = {name: RunView(path) for name, path in named(run_dirs).items()}
    results = {name: run.result for name, run in runs.items()}
    settings = {name: run.settings_and_space()[0] for name, run in runs.items()}
    with writing(out):
        print(write_comparison(results, out, settings=settings))


def _export(arguments: argparse.Namespace) -> None:
    result = RunView(arguments.run_dir).result
    params = [
        {f"param_{name}": value for name, value in params.items()}
        for params in result.candidates
    ]
    rows = [
        {
            **row,
            "direction": result.direction,
            **params[row["arm"]],
        }
        for row in result.history
    ]
    if result.left_out is not None:
        print(f"risingsearch: left out: {result.left_out}", file=sys.stderr)
    out = arguments.out
    kind = arguments.format or (out.suffix[1:] if out is not None else "") or "csv"
    if kind not in FORMATS:
        raise InvalidParameterError(
            f"{out} names no format: end it in .{', .'.join(FORMATS)}"
        )
    if kind == "parquet":
        if out is None:
            raise InvalidParameterError("parquet is no text: name a file with --out")
        with writing(out):
            _write_parquet(rows, out)
    elif out is None:
        _write(rows, sys.stdout, kind)
    else:
        with writing(out), out.open("w", newline="", errors="backslashreplace") as file:
            _write(rows, file, kind)


def _write(rows: list[dict[str, Any]], file: Any, kind: str) -> None:
    if kind == "json":
        print_json(rows, file)
        return
    from risingsearch.priors.frames import quoted

    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(file)
    writer.writerow(map(quoted, names))
    writer.writerows([quoted(row.get(name, "")) for name in names] for row in rows)


def _write_parquet(rows: list[dict[str, Any]], out: Path) -> None:
    from risingsearch.search.results import History

    frame = History(rows).to_frame()
    for name, column in frame.items():
        kinds = {type(value) for value in column if value == value}
        if column.dtype == object and len(kinds) > 1:  # a file has one kind in a column
            frame[name] = [value if value != value else str(value) for value in column]
    with needed("pyarrow", "sim", ImportError):
        frame.to_parquet(out)
