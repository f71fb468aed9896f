"""Arms of an experiment: their trials, and the jobs in training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ray.tune.result import TIME_THIS_ITER_S

from risingsearch.arms import Job, Report, Status
from risingsearch.errors import RunDirError
from risingsearch.json_values import from_json
from risingsearch.scheduling.replay import RESULTS, Event, apply, replay, started, told
from risingsearch.scheduling.scheduler import Scheduler

Stamp = tuple[Any, Any]  # tells the results of a trial apart, and its checkpoints


@dataclass
class TrialJob:
    """A job of a trial, with its results so far."""

    job: Job
    scores: list[float] = field(default_factory=list)
    stamps: list[Stamp] = field(default_factory=list)
    results: list[Event] = field(default_factory=list)  # as they are noted

    @property
    def is_over(self) -> bool:
        """Whether no more of its epochs are to be trained."""
        return len(self.scores) == self.job.n_epochs or self.is_lost

    @property
    def is_lost(self) -> bool:
        """Whether the last score is not finite: training on would not mend that."""
        return bool(self.scores) and not math.isfinite(self.scores[-1])

    def add(self, score: float, stamp: Stamp, result: Event) -> None:
        """Add an epoch."""
        self.scores.append(score)
        self.stamps.append(stamp)
        self.results.append(result)

    def n_kept(self, checkpoint: Stamp) -> int:
        """Return how many of its epochs are in a checkpoint."""
        if checkpoint not in self.stamps:
            return 0
        return self.stamps.index(checkpoint) + 1


class Arms:
    """A scheduler, its arms by the ids of their trials, and the slices in training.

    ``note`` gets each event that changes the scheduler, and the id of its trial, if
    any, in the order in which they happen: ``replay`` brings another scheduler to the
    same state.
    """

    def __init__(self, scheduler: Scheduler, note: Callable[..., None]) -> None:
        self.scheduler = scheduler
        self.arm: dict[str, int] = {}  # by the id of its trial
        self.trial: dict[int, str] = {}
        self.slices: dict[str, TrialJob] = {}  # those in training, or to be trained
        self.params: dict[int, Event] = {}  # of arms, as they are noted
        self.reports: dict[int, Report] = {}  # of jobs
        self._note = note

    def open(self, arm: int, trial_id: str, params: Event) -> None:
        """Give an arm its trial."""
        self._bind(arm, trial_id, params)
        opened = {"event": "opened", "arm": arm, "trial": trial_id, "params": params}
        self._note(opened)

    def begin(self) -> None:
        """Ask for what is due, of an arm that has its trial."""
        job = self.scheduler.ask()
        assert job is not None
        self._begin(job)

    def start_again(self, trial_id: str) -> None:
        """Start a trial that failed; an InvalidParameterError without budget."""
        self._begin(self.scheduler.start(self.arm[trial_id]))

    def _begin(self, job: Job) -> None:
        self._note(started(self.scheduler, job))
        self.slices[self.trial[job.arm]] = TrialJob(job)

    def tell(self, trial_id: str) -> None:
        """Tell a slice; with fewer scores than epochs, the arm has ended by itself."""
        slice_ = self.slices.pop(trial_id)
        self.reports[slice_.job.id] = _report(slice_.job, slice_.scores, slice_.results)
        self.scheduler.tell(slice_.job, slice_.scores)
        event = told(slice_.job, slice_.scores)
        self._note(event | {"results": slice_.results}, trial_id)

    def fail(self, trial_id: str, reason: str, checkpoint: Stamp) -> None:
        """Tell that a trial failed; epochs that its checkpoint lacks are lost."""
        slice_ = self.slices.pop(trial_id)
        n_kept = slice_.n_kept(checkpoint)
        kept, results = slice_.scores[:n_kept], slice_.results[:n_kept]
        self.reports[slice_.job.id] = _report(slice_.job, kept, results)
        self.scheduler.fail(slice_.job, reason, kept)
        event = told(slice_.job, kept, reason)
        self._note(event | {"results": results}, trial_id)

    def end(self, arms: Iterable[int]) -> None:
        """Tell that arms can train no more; none of them is in training."""
        event: Event = {"event": "ended", "arms": list(arms)}
        apply(self.scheduler, event)
        self._note(event)

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
            if event["event"] == "opened":
                self._bind(event["arm"], event["trial"], event["params"])
            elif event["event"] in RESULTS:
                job, scores = Job(*event["job"]), from_json(event["scores"])
                self.reports[job.id] = _report(job, scores, event["results"])
        # A slice with fewer scores than epochs means that its trial has ended.
        decisive = ({"ended": True} | e for e in events if e["event"] != "opened")
        replay(self.scheduler, decisive)
        for job in self.scheduler.in_flight:
            if job.arm not in self.trial:
                msg = f"{job} has no trial in the journal, which is damaged"
                raise RunDirError(msg)
            self.slices[self.trial[job.arm]] = TrialJob(job)

    def _bind(self, arm: int, trial_id: str, params: Event) -> None:
        self.arm[trial_id] = arm
        self.trial[arm] = trial_id
        self.params[arm] = params


def _report(job: Job, scores: Sequence[float], results: Sequence[Event]) -> Report:
    """Return the report of a job for callbacks."""
    told = [from_json(result) for result in results]
    seconds = [float(result.get(TIME_THIS_ITER_S, math.nan)) for result in told]
    return Report(job, tuple(scores), tuple(seconds), tuple(told))
