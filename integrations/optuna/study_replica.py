"""One process's copy of the search that several processes share in a study."""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState, create_trial

from risingsearch.arms import Configuration, Job
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.optuna.prior import OpenedArms
from risingsearch.integrations.optuna.trials import (
    AGAIN,
    ARM,
    FINAL,
    FIXED,
    FROM_EPOCH,
    GIVEN_UP,
    LAST,
    N_EPOCHS,
    RETIRED,
    SHORTEST,
    TrialSlice,
    arm_trial,
    constraints_of,
    curve,
    n_charged,
    violation,
)
from risingsearch.json_values import Json
from risingsearch.scheduling.scheduler import Scheduler

FEWEST_COMPARED = 10  # arms whose scores another sampler sees
ENDED = ("finished", "failed")
SILENT_EPOCHS = 10.0  # the time of so many epochs without a report: it may be dead


@dataclass
class OpenTrial:
    """A trial that has not finished."""

    number: int
    slice: TrialSlice
    job: Job | None = None  # None where it waits for epochs, or for its arm
    reserved: int = 0  # epochs it can be charged at most
    n_reports: int = -1
    reported_at: float = 0.0  # when it last reported, on this process's clock

    @property
    def is_undecided(self) -> bool:
        """Whether its configuration is not known yet."""
        return self.slice.n_epochs is None

    def record_heartbeat(self, n_reports: int) -> None:
        """Record the time if the trial has reported since the last one."""
        if n_reports > self.n_reports:
            self.reported_at = time.monotonic()
            self.n_reports = n_reports


