"""Which trial is which arm, and what each of them trains now."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Protocol

from risingsearch.arms import Job, Status
from risingsearch.errors import StateError
from risingsearch.json_values import as_json, from_json
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.storage.journal import Event

Stamp = tuple[Any, Any]  # tells the results of a trial apart, and its checkpoints


class Note(Protocol):
    """Takes what has changed the scheduler, and what trial it is about, if any."""

    def __call__(self, event: Event, trial_id: str | None = None) -> None:
        """Write it down."""


@dataclass
class Slice:
    """A job of a trial, and what it has brought back so far.

    Parameters
    ----------
    job : Job
        What the scheduler has asked for.
    """

    job: Job
    scores: list[float] = field(default_factory=list)
    stamps: list[Stamp] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether no more of its epochs are to be trained."""
        return len(self.scores) == self.job.n_epochs or self.is_lost

    @property
    def is_lost(self) -> bool:
        """Whether the last score is not finite: training on would not mend that."""
        return bool(self.scores) and not math.isfinite(self.scores[-1])

    def add(self, score: float, stamp: Stamp) -> None:
        """Take in an epoch."""
        self.scores.append(score)
        self.stamps.append(stamp)

    def n_kept(self, checkpoint: Stamp) -> int:
        """Return how many of its epochs are in a checkpoint."""
        if checkpoint not in self.stamps:
            return 0
        return self.stamps.index(checkpoint) + 1


class Arms:
    """Keeps a scheduler, its arms by the ids of their trials, and their open slices.

    All that changes the scheduler is noted in the order in which it happens, so that
    ``replay`` brings another scheduler to the same state.

    Parameters
    ----------
    scheduler : Scheduler
        Decides.
    note : callable
        Gets each event.
    """

    def __init__(self, scheduler: Scheduler, note: Note) -> None:
        self.scheduler = scheduler
        self.arm: dict[str, int] = {}  # by the id of its trial
        self.trial: dict[int, str] = {}
        self.slices: dict[str, Slice] = {}  # those in training, or to be trained
        self._note = note

    def open(self, arm: int, trial_id: str) -> None:
        """Give an arm its trial."""
        self._bind(arm, trial_id)
        self._note({"event": "opened", "arm": arm, "trial": trial_id})

    def begin(self) -> None:
        """Ask for what is due, of an arm that has its trial."""
        job = self.scheduler.ask()
        assert job is not None
        self.slices[self.trial[job.arm]] = Slice(job)

    def start(self, trial_id: str, n_epochs: int | None = None) -> Slice:
        """Give a trial epochs that were decided elsewhere.

        Raises
        ------
        JobError
            If the arm cannot train, or the budget does not pay.
        """
        asked = self._asked()
        job = self.scheduler.start(self.arm[trial_id], n_epochs)
        self._note({"event": "started", "asked": asked, "job": list(astuple(job))})
        self.slices[trial_id] = Slice(job)
        return self.slices[trial_id]

    def tell(self, trial_id: str) -> None:
        """Take in a slice; of fewer scores than epochs, the arm has ended by itself."""
        slice_ = self.slices.pop(trial_id)
        event = self._told(slice_.job, slice_.scores)
        self.scheduler.tell(slice_.job, slice_.scores)
        self._note(event, trial_id)

    def fail(self, trial_id: str, reason: str, checkpoint: Stamp) -> None:
        """Take in that a trial failed; what its checkpoint lacks is lost."""
        slice_ = self.slices.pop(trial_id)
        kept = slice_.scores[: slice_.n_kept(checkpoint)]
        event = self._told(slice_.job, kept) | {"failure": reason}
        self.scheduler.fail(slice_.job, reason, kept)
        self._note(event, trial_id)

    def end(self, arms: Iterable[int]) -> None:
        """Take in that arms can train no more; none of them in training."""
        ended = list(arms)
        asked = self._asked()
        for arm in ended:
            self.scheduler.end(arm)
        self._note({"event": "ended", "asked": asked, "arms": ended})

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
        """Take over events as if they had just happened.

        Raises
        ------
        StateError
            If the scheduler decides otherwise now.
        """
        for event in events:
            if event["event"] == "opened":
                self._bind(event["arm"], event["trial"])
                continue
            while self.scheduler.n_asked < event["asked"]:
                if self.scheduler.ask() is None:
                    raise _undecided("no job can start")
            if event["event"] == "told":
                self._take_back(event)
                continue
            self._asked()
            if event["event"] == "started":
                arm, _, n_epochs, _ = event["job"]
                self.scheduler.start(arm, n_epochs)
            else:
                for arm in event["arms"]:
                    self.scheduler.end(arm)
        for job in self.scheduler.in_flight:
            if job.arm not in self.trial:
                raise _undecided(f"{job} has no trial")
            self.slices[self.trial[job.arm]] = Slice(job)

    def _take_back(self, event: Event) -> None:
        job, scores = Job(*event["job"]), from_json(event["scores"])
        if job not in self.scheduler.in_flight:
            raise _undecided(f"{job} was never asked for")
        if "failure" in event:
            self.scheduler.fail(job, event["failure"], scores)
        else:
            self.scheduler.tell(job, scores)

    def _asked(self) -> int:
        """Return how many jobs were asked for, with all taken in that can be."""
        self.scheduler.peek()
        return self.scheduler.n_asked

    def _bind(self, arm: int, trial_id: str) -> None:
        self.arm[trial_id] = arm
        self.trial[arm] = trial_id

    def _told(self, job: Job, scores: Sequence[float]) -> Event:
        return {
            "event": "told",
            "asked": self.scheduler.n_asked,
            "job": list(astuple(job)),
            "scores": as_json(list(scores)),
        }


def _undecided(what: str) -> StateError:
    return StateError(
        f"the experiment cannot be restored: decided again from its journal, {what}; "
        "use the release and the policy that it was made with"
    )
