"""Arms of an experiment: their trials, and the jobs in training."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ray.tune.result import TIME_THIS_ITER_S, TIME_TOTAL_S, TRAINING_ITERATION

from risingsearch.arms import Job, Report, Status
from risingsearch.errors import RunDirError
from risingsearch.events import Ended, Failed, Returned, event_of
from risingsearch.json_values import from_json
from risingsearch.scheduling.replay import apply, replay
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.storage.journal import Event

RESULTS = (Returned.name, Failed.name)  # events of a job that came back
OWN = ("results", "checkpoint")  # what Ray notes besides in such an event
Stamp = tuple[Any, Any]  # tells the results of a trial apart, and its checkpoints


def stamp_of(metrics: Mapping[str, Any]) -> Stamp:
    """Return the stamp that tells a result of a trial from its others."""
    # The count of iterations begins again for functions where an experiment is
    # restored.
    return metrics.get(TRAINING_ITERATION), metrics.get(TIME_TOTAL_S)


@dataclass
class TrialJob:
    """A job of a trial, with its results so far."""

    job: Job
    scores: list[float] = field(default_factory=list)
    results: list[Event] = field(default_factory=list)  # as they are noted
    n_before: int = 0  # scores that it began with, reported before a restore

    @property
    def is_over(self) -> bool:
        """Whether no more of its epochs are to be trained."""
        return len(self.scores) == self.job.n_epochs or self.is_lost

    @property
    def is_lost(self) -> bool:
        """Whether the last score is not finite: training on would not mend that."""
        return bool(self.scores) and not math.isfinite(self.scores[-1])


class Arms:
    """A scheduler, its arms by the ids of their trials, and the slices in training."""

    def __init__(
        self,
        scheduler: Scheduler,
        note: Callable[..., None],
    ) -> None:
        self.scheduler = scheduler
        self.arm: dict[str, int] = {}  # by the id of its trial
        self.trial: dict[int, str] = {}
        self.slices: dict[str, TrialJob] = {}  # those in training, or to be trained
        self.params: dict[int, Event] = {}  # of arms, as they are noted
        self.reports: dict[int, Report] = {}  # of jobs
        self.first_failure: str | None = None
        self.results: dict[str, list[Any]] = {}  # of each trial
        # What trials reported before a restore, and was not told:
        self.ahead: dict[str, list[Event]] = {}
        self._note = note  # gets each event in order, and its trial, if any

    def open(
        self,
        arm: int,
        trial_id: str,
        params: Event,
    ) -> None:
        """Give an arm its trial."""
        opened = {
            "event": "opened",
            "arm": arm,
            "trial": trial_id,
            "params": params,
        }
        self._know(opened)
        self._note(opened)

    def begin(self, again: str | None = None) -> None:
        """Ask for the next job, or start a failed trial again if the budget allows."""
        arm = None if again is None else self.arm[again]
        job = self.scheduler.ask() if arm is None else self.scheduler.start(arm)
        assert job is not None
        self._note(self.scheduler.why(job).to_json())
        self.slices[self.trial[job.arm]] = TrialJob(job)

    def take_up(self, trial_id: str) -> None:
        """Give a job the reports of its trial before a restore; tell it if over."""
        ahead = self.ahead.get(trial_id, ())
        slice_ = self.slices[trial_id]
        while ahead and not slice_.is_over:
            report = ahead.pop(0)
            slice_.scores.append(from_json(report["score"]))
            slice_.results.append(report["result"])
            slice_.n_before += 1
        if slice_.is_over:
            self.tell(trial_id)

    def tell(self, trial_id: str) -> None:
        """Tell a slice; with fewer scores than epochs, the arm has ended by itself."""
        slice_ = self.slices.pop(trial_id)
        event = Returned(job=slice_.job, scores=tuple(slice_.scores)).to_json()
        event["results"] = slice_.results
        self._know(event)
        self.scheduler.tell(slice_.job, slice_.scores)
        self._note(event, trial_id)

    def fail(
        self,
        trial_id: str,
        reason: str,
        checkpoint: Stamp,
    ) -> None:
        """Tell that a trial failed; epochs that its checkpoint lacks are lost."""
        self.first_failure = self.first_failure or reason
        slice_ = self.slices.pop(trial_id)
        stamps = [stamp_of(from_json(one)) for one in slice_.results]
        n_kept = stamps.index(checkpoint) + 1 if checkpoint in stamps else 0
        kept = slice_.scores[:n_kept]
        # The last epoch has failed, unless all were reported.
        charged = min(len(slice_.scores) + 1, slice_.job.n_epochs)
        failed = Failed(
            job=slice_.job,
            scores=tuple(kept),
            failure=reason,
            charged=charged,
        )
        event = failed.to_json()
        event["results"] = slice_.results[:n_kept]
        self._know(event)
        self.scheduler.fail(
            slice_.job,
            reason,
            kept,
            charged=charged,
        )
        self._note(event, trial_id)

    def end(self, arms: Iterable[int]) -> None:
        """Tell that arms can train no more; none of them is in training."""
        event = Ended(arms=list(arms))
        apply(self.scheduler, event)
        self._note(event.to_json())

    @property
    def unopened(self) -> list[int]:
        """The arms that have no trial yet."""
        return [arm for arm in range(self.scheduler.n_arms) if arm not in self.trial]

    def status(self, trial_id: str) -> Status:
        """Return where the arm of a trial stands."""
        return self.scheduler.status(self.arm[trial_id])

    def is_over(self, trial_id: str) -> bool:
        """Whether the arm of a trial can train no more."""
        return self.status(trial_id) in ("finished", "failed")

    def replay(self, events: Sequence[Event]) -> None:
        """Take over the events of an experiment that is restored."""
        for event in events:
            self._know(event)
        decisive = (e for e in events if e["event"] not in ("opened", "reported"))
        replay(self.scheduler, map(_searched, decisive))
        for job in self.scheduler.in_flight:
            if job.arm not in self.trial:
                msg = f"{job} has no trial in the journal, which is damaged"
                raise RunDirError(msg)
            self.slices[self.trial[job.arm]] = TrialJob(job)

    def _know(self, event: Event) -> None:
        """Keep the trials of arms and reports of jobs; the scheduler has neither."""
        if event["event"] == "opened":
            arm = event["arm"]
            trial_id = event["trial"]
            self.arm[trial_id] = arm
            self.trial[arm] = trial_id
            self.params[arm] = event["params"]
        elif event["event"] == "reported":
            before = self.ahead.get(event["trial"], ())
            before = [report for report in before if report["epoch"] < event["epoch"]]
            self.ahead[event["trial"]] = [*before, event]
        elif event["event"] in RESULTS:
            job = Job(*event["job"])
            scores = from_json(event["scores"])
            found = from_json(event["results"])
            trial_id = self.trial[job.arm]
            seconds = [float(one.get(TIME_THIS_ITER_S, math.nan)) for one in found]
            self.reports[job.id] = Report(
                job,
                tuple(scores),
                tuple(seconds),
                tuple(found),
            )
            self.results.setdefault(trial_id, []).extend(found)
            last = job.from_epoch + len(scores)
            ahead = self.ahead.get(trial_id, ())
            self.ahead[trial_id] = [one for one in ahead if one["epoch"] > last]


def _searched(event: Event) -> Any:
    """Return a scheduler's event; fewer scores than epochs: the trial has ended."""
    known = event_of({name: event[name] for name in event.keys() - {*OWN}})
    return replace(known, ended=True) if type(known) is Returned else known
