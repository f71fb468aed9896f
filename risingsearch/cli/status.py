"""A run as the commands look at it: read from its directory, as facts and as text."""

from __future__ import annotations

import argparse
import math
import os
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.options import add_json, add_run_command, one_line
from risingsearch.cli.printing import print_facts
from risingsearch.errors import InvalidParameterError

if TYPE_CHECKING:
    from risingsearch.json_values import Json
    from risingsearch.search.following import RunStatus
    from risingsearch.search.results import SearchResult

WAITING = "waiting"
RUNNING = "running"
STOPPED = "stopped"
FINISHED = "finished"
"""States of a run: before the first epoch; then; without a process; at the end."""
SHOWN = ("policy", "max_epochs", "n_jobs", "seed")


def add_status(commands: object) -> None:
    """Add the command to a parser's."""
    status = add_run_command(
        commands,
        "status",
        _status,
        "show how far a run has come",
    )
    add_json(status)


def _status(arguments: argparse.Namespace) -> None:
    RunView(arguments.run_dir).print_facts(as_json=arguments.json)


class RunView:
    """A run, read without unpickling; its directory may be empty, or come later."""

    def __init__(self, run_dir: Path, *, may_come: bool = False) -> None:
        from risingsearch.search.following import RunReader

        self.path = run_dir
        self.reader = RunReader(run_dir, may_come=may_come)
        self.look()

    def refresh(self) -> None:
        """Read the new lines, if there are any."""
        if self.reader.version() != self.version:
            self.look()

    def look(self) -> None:
        """Read the new lines."""
        from risingsearch.storage.run_directory import damage_as_error, saved_header

        self.version = self.reader.version()
        self.status: RunStatus | None = self.reader.read()
        self.looked = time.monotonic()
        self.settings: Json = {}
        self.last: Json = {}  # what a sweep was last run with
        if self.status is None:
            return
        with damage_as_error(self.path):
            self.settings = saved_header(self.path)["settings"]
            if self.is_of_sweep:
                from risingsearch.scripts.identity import last_identity

                self.last = dict(last_identity(self.path))
            if "sweep" in self.last:
                result = self._as_the_sweep_says(self.status, self.last["sweep"])
                self.status = self.status._replace(result=result)

    def _as_the_sweep_says(self, status: RunStatus, sweep: Json) -> SearchResult:
        """Return the result with the name of its metric, and the ends of processes."""
        metric = sweep.get("metric", "score")
        if isinstance(metric, Mapping):
            metric = metric.get("name") or metric["regex"]
        result = replace(status.result, metric=str(metric))
        if sweep.get("resume", True) or status.is_running:
            return result
        from risingsearch.scripts.ended import with_ended_arms

        return with_ended_arms(result)

    @property
    def is_of_sweep(self) -> bool:
        """Whether the run is of a sweep; others were begun in Python."""
        return {"sweep", "cwd"} <= (self.settings.get("fingerprint") or {}).keys()

    @property
    def is_over(self) -> bool:
        """Whether nothing would start any more, or a stop rule has ended the run."""
        return self.status is not None and self.status.is_done

    @property
    def state(self) -> str:
        """One of the four states."""
        if self.status is None:
            return WAITING
        if self.is_over:
            return FINISHED
        if self.status.is_running:
            return RUNNING
        if self.status.result.n_epochs:
            return STOPPED
        return WAITING

    @property
    def result(self) -> SearchResult:
        """The result so far, which says if the run is not over."""
        if self.status is None:
            raise InvalidParameterError(
                f"{self.path} holds no search yet: look again when it has begun"
            )
        if self.status.is_running and not self.is_over:
            return replace(self.status.result, stop_reason="none: it is running")
        return self.status.result

    def why_ended(self) -> str | None:
        """Return why the run ended, or how to continue it; None while it trains."""
        if self.state == FINISHED:
            return self.result.stop_reason
        if self.state == STOPPED:
            return self._how_to_continue()
        return None

    def _how_to_continue(self) -> str:
        if self.status is not None and self.status.is_asked:
            return how_to_ask(self.path)
        if self.is_of_sweep:
            return f"continue with: risingsearch resume {self.path}"
        return (
            "continue in Python: run the program that began it again, with the same "
            "arguments and data"
        )

    def progress_text(self) -> str:
        """Return the budget used and the time left; that runs down until a look."""
        from risingsearch.budget import in_words
        from risingsearch.plotting.words import duration

        status = self.status
        if status is None and not self.path.exists():
            return "the directory does not exist yet"
        if status is None or not status.result.history:
            return "no epoch is recorded yet"
        parts = [f"{status.spent:,.6g} of {status.budget:,.6g} {in_words(status.unit)}"]
        if status.unit != "epochs":
            parts.append(f"{status.result.n_epochs:,} epochs")
        if self.state == RUNNING and math.isfinite(status.seconds_left):
            left = status.seconds_left - (time.monotonic() - self.looked)
            parts.append(f"about {duration(max(0.0, left))} left")
        if math.isfinite(status.result.wall_seconds):
            parts.append(f"{duration(status.result.wall_seconds)} of wall-clock time")
        return ", ".join(parts)

    def settings_and_space(self) -> tuple[Json, dict[str, str] | None]:
        """Return the settings of the run, and its space as text if that is known."""
        from risingsearch.storage.run_directory import damage_as_error

        with damage_as_error(self.path):
            shown = {
                name: self.settings[name]
                for name in SHOWN
                if self.settings[name] is not None
            }
            if "sweep" not in self.last:
                return shown, None
            sweep = self.last["sweep"]
            parameters = sweep.get("parameters", {})  # none in a file of ConfigSpace
            space = {name: _searched(p) for name, p in parameters.items()}
            return {"command": shlex.join(sweep["command"]), **shown}, space

    def print_facts(self, *, as_json: bool) -> None:
        """Print how far the run has come."""
        status = self.status
        facts: Json = {"run": str(self.path), "state": self.state}
        if status is None:
            facts["progress"] = self.progress_text()
            print_facts(facts, as_json=as_json)
            return
        facts |= facts_of(self.result, self.path)
        if not status.is_running and not self.is_over:
            facts["stop_reason"] = f"none: it has stopped; {self._how_to_continue()}"
        if gpus := self.last.get("gpus"):
            facts["gpus"] = gpus
        if (self.path / "slurm").is_dir():
            from risingsearch.search.slurm.slices import FOLDER, counted, note_of

            facts["jobs_of_slurm"] = counted(self.path / FOLDER)
            if status.is_running and (note := note_of(self.path / FOLDER)):
                facts["slurm"] = one_line(note)
        if status.is_running:
            facts["training"] = [job._asdict() for job in status.training]
            facts["seconds_left"] = status.seconds_left
        print_facts(facts, as_json=as_json)


