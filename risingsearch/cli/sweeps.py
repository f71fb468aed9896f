"""The commands that run sweeps: plan, run and resume."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from risingsearch.cli.options import (
    PATHS,
    Increase,
    add_command,
    add_json,
    add_run_command,
    amount,
    budget_or_increase,
    check_file,
    count_or_auto,
    seconds,
    sweep_path,
    whole,
)
from risingsearch.cli.printing import print_facts
from risingsearch.cli.status import RunView, facts_of
from risingsearch.errors import InvalidParameterError, SearchFailedError

if TYPE_CHECKING:
    from risingsearch.budget import Budget
    from risingsearch.integrations.trackers import Tracker
    from risingsearch.json_values import Json
    from risingsearch.scripts.sweep import Sweep

CHANGES = ("workers", "timeout", "seed")
"""Keys of a sweep that can be given on the line."""
BUDGET = "instead of the file's: a number in its unit, or 8h, 8wall-h or 20gpu-h"


def add_sweeps(commands: object) -> None:
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
    resume = add_run_command(
        commands, "resume", _resume, "continue a run, or extend it"
    )
    resume.add_argument(
        "--budget",
        type=partial(amount, sign="+"),
        metavar="+N",
        help="add so much, in the unit of the budget or as +8h, +8wall-h or +20gpu-h",
    )
    _add_changes(resume, "last run")
    _add_retry(resume)
    add_json(resume)


def _add_sweep(commands: object, name: str, run: object, does: str) -> Any:
    parser = add_command(commands, name, run, does)
    sweep = parser.add_argument(
        "sweep",
        type=sweep_path,
        metavar="SWEEP.yaml",
        help="file of a sweep, in YAML or JSON",
    )
    sweep.complete = PATHS
    add_json(parser)
    _add_changes(parser, "file")
    parser.add_argument(
        "--seed",
        type=partial(whole, low=0),
        metavar="N",
        help="seed of everything random, instead of the file's",
    )
    return parser


def _add_changes(parser: argparse.ArgumentParser, given_in: str) -> None:
    parser.add_argument(
        "--workers",
        type=count_or_auto,
        metavar="N",
        help=f"scripts that run at a time, or auto, instead of the {given_in}'s",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help=f"wall-clock seconds until it ends, instead of the {given_in}'s",
    )


def _changes(arguments: argparse.Namespace) -> Json:
    """Return the keys of a sweep that the line gives."""
    given = vars(arguments)
    return {key: given[key] for key in CHANGES if given.get(key) is not None}


def _add_retry(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--retry-failed",
        action="store_true",
        help="first try every configuration again that has failed",
    )


def _sweep(arguments: argparse.Namespace, budget: float | Budget | None) -> Sweep:
    check_file(arguments.sweep)
    from risingsearch.scripts.sweep import read_sweep

    sweep = read_sweep(arguments.sweep, _changes(arguments))
    if budget is None:
        return sweep
    return sweep.with_budget(budget)


def _plan(arguments: argparse.Namespace) -> None:
    sweep = _sweep(arguments, arguments.budget)
    from risingsearch.priors import read_prior
    from risingsearch.scripts.run import check_sweep
    from risingsearch.storage.run_directory import holds_search

    candidates = sweep.draw()
    check_sweep(sweep)
    placement = sweep.placement()
    n_workers = len(placement.variables)
    run_dir = Path("runs", arguments.sweep.stem)
    facts: Json = {
        "metric": sweep.metric_name,
        "direction": sweep.direction,
        "policy": sweep.policy,
        "configurations": len(candidates),
        "epochs_each_at_most": sweep.max_epochs,
        "epochs_to_train_all_in_full": len(candidates) * sweep.max_epochs,
        "workers": sweep.workers,
        "some_configurations": candidates[:3],
    }
    if sweep.min_epochs > 1:
        facts["epochs_each_before_it_is_judged"] = sweep.min_epochs
    if sweep.enqueue:
        facts["opened_first"] = sweep.enqueue
    if (epochs := sweep.budget.epochs) is not None:
        full = facts["epochs_to_train_all_in_full"]
        facts["budget_epochs"] = epochs
        facts["share_of_training_all"] = min(1.0, round(epochs / full, 4))
        is_open = candidates.space is not None and candidates.space.is_open
        if epochs > full and not (is_open and candidates.most is None):
            facts["epochs_that_none_can_use"] = epochs - full
        facts["budget_in_full_trainings"] = round(epochs / sweep.max_epochs, 2)
    else:
        facts[f"budget_{sweep.budget.unit}"] = sweep.budget.amount
    if unused := sweep.unused_parameters():
        facts["parameters_in_no_argument"] = unused
    if sweep.launcher.slurm is not None:
        facts["sbatch"] = " ".join(sweep.sbatch_arguments) or "as the cluster gives it"
    elif sweep.gpus is not None:
        facts |= {"workers": n_workers, "gpus": placement.gpus}
    if not sweep.resume:
        facts["processes_alive_at_most"] = sweep.n_alive(n_workers)
    if sweep.prior is not None:
        searches = read_prior(sweep.earlier(), candidates)
        facts["earlier_searches"] = [search.name for search in searches]
        facts["earlier_runs"] = sum(len(search.params) for search in searches)
    facts |= {"run_dir": str(run_dir), "resumes": holds_search(run_dir)}
    if facts["resumes"]:
        facts |= _advice_on_starts(run_dir, sweep)
    print_facts(facts, as_json=arguments.json)


def _advice_on_starts(run_dir: Path, sweep: Sweep) -> Json:
    """Return the share of time that job starts took, and advice on it, if any."""
    from risingsearch.scheduling.events import event_of
    from risingsearch.search.progress import Starts
    from risingsearch.storage.journal import read
    from risingsearch.storage.run_directory import JOURNAL

    events = map(event_of, read(run_dir / JOURNAL).events)
    starts = Starts.of_events(events, sweep.max_epochs)
    facts: Json = {}
    if starts.share >= 0.0:
        facts["share_of_time_starting"] = round(starts.share, 4)
    if (advice := starts.advice(sweep.epochs_per_job)) is not None:
        facts["advice"] = advice
    return facts


def _run(arguments: argparse.Namespace) -> None:
    added = None
    if isinstance(arguments.budget, Increase):
        added = arguments.budget
    sweep = _sweep(arguments, None if added else arguments.budget)
    from risingsearch.scripts.run import run_sweep
    from risingsearch.storage.run_directory import holds_search

    run_dir = arguments.run_dir or Path("runs", arguments.sweep.stem)
    if added and not holds_search(run_dir):
        raise InvalidParameterError(
            f"{run_dir} holds no search whose budget could grow: give --budget "
            "without a plus sign"
        )
    more = None
    if added:
        more = sweep.budget.like(added.amount)
    begin = partial(run_sweep, sweep, run_dir, more=more)
    _print_found(arguments, run_dir, str(arguments.sweep), begin)


def _resume(arguments: argparse.Namespace) -> None:
    from risingsearch.storage.run_directory import saved_header

    run_dir = arguments.run_dir
    saved_header(run_dir)  # before a package is missed for it
    from risingsearch.scripts.identity import FILE, last
    from risingsearch.scripts.run import resume_sweep

    last(run_dir)  # raises if it cannot be continued
    print(
        f"risingsearch: {run_dir} continues with the settings of the last run, from "
        f"{run_dir / FILE}; later edits of a sweep file need run, not resume",
        file=sys.stderr,
    )
    begin = partial(resume_sweep, run_dir, arguments.budget, _changes(arguments))
    _print_found(arguments, run_dir, "SWEEP.yaml", begin)


def _trackers(options: dict[str, Json]) -> list[Tracker]:
    """Return the trackers that a sweep names, or raise an error."""
    from risingsearch.integrations import trackers

    kinds = {
        "mlflow": trackers.MLflowTracker,
        "tensorboard": trackers.TensorBoardTracker,
        "wandb": trackers.WandbTracker,
    }
    made = [kinds[name](**arguments) for name, arguments in options.items()]
    for tracker in made:
        tracker.check()
    return made


@contextmanager
def _advice(run_dir: Path, sweep: str) -> Iterator[None]:
    """Add the next command to the message of an interrupt or failure."""
    try:
        yield
    except KeyboardInterrupt as error:
        msg = f"interrupted{error}; continue with: risingsearch resume {run_dir}"
        from risingsearch.storage.run_directory import holds_search

        if holds_search(run_dir) and (run := RunView(run_dir)).is_over:
            msg = f"interrupted after its end: {run.why_ended()}"
        raise KeyboardInterrupt(msg) from error
    except SearchFailedError as error:
        raise SearchFailedError(
            f"{error}: risingsearch run {sweep} --run-dir {run_dir}, with "
            "--retry-failed to try first those that have failed, and with --budget +N "
            "if the budget is spent"
        ) from error


def _print_found(
    arguments: argparse.Namespace, run_dir: Path, sweep: str, begin: Callable[..., Any]
) -> None:
    with _advice(run_dir, sweep):
        result, checkpoint = begin(
            retry_failed=arguments.retry_failed, trackers=_trackers
        )
    facts = facts_of(result, run_dir) | {"checkpoint": checkpoint and str(checkpoint)}
    print_facts(facts, as_json=arguments.json)
