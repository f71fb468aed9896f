"""The loop of a search: ask for jobs, have them trained, record the results."""

import contextlib
import logging
import math
import pickle
import queue
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Future, wait
from dataclasses import dataclass
from typing import NamedTuple

from risingsearch.arms import Job, Report
from risingsearch.budget import SECONDS
from risingsearch.errors import (
    InvalidParameterError,
    RunDirError,
    SearchFailedError,
    SetupError,
    WorkerError,
)
from risingsearch.proposers.base import Proposer
from risingsearch.scheduling.events import Repeated
from risingsearch.scheduling.options import SearchOptions
from risingsearch.search.callbacks import CallbackList
from risingsearch.search.first_failures import FirstFailures
from risingsearch.search.interrupts import (
    first_interrupt,
    noted_termination,
    sigint_deferred,
)
from risingsearch.search.progress import ProgressLine
from risingsearch.search.repeats import Repeat
from risingsearch.search.run_log import RunLog, named_failure
from risingsearch.search.trainable import gpus_of
from risingsearch.search.training import (
    COST,
    InProcess,
    Outcome,
    Task,
    Workers,
    raise_failure,
    without_frames,
)
from risingsearch.search.wall_clock import WallClock

logger = logging.getLogger("risingsearch")

SIGNAL_DELAY = 1.0  # seconds, at most, until signals are handled during training


def with_cost(outcome: Outcome, unit: str, gpus: float) -> Outcome:
    """Return the outcome of a job with its cost in the unit of the budget."""
    if unit != COST:
        per_second = (gpus if unit == "gpu_hours" else 1.0) / SECONDS.get(unit, 1.0)
        return outcome._replace(cost=outcome.elapsed * per_second)
    costs = [epoch[COST] for epoch in outcome.report.metrics]
    cost: float | None = math.fsum(costs)
    if outcome.charged is not None:  # an epoch without a score costs as the others
        cost = None
        if costs:
            cost = math.fsum(costs) * outcome.charged / len(costs)
    return outcome._replace(cost=cost)


def _as_it_is(proposer: Proposer) -> Proposer:
    return proposer


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """Additions of an interface around a search to its loop."""

    apart: Workers | None = None  # for a job that may kill this process
    seconds_before: float = 0.0  # of the wall-clock, before the first run
    seconds_besides: Callable[[], float] = float  # for a refit, say
    around: Callable[[Proposer], Proposer] = _as_it_is


class InTraining(NamedTuple):
    """A job that was submitted."""

    job: Job
    workers: Workers
    since: float  # on time.monotonic


