"""One process's copy of the search that several processes share in a study."""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState, create_trial

from risingsearch.arms import Job
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
from risingsearch.scheduling.scheduler import Scheduler

FEWEST_COMPARED = 10  # arms whose scores another sampler sees
SILENT_EPOCHS = 10.0  # the time of so many epochs without a report: it may be dead


@dataclass
class OpenTrial:
    """A trial that has not finished."""

    trial: FrozenTrial
    slice: TrialSlice
    job: Job | None = None  # None where it waits for epochs, or for its arm
    reserved: int = 0  # epochs it can be charged at most
    n_reports: int = 0
    reported_at: float = 0.0  # when it last reported, on this process's clock

    @property
    def is_undecided(self) -> bool:
        """Whether its configuration is not known yet."""
        return self.slice.n_epochs is None

    @property
    def is_waiting(self) -> bool:
        """Whether it waits in the study's queue."""
        return self.trial.state == TrialState.WAITING

    def record_heartbeat(self) -> None:
        """Record the time if the trial has reported since the last one."""
        n_reports = len(self.trial.intermediate_values)
        if not self.reported_at or n_reports > self.n_reports:
            self.reported_at = time.monotonic()
            self.n_reports = n_reports


class StudyReplica:
    """Replica of the search that processes share: follows the trials of a study."""

    # The truth is the list of trials in the storage. Their numbers are the order that
    # all processes agree on; each trial carries the epochs that were reserved for it.
    # The budget is never exceeded: a trial trains only if its own epochs, and all that
    # the trials of smaller numbers can still be charged, fit into it. The charge of a
    # trial never grows: first all that an arm can get, then the decided epochs, then
    # the trained ones. So a budget that was enough when the last trial began is enough
    # at the end.

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
        self._open: dict[int, OpenTrial] = {}  # not finished, by number
        # By arm, the latest value of each that its finished slices have set:
        self.constraints: defaultdict[int, dict[str, Any]] = defaultdict(dict)
        self._n_seen = 0
        # The arms of the study are trial numbers, those of the scheduler 0, 1, 2, ...
        self._free = list(range(n_arms - 1, -1, -1))  # the scheduler's, not opened
        self._index: dict[int, int] = {}  # in the scheduler, by the study's arm
        self._arm: dict[int, int] = {}  # the other way round
        self._unplaced: set[int] = set()  # opened elsewhere: the scheduler is too small
        self._holder: dict[int, int] = {}  # number of the trial that trains an arm
        self._n_given_up: Counter[tuple[int, int]] = Counter()  # by arm and epoch
        self._told: set[int] = set()  # trials told before the storage knows their end

    def sync(self, trials: Sequence[FrozenTrial]) -> None:
        """Record the events since; ``trials`` are all, by number."""
        for number, opened in self._open.items():
            opened.trial = trials[number]
        self._trials = trials
        ended = [trials[i] for i in self._told if trials[i].state.is_finished()]
        self._told -= {trial.number for trial in ended}
        if any(GIVEN_UP in trial.user_attrs for trial in ended):
            self._begin(self.scheduler.n_arms)  # just before it ended
            self._trials = trials
        for number in list(self._open):
            if number in self._open:
                self._follow(trials[number])
        for trial in trials[self._n_seen :]:
            self._n_seen += 1
            self._follow(trial)
        n_arms = self._wanted_arms()
        if n_arms != self.scheduler.n_arms:
            self._begin(n_arms)
            self.sync(trials)

    def finish(
        self, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Record the end of a trial that the storage may not know of yet."""
        opened = self._open.pop(trial.number, None)
        if opened is None or not opened.reserved:
            return
        opened.trial = trial
        given = constraints_of([self._trials[trial.number]])
        self.constraints[opened.slice.arm] |= given
        if not self._trials[trial.number].state.is_finished():
            self._told.add(trial.number)
        if opened.job is None:
            self._make_room(opened)
        if opened.job is None:
            return
        arm = opened.slice.arm
        is_given_up = GIVEN_UP in trial.user_attrs
        if is_given_up and arm == trial.number and not self._can_resume(opened, trial):
            self._release_arm(opened)  # it is proposed anew
            return
        self._holder.pop(arm, None)
        if state != TrialState.FAIL or arm not in self.newest:
            self.newest[arm] = trial
        scores = list(curve(trial).values())[opened.slice.from_epoch :]
        if is_given_up:  # it continues from its checkpoint
            self._n_given_up[arm, opened.slice.from_epoch] += 1
            self.scheduler.tell(opened.job, scores, ended=False)
        else:
            seconds = self._record_time(trial, opened.job.n_epochs)
            self._tell(opened, scores, state, values, seconds)

    def _make_room(self, opened: OpenTrial) -> None:
        """Start the job of a trial that is known to have trained, if it can be."""
        # What has not begun to train makes room for it.
        for number, other in self._open.items():
            if other.is_waiting or other.is_undecided:
                self._release(number)
        opened.job = self._start(opened.slice, opened.reserved)

    def _can_resume(self, opened: OpenTrial, trial: FrozenTrial) -> bool:
        """Whether an arm that was given up in its first slice can be resumed."""
        # What was enqueued is given out again.
        asks = self.asks and FIXED not in trial.system_attrs
        return bool(trial.params) and (opened.slice.asked or asks)

    def _record_time(self, trial: FrozenTrial, n_epochs: int) -> float | None:
        """Record how long a trial took, and return the seconds; None if not known."""
        if trial.datetime_start is None:
            return None
        end = trial.datetime_complete or datetime.now()
        seconds = max(0.0, (end - trial.datetime_start).total_seconds())
        self._seconds += seconds
        self._n_epochs += n_epochs
        return seconds

    def stale_trials(self, seconds: float, mine: Collection[int]) -> list[FrozenTrial]:
        """Return running trials of other processes without a report for too long."""
        usual = self._seconds / max(1, self._n_epochs)
        seconds = max(seconds, SILENT_EPOCHS * usual, SHORTEST)
        now = time.monotonic()
        stale = []
        for number, opened in self._open.items():
            is_running = opened.trial.state == TrialState.RUNNING
            if number in mine or not is_running or not opened.reserved:
                continue
            # Twice as long each time, as those before may have been slow, not dead.
            limit = seconds * 2 ** self._n_given_up[opened.slice[:2]]
            if now - opened.reported_at > limit:
                stale.append(opened.trial)
        return stale

    def _follow(self, trial: FrozenTrial) -> None:
        slice_ = TrialSlice.of(trial)
        if slice_ is None:
            self._release(trial.number)
            self._open.pop(trial.number, None)
            if FINAL not in trial.user_attrs:  # of an arm that is seen itself
                self.others.append(trial)
            return
        self.asks |= slice_.asked
        self._no_more |= LAST in trial.user_attrs
        self._reserve(trial, slice_)
        if trial.state.is_finished() or GIVEN_UP in trial.user_attrs:
            self.finish(trial, trial.state, trial.values)

    def _reserve(self, trial: FrozenTrial, slice_: TrialSlice) -> None:
        opened = self._open.setdefault(trial.number, OpenTrial(trial, slice_))
        opened.record_heartbeat()
        if opened.job is not None and opened.slice.n_epochs == slice_.n_epochs:
            opened.slice = slice_
            return
        self._release(trial.number)
        opened.slice = slice_
        if slice_.n_epochs is None:
            opened.reserved = self._max_epochs
            wanted = 0 if self._no_more else min(self._max_epochs, self.left)
        else:
            wanted = opened.reserved = slice_.n_epochs
        if wanted and not self._is_taken(trial.number, slice_):
            self._finish_before(slice_)
            opened.job = self._start(slice_, wanted)
            if opened.job is not None:
                self._holder[slice_.arm] = trial.number

    def _is_taken(self, number: int, slice_: TrialSlice) -> bool:
        """Whether a trial that came first may train the same epochs of the arm."""
        for earlier, opened in self._open.items():
            if earlier < number and opened.reserved and opened.slice[:2] == slice_[:2]:
                return True
        return False

    def _finish_before(self, slice_: TrialSlice) -> None:
        """Finish the slice before this one, where its trial is about to end."""
        number = self._holder.get(slice_.arm)
        if number is None:
            return
        before = self._open[number].slice
        if before.from_epoch + (before.n_epochs or 0) == slice_.from_epoch:
            self.finish(self._trials[number], TrialState.PRUNED, None)

    def _start(self, slice_: TrialSlice, n_epochs: int | None) -> Job | None:
        """Start the decided job; None if the arm is busy or cannot be paid."""
        if n_epochs == 0:
            return None
        index = self._index.get(slice_.arm)
        if index is None:
            if not self._free:
                if slice_.n_epochs is not None:
                    self._unplaced.add(slice_.arm)
                return None
            index = self._free.pop()
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

    def _release(self, number: int) -> None:
        """Release a trial's reserved epochs, and the index of an arm not opened."""
        opened = self._open.get(number)
        if opened is not None:
            self._release_arm(opened)

    def _release_arm(self, opened: OpenTrial) -> None:
        number = opened.trial.number
        arm = opened.slice.arm
        if opened.job is not None:
            self.scheduler.tell(opened.job, [], ended=False)
            self._holder.pop(arm, None)
            opened.job = None
        opened.reserved = 0
        if arm == number and number in self._index:
            index = self._index.pop(number)
            del self._arm[index]
            self._free.append(index)

    def _tell(
        self,
        opened: OpenTrial,
        scores: list[float],
        state: TrialState,
        values: Sequence[float] | None,
        seconds: float | None,
    ) -> None:
        job = opened.job
        slice_ = opened.slice
        assert job is not None
        is_complete = state == TrialState.COMPLETE
        if is_complete and values and not scores and not slice_.from_epoch:
            scores = list(values[:1])  # without reports, what it returns is an epoch
        if not is_complete and (state == TrialState.FAIL or not scores):
            charged = n_charged(len(scores), job.n_epochs)
            reason = f"the trial ended as {state.name}"
            self.scheduler.fail(job, reason, charged=charged)
            return
        pauses = slice_.asked and state == TrialState.PRUNED
        pauses = pauses and len(scores) >= job.n_epochs
        pauses = pauses and RETIRED not in opened.trial.user_attrs
        scores = scores[: job.n_epochs]
        self.scheduler.tell(job, scores, seconds, ended=not pauses)
        if not pauses:
            self.scheduler.end(job.arm)

    def _wanted_arms(self) -> int:
        """Return how many arms the scheduler should have by now."""
        n_arms = self.scheduler.n_arms
        if self._unplaced:
            return n_arms + len(self._unplaced)
        undecided = {i for i, opened in self._open.items() if opened.is_undecided}
        if self._no_more:
            return max(1, len(self._index.keys() - undecided))
        n_enqueued = 0
        for number in undecided - self._index.keys():
            n_enqueued += FIXED in self._trials[number].system_attrs
        if not self._free and n_enqueued:
            return int(max(n_arms, min(n_arms + n_enqueued, self._most_arms)))
        if self._exhausted():
            return int(min(2 * n_arms, self._most_arms))
        return n_arms

    def _exhausted(self) -> bool:
        """Whether epochs are left, and no arm to train, but some could be opened."""
        if self._no_more or self.scheduler.n_arms >= self._most_arms:
            return False
        if self._free or self.scheduler.in_flight or not self.left:
            return False
        ended = {"finished", "failed"}
        return all(arm.status in ended for arm in self.scheduler.explain())

    @property
    def left(self) -> int:
        """Epochs that are neither spent nor reserved."""
        reserved = sum(job.n_epochs for job in self.scheduler.in_flight)
        return self._unspent - reserved

    @property
    def _unspent(self) -> int:
        return int(self.scheduler.budget - self.scheduler.spent)

    @property
    def done(self) -> bool:
        """Whether nothing will ever start again."""
        for opened in self._open.values():
            if opened.reserved and opened.job is None:
                return False
        return self.scheduler.done and not self._exhausted()

    @property
    def opens_next(self) -> bool:
        """Whether a new arm is due, which any trial that is asked for will open."""
        job = self.scheduler.peek()
        return job is not None and job.arm not in self._arm

    def queued(self, seconds: float = 0.0) -> bool:
        """Whether a trial has waited in the queue for so long."""
        since = time.monotonic() - seconds
        for opened in self._open.values():
            if opened.is_waiting and opened.reported_at <= since:
                return True
        return False

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

    def grant(self, trial: FrozenTrial, *, enqueued: bool) -> int:
        """Return how many epochs the trial may train; 0 where it must not."""
        opened = self._open.get(trial.number)
        if opened is None:
            return 0  # Optuna took it for dead: it has ended
        # Until they are decided, trials before it can have reserved more than there is.
        most = self._unspent
        for number, other in self._open.items():
            if number < trial.number:
                most -= other.reserved
        most = max(0, most)
        if opened.is_undecided:
            return self._grant_new_arm(trial.number, most, enqueued=enqueued)
        if opened.job is None or self._is_taken(trial.number, opened.slice):
            return 0
        return min(opened.job.n_epochs, most)

    def _grant_new_arm(self, number: int, most: int, *, enqueued: bool) -> int:
        self._release(number)
        attrs = [trial.system_attrs for trial in self._trials[: number + 1]]
        again = attrs.pop().get(AGAIN)
        if again is not None and again in (one.get(AGAIN) for one in attrs):
            return 0  # two processes have given the same trial up
        decided = self.scheduler.peek()
        if decided is not None and decided.arm not in self._arm:
            index = decided.arm
        elif enqueued and self._free:
            index = self._free[-1]
        else:
            return 0
        self._free.remove(index)
        self._assign(index, number)
        wanted = None if self.asks else min(self._max_epochs, self.left)
        return self._open_arm(number, wanted, most)

    def _open_arm(self, number: int, wanted: int | None, most: int) -> int:
        """Start the arm that a trial opens, and return its epochs."""
        opened = self._open[number]
        opened.slice = TrialSlice(number, 0, None, asked=False)
        job = self._start(opened.slice, wanted)
        n_epochs = 0 if job is None else min(job.n_epochs, most)
        if job is not None and n_epochs < job.n_epochs:
            self.scheduler.tell(job, [], ended=False)
            job = self._start(opened.slice, n_epochs)
        opened.job = job
        opened.reserved = n_epochs
        opened.slice = TrialSlice(number, 0, n_epochs, asked=self.asks)
        if job is None:
            self._release(number)
        else:
            self._holder[number] = number
        return n_epochs

    def asked(self, number: int) -> int | None:
        """Record that a trial asked for the arm it opened; return its epochs."""
        # None: others took the trial for dead, so nothing can be decided any more.
        self.asks = True
        opened = self._open.get(number)
        if opened is None or opened.job is None:
            return None
        self.scheduler.tell(opened.job, [], ended=False)
        return self._open_arm(number, None, opened.job.n_epochs)

    def undecided_before(self, number: int) -> bool:
        """Whether an earlier trial may still return reserved epochs."""
        for earlier, opened in self._open.items():
            is_running = opened.trial.state == TrialState.RUNNING
            if earlier < number and is_running and opened.is_undecided:
                return True
        return False

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
            known = known._replace(wanted=False)
        else:
            known = known._replace(failed=np.array(sorted(failed), dtype=np.int64))
        return OpenedArms(known, trials)

    def stays_infeasible(self, trial: FrozenTrial) -> bool:
        """Whether a slice that is about to end brings its infeasible arm no nearer."""
        before = self.constraints[trial.user_attrs.get(ARM, trial.number)]
        after = before | constraints_of([self._trials[trial.number]])
        return violation(after) >= violation(before) > 0.0

    def arm_of(self, index: int) -> int:
        """Return the arm of the study that is an arm of the scheduler."""
        return self._arm[index]

    def params_of(self, index: int) -> Mapping[str, Any]:
        """Return the parameters of an opened arm of the scheduler."""
        return self._newest(self._arm[index]).params

    def _newest(self, arm: int) -> FrozenTrial:
        return self.newest.get(arm) or self._trials[arm]


class _Unchanging(dict[Any, Any]):
    """Mapping that is never changed, so that queueing it copies no values."""

    def __deepcopy__(self, memo: object) -> dict[Any, Any]:
        return dict(self)