class StudyReplica:
    """Replica of the search that processes share: follows the trials of a study."""

    # 1. The truth is the list of trials in the storage. Their numbers are the order
    #    that all processes agree on: each is followed until it has finished.
    # 2. Each trial carries the epochs that were reserved for it. The budget is never
    #    exceeded: a trial trains only if its own epochs, and all that the trials of
    #    smaller numbers can still be charged, fit into it. The charge of a trial never
    #    grows: first all that an arm can get, then the decided epochs, then the trained
    #    ones. So a budget that was enough when the last trial began is enough at the
    #    end.
    # 3. An arm has the number of the trial that opened it. The scheduler has indices 0,
    #    1, 2, ... instead, one for each arm; where it has too few, or more than can be
    #    opened, another follows the study from its beginning.

    def __init__(
        self,
        make_scheduler: Callable[[int], Scheduler],
        n_arms: int,
        most_arms: int | None,
        max_epochs: int,
    ) -> None:
        # For n_arms to begin with, and more when these have ended, up to most_arms:
        self._make_scheduler = make_scheduler
        self._most_arms = math.inf if most_arms is None else most_arms
        self._max_epochs = max_epochs
        self._no_more = False  # whether the study has nothing to open any more
        self._begin(int(min(n_arms, self._most_arms)))

    def _begin(self, n_arms: int) -> None:
        self.scheduler = self._make_scheduler(n_arms)
        self.asks = False  # whether the objective has asked for an arm
        self._seconds = 0.0  # what finished slices took
        self._n_epochs = 0
        self.others: list[FrozenTrial] = []  # finished, and no part of the search
        self.newest: dict[int, FrozenTrial] = {}  # each arm's last that has not failed
        self._trials: Sequence[FrozenTrial] = ()
        self._n_followed = 0
        self._open: dict[int, OpenTrial] = {}  # by number
        # By arm, the latest value of each that its finished slices have set:
        self.constraints: defaultdict[int, Json] = defaultdict(dict)
        self._index: dict[int, int] = {}  # in the scheduler, by arm
        self._arm: dict[int, int] = {}  # the other way round
        self._unplaced: set[int] = set()  # opened elsewhere: the scheduler is too small
        self._n_given_up: Counter[tuple[int, int]] = Counter()  # by arm and epoch
        self._told: set[int] = set()  # trials told before the storage knows their end

    def sync(self, trials: Sequence[FrozenTrial]) -> None:
        """Record the events since; ``trials`` are all, by number."""
        ended = {number for number in self._told if trials[number].state.is_finished()}
        self._told -= ended
        if any(GIVEN_UP in trials[number].user_attrs for number in ended):
            self._begin(self.scheduler.n_arms)  # just before it ended
        self._trials = trials
        for number in list(self._open):
            if number in self._open:
                self._follow(trials[number])
        for trial in trials[self._n_followed :]:
            self._follow(trial)
        self._n_followed = len(trials)
        n_arms = self._wanted_arms()
        if n_arms != self.scheduler.n_arms:
            self._begin(n_arms)
            self.sync(trials)

    def _follow(self, trial: FrozenTrial) -> None:
        slice_ = TrialSlice.of(trial)
        if slice_ is None:
            opened = self._open.pop(trial.number, None)
            if opened is not None:
                self._release(opened)
            if FINAL not in trial.user_attrs:  # of an arm that is seen itself
                self.others.append(trial)
            return
        self.asks |= slice_.asked
        self._no_more |= LAST in trial.user_attrs
        opened = self._open.setdefault(trial.number, OpenTrial(trial.number, slice_))
        opened.record_heartbeat(len(trial.intermediate_values))
        is_as_before = opened.slice.n_epochs == slice_.n_epochs
        opened.slice = slice_
        if opened.job is None or not is_as_before:
            self._reserve(opened)
        if trial.state.is_finished() or GIVEN_UP in trial.user_attrs:
            self.finish(trial, trial.state, trial.values)

    # Reservations.

    def _reserve(self, opened: OpenTrial) -> None:
        """Reserve the epochs of a trial anew, and start its job if it can be."""
        self._release(opened)
        slice_ = opened.slice
        if slice_.n_epochs is None:
            opened.reserved = self._max_epochs
            wanted = 0
            if not self._no_more:
                wanted = min(self._max_epochs, self.left)
        else:
            wanted = opened.reserved = slice_.n_epochs
        if wanted and not self._is_taken(opened):
            self._finish_before(slice_)
            opened.job = self._start(slice_, wanted)

    def _before(self, number: int) -> list[OpenTrial]:
        """Return the open trials of smaller numbers."""
        return [opened for opened in self._open.values() if opened.number < number]

    def _is_taken(self, opened: OpenTrial) -> bool:
        """Whether a trial that came first may train the same epochs of the arm."""
        before = [other for other in self._before(opened.number) if other.reserved]
        return opened.slice[:2] in [other.slice[:2] for other in before]

    def _finish_before(self, slice_: TrialSlice) -> None:
        """Finish the slice before this one, where its trial is about to end."""
        for number, opened in self._open.items():
            before = opened.slice
            end = before.from_epoch + (before.n_epochs or 0)
            if opened.job and (before.arm, end) == (slice_.arm, slice_.from_epoch):
                self.finish(self._trials[number], TrialState.PRUNED, None)
                return

    def _start(self, slice_: TrialSlice, n_epochs: int | None) -> Job | None:
        """Start the decided job; None if the arm is busy or cannot be paid."""
        if n_epochs == 0:
            return None
        index = self._index.get(slice_.arm, self._free)
        if index is None:
            if slice_.n_epochs is not None:
                self._unplaced.add(slice_.arm)
            return None
        self._assign(index, slice_.arm)
        try:
            job = self.scheduler.start(index, n_epochs)
        except InvalidParameterError:
            return None
        if job.from_epoch == slice_.from_epoch:
            return job
        self.scheduler.tell(job, [], ended=False)  # others have trained this already
        return None

    def _assign(self, index: int, arm: int) -> None:
        self._index[arm] = index
        self._arm[index] = arm

    @property
    def _free(self) -> int | None:
        """The first index of the scheduler that no arm has; None without one."""
        if len(self._arm) == self.scheduler.n_arms:
            return None
        return min(set(range(self.scheduler.n_arms)) - self._arm.keys())

    def _release(self, opened: OpenTrial) -> None:
        """Release a trial's reserved epochs, and the index of an arm not opened."""
        if opened.job is not None:
            self.scheduler.tell(opened.job, [], ended=False)
            opened.job = None
        opened.reserved = 0
        if opened.slice.arm == opened.number and opened.number in self._index:
            del self._arm[self._index.pop(opened.number)]

    # Ends of trials.

    def finish(
        self, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Record the end of a trial that the storage may not know of yet."""
        opened = self._open.pop(trial.number, None)
        if opened is None or not opened.reserved:
            return
        stored = self._trials[trial.number]
        arm = opened.slice.arm
        self.constraints[arm] |= constraints_of([stored])
        if not stored.state.is_finished():
            self._told.add(trial.number)
        if opened.job is None:
            opened.job = self._start_late(opened)
        if opened.job is None:
            return
        is_given_up = GIVEN_UP in trial.user_attrs
        if is_given_up and arm == trial.number and not self._can_resume(opened, trial):
            self._release(opened)  # it is proposed anew
            return
        if state != TrialState.FAIL or arm not in self.newest:
            self.newest[arm] = trial
        scores = list(curve(trial).values())[opened.slice.from_epoch :]
        if is_given_up:  # it continues from its checkpoint
            self._n_given_up[opened.slice[:2]] += 1
            self.scheduler.tell(opened.job, scores, ended=False)
            return
        if state == TrialState.COMPLETE and values and not curve(trial):
            scores = list(values[:1])  # without reports, what it returns is an epoch
        self._tell(opened, opened.job, trial, state, scores)

    def _start_late(self, opened: OpenTrial) -> Job | None:
        """Start the job of a trial that is known to have trained, if it can be."""
        # What has not begun to train makes room for it.
        for other in self._open.values():
            if self._is_waiting(other) or other.is_undecided:
                self._release(other)
        return self._start(opened.slice, opened.reserved)

    def _can_resume(self, opened: OpenTrial, trial: FrozenTrial) -> bool:
        """Whether an arm that was given up in its first slice can be resumed."""
        # What was enqueued is given out again.
        asks = self.asks and FIXED not in trial.system_attrs
        return bool(trial.params) and (opened.slice.asked or asks)

    def _tell(
        self,
        opened: OpenTrial,
        job: Job,
        trial: FrozenTrial,
        state: TrialState,
        scores: list[float],
    ) -> None:
        seconds = _seconds_of(trial)
        if seconds is not None:
            self._seconds += seconds
            self._n_epochs += job.n_epochs
        if state == TrialState.FAIL or (state == TrialState.PRUNED and not scores):
            charged = n_charged(len(scores), job.n_epochs)
            reason = f"the trial ended as {state.name}"
            self.scheduler.fail(job, reason, charged=charged)
            return
        pauses = (
            state == TrialState.PRUNED
            and opened.slice.asked
            and len(scores) >= job.n_epochs
            and RETIRED not in trial.user_attrs
        )
        self.scheduler.tell(job, scores[: job.n_epochs], seconds, ended=not pauses)
        if not pauses:
            self.scheduler.end(job.arm)

    # What the process may do next.

    def stale_trials(self, seconds: float, mine: Collection[int]) -> list[FrozenTrial]:
        """Return running trials of other processes without a report for too long."""
        usual = self._seconds / max(1, self._n_epochs)
        seconds = max(seconds, SILENT_EPOCHS * usual, SHORTEST)
        now = time.monotonic()
        stale = []
        for number, opened in self._open.items():
            # Twice as long each time, as those before may have been slow, not dead.
            limit = seconds * 2 ** self._n_given_up[opened.slice[:2]]
            is_silent = opened.reserved and now - opened.reported_at > limit
            if is_silent and self._is_running(opened) and number not in mine:
                stale.append(self._trials[number])
        return stale

    def _is_running(self, opened: OpenTrial) -> bool:
        return self._trials[opened.number].state == TrialState.RUNNING

    def _is_waiting(self, opened: OpenTrial) -> bool:
        """Whether a trial waits in the study's queue."""
        return self._trials[opened.number].state == TrialState.WAITING

    def _wanted_arms(self) -> int:
        """Return how many arms the scheduler should have by now."""
        n_arms = self.scheduler.n_arms
        if self._unplaced:
            return n_arms + len(self._unplaced)
        undecided = {i for i, opened in self._open.items() if opened.is_undecided}
        if self._no_more:
            return max(1, len(self._index.keys() - undecided))
        if self._free is not None:
            return n_arms
        unplaced = [
            self._trials[i].system_attrs for i in undecided - self._index.keys()
        ]
        n_enqueued = sum(FIXED in attrs for attrs in unplaced)
        wanted = n_arms + n_enqueued
        if not n_enqueued and self._exhausted:
            wanted = 2 * n_arms
        return int(max(n_arms, min(wanted, self._most_arms)))

    @property
    def _exhausted(self) -> bool:
        """Whether epochs are left, and no arm to train, but some could be opened."""
        if self._no_more or self.scheduler.n_arms >= self._most_arms:
            return False
        if self._free is not None or self.scheduler.in_flight or not self.left:
            return False
        return all(arm.status in ENDED for arm in self.scheduler.explain())

    @property
    def left(self) -> int:
        """Epochs that are neither spent nor reserved."""
        reserved = sum(job.n_epochs for job in self.scheduler.in_flight)
        return self._unspent - reserved

    @property
    def _unspent(self) -> int:
        """Epochs that no trial was charged yet."""
        return int(self.scheduler.budget - self.scheduler.spent)

    @property
    def done(self) -> bool:
        """Whether nothing will ever start again."""
        waits = any(each.reserved and not each.job for each in self._open.values())
        return self.scheduler.done and not waits and not self._exhausted

    @property
    def opens_next(self) -> bool:
        """Whether a new arm is due, which any trial that is asked for will open."""
        job = self.scheduler.peek()
        return job is not None and job.arm not in self._arm

    def queued(self, seconds: float = 0.0) -> bool:
        """Whether a trial has waited in the queue for so long."""
        since = time.monotonic() - seconds
        waiting = filter(self._is_waiting, self._open.values())
        return any(opened.reported_at <= since for opened in waiting)

    def next_trial(self) -> FrozenTrial | None:
        """Return the trial to be queued for the next job; None without one."""
        job = self.scheduler.peek()
        if job is None:
            return None
        arm = self._arm.get(job.arm)
        if arm is None:
            # All epochs of an arm, for objectives that do not resume so far.
            every = min(self._max_epochs, self.left)
            attrs = {N_EPOCHS: job.n_epochs if self.asks else every}
            return create_trial(state=TrialState.WAITING, user_attrs=attrs)
        last = self.newest[arm]
        ends = GIVEN_UP, RETIRED
        attrs = {k: v for k, v in last.user_attrs.items() if k not in ends}
        place = {ARM: arm, FROM_EPOCH: job.from_epoch, N_EPOCHS: job.n_epochs}
        due = create_trial(state=TrialState.WAITING, user_attrs=attrs | place)
        due.params = last.params  # which may have been enqueued outside their ranges
        due.distributions = _Unchanging(last.distributions)
        due.intermediate_values = self._curve(arm, job.from_epoch)
        return due

    def curve_before(self, trial: FrozenTrial) -> dict[int, float]:
        """Return the earlier reports of its arm that the trial lacks, by step."""
        slice_ = self._open[trial.number].slice
        if len(trial.intermediate_values) >= slice_.from_epoch:
            return {}  # it was queued with it
        return self._curve(slice_.arm, slice_.from_epoch)

    def _curve(self, arm: int, n_epochs: int) -> dict[int, float]:
        reports = list(curve(self.newest[arm]).items())
        return _Unchanging(reports[:n_epochs])

    def grant(self, trial: FrozenTrial) -> int:
        """Return how many epochs the trial may train; 0 where it must not."""
        opened = self._open.get(trial.number)
        if opened is None:
            return 0  # Optuna took it for dead: it has ended
        # Until they are decided, trials before it can have reserved more than there is.
        reserved = sum(other.reserved for other in self._before(trial.number))
        most = max(0, self._unspent - reserved)
        if opened.is_undecided:
            return self._grant_new_arm(opened, trial, most)
        if opened.job is None or self._is_taken(opened):
            return 0
        return min(opened.job.n_epochs, most)

    def _grant_new_arm(self, opened: OpenTrial, trial: FrozenTrial, most: int) -> int:
        self._release(opened)
        before = self._trials[: trial.number]
        again = trial.system_attrs.get(AGAIN)
        if again is not None and again in (t.system_attrs.get(AGAIN) for t in before):
            return 0  # two processes have given the same trial up
        decided = self.scheduler.peek()
        index = None
        if decided is not None and decided.arm not in self._arm:
            index = decided.arm
        elif FIXED in trial.system_attrs:
            index = self._free
        if index is None:
            return 0
        self._assign(index, trial.number)
        wanted = None
        if not self.asks:
            wanted = min(self._max_epochs, self.left)
        return self._open_arm(opened, wanted, most)

    def _open_arm(self, opened: OpenTrial, wanted: int | None, most: int) -> int:
        """Start the arm that a trial opens, and return its epochs."""
        slice_ = TrialSlice(opened.number, 0, None, asked=self.asks)
        job = self._start(slice_, wanted)
        if job is not None and job.n_epochs > most:
            self.scheduler.tell(job, [], ended=False)
            job = self._start(slice_, most)
        opened.job = job
        opened.reserved = 0 if job is None else job.n_epochs
        opened.slice = slice_._replace(n_epochs=opened.reserved)
        if job is None:
            self._release(opened)
        return opened.reserved

    def asked(self, number: int) -> int | None:
        """Record that a trial asked for the arm it opened; return its epochs."""
        # None: others took the trial for dead, so nothing can be decided any more.
        self.asks = True
        opened = self._open.get(number)
        if opened is None or opened.job is None:
            return None
        most = opened.job.n_epochs
        self.scheduler.tell(opened.job, [], ended=False)
        return self._open_arm(opened, None, most)

    def undecided_before(self, number: int) -> bool:
        """Whether an earlier trial may still return reserved epochs."""
        running = filter(self._is_running, self._before(number))
        return any(opened.is_undecided for opened in running)

    # What samplers and models see.

    def seen(self) -> list[FrozenTrial]:
        """Return one trial per arm, with scores after equally many epochs."""
        trials = {arm: self._trials[arm] for arm in self._index}
        is_constrained = any(self.constraints.values())
        known = self.scheduler.opened()
        n_compared = max(FEWEST_COMPARED, len(known.curves) // 10)
        lengths = sorted(map(len, known.curves), reverse=True)
        epoch = min(lengths[:n_compared], default=0)
        for k, rewards in enumerate(known.curves):
            arm = self.arm_of(known.arms[k])
            is_judged = self.constraints[arm] or not is_constrained
            is_comparable = is_judged and len(rewards) >= epoch
            value = float(self.scheduler.sign * rewards[:epoch][-1])
            trials[arm] = arm_trial(
                trials[arm],
                self._newest(arm),
                value if known.wanted else None,
                self.constraints[arm],
                is_comparable=known.finished[k] or is_comparable,
            )
        return list(trials.values())

    def opened(self) -> OpenedArms:
        """Return the arms, as models see them."""
        trials = {index: self._newest(arm) for arm, index in self._index.items()}
        known = self.scheduler.opened()
        failed = set(known.failed.tolist())
        for k, index in enumerate(known.arms):
            if violation(self.constraints[self.arm_of(index)]) > 0.0:
                failed.add(k)  # to the model, which knows no constraints
        if len(failed) == len(known.arms):
            return OpenedArms(known._replace(wanted=False), trials)
        judged = np.array(sorted(failed), dtype=np.int64)
        return OpenedArms(known._replace(failed=judged), trials)

    def stays_infeasible(self, trial: FrozenTrial) -> bool:
        """Whether a slice that is about to end brings its infeasible arm no nearer."""
        before = self.constraints[trial.user_attrs.get(ARM, trial.number)]
        after = before | constraints_of([self._trials[trial.number]])
        return violation(after) >= violation(before) > 0.0

    def arm_of(self, index: int) -> int:
        """Return the arm of the study that is an arm of the scheduler."""
        return self._arm[index]

    def params_of(self, index: int) -> Configuration:
        """Return the parameters of an opened arm of the scheduler."""
        return self._newest(self._arm[index]).params

    def _newest(self, arm: int) -> FrozenTrial:
        return self.newest.get(arm) or self._trials[arm]


def _seconds_of(trial: FrozenTrial) -> float | None:
    """Return how long a trial took until now; None if that is not known."""
    if trial.datetime_start is None:
        return None
    end = trial.datetime_complete or datetime.now()
    return max(0.0, (end - trial.datetime_start).total_seconds())


class _Unchanging(dict[Any, Any]):
    """Mapping that is never changed, so that queueing it copies no values."""

    def __deepcopy__(self, memo: object) -> dict[Any, Any]:
        return dict(self)
