"""The log of a search: results of its jobs, recorded, kept on disk and replayed."""

import contextlib
import math
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from risingsearch import errors
from risingsearch.arms import Arm, Job, Params, Report
from risingsearch.budget import Budget
from risingsearch.checks import LARGEST_COST, checked_int, is_number
from risingsearch.comparison import adopted, first_difference
from risingsearch.errors import (
    InvalidParameterError,
    PolicyError,
    RunDirError,
    SearchFailedError,
    SetupError,
)
from risingsearch.events import (
    Advanced,
    Died,
    Event,
    Extended,
    Failed,
    Released,
    Resized,
    Returned,
    Started,
    Stopped,
    event_of,
)
from risingsearch.json_values import Json, plain
from risingsearch.scheduling.replay import apply, replay
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.interrupts import sigint_deferred
from risingsearch.search.results import UNFINISHED, SearchResult, history_of
from risingsearch.search.retention import RetainedCheckpoints
from risingsearch.search.run import Run, check_known, earlier_failure
from risingsearch.search.trainable import Trainable
from risingsearch.search.training import Outcome
from risingsearch.source_code import changed_files
from risingsearch.storage import run_directory
from risingsearch.storage.checkpoints import Key, MemoryStore

# the scheduler's state is saved after so many events, or one in so many of all
FEWEST_EVENTS, EVENTS_SHARE = 500, 25

_DIGEST = re.compile(r"'[0-9a-f]{32}\+?'")


