"""Cut jobs into chunks: a worker that dies loses one chunk at most."""

from __future__ import annotations

import math
from dataclasses import replace

from risingsearch.arms import Report
from risingsearch.search.trainable import Outcome, Task

MIN_SECONDS = 0.1
"""Minimum duration of a chunk: sending it takes about a tenth of that."""


class Chunks:
    """One job, its state as bytes, trained in chunks, or in one if it is ``whole``."""

    def __init__(self, task: Task, *, whole: bool = False) -> None:
        self._task = task
        self._whole = whole
        self._outcomes: list[Outcome] = []
        self._rest = task

    @property
    def done(self) -> bool:
        """Whether there is nothing left to train."""
        if not self._outcomes:
            return False
        last = self._outcomes[-1]
        stopped = last.ended or last.report.failure is not None
        return stopped or self._rest.job.n_epochs == 0

    def next(self, seconds: float | None) -> Task:
        """Return the next chunk, for an arm that takes so many seconds per epoch."""
        if self._whole:
            return self._rest
        job = self._rest.job
        n_epochs = 1 if seconds is None else math.ceil(MIN_SECONDS / max(seconds, 1e-9))
        n_epochs = min(n_epochs, job.n_epochs)
        return self._rest._replace(job=replace(job, n_epochs=n_epochs))

    def add(self, chunk: Task, outcome: Outcome) -> None:
        """Record the outcome of a chunk."""
        if chunk.may_retry and outcome.resume_from is None and not outcome.ended:
            outcome = outcome._replace(resume_from=chunk.state)
        self._outcomes.append(outcome)
        job, trained = self._rest.job, len(outcome.report.scores)
        self._rest = self._rest._replace(
            job=replace(
                job,
                from_epoch=job.from_epoch + trained,
                n_epochs=job.n_epochs - trained,
            ),
            state=outcome.resume_from,
            best_reward=_best_reward(chunk, outcome),
            epochs_missing=0,
        )

    def outcome(self) -> Outcome:
        """Return the outcome of the whole job."""
        reports = [outcome.report for outcome in self._outcomes]
        snapshots = [outcome.snapshot for outcome in self._outcomes if outcome.snapshot]
        last = self._outcomes[-1]
        report = Report(
            self._task.job,
            tuple(score for report in reports for score in report.scores),
            tuple(seconds for report in reports for seconds in report.seconds),
            tuple(metrics for report in reports for metrics in report.metrics),
            last.report.failure,
        )
        continues = self._task.wants_checkpoint and report.scores and not last.ended
        return Outcome(
            report,
            last.ended,
            last.resume_from,
            snapshots[-1] if snapshots else None,
            sum(outcome.n_calls for outcome in self._outcomes),
            sum(outcome.elapsed for outcome in self._outcomes),
            checkpoint=last.resume_from if continues else None,
            startup=self._outcomes[0].startup,  # other chunks are no jobs
        )


def _best_reward(chunk: Task, outcome: Outcome) -> float:
    if outcome.snapshot is None:
        return chunk.best_reward
    epoch, _ = outcome.snapshot
    return chunk.sign * outcome.report.scores[epoch - chunk.job.from_epoch - 1]
