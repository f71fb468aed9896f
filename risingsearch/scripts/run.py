"""A sweep from its first script to its last: run, continued, or extended."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from risingsearch.arms import Budget, Report
from risingsearch.errors import RunDirError, StateError
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.scripts import environment
from risingsearch.scripts.markers import RUNNING
from risingsearch.scripts.sweep import Sweep, checked_sweep
from risingsearch.scripts.trainable import CommandTrainable
from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch
from risingsearch.storage.permissions import check_only_own
from risingsearch.storage.run_directory import holds_search, saved_header

ARMS = "arms"
RETAINED = 2
"""Checkpoint directories of an arm: the last, and one for when that is gone."""


def run_sweep(
    sweep: Sweep,
    run_dir: Path,
    cwd: Path | None = None,
    more: int | Budget | None = None,
    *,
    trust_run_dir: bool = False,
) -> tuple[SearchResult, Path]:
    """Run a sweep to its end; one that was begun in ``run_dir`` continues.

    The scripts run in ``cwd``: by default where they have run before, for a new sweep
    in the current folder. ``more`` is added to the budget first. Nothing is unpickled,
    but the directory says what runs, and where: one that others own or can write to is
    refused unless ``trust_run_dir``. Returned are the result and the checkpoint
    directory of the best arm.
    """
    if not trust_run_dir:
        check_only_own(run_dir, _scripts_files(run_dir))
    saved = _description(run_dir) if holds_search(run_dir) else None
    if cwd is None:
        cwd = Path.cwd() if saved is None else Path(saved["cwd"])
    trainable = CommandTrainable(
        sweep.command,
        run_dir / ARMS,
        metric=sweep.metric,
        report_file=sweep.report_file,
        slots=sweep.environment or [{}] * sweep.workers,
        timeout=sweep.timeout,
        cwd=cwd,
    )
    identity, salt = _identity(sweep, run_dir, cwd, saved)
    if sweep.environment and saved is None:
        environment.save(run_dir, sweep.environment, salt)  # the journal names it
    cleaner = _CheckpointCleaner(trainable)
    executor = ThreadPoolExecutor(sweep.workers)
    search = RisingSearch(
        trainable,
        sweep.draw(),
        policy=sweep.policy,
        policy_params=sweep.policy_params or None,
        budget=sweep.budget.budget,
        max_epochs=sweep.max_epochs,
        direction=sweep.direction,
        max_failures=sweep.retries,
        seed=sweep.seed,
        executor=executor,
        n_jobs=sweep.workers,
        slice=sweep.slice,
        order=sweep.order,
        callbacks=[cleaner],
        progress=True,
        run_dir=run_dir,
        trust_run_dir=trust_run_dir,
        identity=identity,
        prior=sweep.earlier(),
    )
    with search.held(), _ended(executor, trainable), _termination_interrupts():
        trainable.end_left_over()
        if sweep.environment:
            environment.save(run_dir, sweep.environment, salt)
        trainable.arms = {
            search.seed_of(arm): arm for arm in range(len(search.candidates))
        }
        if more is not None:
            search.extend(more)
        result = search.run()
        cleaner.clean(search.scheduler)
    assert result.best_arm is not None
    return result, trainable.checkpoint_from(result.best_arm, result.best_epoch)


def _identity(
    sweep: Sweep, run_dir: Path, cwd: Path, saved: Mapping[str, Any] | None
) -> tuple[dict[str, Any], str]:
    """Return what has to be the same when a run goes on, and the salt of its digest."""
    described = sweep.model_dump(
        mode="json", exclude_defaults=True, exclude={"environment", "prior"}
    )
    identity: dict[str, Any] = {"sweep": described, "cwd": str(cwd)}
    given = sweep.environment
    if saved is None:
        salt = environment.new_salt()
        return identity | environment.recorded_now(given, salt), salt
    recorded = environment.Recorded(saved)
    if recorded.names != environment.names_of(given):
        msg = (
            f"{run_dir} holds a sweep with the environment variables {recorded.names}, "
            f"and it was opened with {environment.names_of(given)}: give the same "
            "ones, with any values, or another run_dir"
        )
        raise StateError(msg)
    if recorded.values is not None:
        described["environment"] = recorded.values
    salt = environment.saved_salt(run_dir, recorded.names)
    if recorded.has_changed(given, salt):
        warnings.warn(
            f"{run_dir} goes on with other values of environment than it began with",
            RuntimeWarning,
            stacklevel=3,
        )
    return identity | recorded.in_identity(), salt


def resume_sweep(
    run_dir: Path, added: float | None = None, *, trust_run_dir: bool = False
) -> tuple[SearchResult, Path]:
    """Continue a sweep from its run directory alone, where its scripts ran before.

    ``added`` extends the budget first: by epochs, seconds or hours, as the sweep says.
    """
    saved = _description(run_dir)
    described = saved["sweep"] | environment.values_of(run_dir, saved)
    sweep = checked_sweep(described, str(run_dir))
    more = None if added is None else sweep.budget.more(added)
    return run_sweep(sweep, run_dir, more=more, trust_run_dir=trust_run_dir)


def _scripts_files(run_dir: Path) -> Iterator[Path]:
    """Yield what scripts are given of a run directory: variables and checkpoints."""
    arms = run_dir / ARMS
    yield from (run_dir / environment.FILE, arms)
    for pattern in ("arm-*", f"arm-*/{RUNNING}", "arm-*/epoch-*"):
        yield from sorted(arms.glob(pattern))


def _description(run_dir: Path) -> dict[str, Any]:
    """Return the sweep of a run, and where its scripts run."""
    described: dict[str, Any] = saved_header(run_dir)["settings"].get("identity", {})
    if not {"sweep", "cwd"} <= described.keys():
        msg = (
            f"{run_dir} is not the run of a sweep: continue it in Python, with "
            "RisingSearch.resume"
        )
        raise RunDirError(msg)
    return described


class _CheckpointCleaner:
    """Drops checkpoint directories that are neither continued from nor the best."""

    def __init__(self, trainable: CommandTrainable) -> None:
        self._trainable = trainable
        self._changed: set[int] = set()  # arms whose directories may have to go

    def __call__(self, search: RisingSearch, report: Report) -> None:
        self._changed.add(report.job.arm)
        self.clean(search.scheduler)

    def clean(self, scheduler: Scheduler) -> None:
        """Drop what is not needed any more of the arms that have trained."""
        best = scheduler.best_arm
        for arm in list(self._changed):
            status = scheduler.status(arm)
            epochs = self._trainable.checkpoint_epochs(arm)
            over = status in ("finished", "failed")
            retained = set() if over else set(epochs[-RETAINED:])
            if arm == best:
                retained.update([e for e in epochs if e >= scheduler.best_epoch][:1])
            self._trainable.drop_checkpoints(arm, retained)
            if status != "running" and arm != best:  # else it will change once more
                self._changed.remove(arm)


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Treat a request to terminate this process as Ctrl-C is treated."""
    before = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _ended(executor: ThreadPoolExecutor, trainable: CommandTrainable) -> Iterator[None]:
    """Terminate every script at the end, and the threads that wait for them."""
    try:
        yield
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        trainable.end()
        executor.shutdown()
