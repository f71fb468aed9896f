"""A sweep from its first script to its last: run, continued, or extended."""

from __future__ import annotations

import math
import secrets
import shutil
import warnings
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from risingsearch.arms import Report
from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError, RunDirError, SearchFailedError
from risingsearch.json_values import Json
from risingsearch.scheduling.options import SearchOptions
from risingsearch.scripts import identity
from risingsearch.scripts.ended import was_cut_short, with_ended_arms
from risingsearch.scripts.living import LivingTrainable
from risingsearch.scripts.settings import MakeTrackers
from risingsearch.scripts.slurm import AfterSlurm, SlurmScripts, SlurmTrainable
from risingsearch.scripts.sweep import Sweep, checked_sweep
from risingsearch.scripts.trainable import (
    ArchivedTrainable,
    CommandTrainable,
    NothingReportedError,
)
from risingsearch.search.interrupts import interrupted_by_termination
from risingsearch.search.results import SearchResult
from risingsearch.search.run import FIRST_DEFAULTS
from risingsearch.search.search import RisingSearch
from risingsearch.search.slurm.slices import FOLDER as SLURM
from risingsearch.search.slurm.slices import drop_recorded
from risingsearch.search.training import COST
from risingsearch.storage.files import check_owner
from risingsearch.storage.object_store import ObjectStore
from risingsearch.storage.run_directory import (
    URL,
    check_free,
    damage_as_error,
    holds_search,
    saved_header,
)

ARMS = "arms"
OF_THE_SEARCH = (
    "policy",
    "budget",
    "max_epochs",
    "deterministic",
    "policy_params",
    "epochs_per_job",
    "direction",
    "error_score",
    "max_failures",
    "seed",
    "timeout",
    "learning_rate",
    "min_epochs",
    "patience",
    "target_score",
)
"""Keys of a sweep that are options of a search."""
_Executor = SlurmScripts | AfterSlurm | ThreadPoolExecutor
UNLIKELY = 0.01
DOUBTFUL = 0.1
"""Probabilities that all scripts fail to resume by chance: the search ends while it
runs, or at its end."""
RETAINED = 2
"""Checkpoint directories of an arm: the last, and one for when that is gone."""


def run_sweep(
    sweep: Sweep,
    run_dir: Path,
    cwd: Path | None = None,
    more: Budget | None = None,
    *,
    retry_failed: bool = False,
    trackers: MakeTrackers = lambda options: [],
) -> tuple[SearchResult, Path | None]:
    """Run a sweep to its end, or continue it; return result and best checkpoint.

    The checkpoint is None if the process that wrote it was ended before its last epoch.
    """
    check_owner(run_dir)  # it says what runs, and where
    if cwd is None:
        cwd = Path.cwd()
    begun = identity.begun_with(run_dir) if holds_search(run_dir) else {}
    before = identity.last_identity(run_dir) if begun else None
    sweep = seeded_and_checked(sweep, begun, run_dir)
    placement = sweep.placement()
    trainable = _trainable(sweep, placement.variables, run_dir, cwd)
    n_workers = len(placement.variables)
    executor = _executor(sweep, placement.variables, run_dir.absolute() / SLURM)
    search = search_of(
        sweep,
        trainable,
        executor=executor,
        n_jobs=n_workers_begun_with(run_dir, sweep) if begun else n_workers,
        callbacks=trackers(sweep.tracker.options(cwd)) if sweep.tracker else [],
        run_dir=run_dir,
        checkpoints=sweep.checkpoints,
        fingerprint=begun or identity.described(sweep, cwd),
    )
    cleaner = CheckpointCleaner(trainable, search, resumes=sweep.resume)
    search.save_best = None
    if sweep.resume:
        search.save_best = lambda folder: shutil.copytree(
            _best_folder(search.result(), trainable), folder, dirs_exist_ok=True
        )
    if before is not None and search.scheduler.best_arm is not None:
        identity.check_same(sweep, before, run_dir, identity.OF_THE_SCORE)
    with search._log.held(), _ended(executor, search), interrupted_by_termination():
        trainable.end_left_over()
        if before is not None:
            identity.warn_of_changes(run_dir, before, sweep, cwd)
        identity.save(run_dir, sweep, cwd, placement.gpus)
        drop_recorded(run_dir / SLURM, search.reports)
        trainable.arms = {search.seed_of(k): k for k in range(len(search.candidates))}
        if search.scheduler.n_jobs != n_workers:
            search.resize(n_workers)
        if more is not None:
            search.extend(more)
        if retry_failed:
            _retry_failed(search, run_dir)
        result = search._run(cleaner.after_job)
        cleaner.clean()
    if sweep.resume:
        _check_resumed(search, DOUBTFUL)
        return result, _best_folder(result, trainable)
    result = with_ended_arms(result)  # as their processes have
    assert result.best_arm is not None
    if was_cut_short(result.arms[result.best_arm]):
        return result, None
    return result, _best_folder(result, trainable)


