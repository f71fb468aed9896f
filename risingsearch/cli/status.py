"""The status of a run: read from its directory, as facts and as text."""

from __future__ import annotations

import argparse
import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.options import add_json, add_run_command
from risingsearch.cli.printing import print_result
from risingsearch.errors import InvalidParameterError

if TYPE_CHECKING:
    from risingsearch.search.following import RunReader, RunStatus
    from risingsearch.search.results import SearchResult

WAITING, RUNNING, STOPPED, FINISHED = "waiting", "running", "stopped", "finished"
"""States of a run: before the first epoch; then; without a process; at the end."""
SHOWN = ("policy", "max_epochs", "n_jobs", "seed")
STILL_RUNNING = "none: it is running"


def add_status(commands: Any) -> None:
    """Add the command to a parser's."""
    status = add_run_command(commands, "status", _status, "show how far a run has come")
    add_json(status)


def read_status(reader: RunReader) -> RunStatus | None:
    """Return the status of a run, completed by its sweep; None before its start."""
    status = reader.read()
    if status is None:
        return None
    return status._replace(result=as_swept(status.result, reader.path))


def state_of(status: RunStatus | None) -> str:
    """Return the state of a run, one of the four."""
    if status is None:
        return WAITING
    if status.is_done:
        return FINISHED
    if status.is_running:
        return RUNNING
    return STOPPED if status.result.n_epochs else WAITING


def why_ended(status: RunStatus, run_dir: Path) -> str | None:
    """Return why a run ended, or how to continue it; None while it trains."""
    state = state_of(status)
    if state == STOPPED:
        return how_to_continue(run_dir)
    return status.result.stop_reason if state == FINISHED else None


def progress_text(status: RunStatus | None, age: float = 0.0) -> str:
    """Return the budget used and the time left, ``age`` seconds after the look."""
    from risingsearch.plotting.words import duration

    if status is None or not status.result.history:
        return "no epoch is recorded yet"
    result = status.result
    parts = [f"{status.spent:,.6g} of {status.budget:,.6g} {status.unit}"]
    if status.unit != "epochs":
        parts.append(f"{result.n_epochs:,} epochs")
    if state_of(status) == RUNNING and math.isfinite(status.seconds_left):
        left = max(0.0, status.seconds_left - age)
        parts.append(f"about {duration(left)} left")
    if math.isfinite(result.wall_seconds):
        parts.append(f"{duration(result.wall_seconds)} of wall-clock time")
    return ", ".join(parts)


def watch_facts(status: RunStatus | None, run_dir: Path) -> dict[str, Any]:
    """Return the facts that a frame of ``watch`` shows."""
    if status is None:
        return {"run": str(run_dir), "state": WAITING}
    return {
        **facts_of(status.result, run_dir),
        "stop_reason": why_ended(status, run_dir),
        "state": state_of(status),
        "spent": status.spent,
        "budget": status.budget,
        "unit": status.unit,
        "seconds_left": status.seconds_left if status.is_running else None,
        "training": [one._asdict() for one in status.training],
    }


def _status(arguments: argparse.Namespace) -> None:
    from risingsearch.search.following import RunReader
    from risingsearch.search.results import UNFINISHED
    from risingsearch.storage.run_directory import is_held

    is_running = is_held(arguments.run_dir)
    status = RunReader(arguments.run_dir).read() if is_running else None
    if status is None:
        result = saved_result(arguments.run_dir)
    else:
        result = as_swept(status.result, arguments.run_dir)
    facts = facts_of(result, arguments.run_dir)
    if is_running:
        facts["stop_reason"] = STILL_RUNNING
    elif result.stop_reason == UNFINISHED:
        facts["stop_reason"] = (
            f"none: it has stopped; {how_to_continue(arguments.run_dir)}"
        )
        if n_running := facts["arms"].pop("running", 0):
            facts["arms"]["interrupted"] = n_running
    if gpus := _gpus_of(arguments.run_dir):
        facts["gpus"] = gpus
    if jobs := _jobs_of(arguments.run_dir):
        facts["jobs_of_slurm"] = jobs
    print_result(result, facts, as_json=arguments.json)