class RunLog:
    """The log of a search: its scheduler, the reports and the retained checkpoints."""

    def __init__(
        self,
        trainable: Trainable,
        candidates: list[Params],
        scheduler: Scheduler,
        restore: Callable[[Mapping[str, Any]], dict[str, Any]] = dict,
        *,
        metric: str = "score",
        begun: str | None = None,
    ) -> None:
        self.trainable = trainable
        self.candidates = candidates
        self.scheduler = scheduler
        self._restore = restore  # a configuration that was read from a journal
        self.retained = RetainedCheckpoints(
            MemoryStore(), scheduler.sign, at_hand=getattr(trainable, "at_hand", None)
        )
        self.directory: run_directory.RunDirectory | None = None
        self.wall_seconds = 0.0  # until the last job came back; NaN: not measured
        self.metric, self._begun = metric, begun
        self.why_late: str | None = None  # the limit of time that ended the last run
        self.remark = ""  # on how the last run has ended
        self._stopped: str | None = None  # why nothing more was started, last of all
        self._elapsed: dict[int, float] = {}  # by job, seconds of training
        self._returned_at: dict[int, float] = {}  # by job, wall-clock seconds
        self.reports: dict[int, Report] = {}  # by job
        self._n_calls: dict[int, int] = {}  # by job
        self.is_abandoned = False  # whether no process trains the jobs in flight
        self._is_writing = False  # an event
        self._thread = threading.RLock()  # of the one that runs the search
        self._decided: set[int] = set()  # jobs whose decision is on disk
        self._running: dict[int, bool] = {}  # jobs; whether one can kill the search
        self.deaths: Counter[int] = Counter()  # by job, of the processes it ran in
        self._returned: set[int] = set()  # arms whose checkpoints are not tidied yet

    def open(
        self, directory: run_directory.RunDirectory, header: Json, run: Run | None
    ) -> None:
        """Resume the search that was read from a directory, or begin one there."""
        self.directory = directory
        if run is not None:
            saved = run.header["settings"]
            if not isinstance(run.header.get("code"), dict):  # of an earlier release
                saved = adopted(saved, header["settings"])
            _check_same(directory.path, saved, header["settings"])
            if changed := _changed_code(run.header.get("code"), header["code"]):
                msg = (
                    f"the code has changed since {directory.path} was begun, in "
                    f"{', '.join(changed)}: its scores so far are kept; for a search "
                    "without them give another run_dir"
                )
                warnings.warn(msg, RuntimeWarning, stacklevel=5)
        with directory.held(), run_directory.gc_paused():
            if run is None and run_directory.holds_search(directory.path):
                raise RunDirError(
                    f"a search began in {directory.path} just now: make this one again"
                )
            saved = directory.open(header, run and run.saved)
            self.retained.store = directory.checkpoints
            with run_directory.damage_as_error(directory.path):
                self.replay(saved.events, saved.n_in_state, saved.state)
            # jobs of worker processes cannot have killed an earlier process
            if killers := [job for job, here in self._running.items() if here]:
                self.died(killers)
            self.release()
            self.drop_unneeded()

    def replay(
        self, lines: Sequence[Json], n_in_state: int, state: dict[str, Any] | None
    ) -> None:
        """Take over all events of earlier processes; a state knows the first ones."""
        events = [event_of(line) for line in lines]
        if state is not None:
            try:
                self.scheduler.load_state_dict(state)
            except (PolicyError, RunDirError):  # or of another release or policy
                n_in_state = 0
        replay(self.scheduler, events[n_in_state:])
        self._fill(self.scheduler.proposals)
        trained: dict[int, int] = {}  # epochs by arm
        for event in events:
            self._stopped = event.reason if isinstance(event, Stopped) else None
            match event:
                case Started():
                    self._decided.add(event.job.id)
                    self._running[event.job.id] = bool(event.here)
                case Released():
                    self._running.clear()
                case Died():
                    self._count_deaths(event.jobs)
                case Returned():
                    job, outcome = event.job, outcome_of(event)
                    self._note(job, outcome)
                    trained[job.arm] = job.from_epoch + len(event.scores)
        self.retained.note_stored(trained)

    def ask(self) -> Job | None:
        """Return the next job; a configuration proposed for its arm takes its place."""
        job = self.scheduler.ask()
        if job is not None:
            self._fill([job.arm])
        return job

    def _fill(self, arms: Iterable[int]) -> None:
        """Give these arms the configurations that were proposed for them, if any."""
        proposals = self.scheduler.proposals
        for arm in arms:
            if arm in proposals:
                self.candidates[arm] = self._restore(proposals[arm].params)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other threads out, and other processes out of the directory."""
        if not self._thread.acquire(blocking=False):
            msg = "another thread runs this search: wait for it, or make one for each"
            raise InvalidParameterError(msg)
        try:
            with self.directory.held() if self.directory else contextlib.nullcontext():
                yield
        finally:
            self._thread.release()

    def begin(self, job: Job | None = None, *, here: bool = False) -> None:
        """Write a ``started`` event for each job without one, and one for ``job``."""
        self.is_abandoned &= job is None
        for one in self.scheduler.in_flight:
            begins = one == job and one.id not in self._running
            if self.directory is None or not (begins or one.id not in self._decided):
                continue
            is_here = here and one == job
            self._write(replace(self.scheduler.why(one), here=is_here))
            self._decided.add(one.id)
            self._running[one.id] = is_here

    def release(self) -> None:
        """Note that the jobs in training were interrupted, which is no failure."""
        if self._running:
            self.begin()
            self._write(Released())
        self._running.clear()

    def release_if_idle(self) -> None:
        """Release the jobs in training, unless an event is being written."""
        if not self._is_writing:
            self.release()

    def died(self, jobs: Sequence[int]) -> None:
        """Note that the process died in which these jobs ran."""
        self.begin()
        self._write(Died(jobs=list(jobs)))
        self._count_deaths(jobs)

    def _count_deaths(self, jobs: Sequence[int]) -> None:
        self.deaths.update(jobs)
        for job in jobs:
            self._running.pop(job, None)

    def _write(self, event: Event) -> None:
        if self.directory is None:
            return
        self.directory.check_held()
        self._is_writing = True
        try:
            self.directory.journal.append(event.to_json())
        finally:
            self._is_writing = False

    def record(self, job: Job, outcome: Outcome, *, keep_live: bool) -> None:
        """Record a job on disk, then in the scheduler; callers defer Ctrl-C."""
        try:
            if self.directory is not None:
                self.directory.check_held()
            self.retained.save(job, outcome)
            if self.directory is not None:
                self.begin()
                self._write(as_event(job, outcome))
        except Exception:
            self.retained.release_live(job.arm)
            raise
        if keep_live or self.directory is None:
            self.retained.keep_live(job.arm, outcome.resume_from)
        try:
            self._tell(job, outcome)
        except PolicyError:  # the scheduler has recorded the result all the same
            self._note(job, outcome)
            raise
        self._note(job, outcome)

    def _tell(self, job: Job, outcome: Outcome) -> None:
        report, cost, now = outcome.report, outcome.cost, outcome.now
        if report.failure is None:
            self.scheduler.tell(job, report.scores, cost, ended=outcome.ended, now=now)
        else:
            self.scheduler.fail(
                job,
                report.failure,
                report.scores,
                cost,
                now=now,
                attempts=outcome.attempts,
                charged=outcome.charged,
            )

    def _note(self, job: Job, outcome: Outcome) -> None:
        """Note the facts of a recorded outcome that the scheduler does not have."""
        self._stopped = None
        self._running.pop(job.id, None)
        self.deaths.pop(job.id, None)
        self.reports[job.id] = outcome.report
        self._n_calls[job.id] = outcome.n_calls
        self._elapsed[job.id] = outcome.elapsed
        if outcome.clock is not None:
            self._returned_at[job.id] = outcome.clock
        if outcome.clock is None or math.isnan(self.wall_seconds):
            self.wall_seconds = math.nan
        else:
            self.wall_seconds = max(self.wall_seconds, outcome.clock)
        self._returned.add(job.arm)
        self.retained.note(job, outcome)

    def abandon(self) -> None:
        """Wait no longer for the jobs in flight: they are to be trained again."""
        for job in self.scheduler.in_flight:
            self.retained.release_live(job.arm, may_be_bytes=self.directory is None)
        self.is_abandoned = True
        self.release()

    @property
    def stop_reason(self) -> str | None:
        """Why the search or its last run has ended; None if neither has by itself."""
        reason = self.scheduler.stop_reason or self.why_late or self._stopped
        return reason and reason + self.remark

    def note_stop(self) -> None:
        """Write the reason of an early end to the journal."""
        reason = self.scheduler.stop_reason
        if self.scheduler.stop_rule is None or reason == self._stopped:
            return
        if reason is not None:
            self._write(Stopped(reason=reason))
        self._stopped = reason

    def extend(self, budget: Budget) -> None:
        """Add to the budget, on disk as well or not at all."""
        self._change(Extended(budget=budget))

    def use_up(self, now: float) -> None:
        """Keep the rest of the time for a refit, on disk as well or not at all."""
        keeps_rest = now < self.scheduler.budget
        self._change(Advanced(now=now, keeps_rest=keeps_rest))

    def resize(self, n_jobs: int) -> None:
        """Have another number of jobs in flight, on disk as well or not at all."""
        self._change(Resized(n_jobs=checked_int("n_jobs", n_jobs, 1)))

    def _change(self, event: Event) -> None:
        with self.held(), sigint_deferred():
            if self.directory is None:
                apply(self.scheduler, event)
                return
            self.begin()
            apply(self.scheduler.copy(), event)  # an error changes nothing
            self._write(event)
            apply(self.scheduler, event)

    def drop_unneeded(self) -> None:
        """Drop the states of arms that are over, and those that are beaten."""
        for arm in list(self._returned):
            status = self.scheduler.status(arm)
            if status != "running":
                self._returned.remove(arm)
                # Without max_epochs, a larger budget may bring a finished arm back.
                if status == "finished" and self.scheduler.max_epochs is not None:
                    self.retained.retire(arm)
                elif status == "failed":  # what is saved is there to try it again
                    self.retained.release_live(arm)
        self.retained.drop_unneeded(self.scheduler.best_score)

    def save_state(self, *, if_due: bool = False) -> None:
        """Save the scheduler's state if there is news, or once there is much of it."""
        directory = self.directory
        if directory is None:
            return
        due = max(FEWEST_EVENTS, self.scheduler.n_asked // EVENTS_SHARE)
        n_new = directory.journal.n_events - directory.n_events_saved
        if n_new >= (due if if_due else 1):
            with contextlib.suppress(PolicyError):  # then the journal is replayed
                directory.save_state(self.scheduler.state_dict())

    def result(self) -> SearchResult:
        """Return the result so far."""
        scheduler = self.scheduler.with_all_results()
        arm = scheduler.best_arm
        budget: dict[str, Any] = {scheduler.unit: scheduler.budget}
        best = {} if arm is None else self.candidates[arm]
        metrics = (one for report in self.reports.values() for one in report.metrics)
        numeric = (name for one in metrics for name in one if is_number(one[name]))
        return SearchResult(
            best_params={name: plain(value) for name, value in best.items()},
            best_score=scheduler.best_score,
            best_epoch=scheduler.best_epoch,
            best_arm=arm,
            history=history_of(scheduler.history, self.reports),
            candidates=self.candidates,
            arms=[self._as_it_is(arm) for arm in scheduler.explain()],
            n_epochs=scheduler.n_epochs,
            n_calls=sum(self._n_calls.values()),
            stop_reason=self.stop_reason or UNFINISHED,
            direction=scheduler.direction,
            failures=[r for r in self.reports.values() if r.failure is not None],
            _trainable=self.trainable,
            _best_checkpoint=None
            if arm is None
            else self.retained.best(Key(arm, scheduler.best_epoch)),
            trust_in_prior=scheduler.trust_in_prior(),
            metric=self.metric,
            other_metrics=list(dict.fromkeys(numeric)),
            budget=Budget(**budget),
            spent=scheduler.spent,
            begun=self._begun,
            wall_seconds=self.wall_seconds,
            training_seconds=math.fsum(self._elapsed.values()),
            max_epochs=scheduler.max_epochs,
            returned_at=dict(self._returned_at),
        )

    def _as_it_is(self, arm: Arm) -> Arm:
        """Return an arm that does not train if its job was abandoned."""
        if not self.is_abandoned or arm.status != "running":
            return arm
        if not arm.charged:  # else it counts as one that has trained
            why = "interrupted in its first epoch: it starts when the search continues"
            return replace(arm, status="unopened", reason=why)
        why = "interrupted: it trains on when the search continues"
        return replace(arm, status="paused", reason=why)

    def save_best(self, folder: Path) -> None:
        """Write the checkpoint of the best epoch into a folder."""
        scheduler = self.scheduler.with_all_results()
        assert scheduler.best_arm is not None
        checkpoint = self.retained.best(Key(scheduler.best_arm, scheduler.best_epoch))
        if isinstance(checkpoint, RunDirError | SetupError):
            raise checkpoint
        assert checkpoint is not None
        (folder / "checkpoint").write_bytes(checkpoint)

    def all_failed(self, since: int, *, early: bool) -> SearchFailedError:
        """Return the error of a search, or its jobs since one, without a score."""
        first = 0 if self.scheduler.with_all_results().best_arm is None else since
        reports = [self.reports[job] for job in sorted(self.reports) if job >= first]
        opened = len({report.job.arm for report in reports})
        which = "trained by this run" if first else "opened"
        msg = f"none of the {opened} arms {which} has a finite score"
        todo = "correct the cause, and run the search again"
        if early:
            msg += ", so the search has stopped"
        cause = next((r.failure for r in reports if r.failure is not None), None)
        named = "" if cause is None else f"{named_failure(cause).removesuffix('.')}: "
        also = ", though none has raised an error" if cause is None else ""
        error = SearchFailedError(f"{named}{msg}{also}; {todo}")
        error.__cause__ = cause
        return error


def named_failure(failure: BaseException) -> str:
    """Return the name of the type of a failure, and its text."""
    return f"{type(failure).__name__}: {failure}"


def as_event(job: Job, outcome: Outcome) -> Returned:
    """Return the event of a job that came back, without its states."""
    report, failure = outcome.report, outcome.report.failure
    facts: dict[str, Any] = {
        "job": job,
        "scores": report.scores,
        "seconds": report.seconds,
        "metrics": report.metrics,
        "elapsed": outcome.elapsed,
        "calls": outcome.n_calls,
        "cost": outcome.cost,
        "startup": outcome.startup,
        "now": outcome.now,
        "clock": outcome.clock,
        "ended": outcome.ended,
        "best": None if outcome.snapshot is None else outcome.snapshot[0],
    }
    if failure is None:
        return Returned(**facts)
    kind = type(failure)
    is_known = kind.__module__ in ("builtins", errors.__name__)
    assert outcome.charged is not None
    return Failed(
        failure=str(failure) or kind.__name__,
        failure_type=kind.__name__,
        failure_module=None if is_known else kind.__module__,
        attempts=outcome.attempts,
        charged=outcome.charged,
        **facts,
    )


def outcome_of(event: Returned) -> Outcome:
    """Return the outcome in an event, with a failure of the recorded type."""
    scores, seconds, metrics = event.scores, event.seconds, event.metrics
    optional = {event.best, event.clock} - {None}
    numbers: tuple[Any, ...] = (*seconds, event.elapsed, event.calls, *optional)
    are_valid = all(is_number(one) and not abs(one) > LARGEST_COST for one in numbers)
    are_valid &= {dict} >= set(map(type, metrics))
    if not are_valid or not len(scores) == len(seconds) == len(metrics):
        raise ValueError(f"the result of {event.job} is none")
    failure: Exception | None = None
    failed: dict[str, Any] = {}
    if isinstance(event, Failed):
        type_name = str(event.failure_type)
        failure = earlier_failure(event.failure, type_name, event.failure_module)
        failed = {"attempts": event.attempts, "charged": event.charged}
    return Outcome(
        Report(event.job, scores, seconds, metrics, failure),
        ended=event.ended,
        snapshot=None if event.best is None else (event.best, b""),
        n_calls=event.calls,
        elapsed=event.elapsed or 0.0,
        cost=event.cost,
        startup=event.startup,
        now=event.now,
        clock=event.clock,
        **failed,
    )


def _changed_code(saved: Any, current: Mapping[str, dict[str, str]]) -> list[str]:
    """Return the files that have changed since a search was begun."""
    if not isinstance(saved, dict):
        return []  # an earlier release compared the bytecode
    changed = changed_files(saved.get("search", {}), current["search"])
    before, now = saved.get("callbacks", {}), current["callbacks"]
    kept = before.keys() & now.keys()  # others may be given at any time
    also = changed_files({n: before[n] for n in kept}, {n: now[n] for n in kept})
    return [*dict.fromkeys(changed + also)]


def check_kind(
    path: Path, saved: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    """Raise an error if a directory holds a search of another interface."""
    was, now = map(_interface, (saved, settings))
    if was != now:
        raise RunDirError(
            f"{path} holds a search of {was}, and it was opened by {now}: continue it "
            "as it was begun, or give another run_dir"
        )


def _interface(settings: Mapping[str, Any]) -> str:
    parts = (settings.get("fingerprint") or {}).keys()
    if {"sweep", "cwd"} <= parts:
        return "risingsearch run"
    is_cv = {"estimator", "steps_per_epoch"} <= parts
    return "RisingSearchCV" if is_cv else "RisingSearch"


def _check_same(
    path: Path, saved: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    check_kind(path, saved, settings)
    check_known(saved, settings)
    differs = first_difference(saved, settings)
    if differs is not None:
        name, was, now, also = differs
        other, more = f"{name}={was}, and it was opened with {name}={now}", ""
        if _DIGEST.fullmatch(was) and _DIGEST.fullmatch(now):
            other = f"another {name}"
            if name in ("X", "y"):
                other = f"other data in {name}"
                more = (
                    "; a clone of RisingSearchCV, as cross_val_score makes it, keeps "
                    "run_dir: give each its own, or set_params(run_dir=None)"
                )
        if name.startswith("budget"):
            more = (
                "; to add budget, give the same, or the same timeout, and call extend, "
                "or continue_search of RisingSearchCV"
            )
        advice = "give the same arguments to continue, or another run_dir"
        raise RunDirError(f"{path} holds a search with {other}: {advice}{more}{also}")