def seeded_and_checked(sweep: Sweep, begun: identity.Identity, run_dir: Path) -> Sweep:
    """Return a sweep that can run, with its seed, that of the run, or a new one."""
    if sweep.seed is None:
        seed = begun.get("sweep", {}).get("seed", secrets.randbits(32))
        sweep = sweep.model_copy(update={"seed": seed})
    if begun:
        identity.check_same(sweep, begun, run_dir, identity.DEFINING)
    else:
        for name in (identity.FILE, ARMS):
            check_free(run_dir / name)
        check_sweep(sweep)
    return sweep


def _retry_failed(search: RisingSearch, run_dir: Path) -> None:
    """Have failed configurations tried first, if any budget is left for that."""
    is_spent = search.scheduler.spent >= search.scheduler.budget
    if search.retry_failed() and is_spent:
        raise InvalidParameterError(
            f"the budget of {run_dir} is spent, and what has failed cannot be "
            "tried again: add to it with --budget +N"
        )


def check_sweep(sweep: Sweep) -> None:
    """Raise the error of a run that cannot begin, but for its earlier searches."""
    slots = sweep.placement().variables
    trainable = CommandTrainable(sweep.command, Path(ARMS), slots=slots)
    if sweep.launcher.slurm is None:  # else the program is on other machines
        trainable.check_program()
    if sweep.checkpoints is not None:
        ObjectStore(sweep.checkpoints)
    with ThreadPoolExecutor(len(slots)) as executor:
        search_of(sweep, trainable, executor=executor, n_jobs=len(slots), prior=None)


def search_of(
    sweep: Sweep, trainable: CommandTrainable, **options: Any
) -> RisingSearch:
    """Return the search of a sweep, with more options."""
    same = SearchOptions(
        **{name: getattr(sweep, name) for name in OF_THE_SEARCH},
        progress=True,
        metric=sweep.metric_name,
        prior=sweep.earlier(),
        enqueue=range(len(sweep.enqueue)),  # they come first
    )
    return RisingSearch._of(trainable, sweep.draw(), replace(same, **options))


def _trainable(
    sweep: Sweep, variables: list[dict[str, str]], run_dir: Path, cwd: Path
) -> CommandTrainable:
    folder = run_dir.absolute() / ARMS
    options: Json = {
        "metric": sweep.model_dump()["metric"],
        "report_file": sweep.report_file,
        "cost": None if sweep.budget.cost is None else sweep.cost or COST,
        "timeout": sweep.epoch_timeout,
        "cwd": str(cwd.absolute()),
        "slots": variables,
        "gpus": sweep.n_gpus or 1.0,
    }
    if sweep.checkpoints is not None:
        return ArchivedTrainable(sweep.command, folder, **options)
    if not sweep.resume:
        return LivingTrainable(
            sweep.command,
            folder,
            max_epochs=sweep.max_epochs,
            max_alive=sweep.n_alive(len(variables)),
            direction=sweep.direction,
            **options,
        )
    kind = CommandTrainable if sweep.launcher.slurm is None else SlurmTrainable
    return kind(sweep.command, folder, **options)


def _executor(sweep: Sweep, variables: list[dict[str, str]], slices: Path) -> _Executor:
    """Return where scripts run: in jobs of Slurm, or on this machine."""
    n_workers = len(variables)
    if sweep.launcher.slurm is not None:
        options = sweep.sbatch_arguments
        return SlurmScripts(slices, n_workers, options, variables=variables)
    if sweep.resume and sweep.checkpoints is None:
        return AfterSlurm(n_workers, slices)
    return ThreadPoolExecutor(n_workers)


def _best_folder(result: SearchResult, trainable: CommandTrainable) -> Path:
    """Return the checkpoint directory of the best arm, loaded if it is elsewhere."""
    if isinstance(trainable, ArchivedTrainable):
        try:
            return trainable.folder_of(result.best_state())
        except RunDirError as error:
            msg = f"the checkpoint of the best arm is not loaded: {error}"
            warnings.warn(msg, RuntimeWarning, stacklevel=3)
    assert result.best_arm is not None
    return trainable.checkpoint_from(result.best_arm, result.best_epoch)


def n_workers_begun_with(run_dir: Path, sweep: Sweep) -> int:
    """Return how many workers a search has begun with; check where its states are."""
    header = saved_header(run_dir)
    url = header.get(URL)
    if sweep.checkpoints is None and url is not None:
        raise RunDirError(
            f"{run_dir} was begun with checkpoints: {url.rpartition('/')[0]}: put it "
            "back to continue, or begin another search with --run-dir"
        )
    with damage_as_error(run_dir):
        return int((FIRST_DEFAULTS | header["settings"])["n_jobs"])


