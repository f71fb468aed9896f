"""A sweep whose jobs are trained by programs that ask for them, and tell the scores.

Every call opens the search, changes it, and closes it: the journal is all that remains
between two of them. A lock makes them wait for each other.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from risingsearch.arms import Configuration, Job
from risingsearch.budget import in_words
from risingsearch.errors import InvalidParameterError, RunDirError, ScriptError
from risingsearch.scripts import identity
from risingsearch.scripts.run import (
    ARMS,
    CheckpointCleaner,
    last_sweep,
    n_workers_begun_with,
    search_of,
    seeded_and_checked,
)
from risingsearch.scripts.sweep import Sweep
from risingsearch.scripts.trainable import (
    CommandTrainable,
    Launch,
    Reports,
    ScriptRun,
    checkpoint_name,
    sync_checkpoint,
)
from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import dump
from risingsearch.search.training import COST, Outcome, Task, Workers, run_task
from risingsearch.storage import lock
from risingsearch.storage.files import check_owner, make_folder
from risingsearch.storage.run_directory import holds_search

TURN = "asking.lock"
"""Held by the program that asks or tells."""
LONGEST_WAIT = 60.0
"""Seconds that it may have to wait for others."""


class Told(NamedTuple):
    """The outcome of a job, as a program tells it."""

    scores: Sequence[float] = ()
    seconds: float | None = None  # of training; by default since it has asked
    cost: float | None = None
    failure: str | None = None


class Asked(NamedTuple):
    """A job that a program has asked for, and why; or why there is none."""

    sweep: Sweep
    result: SearchResult
    job: Job | None
    launch: Launch | None
    reason: str
    parts: dict[str, float]
    in_training: list[Job]
    is_done: bool


class AskedTrainable(CommandTrainable):
    """Arms that programs train, in the checkpoint directories that scripts have."""

    told = Told()
    job: Job

    def prepare(self, run: ScriptRun, job: Job) -> Launch:
        """Make the directory that a job works in; return how a script is started."""
        home = self.made_home(run.arm)
        work = self._work(job)
        with self._blaming_the_disk(run.arm):
            shutil.rmtree(work, ignore_errors=True)
            begin = self.last_checkpoint(run)
            if begin > 0:
                shutil.copytree(home / checkpoint_name(begin), work, symlinks=True)
            else:
                make_folder(work)
        return Launch.of(self.command, run, begin, run.epoch + job.n_epochs, work)

    def train_epochs(self, run: ScriptRun, n_epochs: int) -> Reports:
        """Return the scores that were told, and keep the directory of their job."""
        told = self.told
        if told.failure is not None:
            failure = ScriptError(told.failure)
            failure.n_reported = 0  # else the whole job is charged
            raise failure
        work = self._work(self.job)
        if work.exists():
            sync_checkpoint(work)
        run.epoch += len(told.scores)
        self.keep(run.arm, work.name, run.epoch)
        costs = {}
        if told.cost is not None:
            costs[COST] = told.cost / len(told.scores)
        return [{"score": score, **costs} for score in told.scores]

    def at_hand(
        self, arm: int, params: Configuration, seed: int, epoch: int
    ) -> bytes | None:
        """Return the state of an arm: its model is in its directory alone."""
        return dump(self, ScriptRun(arm, dict(params), seed, epoch))

    def _work(self, job: Job) -> Path:
        return self.home(job.arm) / f"training-{job.id:06d}"


class _Programs(Workers):
    """Programs that have trained a job before it is recorded."""

    def __init__(self, n_workers: int) -> None:
        super().__init__()
        self._n_workers = n_workers
        self.seconds = 0.0

    @property
    def n_workers(self) -> int:
        """Number of jobs that can be in training."""
        return self._n_workers

    def train(self, trainable: Any, task: Task) -> Future[Outcome]:
        """Return the outcome of a job, with the time that it has taken."""
        outcome = run_task(trainable, task)
        n_epochs = len(outcome.report.scores)
        seconds = (self.seconds / max(1, n_epochs),) * n_epochs
        future: Future[Outcome] = Future()
        future.set_result(
            outcome._replace(
                report=replace(outcome.report, seconds=seconds),
                elapsed=self.seconds,
                startup=None,
            )
        )
        return future


class _Opened(NamedTuple):
    """The search of a sweep, while a program asks or tells."""

    sweep: Sweep
    trainable: AskedTrainable
    search: RisingSearch
    programs: _Programs

    @classmethod
    @contextmanager
    def at(cls, run_dir: Path, sweep: Sweep | None = None) -> Iterator[_Opened]:
        """Open the search of a directory, or begin that of a sweep there."""
        if sweep is None and not holds_search(run_dir):
            raise RunDirError(
                f"{run_dir} holds no search: begin it with risingsearch ask {run_dir} "
                "--sweep SWEEP.yaml"
            )
        check_owner(run_dir)
        make_folder(run_dir)
        with lock.held(run_dir / TURN, timeout=LONGEST_WAIT):
            opened = cls._open(run_dir, sweep)
            with opened.search._log.held():
                yield opened

    @classmethod
    def _open(cls, run_dir: Path, sweep: Sweep | None) -> _Opened:
        begun = identity.begun_with(run_dir) if holds_search(run_dir) else {}
        cwd = Path.cwd()
        is_new = sweep is not None
        if sweep is None:
            sweep, cwd = last_sweep(run_dir)
        _check_asked(sweep)
        sweep = seeded_and_checked(sweep, begun, run_dir)
        placement = sweep.placement()
        n_workers = len(placement.variables)
        trainable = AskedTrainable(
            sweep.command, run_dir / ARMS, gpus=sweep.n_gpus or 1.0
        )
        programs = _Programs(n_workers)
        search = search_of(
            sweep,
            trainable,
            executor=programs,
            n_jobs=n_workers_begun_with(run_dir, sweep) if begun else n_workers,
            run_dir=run_dir,
            fingerprint=begun or identity.described(sweep, cwd),
            progress=False,
        )
        if is_new:
            identity.save(run_dir, sweep, cwd, placement.gpus)
        if search.scheduler.n_jobs != n_workers:
            search.resize(n_workers)
        began = search.result().begun
        if began is not None:
            passed = datetime.now().astimezone() - datetime.fromisoformat(began)
            search._loop.clock.resume(passed.total_seconds())
        return cls(sweep, trainable, search, programs)

    def run_of(self, job: Job) -> ScriptRun:
        """Return the arm of a job, as it is before the job."""
        params = self.search.result().arms[job.arm].params
        seed = self.search.seed_of(job.arm)
        return ScriptRun(job.arm, dict(params), seed, job.from_epoch)

    def in_training(self, number: int) -> Job:
        """Return the job of a number, or raise an error if it is not in training."""
        jobs = {job.id: job for job in self.search.scheduler.in_flight}
        if number in jobs:
            return jobs[number]
        those = f"those in training are {', '.join(map(str, jobs))}"
        raise InvalidParameterError(
            f"job {number} is not in training, and {those if jobs else 'none is'}: ask "
            "gives a job its number, and each is told once"
        )


def ask(run_dir: Path, sweep: Sweep | None = None, again: int | None = None) -> Asked:
    """Return the next job of a search, or one again whose program is gone."""
    with _Opened.at(run_dir, sweep) as opened:
        search = opened.search
        log = search._log
        if again is None:
            job = search._loop.ask()
        else:
            job = opened.in_training(again)
            log.forget(job)
        why = None
        launch = None
        if job is not None:
            log.begin(job, asked=time.time())
            why = search.scheduler.why(job)
            launch = opened.trainable.prepare(opened.run_of(job), job)
        in_training = [other for other in search.scheduler.in_flight if other != job]
        reason = log.stop_reason
        if why is not None:
            reason = why.reason
        elif reason is None:
            numbers = ", ".join(str(other.id) for other in in_training)
            reason = f"none can start before one in training is told: {numbers}"
        return Asked(
            opened.sweep,
            search.result(),
            job,
            launch,
            reason,
            {} if why is None else why.parts,
            in_training,
            is_done=job is None and not in_training,
        )


def tell(run_dir: Path, number: int, told: Told) -> tuple[Job, SearchResult]:
    """Record the outcome of a job; return it, and the result so far."""
    with _Opened.at(run_dir) as opened:
        search = opened.search
        trainable = opened.trainable
        job = opened.in_training(number)
        asked = search._log.asked.get(number)
        unit = search.scheduler.unit
        _check_told(told, job, unit)
        seconds = told.seconds
        if seconds is None and asked is not None:
            seconds = max(0.0, time.time() - asked)
        opened.programs.seconds = seconds or 0.0
        trainable.told = told
        trainable.job = job
        trainable.arms = {search.seed_of(job.arm): job.arm}
        best = search.scheduler.best_arm
        search._loop.train(job)
        cleaner = CheckpointCleaner(trainable, search, resumes=True)
        cleaner.clean({job.arm} if best is None else {job.arm, best})
        search._log.note_stop()
        return job, search.result()


def _check_asked(sweep: Sweep) -> None:
    """Raise an error about keys that only the scripts of ``run`` can follow."""
    keys = {
        "resume: false": not sweep.resume,
        "checkpoints": sweep.checkpoints,
        "tracker": sweep.tracker,
        "launcher: slurm": sweep.launcher.slurm,
    }
    for key, is_given in keys.items():
        if is_given:
            raise InvalidParameterError(
                f"{key} is for scripts that risingsearch run starts, not for programs "
                "that ask and tell: leave it out"
            )


def _check_told(told: Told, job: Job, unit: str) -> None:
    """Raise an error if a told outcome is not about this job and its budget."""
    problem = None
    if told.failure is not None:
        if told.scores or told.cost is not None:
            problem = (
                "a failed job has no scores, and is charged what an epoch is expected "
                "to cost: give --failed alone, or the scores of the epochs before"
            )
    elif not 1 <= len(told.scores) <= job.n_epochs:
        problem = (
            f"job {job.id} is of {job.n_epochs} epochs: give one score of each, fewer "
            f"if the arm ends there, or --failed; got {len(told.scores)}"
        )
    elif unit == COST and told.cost is None:
        problem = f"the budget is in cost: give --cost, that of job {job.id}"
    elif unit != COST and told.cost is not None:
        problem = f"--cost is for a budget in cost, and this is in {in_words(unit)}"
    if problem:
        raise InvalidParameterError(problem)
