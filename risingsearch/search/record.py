"""The generic search: anything trainable, on any executor, under one budget."""

from __future__ import annotations

import concurrent.futures
import math
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from risingsearch.arms import Budget, Job, Report
from risingsearch.checks import checked_int
from risingsearch.errors import (
    CheckpointError,
    ExecutorFailedError,
    InvalidParameterError,
    SearchFailedError,
    SetupError,
    StateError,
)
from risingsearch.policies import Policy
from risingsearch.scheduling.candidates import encode
from risingsearch.scheduling.proposers import GaussianProcessProposer, Proposer
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.arguments import (
    arguments_of,
    first_difference,
    pickled_candidates,
    settings_of,
)
from risingsearch.search.interrupts import finished_first, first_interrupt
from risingsearch.search.progress import Progress
from risingsearch.search.results import SearchResult, full_history
from risingsearch.search.retention import KeptStates
from risingsearch.search.trainable import (
    Functions,
    Outcome,
    Task,
    Trainable,
    checked_trainable,
    restore,
    without_frames,
)
from risingsearch.search.workers import Workers, workers_of
from risingsearch.storage.checkpoints import Key, MemoryStore
from risingsearch.storage.run_directory import (
    NoDirectory,
    RunDirectory,
    as_event,
    holds_search,
    no_collection,
    outcome_of,
    saved_entropy,
    saved_events,
    saved_header,
    saved_state,
)

LOOK_EVERY = 1.0
"""Seconds after which a search that waits for jobs sees to signals at the latest."""
FEWEST_EVENTS = 500
EVENTS_SHARE = 25
"""The scheduler's state is saved after so many events, or one in so many of all."""


