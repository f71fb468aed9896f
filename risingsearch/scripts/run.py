"""A sweep from its first script to its last."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from risingsearch.arms import Budget, Report
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.scripts.sweep import Sweep
from risingsearch.scripts.trainable import CommandTrainable, checkpoint_name
from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch

KEPT = 2
"""Checkpoint directories of an arm: the last, and one for when that is gone."""


def run_sweep(
    sweep: Sweep, run_dir: Path, cwd: Path, more: int | Budget | None = None
) -> tuple[SearchResult, Path]:
    """Run a sweep to its end, or go on with it.

    Parameters
    ----------
    sweep : Sweep
        What is searched, and how.
    run_dir : Path
        Where it is kept.
    cwd : Path
        Where the scripts run.
    more : int or Budget, optional
        What is added to the budget first.

    Returns
    -------
    SearchResult, Path
        What was found, and the checkpoint directory of the best.
    """
    trainable = CommandTrainable(
        sweep.command,
        run_dir / "arms",
        metric=sweep.metric,
        report_file=sweep.report_file,
        slots=sweep.environment or [{}] * sweep.workers,
        timeout=sweep.timeout,
        cwd=cwd,
    )
    tidy = _Tidy(trainable)
    described = sweep.model_dump(mode="json", exclude_defaults=True)
    with _workers(sweep.workers, trainable) as executor, _ends_are_interrupts():
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
            callbacks=[tidy],
            progress=True,
            run_dir=run_dir,
            identity={"sweep": described, "cwd": str(cwd)},
        )
        trainable.end_left_over()
        trainable.arms.update(
            {search.seed_of(arm): arm for arm in range(len(search.candidates))}
        )
        if more is not None:
            search.extend(more)
        result = search.run()
        tidy.tidy(search.scheduler)
    assert result.best_arm is not None
    epochs = trainable.checkpoint_epochs(result.best_arm)
    epoch = next((e for e in epochs if e >= result.best_epoch), result.best_epoch)
    return result, trainable.home(result.best_arm) / checkpoint_name(epoch)


class _Tidy:
    """Drops checkpoint directories that nothing goes on from and that are not best."""

    def __init__(self, trainable: CommandTrainable) -> None:
        self._trainable = trainable
        self._due: set[int] = set()  # arms that have changed

    def __call__(self, search: RisingSearch, report: Report) -> None:
        self._due.add(report.job.arm)
        self.tidy(search.scheduler)

    def tidy(self, scheduler: Scheduler) -> None:
        best = scheduler.best_arm
        for arm in list(self._due):
            status = scheduler.status(arm)
            epochs = self._trainable.checkpoint_epochs(arm)
            keep = set() if status in ("finished", "failed") else set(epochs[-KEPT:])
            if arm == best:
                keep.update([e for e in epochs if e >= scheduler.best_epoch][:1])
            self._trainable.drop_checkpoints(arm, keep)
            if status != "running" and arm != best:  # else it will change once more
                self._due.remove(arm)


@contextmanager
def _ends_are_interrupts() -> Iterator[None]:
    """Let whoever asks this process to end have what Ctrl-C has."""
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
    """Yield threads that wait for scripts; no script outlives them."""
    executor = ThreadPoolExecutor(n_workers)
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        trainable.end()
        executor.shutdown()
