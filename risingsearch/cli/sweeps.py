"""The commands about sweeps: plan, run, resume, status, report and export."""

from __future__ import annotations

import argparse
import csv
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.json_output import print_json
from risingsearch.cli.options import (
    Increase,
    add_command,
    add_json,
    amount,
    budget_or_increase,
    increase,
    one_line,
    writing,
)
from risingsearch.errors import InvalidParameterError, SearchFailedError, missing

if TYPE_CHECKING:
    from risingsearch.budget import Budget
    from risingsearch.scripts.sweep import Sweep
    from risingsearch.search.results import SearchResult

SHOWN = ("policy", "max_epochs", "n_jobs", "seed")
RUNNING = "none: it is running"
BUDGET = "instead of the file's: a number in its unit, or 8h, 8wall-h or 20gpu-h"
FORMATS = ("csv", "json", "parquet")
OF_THE_BEST = ("best_arm", "best_epoch", "best_params")
"""Facts that are left out, in words, where there is no score yet."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet takes for a formula (OWASP, CSV injection)."""


def add_commands(commands: Any) -> None:
    """Add the commands to a parser's."""
    plan = _add_sweep(
        commands, "plan", _plan, "show what a sweep would do, without running it"
    )
    plan.add_argument("--budget", type=amount, metavar="N", help=BUDGET)
    run = _add_sweep(
        commands,
        "run",
        _run,
        "run the search that a file describes; run it again to continue",
    )
    run.add_argument(
        "--run-dir",
        type=Path,
        metavar="DIR",
        help="where it is kept (default: runs/ and the file's name)",
    )
    run.add_argument(
        "--budget",
        type=budget_or_increase,
        metavar="N",
        help=f"{BUDGET}; with a plus sign, so much more for a run that was begun",
    )
    _add_retry(run)
    resume = _add_run(commands, "resume", _resume, "continue a run, or extend it")
    resume.add_argument(
        "--budget",
        type=increase,
        metavar="+N",
        help="add so much, in the unit of the budget or as +8h, +8wall-h or +20gpu-h",
    )
    _add_retry(resume)
    add_json(resume)
    status = _add_run(commands, "status", _status, "show how far a run has come")
    add_json(status)
    report = add_command(
        commands,
        "report",
        _report,
        "write a run as one HTML page, or several runs side by side",
    )
    report.add_argument("run_dirs", type=Path, metavar="RUN", nargs="+")
    report.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="(default: report.html in RUN; of several, comparison.html here)",
    )
    export = _add_run(
        commands, "export", _export, "write all epochs of a run to a file"
    )
    export.description += (
        " In CSV, text that a spreadsheet would take for a formula gets an apostrophe "
        "in front."
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
    parser = add_command(commands, name, run, does)
    parser.add_argument("sweep", type=Path, metavar="SWEEP.yaml")
    add_json(parser)
    return parser


def _add_retry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--retry-failed",
        action="store_true",
        help="first try every configuration again that has failed",
    )


def _add_run(commands: Any, name: str, run: Any, does: str) -> Any:
    parser = add_command(commands, name, run, does)
    parser.add_argument("run_dir", type=Path, metavar="RUN")
    return parser


def _sweep(path: Path, budget: float | Budget | None) -> Sweep:
    from risingsearch.scripts.sweep import read_sweep

    sweep = read_sweep(path)
    if sweep.checkpoints and sweep.checkpoints.startswith("memory:"):
        msg = (
            f"checkpoints in {sweep.checkpoints} are lost with this process: name a "
            "store that lasts, such as s3://bucket/runs/first, or leave them out"
        )
        raise InvalidParameterError(msg)
    return sweep if budget is None else sweep.with_budget(budget)


def _plan(arguments: argparse.Namespace) -> None:
    from risingsearch.priors import read_prior

    sweep = _sweep(arguments.sweep, arguments.budget)
    candidates = sweep.draw()
    facts: dict[str, Any] = {
        "policy": sweep.policy,
        "configurations": len(candidates),
        "epochs_each_at_most": sweep.max_epochs,
        "epochs_to_train_all_in_full": len(candidates) * sweep.max_epochs,
        "workers": sweep.workers,
        "first_configurations": candidates[:3],
    }
    if sweep.min_epochs > 1:
        facts["epochs_each_before_it_is_judged"] = sweep.min_epochs
    if sweep.enqueue:
        facts["opened_first"] = sweep.enqueue
    if sweep.budget.epochs is not None:
        full = facts["epochs_to_train_all_in_full"]
        facts["budget_epochs"] = sweep.budget.epochs
        facts["share_of_training_all"] = round(sweep.budget.epochs / full, 4)
    else:
        facts[f"budget_{sweep.budget.unit}"] = sweep.budget.amount
    if sweep.launcher.slurm is not None:
        facts["sbatch"] = " ".join(sweep.sbatch_arguments) or "as the cluster gives it"
    elif sweep.gpus is not None:
        placement = sweep.placement()
        facts |= {"workers": len(placement.variables), "gpus": placement.gpus}
    if sweep.prior is not None:
        searches = read_prior(sweep.earlier(), candidates)
        facts["earlier_searches"] = [search.name for search in searches]
        facts["earlier_runs"] = sum(len(search.params) for search in searches)
    facts |= _advice_on_starts(Path("runs", arguments.sweep.stem), sweep)
    _print(facts, as_json=arguments.json)