class RisingSearch:
    """Give every epoch of a budget to the candidate that uses it best.

    Parameters
    ----------
    trainable : Trainable
        An object with ``start(params, seed) -> state`` and ``train(state) -> score``,
        optionally ``save`` and ``load``; plain functions go into ``Functions``.
    candidates : iterable of dict
        The parameters of every arm, at least one. More than the budget can try is fine:
        the policy opens as many as are worth it, in random order.
    policy : str, callable or policy, default "auto"
        Who trains next; see ``Scheduler``.
    proposer : Proposer, "auto" or None, default "auto"
        Which candidate is opened next, where the policy lets it be proposed. "auto"
        models how candidates end over their parameters
        (``GaussianProcessProposer``), with ``policy="auto"`` and where
        ``spaces.encode`` can tell them apart; None keeps the order, and so does
        ``shuffle=False``.
    budget : int or Budget
        Epochs over all arms, or ``Budget(seconds=...)`` of training time.
    max_epochs : int, optional
        Epochs one arm can use at most; by default the whole budget.
    executor : concurrent.futures.Executor, optional
        Where jobs run: processes, threads, or a Dask cluster, by its client or
        ``client.get_executor()``. By default in this process. It is not shut down.
    n_jobs : int, optional
        Jobs in flight at most; by default as many as the executor has workers, which on
        Dask may change while the search runs. Needed for executors that do not say.
    order : {"completion", "ask"}, default "completion"
        Whether workers never wait, or the run does not depend on what finishes first;
        see ``Scheduler``.
    callbacks : sequence of callable
        Each is called as ``callback(search, report)`` after every job.
    policy_params, objective, slice, direction, max_failures, score_range
        See ``Scheduler``.
    error_score : float or "raise", optional
        The score that a failed epoch counts as, by default the worst so far; "raise"
        stops at the first failure with its exception.
    seed : int, optional
        Seed of the arms, of their opening order and of the policy's draws.
    shuffle : bool, default True
        Open the candidates in random order; False keeps theirs.
    progress : bool, default False
        Show one live line while standard error is a terminal.
    run_dir : path, optional
        Directory that keeps the search: whenever the process ends, a search made with
        the same arguments goes on from there, or ``RisingSearch.resume``. Then every
        state is saved when its job ends, by the trainable's ``save`` or by pickle, and
        what ``train`` returns besides the score has to be JSON values. Open only
        directories of people you trust: unpickling can run any code.
    max_checkpoint_bytes : int, optional
        Disk space for the checkpoints in ``run_dir``; the search stops, to be resumed,
        where the arms that can still train need more.
    identity : dict, optional
        What else has to be the same when ``run_dir`` is opened again, such as a digest
        of the data: JSON values.

    Raises
    ------
    InvalidParameterError, UnknownNameError, NotTrainableError
        If an argument is outside what is allowed.
    StateError
        If ``run_dir`` holds a search with other arguments; the message names one.
    RunDirError
        If ``run_dir`` cannot be used, is damaged, or another process searches there.

    Examples
    --------
    >>> from risingsearch.search.trainable import Functions
    >>> def start(params, seed):
    ...     return {"epochs": 0, **params}
    >>> def train(state):
    ...     state["epochs"] += 1
    ...     return state["top"] * (1 - 1 / (state["epochs"] + 1))
    >>> search = RisingSearch(
    ...     Functions(start, train),
    ...     [{"top": 0.6}, {"top": 0.9}, {"top": 0.8}],
    ...     budget=12,
    ...     max_epochs=6,
    ...     seed=0,
    ... )
    >>> result = search.run()
    >>> result.best_params, result.n_epochs
    ({'top': 0.9}, 12)
    >>> result.best_state()["epochs"]
    6
    """

    def __init__(
        self,
        trainable: Trainable,
        candidates: Iterable[Mapping[str, Any]],
        *,
        policy: str | Callable[..., Policy] | Policy = "auto",
        proposer: Proposer | str | None = "auto",
        budget: int | Budget,
        max_epochs: int | None = None,
        executor: concurrent.futures.Executor | None = None,
        n_jobs: int | None = None,
        order: str = "completion",
        callbacks: Sequence[Callable[[RisingSearch, Report], object]] = (),
        policy_params: dict[str, Any] | None = None,
        objective: str = "best",
        slice: int | None = None,
        direction: str = "maximize",
        error_score: float | str | None = None,
        max_failures: int = 0,
        score_range: tuple[float, float] | None = None,
        seed: int | None = None,
        shuffle: bool = True,
        progress: bool = False,
        run_dir: str | Path | None = None,
        max_checkpoint_bytes: int | None = None,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        self.trainable = checked_trainable(trainable)
        self.candidates = _checked_candidates(candidates)
        self._workers = workers_of(executor)
        n_jobs = _checked_n_jobs(n_jobs, executor, self._workers, order)
        if isinstance(error_score, str) and error_score != "raise":
            msg = f"error_score must be a number, None or 'raise'; got {error_score!r}"
            raise InvalidParameterError(msg)
        entropy = None if seed is None else checked_int("seed", seed, 0)
        if entropy is None and run_dir is not None:
            entropy = saved_entropy(Path(run_dir))
        seeds = np.random.SeedSequence(entropy)
        order_seed, policy_seed, self._arm_seeds = seeds.spawn(3)
        n_arms = len(self.candidates)
        order_rng = np.random.default_rng(order_seed)
        self.scheduler = Scheduler(
            policy,
            n_arms,
            budget,
            max_epochs,
            policy_params,
            objective,
            slice,
            direction,
            seed=int(policy_seed.generate_state(1)[0]),
            order=order,
            n_jobs=n_jobs,
            error_score=None if isinstance(error_score, str) else error_score,
            max_failures=max_failures,
            score_range=score_range,
            opening_order=order_rng.permutation(n_arms) if shuffle else None,
            proposer=_checked_proposer(proposer, self.candidates, policy, shuffle),
        )
        if self.scheduler.unit == "cost":
            msg = f"a search measures seconds, no other cost; got {budget}"
            raise InvalidParameterError(msg)
        self.callbacks = tuple(callbacks)
        self._sign = 1.0 if direction == "maximize" else -1.0
        self._raise_failures = error_score == "raise"
        self._inline = executor is None
        self._progress = progress
        self._futures: dict[concurrent.futures.Future[Outcome], Job] = {}
        self._unfinished: list[Job] = []  # of an earlier process, or broken off
        self._returned: set[int] = set()  # arms whose result may wait to be taken in
        self._reports: dict[int, Report] = {}  # by job
        self._n_calls = 0
        self._stopping = self._interrupted = False
        self._states = KeptStates(
            MemoryStore(), partial(restore, self.trainable), self._sign
        )
        self._run_dir: RunDirectory | NoDirectory = NoDirectory()
        self._is_kept = run_dir is not None
        if run_dir is not None:
            arguments = {
                "policy": policy,
                "proposer": proposer,
                "budget": budget,
                "max_epochs": max_epochs,
                "n_jobs": n_jobs,
                "order": order,
                "policy_params": policy_params,
                "objective": objective,
                "slice": slice,
                "direction": direction,
                "error_score": error_score,
                "max_failures": max_failures,
                "score_range": score_range,
                "seed": seed,
                "shuffle": shuffle,
                "identity": dict(identity or {}),
            }
            settings = settings_of(self.candidates, arguments)
            more = {
                "entropy": seeds.entropy,
                "candidates": pickled_candidates(settings, self.candidates),
            }
            self._open(
                RunDirectory(Path(run_dir), max_checkpoint_bytes), settings, more
            )

    @classmethod
    def resume(
        cls,
        run_dir: str | Path,
        trainable: Trainable,
        *,
        executor: concurrent.futures.Executor | None = None,
        policy: Callable[..., Policy] | Policy | None = None,
        proposer: Proposer | None = None,
        callbacks: Sequence[Callable[[RisingSearch, Report], object]] = (),
        progress: bool = False,
        max_checkpoint_bytes: int | None = None,
    ) -> RisingSearch:
        """Return the search of a directory, where it was when its process ended.

        ``run`` then goes on: jobs that never came back are trained again, nothing else
        is.

        Parameters
        ----------
        run_dir : path
            The directory. Open only those of people you trust: states, and candidates
            that JSON cannot hold, are unpickled.
        trainable : Trainable
            The one that the search was made with.
        executor : concurrent.futures.Executor, optional
            Where jobs run; by default in this process, one after the other.
        policy, proposer : optional
            Needed where they were objects; a name is known.
        callbacks, progress, max_checkpoint_bytes
            As for a new search.

        Returns
        -------
        RisingSearch

        Raises
        ------
        RunDirError
            If there is no search, it is damaged, or another process has it.
        """
        header = saved_header(Path(run_dir))
        given = {"policy": policy, "proposer": proposer}
        arguments = arguments_of(header, given)
        return cls(
            trainable,
            **arguments,
            executor=_workers_again(executor, arguments["n_jobs"]),
            callbacks=callbacks,
            progress=progress,
            run_dir=run_dir,
            max_checkpoint_bytes=max_checkpoint_bytes,
        )

    @classmethod
    def saved_result(cls, run_dir: str | Path) -> SearchResult:
        """Return what the search of a directory has found so far, and touch nothing.

        Also while another process searches there.

        Parameters
        ----------
        run_dir : path
            The directory.

        Returns
        -------
        SearchResult
            Without the best state, which takes ``resume``.

        Raises
        ------
        JournalError
            If there is no search, or it is damaged.
        InvalidParameterError
            If its policy or proposer is an object: only ``resume`` can be given it.
        """
        path = Path(run_dir)
        with no_collection():
            known = saved_state(path)  # first: the journal is never behind it
            header, events = saved_events(path)
            arguments = arguments_of(header, {})
            arguments["seed"] = header["entropy"]
            executor = _workers_again(None, arguments["n_jobs"])
            search = cls(Functions(_nothing, _nothing), **arguments, executor=executor)
            search._go_on(events, *known)
        msg = f"the best state is in {path}: RisingSearch.resume gives it"
        return replace(search.result(), _best_checkpoint=CheckpointError(msg))

    def run(self) -> SearchResult:
        """Train until the scheduler is done.

        After an exception of a callback, ``run`` goes on where it broke off; jobs still
        in flight are taken in then. Without an executor, Ctrl-C stops at the end of the
        epoch in training, and nothing is lost; a second one does not wait. With an
        executor, or at the second, the epochs in flight are charged and their arms
        given up.

        Returns
        -------
        SearchResult

        Raises
        ------
        SearchFailedError
            If no arm has had a finite score; the first failure is the cause.
        SetupError
            If the trainable says that no arm can be trained as things are.
        ExecutorFailedError
            If the executor died; its ``result`` holds what was found before.
        KeyboardInterrupt
            On Ctrl-C; ``result`` returns what was found, and ``run`` goes on.
        """
        self._stopping = self._interrupted = False
        with self._run_dir.held():
            self._train_all()
            self._save_state(after=1)
        if self._interrupted:
            raise KeyboardInterrupt
        if self.scheduler.best_arm is None:
            raise self._all_failed()
        return self.result()

    def _train_all(self) -> None:
        with (
            first_interrupt(self._interrupt if self._inline else None),
            Progress(self.scheduler, enabled=self._progress) as progress,
        ):
            try:
                while not (self._stopping and not self._futures):
                    job = None if self._stopping else self._next_job()
                    progress.show()
                    if job is not None:
                        self._submit(job)
                    elif self._futures:
                        if (done := self._next_done()) is not None:
                            self._settle(*done)
                    else:
                        break
            except BaseException as error:
                if isinstance(error, SetupError) or not isinstance(error, Exception):
                    self._abandon()
                raise
            finally:
                self._workers.rest()
        if not (self._is_kept and self._interrupted) and self.scheduler.flush():
            self._note("flushed")
        self._forget()

    def _next_job(self) -> Job | None:
        if len(self._futures) >= self._room():
            return None
        return self._unfinished.pop(0) if self._unfinished else self.scheduler.ask()

    def _room(self) -> float:
        """Return how many jobs may be in flight, if the scheduler does not know."""
        if self.scheduler.n_jobs is not None:
            return math.inf
        return max(1, self._workers.n_workers or 0)

    def stop(self) -> None:
        """End the search once the jobs in flight are back; for callbacks."""
        self._stopping = True

    def _interrupt(self) -> None:
        self._stopping = self._interrupted = True

    def extend(self, budget: int | Budget) -> None:
        """Add to the budget; ``run`` then goes on, and nothing is retrained."""
        with self._run_dir.held(), finished_first():
            before = self.scheduler.state_dict() if self._is_kept else None
            self.scheduler.extend(budget)
            added = asdict(budget) if isinstance(budget, Budget) else budget
            try:
                self._note("extended", budget=added)
            except BaseException:
                if before is not None:
                    self.scheduler.load_state_dict(before)
                raise

    def seed_of(self, arm: int) -> int:
        """Return the seed that ``start`` gives an arm."""
        arms = self._arm_seeds
        own = np.random.SeedSequence(arms.entropy, spawn_key=(*arms.spawn_key, arm))
        return int(own.generate_state(1)[0])

    def result(self) -> SearchResult:
        """Return what has been found so far."""
        scheduler = self.scheduler
        arm = scheduler.best_arm
        return SearchResult(
            best_params={} if arm is None else dict(self.candidates[arm]),
            best_score=scheduler.best_score,
            best_epoch=scheduler.best_epoch,
            best_arm=arm,
            history=full_history(scheduler.history, self._reports),
            candidates=self.candidates,
            arms=scheduler.explain(),
            n_epochs=scheduler.n_epochs,
            n_calls=self._n_calls,
            stop_reason=scheduler.stop_reason or "stopped before its end",
            direction=scheduler.direction,
            failures=[r for r in self._reports.values() if r.failure is not None],
            _trainable=self.trainable,
            _best_checkpoint=None
            if arm is None
            else self._states.best(Key(arm, scheduler.best_epoch)),
        )

    # ------------------------------------------------------------------------- jobs

    def _submit(self, job: Job) -> None:
        retries = self.scheduler.max_failures > 0
        task = Task(
            job=job,
            params=dict(self.candidates[job.arm]),
            seed=self.seed_of(job.arm),
            state=None,
            travels=not self._inline or retries,
            protected=retries,
            sign=self._sign,
            best_reward=self._best_reward(),
            kept=self._is_kept,
        )
        try:
            task = self._states.resumed(task)
        except BaseException:
            self._unfinished.insert(0, job)
            raise
        if self._inline:
            task = task._replace(interrupted=lambda: self._interrupted)
        try:
            future = self._workers.train(self.trainable, task)
        except SetupError:
            raise
        except Exception as error:
            raise self._executor_failed(error) from error
        self._futures[future] = job

    def _next_done(self) -> tuple[Job, Outcome] | None:
        """Return the first finished job; of several, the one asked for first.

        None comes back where there is room for another job before one is finished.
        """
        room = self._room()
        done: set[concurrent.futures.Future[Outcome]] = set()
        while not done:  # a signal that another thread gets wakes nobody who waits
            if self._room() > room:
                return None
            done, _ = concurrent.futures.wait(
                self._futures, LOOK_EVERY, concurrent.futures.FIRST_COMPLETED
            )
        future = min(done, key=lambda future: self._futures[future].id)
        try:
            outcome = future.result()
        except SetupError:
            raise
        except Exception as error:
            raise self._executor_failed(error) from error
        return self._futures.pop(future), outcome

    def _settle(self, job: Job, outcome: Outcome) -> None:
        report = outcome.report
        with finished_first():
            self._save_and_take_in(job, outcome)
        self._forget()
        self._save_state(
            after=max(FEWEST_EVENTS, self.scheduler.n_asked // EVENTS_SHARE)
        )
        for callback in self.callbacks:
            callback(self, report)
        if self._raise_failures:
            self._raise_failure(report)
        elif report.failure is not None:
            without_frames(report.failure)

    def _save_and_take_in(self, job: Job, outcome: Outcome) -> None:
        before = self._run_dir.n_events
        try:
            self._states.save(job, outcome)
            if self._is_kept:
                self._run_dir.append(as_event(job, outcome, self.scheduler.n_asked))
        except BaseException:
            if self._run_dir.n_events == before:
                self._unfinished.append(job)
                self._states.let_go(job.arm)
                raise
            self._take_in(job, outcome)  # its line is on disk, so it counts
            raise
        if self._inline or not self._is_kept:
            self._states.hold(job.arm, outcome.resume_from)
        self._take_in(job, outcome)

    def _take_in(self, job: Job, outcome: Outcome, *, known: bool = False) -> None:
        """Enter what a job brought back; the scheduler may know it already."""
        report = outcome.report
        self._reports[job.id] = report
        self._n_calls += outcome.n_calls
        self._returned.add(job.arm)
        self._states.note(job, outcome)
        if known:
            return
        if report.failure is None:
            self.scheduler.tell(
                job, report.scores, outcome.elapsed, ended=outcome.ended
            )
        else:
            self.scheduler.fail(job, report.failure, report.scores, outcome.elapsed)

    def _forget(self) -> None:
        """Drop the states of arms that are over, and those that are beaten."""
        for arm in list(self._returned):
            status = self.scheduler.status(arm)
            if status != "running":  # else its result waits to be taken in
                self._returned.remove(arm)
                # Without max_epochs, a larger budget may bring a finished arm back.
                capped = self.scheduler.max_epochs is not None
                if status == "failed" or (status == "finished" and capped):
                    self._states.retire(arm)
        self._states.forget(self.scheduler.best_score)

    def _best_reward(self) -> float:
        """Return the best score so far, turned so that higher is better."""
        best = self.scheduler.best_score
        return -math.inf if math.isnan(best) else self._sign * best

    def _abandon(self) -> None:
        """Wait for what is in flight no longer.

        With a run directory it is trained again, from the checkpoints; otherwise it is
        charged.
        """
        for future in self._futures:
            future.cancel()
        self._futures.clear()
        if self._is_kept:
            self._unfinished = list(self.scheduler.in_flight)
            for job in self._unfinished:
                self._states.let_go(job.arm)
            return
        for job in self.scheduler.in_flight:
            self._reports[job.id] = Report(job)
            self._returned.add(job.arm)
            self.scheduler.fail(job, "interrupted")
        self.scheduler.flush()
        self._forget()

    # ---------------------------------------------------------------- the directory

    def _open(
        self, run_dir: RunDirectory, settings: dict[str, Any], more: dict[str, Any]
    ) -> None:
        """Go on from a directory, made now if it holds no search yet."""
        self._run_dir = run_dir
        with run_dir.held(), no_collection():
            if holds_search(run_dir.path):
                _check_same(run_dir.path, settings)
            events = run_dir.open({"settings": settings, **more})
            self._states.store = run_dir.checkpoints
            self._go_on(events, *run_dir.load_state())
            self._forget()

    def _note(self, what: str, **facts: Any) -> None:
        asked = self.scheduler.n_asked
        self._run_dir.append({"event": what, "asked": asked, **facts})

    def _save_state(self, *, after: int) -> None:
        if self._is_kept and self._run_dir.events_since_state >= after:
            self._run_dir.save_state(self.scheduler.state_dict())

    def _go_on(
        self,
        events: Sequence[dict[str, Any]],
        n_known: int,
        state: dict[str, Any] | None,
    ) -> None:
        """Take over events as if they had just happened; a state may know some."""
        if state is not None:
            self.scheduler.load_state_dict(state)
        for i, event in enumerate(events):
            known = i < n_known
            if not known:
                self._ask_again(event["asked"])
            if event["event"] == "told":
                self._take_back(event, known=known)
            elif event["event"] == "extended" and not known:
                added = event["budget"]
                self.scheduler.extend(
                    Budget(**added) if isinstance(added, dict) else added
                )
            elif not known:
                self.scheduler.flush()
        self._unfinished = list(self.scheduler.in_flight)
        self._states.find_again(
            {
                report.job.arm: report.job.from_epoch + len(report.scores)
                for report in self._reports.values()
            }
        )

    def _ask_again(self, n_asked: int) -> None:
        while self.scheduler.n_asked < n_asked:
            if self.scheduler.ask() is None:
                raise self._undecided("no job can start")

    def _take_back(self, event: dict[str, Any], *, known: bool) -> None:
        outcome = outcome_of(event)
        job = outcome.report.job
        if not known and job not in self.scheduler.in_flight:
            raise self._undecided(f"{job} was never asked for")
        self._take_in(job, outcome, known=known)

    def _undecided(self, what: str) -> StateError:
        return StateError(
            f"the search cannot be resumed: decided again from its journal, {what}; "
            "use the release, policy and proposer that it was made with"
        )

    def _executor_failed(self, error: Exception) -> ExecutorFailedError:
        self._abandon()
        advice = ""
        if isinstance(error, (pickle.PicklingError, TypeError, AttributeError)):
            advice = "the trainable and what train returns must be picklable; "
        msg = (
            f"the executor failed ({type(error).__name__}: {error}); {advice}"
            "this exception's result holds what was found before"
        )
        return ExecutorFailedError(msg, self.result())

    def _raise_failure(self, report: Report) -> None:
        if report.failure is not None:
            raise report.failure
        for k, score in enumerate(report.scores):
            if not math.isfinite(score):
                epoch = report.job.from_epoch + k + 1
                msg = (
                    f"arm {report.job.arm} with {self.candidates[report.job.arm]} "
                    f"scored {score} at epoch {epoch}, and error_score is 'raise'"
                )
                raise SearchFailedError(msg)

    def _all_failed(self) -> SearchFailedError:
        reports = [report for _, report in sorted(self._reports.items())]
        failures = [r.failure for r in reports if r.failure is not None]
        opened = len({report.job.arm for report in reports})
        msg = f"no arm of the {opened} opened has had a finite score"
        if not failures:
            return SearchFailedError(f"{msg}, though none has raised an error")
        error = SearchFailedError(f"{msg}; the first failure: {failures[0]!r}")
        error.__cause__ = failures[0]
        return error


def _check_same(path: Path, settings: dict[str, Any]) -> None:
    differs = first_difference(saved_header(path)["settings"], settings)
    if differs is not None:
        name, was, given = differs
        msg = (
            f"{path} holds a search with {name}={was}, and it was opened with "
            f"{name}={given}: give the same arguments to go on, or another run_dir"
        )
        raise StateError(msg)


def _checked_candidates(
    candidates: Iterable[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    checked = []
    for params in candidates:
        if not isinstance(params, Mapping):
            msg = f"candidates are the parameters of each arm, as dicts; got {params!r}"
            raise InvalidParameterError(msg)
        checked.append(dict(params))
    if not checked:
        msg = "there are no candidates: give the parameters of at least one arm"
        raise InvalidParameterError(msg)
    return checked


def _checked_n_jobs(
    given: int | None, executor: Any, workers: Workers, order: str
) -> int | None:
    """Return how many jobs may be in flight; the scheduler looks at the number.

    None stands for as many as there are workers at any time.
    """
    if executor is None and given not in (None, 1):
        msg = f"n_jobs={given!r} needs an executor to run the jobs on"
        raise InvalidParameterError(msg)
    if given is not None:
        return given
    n_workers = workers.n_workers
    if n_workers is None:
        msg = f"{executor!r} does not say how many workers it has: give n_jobs"
        raise InvalidParameterError(msg)
    if n_workers == 0 and order == "ask":
        msg = f"order='ask' needs a fixed n_jobs, and {executor!r} has no workers yet"
        raise InvalidParameterError(msg)
    return None if workers.is_elastic and order != "ask" else n_workers


def _workers_again(executor: Any, n_jobs: int | None) -> Any:
    """Return what runs the jobs of a search that is gone on with."""
    if executor is None and n_jobs == 1:
        return None
    return workers_of(executor, is_elastic=n_jobs is None)


def _checked_proposer(
    given: Any, candidates: Sequence[Mapping[str, Any]], policy: Any, shuffle: bool
) -> Proposer | None:
    """Return the proposer, for "auto" the one that fits the candidates."""
    if given is None or hasattr(given, "propose"):
        return given  # type: ignore[no-any-return]
    if given != "auto":
        msg = (
            "proposer must be 'auto', None or an object with a method propose; got "
            f"{given!r}"
        )
        raise InvalidParameterError(msg)
    if not isinstance(policy, str) or policy != "auto" or not shuffle:
        return None
    features = encode(candidates)
    return None if features is None else GaussianProcessProposer(features)


def _nothing(*_: Any) -> Any:
    """Train nothing, in a search that is only looked at."""
