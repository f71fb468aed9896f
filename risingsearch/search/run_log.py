"""The log of a search: results of its jobs, recorded, kept on disk and replayed."""

import contextlib
import math
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from risingsearch import errors
from risingsearch.arms import Arm, Configuration, Job, Params, Report
from risingsearch.budget import Budget
from risingsearch.checks import LARGEST_COST, checked_int, is_number
from risingsearch.errors import (
    InvalidParameterError,
    PolicyError,
    RunDirError,
    SearchFailedError,
    SetupError,
)
from risingsearch.identity.comparison import adopted, first_difference
from risingsearch.identity.source_code import changed_files
from risingsearch.json_values import Json, plain
from risingsearch.scheduling.events import (
    Advanced,
    Died,
    Event,
    Extended,
    Failed,
    Released,
    Repeated,
    Resized,
    Returned,
    Started,
    Stopped,
    event_of,
)
from risingsearch.scheduling.replay import apply, replay
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.examples import EXAMPLES, KeptExamples
from risingsearch.search.interrupts import sigint_deferred
from risingsearch.search.repeats import Reserve
from risingsearch.search.results import UNFINISHED, SearchResult, history_of
from risingsearch.search.retention import RetainedCheckpoints
from risingsearch.search.run import Run, earlier_failure
from risingsearch.search.trainable import Trainable, trains_anew
from risingsearch.search.training import Outcome
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
        restore: Callable[[Configuration], Params],
        *,
        seed_of: Callable[[int], int],
        metric: str,
        begun: str | None,
        kept: float = 0,
    ) -> None:
        self.trainable = trainable
        self.candidates = candidates
        self.scheduler = scheduler
        self._seed_of = seed_of
        self._restore = restore  # a configuration that was read from a journal
        self.retained = RetainedCheckpoints(
            MemoryStore(), scheduler.sign, at_hand=getattr(trainable, "at_hand", None)
        )
        self.examples = KeptExamples(
            scheduler.sign, latest_counts=trains_anew(trainable)
        )
        self.directory: run_directory.RunDirectory | None = None
        self.metric = metric
        self._begun = begun
        self.reserve = Reserve(kept)
        self.why_late: str | None = None  # the limit of time that ended the last run
        self.remark = ""  # on how the last run has ended
        self._stopped: str | None = None  # why nothing more was started, last of all
        self.reports: dict[int, Report] = {}  # by job
        self._results: dict[int, Returned] = {}  # by job
        self.is_abandoned = False  # whether no process trains the jobs in flight
        self.is_asked = False  # whether a program has asked for the last job
        self._is_writing = False  # an event
        self._thread = threading.RLock()  # of the one that runs the search
        self._decided: set[int] = set()  # jobs whose decision is on disk
        self._running: dict[int, Started] = {}  # as a process has begun them, by job
        self.deaths: Counter[int] = Counter()  # by job, of the processes it ran in
        self._returned: set[int] = set()  # arms whose checkpoints are not tidied yet

    def open(
        self, directory: run_directory.RunDirectory, header: Json, run: Run | None
    ) -> None:
        """Resume the search that was read from a directory, or begin one there."""
        self.directory = directory
        if run is not None:
            with run_directory.damage_as_error(directory.path):
                _check_continued(run, header)
        with directory.held(), run_directory.gc_paused():
            if run is None and run_directory.holds_search(directory.path):
                raise RunDirError(
                    f"a search began in {directory.path} just now: make this one again"
                )
            saved = directory.open(header, run and run.saved)
            self.retained.store = directory.checkpoints
            self.examples.folder = directory.path / EXAMPLES
            with run_directory.damage_as_error(directory.path):
                self.replay(saved.events, saved.n_in_state, saved.state)
            # Jobs of worker processes cannot have killed an earlier process.
            if killers := [job for job, start in self._running.items() if start.here]:
                self.died(killers)
            if self._running.keys() != self.asked.keys():
                self.release()  # that process has ended
            self.drop_unneeded()

    def replay(
        self, lines: Sequence[Json], n_in_state: int, state: Json | None
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
        scores: dict[tuple[int, int], float] = {}  # by arm and epoch
        for event in events:
            self._remember_stop(event)
            match event:
                case Started():
                    self._decided.add(event.job.id)
                    self._running[event.job.id] = event
                    self.is_asked = event.asked is not None
                case Released():
                    self._running.clear()
                case Died():
                    self._count_deaths(event.jobs)
                case Extended():
                    self.reserve.kept += event.kept
                case Repeated():
                    self.reserve.repeated.append(event)
                case Returned():
                    self._note(event, report_of(event))
                    job = event.job
                    trained[job.arm] = job.from_epoch + len(event.scores)
                    for epoch, score in enumerate(event.scores, job.from_epoch + 1):
                        scores[job.arm, epoch] = score
        for row in self.scheduler.history:
            job = self.reports[row["job"]].job
            epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
            if row["arm"] != job.arm or row["epoch"] not in epochs:
                raise ValueError(f"job {job.id} is another one in the saved state")
        self.retained.note_stored(trained)
        self.examples.read(scores)

    def _remember_stop(self, event: Event) -> None:
        """Keep the reason of a stop until an event changes the scheduler."""
        if isinstance(event, Stopped):
            self._stopped = event.reason
        elif event.changes_scheduler:
            self._stopped = None

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

    def begin(
        self, job: Job, *, here: bool = False, asked: float | None = None
    ) -> None:
        """Note that a job begins; one in this process, that it trains ``here``."""
        self.is_abandoned = False
        if self.directory is not None and job.id not in self._running:
            start = replace(self.scheduler.why(job), here=here, asked=asked)
            self._write(start)
            self._running[job.id] = start

    @property
    def asked(self) -> dict[int, float]:
        """When programs asked for the jobs that they train by themselves, by job."""
        return {
            job: start.asked
            for job, start in self._running.items()
            if start.asked is not None
        }

    def forget(self, job: Job) -> None:
        """Forget that a job has begun: the process that trained it is gone."""
        self._running.pop(job.id, None)

    def release(self) -> None:
        """Note that the jobs in training were interrupted, which is no failure."""
        if self._running:
            self._write(Released())
        self._running.clear()

    def release_if_idle(self) -> None:
        """Release the jobs in training, unless an event is being written."""
        if not self._is_writing:
            self.release()

    def died(self, jobs: Sequence[int]) -> None:
        """Note that the process died in which these jobs ran."""
        self._write(Died(jobs=list(jobs)))
        self._count_deaths(jobs)

    def _count_deaths(self, jobs: Sequence[int]) -> None:
        self.deaths.update(jobs)
        for job in jobs:
            self._running.pop(job, None)

    def _write(self, event: Event) -> None:
        """Write an event, in the order of the decisions if others have to be written.

        A job that was interrupted before it began has been decided, but not written.
        """
        if self.directory is None:
            return
        self.directory.check_held()
        starts: dict[int, Event] = {
            job.id: self.scheduler.why(job)
            for job in self.scheduler.in_flight
            if job.id not in self._decided
        }
        if isinstance(event, Started):
            starts[event.job.id] = event
        self._is_writing = True
        try:
            for each in starts.values():
                self.directory.journal.append(each.to_json())
            self._decided |= starts.keys()
            if not isinstance(event, Started):
                self.directory.journal.append(event.to_json())
        finally:
            self._is_writing = False

    def record(self, outcome: Outcome, *, keep_live: bool) -> None:
        """Record a job on disk, then in the scheduler; callers defer Ctrl-C."""
        event = as_event(outcome)
        arm = event.job.arm
        try:
            if self.directory is not None:
                self.directory.check_held()
            self.retained.save(outcome)
            if outcome.examples is not None:
                self.examples.write(arm, outcome.examples)
            self._write(event)
        except Exception:
            self.retained.release_live(arm)
            raise
        if keep_live or self.directory is None:
            self.retained.keep_live(arm, outcome.resume_from)
        try:
            self._tell(event)
        finally:  # the scheduler has recorded the result even if the policy raises
            self._remember_stop(event)
            self._note(event, outcome.report)
            if outcome.examples is not None:
                self.examples.keep(arm, outcome.examples)
            if outcome.checkpoint is not None:
                self.retained.note_last(Key(arm, outcome.last_epoch))

    def _tell(self, event: Returned) -> None:
        job, scores, cost, now = event.job, event.scores, event.cost, event.now
        if isinstance(event, Failed):
            self.scheduler.fail(
                job,
                event.failure,
                scores,
                cost,
                now=now,
                attempts=event.attempts,
                charged=event.charged,
            )
        else:
            self.scheduler.tell(job, scores, cost, ended=event.ended, now=now)

    def _note(self, event: Returned, report: Report) -> None:
        """Note the facts of a recorded job that the scheduler does not have."""
        job = event.job
        self._running.pop(job.id, None)
        self.deaths.pop(job.id, None)
        self.reports[job.id] = report
        self._results[job.id] = event
        self._returned.add(job.arm)
        if event.best is not None:
            score = event.scores[event.best - job.from_epoch - 1]
            self.retained.note_best(Key(job.arm, event.best), score)

    @property
    def wall_seconds(self) -> float:
        """Seconds of all runs until the last job came back; NaN if not measured."""
        seconds = [event.clock for event in self._results.values()]
        known = [second for second in seconds if second is not None]
        return math.nan if len(known) < len(seconds) else max(known, default=0.0)

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
        return reason and reason + self.reserve.remark + self.remark

    def note_stop(self) -> None:
        """Write the reason of an early end to the journal."""
        reason = self.scheduler.stop_reason
        if self.scheduler.stop_rule is None or reason == self._stopped:
            return
        if reason is not None:
            self._write(Stopped(reason=reason))
        self._stopped = reason

    def extend(self, budget: Budget, kept: float = 0) -> None:
        """Add to the budget and the reserve, on disk as well or not at all."""
        self._change(Extended(budget=budget, kept=kept))
        self.reserve.kept += kept

    def record_repeat(self, event: Repeated) -> None:
        """Record a repeat on disk, and then here; callers defer Ctrl-C."""
        self._write(event)
        self.reserve.repeated.append(event)

    def use_up(self, now: float) -> None:
        """Keep the rest of the time for a refit, on disk as well or not at all."""
        self._change(Advanced(now=now, keeps_rest=now < self.scheduler.budget))

    def resize(self, n_jobs: int) -> None:
        """Have another number of jobs in flight, on disk as well or not at all."""
        self._change(Resized(n_jobs=checked_int("n_jobs", n_jobs, 1)))

    def _change(self, event: Event) -> None:
        with self.held(), sigint_deferred():
            if self.directory is not None:
                apply(self.scheduler.copy(), event)  # an error changes nothing
                self._write(event)
            apply(self.scheduler, event)
            self._remember_stop(event)

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
        arms = [self._as_it_is(arm) for arm in scheduler.explain()]
        best = {} if arm is None else arms[arm].params
        reports = self.reports.values()
        epochs = (epoch for report in reports for epoch in report.metrics)
        numeric = (name for epoch in epochs for name in epoch if is_number(epoch[name]))
        results = self._results
        reserve = self.reserve
        return SearchResult(
            best_params=dict(best),
            best_score=scheduler.best_score,
            best_epoch=scheduler.best_epoch,
            best_arm=arm,
            history=history_of(scheduler.history, self.reports),
            candidates=self.candidates,
            arms=arms,
            n_epochs=scheduler.n_epochs + reserve.n_epochs,
            n_calls=sum(result.calls for result in results.values()) + reserve.n_epochs,
            stop_reason=self.stop_reason or UNFINISHED,
            direction=scheduler.direction,
            failures=[report for report in reports if report.failure is not None],
            _trainable=self.trainable,
            _best_checkpoint=self._best_checkpoint(scheduler),
            trust_in_prior=scheduler.trust_in_prior(),
            metric=self.metric,
            other_metrics=list(dict.fromkeys(numeric)),
            budget=Budget.from_json({scheduler.unit: scheduler.budget + reserve.kept}),
            spent=scheduler.spent + reserve.spent,
            begun=self._begun,
            wall_seconds=self.wall_seconds,
            training_seconds=math.fsum(
                result.elapsed or 0.0 for result in results.values()
            )
            + reserve.seconds,
            max_epochs=scheduler.max_epochs,
            returned_at={
                job: result.clock
                for job, result in results.items()
                if result.clock is not None
            },
            repeats=reserve.scores,
            _examples=self.examples.of(arms),
        )

    def _best_checkpoint(
        self, scheduler: Scheduler
    ) -> bytes | RunDirError | SetupError | None:
        """Return the state with the best score, or why it cannot be read."""
        arm = scheduler.best_arm
        if arm is None:
            return None
        return self.retained.best(Key(arm, scheduler.best_epoch))

    def _as_it_is(self, arm: Arm) -> Arm:
        """Return an arm with its parameters; it does not train if it was abandoned."""
        params = {k: plain(value) for k, value in self.candidates[arm.arm].items()}
        arm = replace(arm, params=params, seed=self._seed_of(arm.arm))
        if not self.is_abandoned or arm.status != "running":
            return arm
        if not arm.charged:  # else it counts as one that has trained
            why = "interrupted in its first epoch: it starts when the search continues"
            return replace(arm, status="unopened", reason=why)
        why = "interrupted: it trains on when the search continues"
        return replace(arm, status="paused", reason=why)

    def save_best(self, folder: Path) -> None:
        """Write the checkpoint of the best epoch into a folder."""
        checkpoint = self._best_checkpoint(self.scheduler.with_all_results())
        if isinstance(checkpoint, RunDirError | SetupError):
            raise checkpoint
        assert checkpoint is not None
        (folder / "checkpoint").write_bytes(checkpoint)

    def all_failed(self, since: int, *, early: bool) -> SearchFailedError:
        """Return the error of a search, or its jobs since one, without a score."""
        first = 0 if self.scheduler.with_all_results().best_arm is None else since
        reports = [self.reports[job] for job in sorted(self.reports) if job >= first]
        n_arms = len({report.job.arm for report in reports})
        cause = next((r.failure for r in reports if r.failure is not None), None)
        error = SearchFailedError(
            ("" if cause is None else f"{named_failure(cause).removesuffix('.')}: ")
            + f"none of the {n_arms} arms "
            + ("trained by this run" if first else "opened")
            + " has a finite score"
            + (", so the search has stopped" if early else "")
            + (", though none has raised an error" if cause is None else "")
            + "; correct the cause, and run the search again"
        )
        error.__cause__ = cause
        return error


def named_failure(failure: BaseException) -> str:
    """Return the name of the type of a failure, and its text."""
    return f"{type(failure).__name__}: {failure}"


def as_event(outcome: Outcome) -> Returned:
    """Return the event of a job that came back, without its states."""
    report = outcome.report
    failure = report.failure
    returned = Returned(
        job=report.job,
        scores=report.scores,
        seconds=report.seconds,
        metrics=report.metrics,
        elapsed=outcome.elapsed,
        calls=outcome.n_calls,
        cost=outcome.cost,
        startup=outcome.startup,
        now=outcome.now,
        clock=outcome.clock,
        ended=outcome.ended,
        best=None if outcome.snapshot is None else outcome.snapshot[0],
    )
    if failure is None:
        return returned
    kind = type(failure)
    is_known = kind.__module__ in ("builtins", errors.__name__)
    assert outcome.charged is not None
    return Failed(
        **vars(returned),
        failure=str(failure) or kind.__name__,
        failure_type=kind.__name__,
        failure_module=None if is_known else kind.__module__,
        attempts=outcome.attempts,
        charged=outcome.charged,
    )


def report_of(event: Returned) -> Report:
    """Return the report in an event, with a failure of the recorded type."""
    epochs = (event.scores, event.seconds, event.metrics)
    known = [fact for fact in (event.best, event.clock) if fact is not None]
    are_numbers = all(
        is_number(value) and not abs(value) > LARGEST_COST
        for value in (*event.seconds, event.elapsed, event.calls, *known)
    )
    are_dicts = all(type(values) is dict for values in event.metrics)
    if not are_numbers or not are_dicts or len({*map(len, epochs)}) > 1:
        raise ValueError(f"the result of {event.job} is malformed")
    failure: Exception | None = None
    if isinstance(event, Failed):
        failure = earlier_failure(
            event.failure, str(event.failure_type), event.failure_module
        )
    return Report(event.job, *epochs, failure)


def _check_continued(run: Run, header: Json) -> None:
    """Refuse to continue with other arguments; warn if the code has changed."""
    saved = run.header["settings"]
    code = run.header.get("code")
    changed: list[str] = []
    if isinstance(code, dict):
        changed = _changed_code(code, header["code"])
    else:  # of an earlier release, which compared the bytecode
        saved = adopted(saved, header["settings"])
    _check_same(run.path, saved, header["settings"])
    if changed:
        msg = (
            f"the code has changed since {run.path} was begun, in "
            f"{', '.join(changed)}: its scores so far are kept; for a search "
            "without them give another run_dir"
        )
        warnings.warn(msg, RuntimeWarning, stacklevel=6)


def _changed_code(saved: Json, current: Json) -> list[str]:
    """Return the files that have changed since a search was begun."""
    changed = changed_files(saved.get("search", {}), current["search"])
    before = saved.get("callbacks", {})
    now = current["callbacks"]
    kept = before.keys() & now.keys()  # others may be given at any time
    also = changed_files({n: before[n] for n in kept}, {n: now[n] for n in kept})
    return [*dict.fromkeys(changed + also)]


def check_kind(path: Path, saved: Json, settings: Json) -> None:
    """Raise an error if a directory holds a search of another interface."""
    was, now = map(_interface, (saved, settings))
    if was != now:
        raise RunDirError(
            f"{path} holds a search of {was}, and it was opened by {now}: continue it "
            "as it was begun, or give another run_dir"
        )


def _interface(settings: Json) -> str:
    parts = (settings.get("fingerprint") or {}).keys()
    if {"sweep", "cwd"} <= parts:
        return "risingsearch run"
    is_cv = {"estimator", "steps_per_epoch"} <= parts
    return "RisingSearchCV" if is_cv else "RisingSearch"


def _check_same(path: Path, saved: Json, settings: Json) -> None:
    check_kind(path, saved, settings)
    difference = first_difference(saved, settings)
    if difference is None:
        return
    name, was, now, also = difference
    other = f"{name}={was}, and it was opened with {name}={now}"
    more = ""
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
    raise RunDirError(
        f"{path} holds a search with {other}: give the same arguments to continue, or "
        f"another run_dir{more}{also}"
    )