def _advice_on_starts(run_dir: Path, sweep: Sweep) -> dict[str, Any]:
    """Return what share of the time the starts of jobs took, if the sweep has begun."""
    from risingsearch.search.starts import Starts
    from risingsearch.storage.journal import read
    from risingsearch.storage.run_directory import JOURNAL, holds_search

    if not holds_search(run_dir):
        return {}
    starts = Starts.of_events(read(run_dir / JOURNAL).events, sweep.max_epochs)
    facts: dict[str, Any] = {}
    if starts.share >= 0.0:
        facts["share_of_time_starting"] = round(starts.share, 4)
    if (advice := starts.advice(sweep.epochs_per_job)) is not None:
        facts["advice"] = advice
    return facts


def _run(arguments: argparse.Namespace) -> None:
    from risingsearch.cli.trackers import made_trackers
    from risingsearch.scripts.run import run_sweep
    from risingsearch.storage.run_directory import holds_search

    budget, more = arguments.budget, None
    run_dir = arguments.run_dir or Path("runs", arguments.sweep.stem)
    if isinstance(budget, Increase):
        if not holds_search(run_dir):
            msg = (
                f"{run_dir} holds no search whose budget could grow: give --budget "
                "without a plus sign"
            )
            raise InvalidParameterError(msg)
        sweep = _sweep(arguments.sweep, None)
        more = sweep.budget.like(budget.amount)
    else:
        sweep = _sweep(arguments.sweep, budget)
    with _advice(run_dir, str(arguments.sweep)):
        result, checkpoint = run_sweep(
            sweep,
            run_dir,
            more=more,
            retry_failed=arguments.retry_failed,
            trackers=made_trackers,
        )
    _print_found(result, run_dir, checkpoint, as_json=arguments.json)


def _resume(arguments: argparse.Namespace) -> None:
    from risingsearch.cli.trackers import made_trackers
    from risingsearch.scripts.identity import FILE
    from risingsearch.scripts.run import resume_sweep

    run_dir = arguments.run_dir
    print(
        f"risingsearch: {run_dir} goes on as {run_dir / FILE} says, with what run was "
        "last given; no other file is read",
        file=sys.stderr,
    )
    with _advice(run_dir, "SWEEP.yaml"):
        result, checkpoint = resume_sweep(
            run_dir,
            arguments.budget,
            retry_failed=arguments.retry_failed,
            trackers=made_trackers,
        )
    _print_found(result, run_dir, checkpoint, as_json=arguments.json)