def last_sweep(run_dir: Path, changes: Json | None = None) -> tuple[Sweep, Path]:
    """Return the sweep of a run's last call, and the folder of its scripts.

    ``changes`` are keys and values in the place of those of the file.
    """
    saved = identity.last(run_dir)
    environment = {"environment": saved.get(identity.ENVIRONMENT, [])}
    settings = saved["sweep"] | environment | (changes or {})
    return checked_sweep(settings, str(run_dir)), Path(saved["cwd"])


def resume_sweep(
    run_dir: Path,
    added: float | Budget | None = None,
    changes: Json | None = None,
    **options: Any,
) -> tuple[SearchResult, Path | None]:
    """Continue a sweep from its run directory, as it was last run but for changes."""
    sweep, cwd = last_sweep(run_dir, changes)
    more = None
    if added is not None:
        more = sweep.budget.like(added)
    if not cwd.is_dir():
        raise RunDirError(
            f"{cwd}, where the scripts of {run_dir} ran, is gone: call risingsearch "
            f"run SWEEP.yaml --run-dir {run_dir} in the folder that they run in now"
        )
    return run_sweep(sweep, run_dir, cwd, more, **options)


class CheckpointCleaner:
    """Drops checkpoint directories that are neither continued from nor the best."""

    def __init__(
        self, trainable: CommandTrainable, search: RisingSearch, *, resumes: bool
    ) -> None:
        self._trainable = trainable
        self._search = search
        self._resumes = resumes
        self._changed: set[int] = set()  # arms whose directories may have to go

    def after_job(self, report: Report) -> None:
        """Drop unneeded files after a job; raise a mistake that all scripts share."""
        self.clean({report.job.arm})
        self._check_reported(report)
        if self._resumes and report.failure is not None:
            _check_resumed(self._search, UNLIKELY)

    def _check_reported(self, report: Report) -> None:
        """Raise a SearchFailedError for the first script, if it ran without a score."""
        # Its configuration is hardly to blame where it succeeds. The next would be
        # trained in vain too, with resume: false from the first epoch to the last.
        if isinstance(report.failure, NothingReportedError) and not (
            self._trainable.has_reported  # by a script that still trains, perhaps
            or any(other.scores for other in self._search.reports.values())
        ):
            raise SearchFailedError(
                f"{report.failure}; no script of this sweep has reported an epoch, and "
                "the others would train in vain, so it has stopped: correct the metric "
                "or the script, and run the search again"
            ) from report.failure

    def clean(self, changed: Collection[int] = ()) -> None:
        """Drop the directories that are no longer needed, where these arms changed."""
        self._changed.update(changed)
        scheduler = self._search.scheduler
        best = scheduler.best_arm
        for arm in list(self._changed):
            status = scheduler.status(arm)
            epochs = self._trainable.checkpoint_epochs(arm)
            over = status in ("finished", "failed")
            retained = set() if over else set(epochs[-RETAINED:])
            if arm == best:
                retained.update([e for e in epochs if e >= scheduler.best_epoch][:1])
            # A job may add another one meanwhile: it goes by this list alone.
            self._trainable.drop_checkpoints(arm, set(epochs) - retained)
            if status != "running" and arm != best:  # else it will change once more
                self._changed.remove(arm)


@contextmanager
def _ended(executor: _Executor, search: RisingSearch) -> Iterator[None]:
    """Terminate every script at the end, and the threads that wait for them."""
    trainable: Any = search.trainable
    try:
        yield
    except KeyboardInterrupt as error:
        lost = 0
        if isinstance(trainable, LivingTrainable):
            begun = ("running", "paused")
            lost = sum(arm.epochs for arm in search.explain() if arm.status in begun)
        words = (
            ": with resume: false the processes of unfinished arms are gone, so "
            f"{lost} of their epochs cannot be continued; their scores are kept"
        )
        raise KeyboardInterrupt(words if lost else "") from error
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        trainable.end()
        executor.shutdown()


def _check_resumed(search: RisingSearch, chance: float) -> None:
    """Raise a SearchFailedError if scripts fail to resume, and that is no chance."""
    # None has succeeded, and at the rate at which those fail that begin anew, so many
    # in a row would fail with less than this probability.
    in_vain = [r for r in search.reports.values() if r.failure and not r.scores]
    failed = [report for report in in_vain if report.job.from_epoch > 0]
    resumed = [r for r in search.reports.values() if r.job.from_epoch > 0]
    n_begun = len(search.reports) - len(resumed)
    rate = (len(in_vain) - len(failed) + 1) / (n_begun + 2)
    has_resumed = any(math.isfinite(x) for r in resumed for x in r.scores)
    if has_resumed or rate ** len(failed) >= chance:
        return
    raise SearchFailedError(
        f"no script has resumed from its checkpoint, of {len(failed)} that had "
        f"to: {failed[0].failure}; if a script cannot load its checkpoint, "
        "resume: false in the sweep keeps its process alive, with another --run-dir; "
        "else correct it, and run the search again"
    ) from failed[0].failure