def _gpus_of(run_dir: Path) -> list[list[str]] | None:
    """Return the GPUs of each worker of a sweep; None without GPUs."""
    if not is_of_sweep(run_dir):
        return None
    from risingsearch.scripts.identity import GPUS, last_known

    return (last_known(run_dir) or {}).get(GPUS)


def _jobs_of(run_dir: Path) -> dict[str, int]:
    """Return the number of jobs of a sweep in Slurm, by their state."""
    if not (run_dir / "slurm").is_dir():
        return {}
    from risingsearch.scripts.slurm.batches import FOLDER, counted

    return counted(run_dir / FOLDER)


def how_to_continue(run_dir: Path) -> str:
    """Return how a search that has stopped is continued."""
    if is_of_sweep(run_dir):
        return f"continue with: risingsearch resume {run_dir}"
    return (
        "continue in Python: RisingSearch.resume, or fit of RisingSearchCV with the "
        "same arguments and data"
    )


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


def reported(
    run_dir: Path,
) -> tuple[SearchResult, dict[str, Any], dict[str, str] | None]:
    """Return the result of a run, its settings and its space as text."""
    from risingsearch.storage.run_directory import is_held

    result = saved_result(run_dir)
    if is_held(run_dir):
        result = replace(result, stop_reason=STILL_RUNNING)
    return result, *settings_and_space(run_dir)


def settings_and_space(
    run_dir: Path,
) -> tuple[dict[str, Any], dict[str, str] | None]:
    """Return the settings of a run, and its space as text if that is known."""
    from risingsearch.storage.run_directory import saved_header, understood

    settings = saved_header(run_dir)["settings"]
    with understood(run_dir):
        shown = {name: settings[name] for name in SHOWN if settings[name] is not None}
        sweep = sweep_of(run_dir)
        if sweep is None:
            return shown, None
        space = {name: _searched(p) for name, p in sweep["parameters"].items()}
        return {"command": shlex.join(sweep["command"]), **shown}, space


def sweep_of(run_dir: Path) -> Mapping[str, Any] | None:
    """Return the settings a sweep was last run with; None for other searches."""
    if not is_of_sweep(run_dir):
        return None
    from risingsearch.scripts.identity import last_known

    return (last_known(run_dir) or {}).get("sweep")


def is_of_sweep(run_dir: Path) -> bool:
    """Whether a run is of a sweep; others were begun in Python."""
    from risingsearch.storage.run_directory import saved_header

    return "sweep" in (saved_header(run_dir)["settings"].get("fingerprint") or {})


def _metric_of(sweep: Mapping[str, Any]) -> str:
    """Return the name of the score of a sweep, as of its last run."""
    metric = sweep.get("metric", "score")
    return str(metric["regex"] if isinstance(metric, Mapping) else metric)


def _searched(parameter: Any) -> str:
    """Return the text of a parameter of a sweep: its type first."""
    words = [parameter["type"]]
    for name, value in parameter.items():
        listed = " | ".join(map(str, value)) if isinstance(value, list) else value
        words += [f"{name} {listed}"] if name != "type" else []
    return ", ".join(words)


def saved_result(run_dir: Path) -> SearchResult:
    """Return the result of a run so far, without running or unpickling anything."""
    from risingsearch.search.search import RisingSearch

    return as_swept(RisingSearch.saved_result(run_dir), run_dir)


def as_swept(result: SearchResult, run_dir: Path) -> SearchResult:
    """Return the result of a run, completed by its sweep if there is one."""
    from risingsearch.storage.run_directory import understood

    with understood(run_dir):
        sweep = sweep_of(run_dir)
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
    """Return the first failure among the arms that are still failed."""
    failed = {arm.arm for arm in result.arms if arm.status == "failed"}
    failures = [report for report in result.failures if report.job.arm in failed]
    if not failures:
        return None
    first = min(failures, key=lambda report: report.job.id)
    return f"arm {first.job.arm}, after epoch {first.job.from_epoch}: {first.failure}"
