"""Arms of an experiment: what its events say of their trials and jobs."""

import math
from collections.abc import Callable, Iterable, Sequence

from ray.tune.result import TIME_THIS_ITER_S

from risingsearch.arms import Configuration, Job, Report, Status
from risingsearch.events import (
    Event,
    Failed,
    Opened,
    Reported,
    Returned,
    Started,
)
from risingsearch.integrations.ray.results import Stamp, stamp_of
from risingsearch.json_values import Json
from risingsearch.scheduling.replay import apply, replay
from risingsearch.scheduling.scheduler import Scheduler


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
        self.arm: dict[str, int] = {}  # by the id of its trial
        self.trial: dict[int, str] = {}  # the other way round
        self.params: dict[int, Configuration] = {}
        self.jobs: dict[str, Job] = {}  # in training, or to be trained, by trial
        # By trial, since its last job was told, and before:
        self.reported: dict[str, list[Reported]] = {}
        self.told: dict[str, list[Json]] = {}
        # By trial, the newest one with its metrics:
        self.checkpoints: dict[str, tuple[str, Configuration]] = {}
        self.reports: dict[int, Report] = {}  # by job
        self.first_failure: str | None = None
        self._write = write
        decisive = []
        for event in events:
            self._note(event)
            if not isinstance(event, Opened | Reported):
                decisive.append(event)
        replay(scheduler, decisive)

    def record(self, event: Event, trial_id: str | None = None) -> None:
        """Let an event happen and have it written."""
        self._note(event)
        apply(self.scheduler, event)
        self._write(event, trial_id)

    def _note(self, event: Event) -> None:
        """Note what the scheduler does not know."""
        match event:
            case Opened():
                self.arm[event.trial] = event.arm
                self.trial[event.arm] = event.trial
                self.params[event.arm] = event.params
            case Started():
                self.jobs[self.trial[event.job.arm]] = event.job
            case Reported():
                earlier = self.reported.get(event.trial, [])
                earlier = [report for report in earlier if report.epoch < event.epoch]
                self.reported[event.trial] = [*earlier, event]
            case Returned():
                self._note_result(event)

    def _note_result(self, event: Returned) -> None:
        job = event.job
        trial_id = self.trial[job.arm]
        del self.jobs[trial_id]
        seconds = [float(m.get(TIME_THIS_ITER_S, math.nan)) for m in event.metrics]
        self.reports[job.id] = Report(job, event.scores, tuple(seconds), event.metrics)
        self.told.setdefault(trial_id, []).extend(event.metrics)
        if event.checkpoint is not None and event.metrics:
            self.checkpoints[trial_id] = event.checkpoint, event.metrics[-1]
        last = job.from_epoch + len(event.scores)
        left = self.reported.get(trial_id, [])
        self.reported[trial_id] = [report for report in left if report.epoch > last]

    def begin(self, again: str | None = None) -> None:
        """Ask for the next job, or start a failed trial again if the budget allows."""
        scheduler = self.scheduler
        job = scheduler.start(self.arm[again]) if again else scheduler.ask()
        assert job is not None
        self.record(self.scheduler.why(job))

    def reports_of(self, trial_id: str) -> list[Reported]:
        """Return the reports of a trial for its job."""
        return self.reported.get(trial_id, [])[: self.jobs[trial_id].n_epochs]

    def results_of(self, trial_id: str) -> list[Json]:
        """Return all results of a trial, the last of them not told yet."""
        since = self.reported.get(trial_id, [])
        return self.told.get(trial_id, []) + [report.result for report in since]

    def is_trained(self, trial_id: str) -> bool:
        """Whether no more epochs of the job of a trial are to be trained."""
        reports = self.reports_of(trial_id)
        return len(reports) == self.jobs[trial_id].n_epochs or self.is_lost(trial_id)

    def is_lost(self, trial_id: str) -> bool:
        """Whether the last score of a job is not finite: more would not mend that."""
        return any(not math.isfinite(r.score) for r in self.reports_of(trial_id)[-1:])

    def tell(self, trial_id: str) -> None:
        """Tell a job; with fewer scores than epochs, the arm has ended by itself."""
        facts = self._facts(trial_id, self.reports_of(trial_id))
        self.record(Returned(**facts, ended=True), trial_id)

    def fail(
        self, trial_id: str, reason: str, checkpoint: Stamp = (None, None)
    ) -> None:
        """Tell that a trial failed; epochs that its checkpoint lacks are lost."""
        self.first_failure = self.first_failure or reason
        reports = self.reports_of(trial_id)
        stamps = [stamp_of(report.result) for report in reports]
        n_kept = stamps.index(checkpoint) + 1 if checkpoint in stamps else 0
        # The last epoch has failed, unless all were reported.
        charged = min(len(reports) + 1, self.jobs[trial_id].n_epochs)
        facts = self._facts(trial_id, reports[:n_kept])
        self.record(Failed(**facts, failure=reason, charged=charged), trial_id)
        self.reported[trial_id] = []

    def _facts(self, trial_id: str, reports: Sequence[Reported]) -> Json:
        """Return the job of a trial and what these reports say of it."""
        return {
            "job": self.jobs[trial_id],
            "scores": tuple(report.score for report in reports),
            "metrics": tuple(report.result for report in reports),
        }

    def status(self, trial_id: str) -> Status:
        """Return where the arm of a trial stands."""
        return self.scheduler.status(self.arm[trial_id])

    def is_over(self, trial_id: str) -> bool:
        """Whether the arm of a trial can train no more."""
        return self.status(trial_id) in ("finished", "failed")
