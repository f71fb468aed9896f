"""A process's own view of a search that several processes share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from risingsearch.arms import Job
from risingsearch.errors import JobError
from risingsearch.integrations.optuna.trial_attributes import (
    ARM,
    FROM_EPOCH,
    LAST,
    N_EPOCHS,
    Slice,
    curve,
)
from risingsearch.integrations.optuna.view import arm_trial
from risingsearch.scheduling.scheduler import Scheduler

LONGER = 10.0  # a trial is silent if an epoch takes so many times the usual


class Mirror:
    """Follows the trials of a study with a Scheduler of its own.

    The truth is the list of trials in the storage. Their numbers are the order that all
    processes agree on; each trial carries the epochs that were reserved for it.

    The budget is never exceeded: a trial trains only if what all trials of smaller
    numbers can still be charged, and its own epochs, fit into it. What a trial can be
    charged never grows: all an arm can get while nothing was decided, then what was,
    then what it has trained. So the sum was enough when the trial of the largest number
    that trains was let through, and it is enough at the end.

    Parameters
    ----------
    make_scheduler : callable
        Makes the scheduler for a number of arms.
    n_arms : int
        Arms to begin with; there are more when these have all ended.
    most_arms : int or None
        Arms at most.
    max_epochs : int
        Epochs of an arm at most.
    """

    def __init__(
        self,
        make_scheduler: Callable[[int], Scheduler],
        n_arms: int,
        most_arms: int | None,
        max_epochs: int,
    ) -> None:
        self._make_scheduler = make_scheduler
        self._most_arms = math.inf if most_arms is None else most_arms
        self._max_epochs = max_epochs
        self._no_more = False  # whether the study has nothing to open any more
        self._begin(n_arms)

    def _begin(self, n_arms: int) -> None:
        self.scheduler = self._make_scheduler(n_arms)
        self.asks = False  # whether the objective has asked for an arm
        self.unasked = 0  # arms that ended without being asked for
        self._seconds, self._n_epochs = 0.0, 0  # what finished slices took
        self.others: list[FrozenTrial] = []  # finished, and no part of the search
        self.newest: dict[int, FrozenTrial] = {}  # each arm's last that has not failed
        self._trials: Sequence[FrozenTrial] = ()
        self._open: dict[int, _Open] = {}  # by number, those that have not finished
        self._n_seen = 0
        self._free = list(range(n_arms - 1, -1, -1))  # places in the scheduler
        self._place: dict[int, int] = {}  # of an arm
        self._arm: dict[int, int] = {}  # at a place
        self._homeless: set[int] = set()  # arms opened elsewhere, with no place left
        self._ended: set[int] = set()  # arms that have ended by themselves
        self._holder: dict[int, int] = {}  # number of the trial that trains an arm

    # --------------------------------------------------------------- following a study

    def sync(self, trials: Sequence[FrozenTrial]) -> None:
        """Take in what has happened since; ``trials`` are all, by number."""
        if any(o.lost and o.stirs(trials[i]) for i, o in self._open.items()):
            self._begin(self.scheduler.n_arms)  # it was not lost after all
        self._trials = trials
        for number in list(self._open):
            if number in self._open:
                self._look_at(trials[number])
        for trial in trials[self._n_seen :]:
            self._n_seen += 1
            self._look_at(trial)
        n_arms = self._wanted_arms()
        if n_arms != self.scheduler.n_arms:
            self._begin(n_arms)
            self.sync(trials)

    def finish(
        self, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Take in the end of a trial that the storage may not know of yet."""
        opened = self._open.pop(trial.number, None)
        if opened is None or not opened.reserved or opened.lost:
            return
        if opened.job is None:
            self._make_room()
            opened.job = self._started(opened.slice, opened.reserved)
            if opened.job is None:
                return
        arm = opened.slice.arm
        self._holder.pop(arm, None)
        if state != TrialState.FAIL or arm not in self.newest:
            self.newest[arm] = trial
        if trial.datetime_start is not None:
            now = trial.datetime_complete or datetime.now()
            self._seconds += (now - trial.datetime_start).total_seconds()
            self._n_epochs += opened.job.n_epochs
        self._tell(opened, curve(trial)[opened.slice.from_epoch :], state, values)
        self.scheduler.peek()  # the policy decides as it goes, also in a replay

    def give_up(self, patience: float, mine: set[int]) -> list[FrozenTrial]:
        """Count as failed what was silent for too long: its process may be dead.

        Its epochs stay charged, and its arm rests: nobody else trains them, so it may
        be alive after all. Should it go on, it is taken back.

        Returns
        -------
        list of FrozenTrial
            Those that nothing was decided for: they have trained nothing, and can be
            kept from it.
        """
        usual = self._seconds / max(1, self._n_epochs)
        limit = max(patience, LONGER * usual)
        undecided = []
        for number, opened in self._open.items():
            trial = self._trials[number]
            silent = time.monotonic() - opened.heard > limit
            here = number in mine or trial.state != TrialState.RUNNING
            if here or opened.lost or not opened.reserved or not silent:
                continue
            if opened.slice.n_epochs is None:
                undecided.append(trial)
                continue
            opened.lost = True
            if opened.job is not None:
                self.scheduler.fail(opened.job, f"trial {number} is silent")
                self.scheduler.end(opened.job.arm)
        return undecided

    def _look_at(self, trial: FrozenTrial) -> None:
        slice_ = Slice.of(trial)
        if slice_ is None:
            self._release(trial.number)
            self._open.pop(trial.number, None)
            self.others.append(trial)
            return
        self.asks |= slice_.asked
        self._no_more |= LAST in trial.user_attrs
        self._reserve(trial, slice_)
        if trial.state.is_finished():
            self.finish(trial, trial.state, trial.values)

    def _reserve(self, trial: FrozenTrial, slice_: Slice) -> None:
        opened = self._open.setdefault(trial.number, _Open(slice_))
        opened.hear(trial)
        if opened.job is not None and opened.slice.n_epochs == slice_.n_epochs:
            opened.slice = slice_
            return
        if opened.lost:
            return
        self._release(trial.number)
        opened.slice = slice_
        if slice_.n_epochs is None:
            opened.reserved = self._max_epochs
            wanted = 0 if self._no_more else min(self._max_epochs, self.left)
        else:
            wanted = opened.reserved = slice_.n_epochs
        if wanted and not self._is_taken(trial.number, slice_):
            self._settle_before(slice_)
            opened.job = self._started(slice_, wanted)
            if opened.job is not None:
                self._holder[slice_.arm] = trial.number

    def _settle_before(self, slice_: Slice) -> None:
        """Take in the slice before this one, where its trial is about to end."""
        number = self._holder.get(slice_.arm)
        if number is None:
            return
        before = self._open[number].slice
        if before.from_epoch + (before.n_epochs or 0) == slice_.from_epoch:
            self.finish(self._trials[number], TrialState.PRUNED, None)

    def _make_room(self) -> None:
        """Release what has not begun to train, for what is known to have trained."""
        for number, opened in self._open.items():
            waits = self._trials[number].state == TrialState.WAITING
            if waits or opened.slice.n_epochs is None:
                self._release(number)

    def _is_taken(self, number: int, slice_: Slice) -> bool:
        """Whether a trial that came first may train the same epochs of the arm."""
        return any(
            i < number and o.reserved and o.slice[:2] == slice_[:2]
            for i, o in self._open.items()
        )

    def _started(self, slice_: Slice, n_epochs: int | None) -> Job | None:
        """Start what was decided; None where the arm is busy or cannot be paid."""
        if n_epochs == 0:
            return None
        place = self._place.get(slice_.arm)
        if place is None:
            if not self._free:
                if slice_.n_epochs is not None:
                    self._homeless.add(slice_.arm)
                return None
            place = self._free.pop()
            self._occupy(place, slice_.arm)
        try:
            job = self.scheduler.start(place, n_epochs)
        except JobError:
            return None
        if job.from_epoch == slice_.from_epoch:
            return job
        self.scheduler.tell(job, [], ended=False)  # others have trained this already
        return None

    def _occupy(self, place: int, arm: int) -> None:
        self._place[arm] = place
        self._arm[place] = arm

    def _release(self, number: int) -> None:
        """Give back what a trial has reserved, and the place of an arm not opened."""
        opened = self._open.get(number)
        if opened is None or opened.lost:
            return
        if opened.job is not None:
            self.scheduler.tell(opened.job, [], ended=False)
            self._holder.pop(opened.slice.arm, None)
            opened.job = None
        opened.reserved = 0
        if opened.slice.arm == number and number in self._place:
            place = self._place.pop(number)
            del self._arm[place]
            self._free.append(place)

    def _tell(
        self,
        opened: _Open,
        scores: list[float],
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        job, slice_ = opened.job, opened.slice
        assert job is not None
        if not slice_.asked and state != TrialState.FAIL:
            self.unasked += 1
        complete = state == TrialState.COMPLETE
        if complete and values and not scores and not slice_.from_epoch:
            scores = list(values[:1])  # it never reported: what it returns is an epoch
        if not complete and (state == TrialState.FAIL or not scores):
            if not slice_.asked and len(scores) + 1 < job.n_epochs:
                self.scheduler.tell(job, [], ended=False)
                job = self.scheduler.start(job.arm, len(scores) + 1)
            self.scheduler.fail(job, f"the trial ended as {state.name}")
            return
        paused = slice_.asked and state == TrialState.PRUNED
        paused = paused and len(scores) >= job.n_epochs
        self.scheduler.tell(job, scores[: job.n_epochs], ended=not paused)
        if not paused:
            self.scheduler.end(job.arm)
            self._ended.add(slice_.arm)

    def _wanted_arms(self) -> int:
        """Return how many arms the scheduler should have, by what has happened."""
        n_arms = self.scheduler.n_arms
        if self._homeless:
            return n_arms + len(self._homeless)
        if self._no_more:
            return max(1, len(self._place.keys() - self._undecided))
        return int(min(2 * n_arms, self._most_arms)) if self._exhausted() else n_arms

    @property
    def _undecided(self) -> set[int]:
        return {i for i, o in self._open.items() if o.slice.n_epochs is None}

    def _exhausted(self) -> bool:
        """Whether epochs are left, and no arm to train, but some could be opened."""
        if self._no_more or self.scheduler.n_arms >= self._most_arms:
            return False
        if self._free or self.scheduler.in_flight or not self.left:
            return False
        ended = {"finished", "failed"}
        return all(arm.status in ended for arm in self.scheduler.explain())

    # ---------------------------------------------------------------------- decisions

    @property
    def left(self) -> int:
        """Epochs that are neither spent nor reserved."""
        reserved = sum(job.n_epochs for job in self.scheduler.in_flight)
        return int(self.scheduler.budget - self.scheduler.spent) - reserved

    @property
    def done(self) -> bool:
        """Whether nothing will ever start again."""
        waited_for = any(
            o.reserved and o.job is None and not o.lost for o in self._open.values()
        )
        return not waited_for and self.scheduler.done and not self._exhausted()

    @property
    def opens_next(self) -> bool:
        """Whether a new arm is due: what any trial that is asked for will open."""
        job = self.scheduler.peek()
        return job is not None and job.arm not in self._arm

    def queued(self, seconds: float = 0.0) -> bool:
        """Whether a trial has waited so long for whoever asks next."""
        since = time.monotonic() - seconds
        return any(
            self._trials[i].state == TrialState.WAITING and o.heard <= since
            for i, o in self._open.items()
        )

    def ticket(self) -> FrozenTrial | None:
        """Return the trial to be queued that trains what is due; None if nothing is."""
        job = self.scheduler.peek()
        if job is None:
            return None
        arm = self._arm.get(job.arm)
        if arm is None:
            n_epochs = job.n_epochs if self.asks else self._whole
            return optuna.trial.create_trial(
                state=TrialState.WAITING, user_attrs={N_EPOCHS: n_epochs}
            )
        last = self.newest[arm]
        given = {ARM: arm, FROM_EPOCH: job.from_epoch, N_EPOCHS: job.n_epochs}
        return optuna.trial.create_trial(
            state=TrialState.WAITING,
            params=last.params,
            distributions=_Whole(last.distributions),
            user_attrs=last.user_attrs | given,
            intermediate_values=self._curve(arm, job.from_epoch),
        )

    def curve_before(self, trial: FrozenTrial) -> dict[int, float]:
        """Return what the trial lacks of its arm's reports before it, by step."""
        slice_ = self._open[trial.number].slice
        if len(trial.intermediate_values) >= slice_.from_epoch:
            return {}  # it was queued with it
        return self._curve(slice_.arm, slice_.from_epoch)

    def _curve(self, arm: int, n_epochs: int) -> dict[int, float]:
        reports = self.newest[arm].intermediate_values
        return _Whole(sorted(reports.items())[:n_epochs])

    def grant(self, trial: FrozenTrial, *, enqueued: bool) -> int:
        """Return how many epochs the trial may train; 0 where it must not."""
        opened = self._open.get(trial.number)
        if opened is None:
            return 0  # Optuna took it for dead: it has ended
        room = self._room(trial.number)
        if opened.slice.n_epochs is None:
            return self._opening(trial.number, room, enqueued=enqueued)
        if opened.job is None or self._is_taken(trial.number, opened.slice):
            return 0
        return min(opened.job.n_epochs, room)

    def _opening(self, number: int, room: int, *, enqueued: bool) -> int:
        self._release(number)
        decided = self.scheduler.peek()
        if decided is not None and decided.arm not in self._arm:
            place = decided.arm
        elif enqueued and self._free:
            place = self._free[-1]
        else:
            return 0
        self._free.remove(place)
        self._occupy(place, number)
        return self._hold(number, None if self.asks else self._whole, room)

    @property
    def _whole(self) -> int:
        """All epochs of an arm, while nobody knows whether the objective can go on."""
        return min(self._max_epochs, self.left)

    def _hold(self, number: int, wanted: int | None, most: int) -> int:
        """Start the arm that a trial opens, and return its epochs."""
        opened = self._open[number]
        opened.slice = Slice(number, 0, None, asked=False)
        job = self._started(opened.slice, wanted)
        n_epochs = 0 if job is None else min(job.n_epochs, most)
        if job is not None and n_epochs < job.n_epochs:
            self.scheduler.tell(job, [], ended=False)
            job = self._started(opened.slice, n_epochs)
        opened.job, opened.reserved = job, n_epochs
        opened.slice = Slice(number, 0, n_epochs, asked=self.asks)
        if job is None:
            self._release(number)
        else:
            self._holder[number] = number
        return n_epochs

    def asked(self, number: int) -> int | None:
        """Take in that the objective asked for the arm that this trial has opened.

        Returns
        -------
        int or None
            The epochs of its slice: no more than were reserved before. None where
            nothing can be decided any more, because others took it for dead.
        """
        self.asks = True
        opened = self._open.get(number)
        if opened is None or opened.job is None:
            return None
        self.scheduler.tell(opened.job, [], ended=False)
        return self._hold(number, None, opened.job.n_epochs)

    def undecided_before(self, number: int) -> bool:
        """Whether a trial that came first may still give back what it holds."""
        return any(
            i < number
            and o.slice.n_epochs is None
            and not o.lost
            and self._trials[i].state == TrialState.RUNNING
            for i, o in self._open.items()
        )

    def expected(self) -> list[FrozenTrial]:
        """Return one trial per arm, with the end that is expected of it.

        Unless the policy trusts first looks, arms that have had no more still run, as
        it were: they have an end when they are looked at again.
        """
        return [self._expected(arm) for arm in self._place]

    def _is_known(self, arm: int) -> bool:
        looked_at_again = self.newest[arm].number != arm
        trusted = looked_at_again or self.scheduler.trusts_first_looks
        return trusted or arm in self._ended

    def _expected(self, arm: int) -> FrozenTrial:
        opening = self._trials[arm]
        last = self.newest.get(arm)
        if last is None:
            return opening
        known = self._is_known(arm)
        end = self.scheduler.expected_end(self._place[arm])
        if known and not math.isfinite(end):
            return opening
        return arm_trial(opening, last, end if known else None)

    def _room(self, number: int) -> int:
        before = sum(
            o.reserved for i, o in self._open.items() if i < number and not o.lost
        )
        # Those of smaller numbers can have reserved more than there is, until decided.
        return max(0, int(self.scheduler.budget - self.scheduler.spent) - before)


@dataclass
class _Open:
    """A trial that has not finished."""

    slice: Slice
    job: Job | None = None  # None where it waits for epochs, or for its arm
    reserved: int = 0  # epochs it can be charged at most
    n_reports: int = 0
    heard: float = 0.0  # when it last reported, on this process's clock
    lost: bool = False

    def hear(self, trial: FrozenTrial) -> None:
        """Note the time if the trial has said something new."""
        if not self.heard or self.stirs(trial):
            self.heard = time.monotonic()
            self.n_reports = len(trial.intermediate_values)

    def stirs(self, trial: FrozenTrial) -> bool:
        """Whether the trial has gone on since it was last heard."""
        return (
            trial.state.is_finished() or len(trial.intermediate_values) > self.n_reports
        )


class _Whole(dict[Any, Any]):
    """What no one changes, to be queued: in memory, Optuna copies it value by value."""

    def __deepcopy__(self, memo: object) -> dict[Any, Any]:
        return dict(self)
