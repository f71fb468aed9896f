"""Arms of an experiment, with their trials and jobs, as its events tell them."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ray.tune.result import TIME_THIS_ITER_S

from risingsearch.arms import Configuration, Job, Report, Status
from risingsearch.integrations.ray.results import Stamp, stamp_of
from risingsearch.json_values import Json
from risingsearch.scheduling.events import (
    Event,
    Failed,
    Returned,
    Started,
    TrialOpened,
    TrialReported,
)
from risingsearch.scheduling.replay import apply, replay
from risingsearch.scheduling.scheduler import Scheduler


@dataclass
class TrialRecord:
    """A trial, which may be no arm yet, as the events tell it."""

    arm: int | None = None
    job: Job | None = None  # in training, or to be trained
    told: list[Json] = field(default_factory=list)  # its results
    reported: list[TrialReported] = field(default_factory=list)  # since
    checkpoint: tuple[str, Json] | None = None  # the newest told, with its metrics

    @property
    def results(self) -> list[Json]:
        """All results, the last of them not told yet."""
        return self.told + [report.result for report in self.reported]

    @property
    def reports(self) -> list[TrialReported]:
        """The reports for its job."""
        if self.job is None:
            return []
        return self.reported[: self.job.n_epochs]

    @property
    def is_lost(self) -> bool:
        """Whether the last score is not finite: training on would not mend that."""
        return any(not math.isfinite(report.score) for report in self.reports[-1:])

    @property
    def is_trained(self) -> bool:
        """Whether no more epochs of its job are to be trained."""
        if self.job is None:
            return False
        return len(self.reports) == self.job.n_epochs or self.is_lost


class Arms:
    """A scheduler and its arms, which have the ids of trials: a fold over events.

    What happens is recorded by ``write``, which gets each event in order, and its
    trial, if it has one.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        events: Iterable[Event],
        write: Callable[[Event, str | None], None],
    ) -> None:
        self.scheduler = scheduler
        self.records: defaultdict[str, TrialRecord] = defaultdict(TrialRecord)
        self.trial: dict[int, str] = {}  # by arm
        self.params: dict[int, Configuration] = {}  # by arm
        self.reports: dict[int, Report] = {}  # by job
        self.first_failure: str | None = None
        self._write = write
        events = list(events)
        for event in events:
            self._note(event)
        replay(scheduler, events)

    def record(self, event: Event, trial_id: str | None = None) -> None:
        """Let an event happen and have it written."""
        self._note(event)
        apply(self.scheduler, event)
        self._write(event, trial_id)

    def _note(self, event: Event) -> None:
        """Note an event that the scheduler does not take."""
        match event:
            case TrialOpened():
                self.records[event.trial].arm = event.arm
                self.trial[event.arm] = event.trial
                self.params[event.arm] = event.params
            case Started():
                self.records[self.trial[event.job.arm]].job = event.job
            case TrialReported():
                record = self.records[event.trial]
                record.reported = [r for r in record.reported if r.epoch < event.epoch]
                record.reported.append(event)
            case Returned():
                self._note_result(event)

    def _note_result(self, event: Returned) -> None:
        job = event.job
        record = self.records[self.trial[job.arm]]
        record.job = None
        seconds = [float(m.get(TIME_THIS_ITER_S, math.nan)) for m in event.metrics]
        self.reports[job.id] = Report(job, event.scores, tuple(seconds), event.metrics)
        record.told += event.metrics
        if event.checkpoint is not None and event.metrics:
            record.checkpoint = event.checkpoint, event.metrics[-1]
        last = job.from_epoch + len(event.scores)
        record.reported = [report for report in record.reported if report.epoch > last]

    def begin(self, again: int | None = None) -> None:
        """Ask for the next job, or start a failed arm again if the budget allows."""
        scheduler = self.scheduler
        job = scheduler.ask() if again is None else scheduler.start(again)
        assert job is not None
        self.record(scheduler.why(job))

    @property
    def in_training(self) -> list[str]:
        """The trials that have a job, in the order of the decisions."""
        return [self.trial[job.arm] for job in self.scheduler.in_flight]

    def tell(self, trial_id: str) -> None:
        """Tell a job; with fewer scores than epochs, the arm has ended by itself."""
        record = self.records[trial_id]
        told = _facts(record, record.reports)
        self.record(Returned(**told, ended=True), trial_id)

    def fail(
        self, trial_id: str, reason: str, checkpoint: Stamp = (None, None)
    ) -> None:
        """Tell that a trial failed; epochs that its checkpoint lacks are lost."""
        self.first_failure = self.first_failure or reason
        record = self.records[trial_id]
        reports = record.reports
        stamps = [stamp_of(report.result) for report in reports]
        n_kept = 0
        if checkpoint in stamps:
            n_kept = stamps.index(checkpoint) + 1
        told = _facts(record, reports[:n_kept])
        # The last epoch has failed, unless all were reported.
        charged = min(len(reports) + 1, told["job"].n_epochs)
        self.record(Failed(**told, failure=reason, charged=charged), trial_id)
        record.reported = []

    def is_over(self, trial_id: str) -> bool:
        """Whether the arm of a trial can train no more."""
        return self.status(trial_id) in ("finished", "failed")

    def status(self, trial_id: str) -> Status:
        """Return where the arm of a trial stands."""
        arm = self.records[trial_id].arm
        if arm is None:
            return "unopened"
        return self.scheduler.status(arm)


def _facts(record: TrialRecord, reports: Sequence[TrialReported]) -> Json:
    """Return the facts of the job of a trial, by these reports."""
    return {
        "job": record.job,
        "scores": tuple(report.score for report in reports),
        "metrics": tuple(report.result for report in reports),
    }