@contextmanager
def _advice(run_dir: Path, sweep: str) -> Iterator[None]:
    """Tell the user what to do where a search is interrupted or fails.

    Only ``run`` reads the file: a mistake in it is not mended for ``resume``.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        msg = f"interrupted; continue with: risingsearch resume {run_dir}"
        raise KeyboardInterrupt(msg) from error
    except SearchFailedError as error:
        msg = (
            f"{error}; once that is mended, in the script or in the sweep, "
            f"risingsearch run {sweep} --run-dir {run_dir} goes on with others, and "
            "with --retry-failed tries those again first that have failed; --budget +N "
            "adds to a budget that is spent"
        )
        raise SearchFailedError(msg) from error


def _print_found(
    result: SearchResult, run_dir: Path, checkpoint: Path, *, as_json: bool
) -> None:
    facts = facts_of(result, run_dir) | {"checkpoint": str(checkpoint)}
    _print_result(result, facts, as_json=as_json)


def _status(arguments: argparse.Namespace) -> None:
    from risingsearch.search.following import Follower
    from risingsearch.search.results import UNFINISHED
    from risingsearch.storage.run_directory import is_held

    is_running = is_held(arguments.run_dir)
    standing = Follower(arguments.run_dir).look() if is_running else None
    if standing is None:
        result = _saved_result(arguments.run_dir)
    else:
        result = as_swept(standing.result, arguments.run_dir)
    facts = facts_of(result, arguments.run_dir)
    if is_running:
        facts["stop_reason"] = RUNNING
    elif result.stop_reason == UNFINISHED:
        facts["stop_reason"] = (
            f"none: it has stopped; {how_to_go_on(arguments.run_dir)}"
        )
        if n_running := facts["arms"].pop("running", 0):
            facts["arms"]["interrupted"] = n_running
    if gpus := _gpus_of(arguments.run_dir):
        facts["gpus"] = gpus
    if jobs := _jobs_of(arguments.run_dir):
        facts["jobs_of_slurm"] = jobs
    _print_result(result, facts, as_json=arguments.json)


def _gpus_of(run_dir: Path) -> list[list[str]] | None:
    """Return which GPUs each worker of a sweep was last given; None for no GPUs."""
    if not _is_of_sweep(run_dir):
        return None
    from risingsearch.scripts.identity import GPUS, last_known

    return (last_known(run_dir) or {}).get(GPUS)


def _jobs_of(run_dir: Path) -> dict[str, int]:
    """Return how many slices of a sweep are out in Slurm, by how far they have come."""
    if not (run_dir / "slurm").is_dir():
        return {}
    from risingsearch.scripts.slurm.batches import FOLDER, counted

    return counted(run_dir / FOLDER)


def how_to_go_on(run_dir: Path) -> str:
    """Return how a search that has stopped is continued."""
    if _is_of_sweep(run_dir):
        return f"continue with: risingsearch resume {run_dir}"
    return (
        "continue in Python: RisingSearch.resume, or fit of RisingSearchCV with the "
        "same arguments and data"
    )


def _report(arguments: argparse.Namespace) -> None:
    if len(arguments.run_dirs) > 1:
        _compare(arguments.run_dirs, arguments.out or Path("comparison.html"))
        return
    from risingsearch.plotting.html_report import write_report

    (run_dir,) = arguments.run_dirs
    result, shown, space = _reported(run_dir)
    out = arguments.out or run_dir / "report.html"
    title = run_dir.resolve().name
    with writing(out):
        print(write_report(result, out, title=title, settings=shown, space=space))


def _compare(run_dirs: Sequence[Path], out: Path) -> None:
    from risingsearch.plotting.comparison import write_comparison

    reported = {name: _reported(path) for name, path in named(run_dirs).items()}
    results = {name: result for name, (result, _, _) in reported.items()}
    settings = {name: shown for name, (_, shown, _) in reported.items()}
    with writing(out):
        print(write_comparison(results, out, settings=settings))


def named(run_dirs: Sequence[Path]) -> dict[str, Path]:
    """Return runs by the names of their directories, or by paths if two are alike."""
    names = [run_dir.resolve().name for run_dir in run_dirs]
    if len(set(names)) < len(names):
        names = [str(run_dir) for run_dir in run_dirs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        msg = f"{twice} is named twice: compare different runs"
        raise InvalidParameterError(msg)
    return dict(zip(names, run_dirs, strict=True))


def _reported(
    run_dir: Path,
) -> tuple[SearchResult, dict[str, Any], dict[str, str] | None]:
    """Return what a run has found, and its settings and space in words."""
    from risingsearch.storage.run_directory import is_held

    result = _saved_result(run_dir)
    if is_held(run_dir):
        result = replace(result, stop_reason=RUNNING)
    return result, *settings_and_space(run_dir)


def settings_and_space(
    run_dir: Path,
) -> tuple[dict[str, Any], dict[str, str] | None]:
    """Return how a run was made, and what it searches in words, where that is known."""
    from risingsearch.storage.run_directory import saved_header, understood

    settings = saved_header(run_dir)["settings"]
    with understood(run_dir):
        shown = {name: settings[name] for name in SHOWN if settings[name] is not None}
        sweep = _sweep_of(run_dir)
        if sweep is None:
            return shown, None
        space = {name: _searched(p) for name, p in sweep["parameters"].items()}
        return {"command": shlex.join(sweep["command"]), **shown}, space


def _sweep_of(run_dir: Path) -> Mapping[str, Any] | None:
    """Return what a sweep was last run with; None for other searches."""
    if not _is_of_sweep(run_dir):
        return None
    from risingsearch.scripts.identity import last_known

    return (last_known(run_dir) or {}).get("sweep")


def _is_of_sweep(run_dir: Path) -> bool:
    from risingsearch.storage.run_directory import saved_header

    return "sweep" in (saved_header(run_dir)["settings"].get("fingerprint") or {})


def _metric_of(sweep: Mapping[str, Any]) -> str:
    """Return what a sweep calls its score; that may have been mended meanwhile."""
    metric = sweep.get("metric", "score")
    return str(metric["regex"] if isinstance(metric, Mapping) else metric)


def _searched(parameter: Any) -> str:
    """Return in words what a sweep says of a parameter: its type first."""
    words = [parameter["type"]]
    for name, value in parameter.items():
        listed = " | ".join(map(str, value)) if isinstance(value, list) else value
        words += [f"{name} {listed}"] if name != "type" else []
    return ", ".join(words)


def _saved_result(run_dir: Path) -> SearchResult:
    from risingsearch.search.search import RisingSearch

    return as_swept(RisingSearch.saved_result(run_dir), run_dir)


def as_swept(result: SearchResult, run_dir: Path) -> SearchResult:
    """Return the result of a run with what only its sweep knows, if it is one."""
    from risingsearch.storage.run_directory import understood

    with understood(run_dir):
        sweep = _sweep_of(run_dir)
        if sweep is None:
            return result
        from risingsearch.scripts.living import with_room_made
        from risingsearch.scripts.run import ARMS

        arms = with_room_made(result.arms, run_dir / ARMS)
        return replace(result, metric=_metric_of(sweep), arms=arms)


def facts_of(result: SearchResult, run_dir: Path) -> dict[str, Any]:
    """Return how far a run has come."""
    return {
        "run": str(run_dir),
        "epochs": result.n_epochs,
        "budget": result.budget and {result.budget.unit: result.budget.amount},
        "spent": result.spent,
        "metric": result.metric,
        "best_score": result.best_score,
        "best_arm": result.best_arm,
        "best_epoch": result.best_epoch,
        "best_params": result.best_params,
        "arms": dict(Counter(arm.status for arm in result.arms)),
        "failures": len(result.failures),
        "first_failure": first_failure(result),
        "stop_reason": result.stop_reason,
        "left_out": result.left_out,
    }


def first_failure(result: SearchResult) -> str | None:
    """Return how the first of the arms has failed that have not been mended since."""
    failed = {arm.arm for arm in result.arms if arm.status == "failed"}
    failures = [report for report in result.failures if report.job.arm in failed]
    if not failures:
        return None
    first = min(failures, key=lambda report: report.job.id)
    return f"arm {first.job.arm}, after epoch {first.job.from_epoch}: {first.failure}"


def _export(arguments: argparse.Namespace) -> None:
    result = _saved_result(arguments.run_dir)
    rows = [
        {**row, "direction": result.direction}
        | _prefixed(result.candidates[row["arm"]])
        for row in result.history
    ]
    if result.left_out is not None:
        print(f"risingsearch: left out: {result.left_out}", file=sys.stderr)
    out = arguments.out
    if arguments.format == "parquet":
        if out is None:
            msg = "parquet is no text: name a file with --out"
            raise InvalidParameterError(msg)
        with writing(out):
            _write_parquet(rows, out)
    elif out is None:
        _write(rows, sys.stdout, arguments.format)
    else:
        with (
            writing(out),
            out.open("w", newline="", errors="backslashreplace") as file,
        ):
            _write(rows, file, arguments.format)


def _write(rows: list[dict[str, Any]], file: Any, kind: str) -> None:
    if kind == "json":
        print_json(rows, file)
        return
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(file)
    writer.writerow([_cell(name) for name in names])
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)


def _cell(value: Any) -> Any:
    """Return a value of which a spreadsheet makes no formula."""
    if value is None or isinstance(value, Real):
        return value
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


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


def _print(
    facts: Mapping[str, Any], *, as_json: bool, more: Iterable[tuple[str, str]] = ()
) -> None:
    """Print facts; ``more`` of them are in words, for a terminal only."""
    if as_json:
        print_json(facts)
        return
    lines = [*_in_words(facts), *more]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        print(f"{name:{width}}  {value}")


def _in_words(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    has_none = facts.get("best_arm", 0) is None
    for name, value in facts.items():
        if name == "spent" or (name in ("left_out", "first_failure") and value is None):
            continue
        if has_none and name in OF_THE_BEST:
            continue
        if has_none and name == "best_score":
            value = "none"
        if name in ("metric", "first_failure"):
            value = one_line(value)
        if name == "budget":
            [(unit, total)] = value.items()
            value = f"{facts['spent']:.6g} of {total:.6g} {unit}"
        if name == "gpus":
            from risingsearch.search.gpus import in_words

            value = in_words(value)
        if name == "arms":
            value = ", ".join(f"{n} {status}" for status, n in value.items())
        if name == "earlier_searches":
            from risingsearch.checks import on_one_line

            value = ", ".join(map(on_one_line, value))
        yield name.replace("_", " "), value


def _print_result(
    result: SearchResult, facts: Mapping[str, Any], *, as_json: bool
) -> None:
    """Print facts, and what came of earlier searches in the words of the report."""
    from risingsearch.plotting.html_report import prior_facts

    if as_json:
        names = "trust_in_prior", "opened_by_prior"
        facts = {**facts, **{name: getattr(result, name) for name in names}}
    _print(facts, as_json=as_json, more=prior_facts(result))