class Loop:
    """The loop of a search: workers train the jobs of the scheduler until the end."""

    def __init__(
        self,
        log: RunLog,
        workers: Workers,
        callbacks: CallbackList,
        options: SearchOptions,
        *,
        seed_of: Callable[[int], int],
        seed_of_repeat: Callable[[int, int], int],
        embedding: Embedding,
    ) -> None:
        self._log = log
        self._scheduler = log.scheduler
        self._workers = workers
        self._apart = embedding.apart
        self._in_process = isinstance(workers, InProcess)
        self._callbacks = callbacks
        self._raises_failures = options.raises_failures
        self._seed_of = seed_of
        self._seed_of_repeat = seed_of_repeat
        self._epoch_timeout = options.epoch_timeout or math.inf
        self.clock = WallClock(
            log.scheduler,
            options.timeout,
            seconds_before=embedding.seconds_before,
            seconds_besides=embedding.seconds_besides,
        )
        self._progress = None
        if options.progress:
            self._progress = ProgressLine(log.scheduler, workers.progress_note)
        self._starts_processes: bool = getattr(log.trainable, "starts_processes", False)
        self._failures = FirstFailures(log.scheduler)
        self.gave_up = False  # since the first arms of the last run have failed
        self.interrupted = False  # by Ctrl-C, in the last run
        self.first_job = 0  # of the last run
        self.to_retry: list[int] = []  # arms that have failed
        self._stopping = False
        self._on_report: Callable[[Report], None] | None = None
        self._shown: Counter[str] = Counter()  # failures of this run
        self._unfinished: list[Job] = []  # asked for before, the next one last
        self._futures: dict[Future[Outcome], InTraining] = {}
        self._news: queue.SimpleQueue[None] = queue.SimpleQueue()  # of futures' ends
        self._timed_out: dict[int, bool] = {}  # by job, its last process
        self._longest = 0.0  # seconds of a job in this run
        self._overdue = math.inf  # on time.time, when jobs in flight should have ended

    def run(self, on_report: Callable[[Report], None] | None = None) -> None:
        """Train until the scheduler is done, or the loop is stopped."""
        self._on_report = on_report
        self._stopping = self.interrupted = self.gave_up = False
        self._log.why_late = None
        self._log.remark = ""
        self._longest = 0.0
        self.clock.resume(self._log.wall_seconds)
        self._failures.begin()
        self.first_job = self._scheduler.n_asked
        with (
            first_interrupt(self._interrupt if self._in_process else None),
            noted_termination(self._log.release_if_idle),
            self._progress or contextlib.nullcontext(),
        ):
            try:
                self._train_all()
                self._repeat_best()
            except BaseException as error:
                if isinstance(error, SetupError) or not isinstance(error, Exception):
                    self._abandon()
                with contextlib.suppress(RunDirError):  # the first error says why
                    self._log.release()
                raise
            finally:
                for workers in filter(None, (self._workers, self._apart)):
                    workers.release_idle()
                self._count_failures()
        if self._log.why_late and self.clock.ends_search and not self._scheduler.done:
            self._log.use_up(min(self.clock.now or 0.0, self._scheduler.budget))
        self._log.remark = self.clock.remark
        self._log.drop_unneeded()

    def ask(self) -> Job | None:
        """Return the next job, for a program that trains it by itself; or None."""
        asked = self._log.asked
        in_flight = self._scheduler.in_flight
        self._unfinished = [job for job in in_flight if job.id not in asked][::-1]
        return self._next_job()

    def train(self, job: Job) -> None:
        """Train one job that was asked for, and record it."""
        self._submit(job)
        [future] = self._futures
        report = self._settle(future)
        assert report is not None
        self._notify(report)

    def stop(self) -> None:
        """End ``run`` once the jobs in flight are back."""
        self._stopping = True

    def _interrupt(self) -> None:
        self._stopping = self.interrupted = True

    def _train_all(self) -> None:
        self._forget(future for future in self._futures if future.cancelled())
        submitted = {training.job for training in self._futures.values()}
        in_flight = self._scheduler.in_flight
        self._unfinished = [job for job in in_flight if job not in submitted][::-1]
        while self._futures or not self._stopping:
            job = None
            if not self._stopping and len(self._futures) < self._room():
                job = self._next_job()
            self._show_progress()
            report = None
            if job is not None:
                report = self._failed_by_deaths(job)
                if report is None:
                    self._submit(job)
            elif not self._futures:
                break
            elif (done := self._next_done()) is not None:
                report = self._settle(done)
            elif self._scripts_hang():
                self._leave_hanging()
                break
            if report is not None:
                self._notify(report)

    def _repeat_best(self) -> None:
        """Train the best arms again, as far as the kept part of the budget goes."""
        log = self._log
        reserve = log.reserve
        while not self._stopping and not self.gave_up and self.clock.left > 0.0:
            begun: list[Repeat] = []
            while len(begun) < self._n_repeated_at_once:
                repeat = reserve.next(self._scheduler, begun)
                if repeat is None:
                    break
                begun.append(repeat)
            if not begun:
                return
            futures = []
            for number, repeat in enumerate(begun, len(reserve.repeated)):
                task = self._task_of_repeat(repeat, number)
                try:
                    futures.append(self._workers.train(log.trainable, task))
                except BrokenExecutor as error:
                    raise self._executor_failed(error) from error
            if not math.isinf(self.clock.left):
                grace = self.clock.grace(self._longest)
                wait(futures, self.clock.left + grace)
                if not all(future.done() for future in futures):
                    self._workers.end_jobs()
            for repeat, future in zip(begun, futures, strict=True):
                self._record_repeat(repeat, future)

    @property
    def _n_repeated_at_once(self) -> int:
        n_jobs = self._scheduler.n_jobs or self._workers.n_workers or 1
        return max(1, n_jobs)

    def _task_of_repeat(self, repeat: Repeat, number: int) -> Task:
        scheduler = self._scheduler
        shares_states = self._shares_states(self._workers)
        task = Task(
            job=repeat.job(number),
            params=dict(self._log.candidates[repeat.arm]),
            seed=self._seed_of_repeat(repeat.arm, repeat.number),
            state=None,
            as_bytes=not shares_states,
            may_retry=False,
            sign=scheduler.sign,
            best_reward=math.inf,  # no state is kept
            wants_cost=scheduler.unit == COST,
            metric=self._log.metric,
            deadline=time.time() + self.clock.left,
            epoch_timeout=self._epoch_timeout,
        )
        if shares_states:
            return task._replace(
                interrupted=lambda: self.interrupted or self.clock.left <= 0.0
            )
        return task

    def _record_repeat(self, repeat: Repeat, future: Future[Outcome]) -> None:
        """Record a repeat; one that was interrupted is trained again."""
        try:
            outcome = future.result()
            scores = outcome.report.scores
            failure = outcome.report.failure
        except SetupError:
            raise
        except Exception as error:  # of its worker
            if self.clock.left <= 0.0:  # it was ended with the time
                return
            scores = ()
            failure = error
            outcome = Outcome(Report(repeat.job(0)), charged=repeat.n_epochs)
        is_whole = len(scores) == repeat.n_epochs and math.isfinite(scores[-1])
        was_cut = failure is None and not is_whole and not outcome.ended
        if was_cut and (self.interrupted or self.clock.left <= 0.0):
            return
        why = None
        if failure is not None:
            why = named_failure(failure)
        elif not is_whole:
            why = "it has no finite score of the arm's best epoch"
        cost = float(outcome.charged or len(scores))
        if self._scheduler.unit != "epochs":
            gpus = self._workers.gpus or gpus_of(self._log.trainable)
            cost = with_cost(outcome, self._scheduler.unit, gpus).cost or repeat.cost
        with sigint_deferred():
            self._log.record_repeat(
                Repeated(
                    arm=repeat.arm,
                    number=repeat.number,
                    scores=scores,
                    elapsed=outcome.elapsed,
                    cost=cost,
                    failure=why,
                )
            )

    def _forget(self, futures: Iterable[Future[Outcome]]) -> None:
        """Wait for these no longer."""
        for future in list(futures):
            del self._futures[future]

    def _show_progress(self) -> None:
        if self._progress is not None:
            self._progress.show()

    def _notify(self, report: Report) -> None:
        """Tell callbacks of a job that is recorded, and raise its failure if asked."""
        if report.failure is not None or not all(map(math.isfinite, report.scores)):
            self.gave_up = self._failures.are_enough()
            self._show_failure(report)
        if self._on_report is not None:
            self._on_report(report)
        self._callbacks.epochs()
        if self._raises_failures:
            raise_failure(report, self._log.candidates[report.job.arm])
        elif report.failure is not None:
            without_frames(report.failure)

    def _show_failure(self, report: Report) -> None:
        """Log a failure when it happens; one that says the same only once."""
        if self._raises_failures:
            return
        if report.failure is not None:
            what = named_failure(report.failure)
        else:
            lost = [score for score in report.scores if not math.isfinite(score)]
            what = f"its score is {lost[0]}"
        self._shown[what] += 1
        if self._shown[what] == 1:
            logger.warning("arm %d has failed: %s", report.job.arm, what)

    def _count_failures(self) -> None:
        """Log how often failures have happened of which only the first was logged."""
        for what, n_times in self._shown.items():
            if n_times > 1:
                logger.warning("%d jobs have failed alike: %s", n_times, what)
        self._shown.clear()

    def _next_job(self) -> Job | None:
        """Return the job to train next; None if none can start now."""
        if any(self._trains_alone(training.job) for training in self._futures.values()):
            return None
        if self._unfinished:
            waits = self._futures and self._trains_alone(self._unfinished[-1])
            return None if waits else self._unfinished.pop()
        if self._scheduler.n_asked > 0:  # one epoch is trained in any case
            self._log.why_late = self.clock.why_over()
        if self._log.why_late or self.gave_up:
            return None
        with sigint_deferred():
            return self._next_retried() or self._log.ask()

    def _trains_alone(self, job: Job) -> bool:
        """Whether a job may have killed its process: then only it is in flight."""
        return not self._workers.isolates_jobs and self._log.deaths[job.id] > 0

    def _failed_by_deaths(self, job: Job) -> Report | None:
        """Return the report of a job that has killed its processes; None for others."""
        isolated = self._workers.isolates_jobs
        is_late = self.clock.left <= 0.0
        attempts = self._scheduler.max_failures + 1
        if is_late:
            attempts = 1
        elif not isolated:  # a single death proves nothing
            attempts = max(2, attempts)
        deaths = self._log.deaths[job.id]
        if deaths < attempts:
            return None
        first = job.from_epoch + 1
        last = job.from_epoch + job.n_epochs
        when = f"epoch {first}" if first == last else f"one of epochs {first} to {last}"
        did = "killed its process"
        if self._timed_out.get(job.id):
            did = f"took longer than epoch_timeout={self._epoch_timeout:g} seconds"
        elif is_late and isolated:
            did += ", or was ended as it began or trained long after the time was over,"
        failure = WorkerError(f"arm {job.arm} {did} in {when}; attempts: {deaths}")
        # What was trained is not known: the whole job is charged.
        report = Report(job, failure=failure)
        outcome = Outcome(report, attempts=deaths, charged=job.n_epochs)
        with sigint_deferred():
            self._log.record(self.clock.with_timestamp(outcome), keep_live=False)
        self._log.drop_unneeded()
        return report

    def _next_retried(self) -> Job | None:
        """Start the next arm that is to be tried again, where a worker is free."""
        scheduler = self._scheduler
        room = scheduler.n_jobs or math.inf
        while self.to_retry and len(scheduler.in_flight) < room:
            arm = self.to_retry.pop(0)
            try:
                return scheduler.start(arm)
            except InvalidParameterError:
                msg = f"arm {arm} is not tried again: max_epochs or the budget is spent"
                warnings.warn(msg, RuntimeWarning, stacklevel=2)
        return None

    def _room(self) -> float:
        """Return how many jobs may be in flight, if the scheduler does not know."""
        if self._scheduler.n_jobs is not None:
            return math.inf
        return max(1, self._workers.n_workers or 0)

    def _submit(self, job: Job) -> None:
        scheduler = self._scheduler
        log = self._log
        best = scheduler.best_score
        may_retry = scheduler.max_failures > 0
        workers = self._workers
        if self._apart is not None and log.deaths[job.id] > 0:
            workers = self._apart
        task = Task(
            job=job,
            params=dict(log.candidates[job.arm]),
            seed=self._seed_of(job.arm),
            state=None,
            as_bytes=may_retry or not self._shares_states(workers),
            may_retry=may_retry,
            sign=scheduler.sign,
            best_reward=-math.inf if math.isnan(best) else scheduler.sign * best,
            wants_checkpoint=log.directory is not None,
            wants_cost=scheduler.unit == COST,
            metric=log.metric,
            deadline=time.time() + self.clock.left,
            # One epoch of a search is trained in any case.
            skips=workers.isolates_jobs and job.id > 0,
            epoch_timeout=self._epoch_timeout,
        )
        if workers.isolates_jobs:
            self._overdue = task.deadline + self.clock.grace(self._longest)
        with sigint_deferred():
            log.begin(job, here=workers.shares_process and not self._starts_processes)
        task = log.retained.resumed(task)
        if self._shares_states(workers):
            task = task._replace(
                interrupted=lambda: self.interrupted or self.clock.left <= 0.0
            )
        since = time.monotonic()
        future: Future[Outcome]
        try:
            future = workers.train(log.trainable, task)
        except BrokenExecutor as error:
            self._unfinished.append(job)  # it has not begun
            self._replace_dead(list(self._futures), error)
            return
        except Exception as error:  # which is raised where it is settled
            future = Future()
            future.set_exception(error)
        self._futures[future] = InTraining(job, workers, since)
        future.add_done_callback(self._wake)

    def _shares_states(self, workers: Workers) -> bool:
        """Whether live states stay here, between the jobs of these workers."""
        return self._in_process and workers is self._workers

    def _wake(self, future: object) -> None:
        if self._news.empty():
            self._news.put(None)

    def _next_done(self) -> Future[Outcome] | None:
        """Return the first finished job in order; None if another may start before."""
        room = self._room()
        while not (done := [future for future in self._futures if future.done()]):
            self._show_progress()
            if self._room() > room or self._scripts_hang():
                return None
            if time.time() > self._overdue:
                for training in self._futures.values():
                    training.workers.end_jobs()
            # a queue, as what interrupts cannot leave its lock behind; with an end to
            # the wait, as a signal that another thread gets does not end it
            with contextlib.suppress(queue.Empty):
                self._news.get(timeout=SIGNAL_DELAY)
        return min(done, key=lambda future: self._futures[future].job.id)

    def _scripts_hang(self) -> bool:
        """Whether the time is over, and scripts run on that would have ended."""
        late = -self.clock.left
        return self._starts_processes and late > self.clock.grace(self._longest)

    def _leave_hanging(self) -> None:
        """End the run beside jobs in training, which train again in the next one."""
        self._log.why_late = self.clock.why_over()
        arms = ", ".join(str(training.job.arm) for training in self._futures.values())
        msg = (
            f"{self._log.why_late}, and the scripts of these arms seem to hang: {arms}"
            "; they are ended, and start again on resume (with epoch_timeout they fail)"
        )
        warnings.warn(msg, RuntimeWarning, stacklevel=2)
        self._abandon()

    def _settle(self, future: Future[Outcome]) -> Report | None:
        """Record the outcome of a job; None if its worker died: it is tried again."""
        job, workers, since = self._futures[future]
        try:
            outcome = future.result()
        except SetupError:
            raise
        except RunDirError:  # of a state that cannot be saved
            self._abandon()
            raise
        except BrokenExecutor as error:
            together = [future] if self._workers.isolates_jobs else list(self._futures)
            self._replace_dead(together, error)
            return None
        except Exception as error:
            raise self._executor_failed(error) from error
        if workers.isolates_jobs and not self._longest:
            self.clock.waited = time.monotonic() - since - outcome.elapsed
        self._longest = max(self._longest, outcome.elapsed)
        self._record(future)
        self._log.drop_unneeded()
        if outcome.leaves_gpu_unusable and not workers.isolates_jobs:
            which = "this process" if workers.shares_process else "its worker process"
            why = str(outcome.report.failure or "no finite score").partition("\n")[0]
            raise SetupError(
                f"arm {job.arm} has failed ({why}), and {which} "
                "cannot use the GPU any more: start it again, and the search, which "
                "resumes where there is a run_dir; or give a GpuPool as executor, "
                "which replaces such a process"
            )
        self._log.save_state(if_due=True)
        if self._progress is not None and outcome.report.failure is None:
            self._progress.advise(outcome)
        return outcome.report

    def _record(self, future: Future[Outcome]) -> None:
        job, workers, _ = self._futures[future]
        with sigint_deferred():
            gpus = self._workers.gpus or gpus_of(self._log.trainable)
            stamped = self.clock.with_timestamp(future.result())
            stamped = with_cost(stamped, self._scheduler.unit, gpus)
            try:
                self._log.record(stamped, keep_live=self._shares_states(workers))
                workers.recorded(job)
            finally:
                if job not in self._scheduler.in_flight:  # even if the policy raises
                    del self._futures[future]

    def _replace_dead(
        self, futures: list[Future[Outcome]], error: BrokenExecutor
    ) -> None:
        """Try the jobs again that ran in workers of which one has died."""
        lost = [
            future
            for future in futures
            if not future.done() or future.exception() is not None
        ]
        with sigint_deferred():
            jobs = [self._futures[future].job for future in lost]
            jobs.sort(key=lambda job: job.id)
            numbers = [job.id for job in jobs]
            if jobs:
                self._log.died(numbers)
            timed_out = getattr(error, "timed_out", False)
            self._timed_out |= dict.fromkeys(numbers, timed_out)
            if not self._workers.isolates_jobs and self._apart is None:
                raise self._executor_failed(error) from error
            self._forget(lost)
            self._unfinished += reversed(jobs)

    def _abandon(self) -> None:
        """Stop waiting for jobs in flight; record finished ones."""
        with sigint_deferred():
            for future in list(self._futures):
                back = future.done() and not future.cancelled()
                if back and future.exception() is None:
                    self._record(future)
                future.cancel()
            self._futures.clear()
            self._log.abandon()

    def _executor_failed(self, error: Exception) -> SearchFailedError:
        self._abandon()
        advice = ""
        if isinstance(error, BrokenExecutor):
            advice = "its workers cannot be replaced: give n_jobs without an executor; "
        if isinstance(error, (pickle.PicklingError, TypeError, AttributeError)):
            advice = "the trainable and what train returns must be picklable; "
        msg = (
            f"the executor failed ({type(error).__name__}: {error}); {advice}"
            "this exception's result holds what was found before"
        )
        return SearchFailedError(msg, self._log.result())