def how_to_ask(run_dir: Path) -> str:
    """Return how a program continues a search that it drives by itself."""
    return f"risingsearch ask {run_dir} gives the next job"


def _searched(parameter: Any) -> str:
    """Return the text of a parameter of a sweep: its type first."""
    words = [parameter["type"]]
    for name, value in parameter.items():
        listed = value
        if isinstance(value, list):
            listed = " | ".join(map(str, value))
        words += [f"{name} {listed}"] if name != "type" else []
    return ", ".join(words)


def runs_below(folder: Path) -> list[Path]:
    """Return the directories of runs in a folder, at any depth; it may be one."""
    from risingsearch.storage.run_directory import holds_search

    runs = []
    for path, folders, _ in os.walk(folder):
        folders.sort()
        if holds_search(Path(path)):
            runs.append(Path(path))
            folders.clear()
    return runs


def named(run_dirs: Sequence[Path]) -> dict[str, Path]:
    """Return runs by the names of their directories, or by paths if two are alike."""
    names = [run_dir.resolve().name for run_dir in run_dirs]
    if len(set(names)) < len(names):
        names = [str(run_dir) for run_dir in run_dirs]
    runs = dict(zip(names, run_dirs, strict=True))
    if len(runs) < len(names):
        twice = max(names, key=names.count)
        raise InvalidParameterError(f"{twice} is named twice: compare different runs")
    return runs


def facts_of(result: SearchResult, run_dir: Path) -> Json:
    """Return how far a run has come."""
    last_jobs = {row["arm"]: row["job"] for row in result.history}
    failed_jobs = [report.job for report in result.failures]
    tried_again = sum(last_jobs.get(job.arm, 0) > job.id for job in failed_jobs)
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
        "standing": result.standing,
        "corrected_score": result.corrected_score,
        "corrected_interval": result.corrected_interval,
        "corrected_source": result.corrected_source,
        "tied": result.tied,
        "repeats": result.repeats,
        "arms": dict(Counter(arm.status for arm in result.arms)),
        "failures": len(failed_jobs),
        "failures_tried_again": tried_again,
        "first_failure": first_failure(result),
        "stop_reason": result.stop_reason,
        "left_out": result.left_out,
        "trust_in_prior": result.trust_in_prior,
        "opened_by_prior": result.opened_by_prior,
    }


def first_failure(result: SearchResult) -> str | None:
    """Return the first failure among the arms that are still failed."""
    for report in sorted(result.failures, key=lambda report: report.job.id):
        job = report.job
        if result.arms[job.arm].status == "failed":
            return f"arm {job.arm}, after epoch {job.from_epoch}: {report.failure}"
    return None
