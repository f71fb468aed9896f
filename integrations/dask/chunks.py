"""Jobs in parts, so that a worker that dies takes no more than one of them along."""

from __future__ import annotations

import math
from dataclasses import replace

from risingsearch.arms import Report
from risingsearch.search.trainable import Outcome, Task

SHORTEST = 0.1
"""Seconds that a part should last at least: a tenth of it is lost on its way."""


class Parts:
    """One job, trained part by part.

    Parameters
    ----------
    task : Task
        The whole job, its state as bytes.
    at_a_stroke : bool, default False
        Whether to train it in one part.
    """

    def __init__(self, task: Task, *, at_a_stroke: bool = False) -> None:
        self._task = task
        self._at_a_stroke = at_a_stroke
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
        """Return the next part, for an arm that takes so many seconds per epoch."""
        job = self._rest.job
        if self._at_a_stroke:
            return self._rest
        n_epochs = 1 if seconds is None else math.ceil(SHORTEST / max(seconds, 1e-9))
        n_epochs = min(n_epochs, job.n_epochs)
        return self._rest._replace(job=replace(job, n_epochs=n_epochs))

    def add(self, part: Task, outcome: Outcome) -> None:
        """Enter what a part has brought back."""
        if part.protected and outcome.resume_from is None and not outcome.ended:
            outcome = outcome._replace(resume_from=part.state)
        self._outcomes.append(outcome)
        job, trained = self._rest.job, len(outcome.report.scores)
        self._rest = self._rest._replace(
            job=replace(
                job,
                from_epoch=job.from_epoch + trained,
                n_epochs=job.n_epochs - trained,
            ),
            state=outcome.resume_from,
            best_reward=_best_reward(part, outcome),
            behind=0,
        )

    def outcome(self) -> Outcome:
        """Return what the whole job has brought back."""
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
        goes_on = self._task.kept and report.scores and not last.ended
        return Outcome(
            report,
            last.ended,
            last.resume_from,
            snapshots[-1] if snapshots else None,
            sum(outcome.n_calls for outcome in self._outcomes),
            sum(outcome.elapsed for outcome in self._outcomes),
            checkpoint=last.resume_from if goes_on else None,
        )


def _best_reward(part: Task, outcome: Outcome) -> float:
    if outcome.snapshot is None:
        return part.best_reward
    epoch, _ = outcome.snapshot
    return part.sign * outcome.report.scores[epoch - part.job.from_epoch - 1]
