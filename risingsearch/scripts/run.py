"""A sweep from its first script to its last: run, continued, or extended."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from risingsearch.arms import Budget, Report
from risingsearch.errors import RunDirError
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.scripts.sweep import Sweep, checked_sweep
from risingsearch.scripts.trainable import CommandTrainable
from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch
from risingsearch.storage.run_directory import holds_search, saved_header

RETAINED = 2
"""Checkpoint directories of an arm: the last, and one for when that is gone."""


def run_sweep(
    sweep: Sweep,
    run_dir: Path,
    cwd: Path | None = None,
    more: int | Budget | None = None,
) -> tuple[SearchResult, Path]:
    """Run a sweep to its end; one that was begun in ``run_dir`` continues.

    The scripts run in ``cwd``: by default where they have run before, for a new sweep
    in the current folder. ``more`` is added to the budget first. Returned are the
    result and the checkpoint directory of the best arm.
    """
    if cwd is None:
        saved = holds_search(run_dir)
        cwd = Path(_description(run_dir)["cwd"]) if saved else Path.cwd()
    trainable = CommandTrainable(
        sweep.command,
        run_dir / "arms",
        metric=sweep.metric,
        report_file=sweep.report_file,
        slots=sweep.environment or [{}] * sweep.workers,
        timeout=sweep.timeout,
        cwd=cwd,
    )
    described = sweep.model_dump(mode="json", exclude_defaults=True)
    cleaner = _CheckpointCleaner(trainable)
    with _workers(sweep.workers, trainable) as executor, _termination_interrupts():
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
            identity={"sweep": described, "cwd": str(cwd)},
        )
        trainable.end_left_over()
        trainable.arms = {
            search.seed_of(arm): arm for arm in range(len(search.candidates))
        }
        if more is not None:
            search.extend(more)
        result = search.run()
        cleaner.clean(search.scheduler)
    assert result.best_arm is not None
    return result, trainable.checkpoint_from(result.best_arm, result.best_epoch)


def resume_sweep(
    run_dir: Path, added: float | None = None
) -> tuple[SearchResult, Path]:
    """Continue a sweep from its run directory alone, where its scripts ran before.

    ``added`` extends the budget first: by epochs, seconds or hours, as the sweep says.
    """
    sweep = checked_sweep(_description(run_dir)["sweep"], str(run_dir))
    more = None if added is None else sweep.budget.more(added)
    return run_sweep(sweep, run_dir, more=more)


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
def _workers(
    n_workers: int, trainable: CommandTrainable
) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that wait for scripts; at the end every script is terminated."""
    executor = ThreadPoolExecutor(n_workers)
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        trainable.end()
        executor.shutdown()
