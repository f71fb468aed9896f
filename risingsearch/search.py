"""The generic search: anything trainable, on any executor, under one budget."""

from __future__ import annotations

import concurrent.futures
import contextlib
import math
import pickle
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from risingsearch.arms import COLUMNS, Arm, Budget, Job, Report
from risingsearch.checks import checked_int
from risingsearch.errors import (
    ExecutorFailedError,
    InvalidParameterError,
    MissingDependencyError,
    SearchFailedError,
    unknown_name,
)
from risingsearch.policies import Policy
from risingsearch.progress import Progress
from risingsearch.proposers import GaussianProcessProposer, Proposer
from risingsearch.scheduler import Scheduler
from risingsearch.spaces import encode
from risingsearch.trainable import (
    Outcome,
    Task,
    Trainable,
    checked_trainable,
    restore,
    run_task,
    without_frames,
)


class History(list[dict[str, Any]]):
    """One row per epoch, in the order told; a string selects a column.

    Examples
    --------
    >>> history = History([{"arm": 0, "score": 0.5}, {"arm": 1, "score": 0.7}])
    >>> history["score"]
    [0.5, 0.7]
    >>> history[1]["arm"]
    1
    """

    def __getitem__(self, key: Any) -> Any:
        """Return the row of a number, the rows of a slice or the column of a name."""
        if isinstance(key, str):
            known = {name for row in self for name in row}.union(COLUMNS)
            if key not in known:
                raise unknown_name("column", key, known)
            return [row.get(key, math.nan) for row in self]
        rows = super().__getitem__(key)
        return History(rows) if isinstance(key, slice) else rows

    def to_frame(self) -> Any:
        """Return the history as a pandas DataFrame."""
        return _frame(list(self))


@dataclass(frozen=True)
class SearchResult:
    """What a search has found.

    Parameters
    ----------
    best_params : dict
        Parameters of the arm with the best score.
    best_score : float
        That score, in the user's direction.
    best_epoch : int
        The arm's epoch that reached it, from 1.
    best_arm : int
        Its number: the position among the candidates.
    history : History
        One row per charged epoch, in the order in which the policy was told: ``arm``,
        ``epoch``, ``score``, ``seconds``, ``round``, ``job``, ``reason``, the parts of
        the arm's index when it was chosen, ``failure`` if there was one, and what else
        ``train`` returned. A metric named as a part of the index takes its place.
    candidates : list of dict
        The parameters of every arm.
    arms : list of Arm
        Where every arm stands, and why.
    n_epochs : int
        Epochs charged.
    n_calls : int
        Calls of ``train`` made; fewer where a failure has cost the rest of its job.
    stop_reason : str
        Why the search ended.
    direction : {"maximize", "minimize"}
        Whether higher or lower scores are better.
    failures : list of Report
        The jobs that failed, with the exceptions.
    """

    best_params: dict[str, Any]
    best_score: float
    best_epoch: int
    best_arm: int | None
    history: History = field(repr=False)
    candidates: list[dict[str, Any]] = field(repr=False)
    arms: list[Arm] = field(repr=False)
    n_epochs: int
    n_calls: int
    stop_reason: str
    direction: str
    failures: list[Report] = field(repr=False)
    _trainable: Trainable = field(repr=False)
    _best_checkpoint: bytes | None = field(repr=False)

    @property
    def curves(self) -> dict[int, list[float]]:
        """The scores of every opened arm, epoch by epoch.

        An epoch lost to a failure is NaN until a retry replaces it.
        """
        curves: dict[int, list[float]] = {}
        for row in self.history:
            curves.setdefault(row["arm"], [])[row["epoch"] - 1 :] = [row["score"]]
        return curves

    def best_state(self) -> Any:
        """Return the trained state of the best arm at its best epoch, ready to use."""
        if self._best_checkpoint is None:
            msg = "no epoch has had a finite score, so there is no best state"
            raise SearchFailedError(msg)
        return restore(self._trainable, self._best_checkpoint)

    def to_frame(self) -> Any:
        """Return the history as a pandas DataFrame, one row per epoch."""
        return self.history.to_frame()

    def plot_allocation(self, ax: Any = None, **options: Any) -> Any:
        """Draw which arm trained when; see ``risingsearch.plotting``."""
        from risingsearch.plotting import plot_allocation

        return plot_allocation(self.history, ax=ax, direction=self.direction, **options)

    def plot_curves(self, ax: Any = None, **options: Any) -> Any:
        """Draw the learning curves of all arms; see ``risingsearch.plotting``."""
        from risingsearch.plotting import plot_curves

        return plot_curves(self.history, ax=ax, direction=self.direction, **options)


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
        Where jobs run: processes, threads, ``dask``'s ``client.get_executor()``. By
        default in this process. It is not shut down.
    n_jobs : int, optional
        Jobs in flight at most; by default as many as the executor has workers. Needed
        for executors that do not say.
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

    Raises
    ------
    InvalidParameterError, UnknownNameError, NotTrainableError
        If an argument is outside what is allowed.

    Examples
    --------
    >>> from risingsearch.trainable import Functions
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
    ) -> None:
        self.trainable = checked_trainable(trainable)
        self.candidates = _checked_candidates(candidates)
        if n_jobs is None:
            n_jobs = 1 if executor is None else getattr(executor, "_max_workers", None)
            if n_jobs is None:
                msg = f"{executor!r} does not say how many workers it has: give n_jobs"
                raise InvalidParameterError(msg)
        elif executor is None and n_jobs != 1:
            msg = f"n_jobs={n_jobs!r} needs an executor to run the jobs on"
            raise InvalidParameterError(msg)
        if isinstance(error_score, str) and error_score != "raise":
            msg = f"error_score must be a number, None or 'raise'; got {error_score!r}"
            raise InvalidParameterError(msg)
        seeds = np.random.SeedSequence(
            None if seed is None else checked_int("seed", seed, 0)
        )
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
        self._executor = executor or _Inline()
        self._progress = progress
        self._futures: dict[concurrent.futures.Future[Outcome], Job] = {}
        self._states: dict[int, Any] = {}  # by arm, to resume from
        self._returned: set[int] = set()  # arms whose result may wait to be taken in
        # By arm and epoch: the reward, the state then.
        self._snapshots: dict[tuple[int | None, int], tuple[float, bytes]] = {}
        self._reports: dict[int, Report] = {}  # by job
        self._n_calls = 0
        self._stopping = self._interrupted = False

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
        ExecutorFailedError
            If the executor died; its ``result`` holds what was found before.
        KeyboardInterrupt
            On Ctrl-C; ``result`` returns what was found, and ``run`` goes on.
        """
        self._stopping = self._interrupted = False
        with (
            _interrupts(self._interrupt if self._inline else None),
            Progress(self.scheduler, enabled=self._progress) as progress,
        ):
            try:
                while not (self._stopping and not self._futures):
                    job = None if self._stopping else self.scheduler.ask()
                    progress.show()
                    if job is not None:
                        self._submit(job)
                    elif self._futures:
                        self._settle(*self._next_done())
                    else:
                        break
            except BaseException as error:
                if not isinstance(error, Exception):
                    self._abandon()
                raise
        self.scheduler.flush()
        self._forget()
        if self._interrupted:
            raise KeyboardInterrupt
        if self.scheduler.best_arm is None:
            raise self._all_failed()
        return self.result()

    def stop(self) -> None:
        """End the search once the jobs in flight are back; for callbacks."""
        self._stopping = True

    def _interrupt(self) -> None:
        self._stopping = self._interrupted = True

    def extend(self, budget: int | Budget) -> None:
        """Add to the budget; ``run`` then goes on, and nothing is retrained."""
        self.scheduler.extend(budget)

    def seed_of(self, arm: int) -> int:
        """Return the seed that ``start`` gives an arm."""
        arms = self._arm_seeds
        own = np.random.SeedSequence(arms.entropy, spawn_key=(*arms.spawn_key, arm))
        return int(own.generate_state(1)[0])

    def result(self) -> SearchResult:
        """Return what has been found so far."""
        scheduler = self.scheduler
        arm = scheduler.best_arm
        _, checkpoint = self._snapshots.get((arm, scheduler.best_epoch), (0.0, None))
        return SearchResult(
            best_params={} if arm is None else dict(self.candidates[arm]),
            best_score=scheduler.best_score,
            best_epoch=scheduler.best_epoch,
            best_arm=arm,
            history=self._history(),
            candidates=self.candidates,
            arms=scheduler.explain(),
            n_epochs=scheduler.n_epochs,
            n_calls=self._n_calls,
            stop_reason=scheduler.stop_reason or "stopped before its end",
            direction=scheduler.direction,
            failures=[r for r in self._reports.values() if r.failure is not None],
            _trainable=self.trainable,
            _best_checkpoint=checkpoint,
        )

    # ------------------------------------------------------------------------- jobs

    def _submit(self, job: Job) -> None:
        retries = self.scheduler.max_failures > 0
        task = Task(
            job=job,
            params=dict(self.candidates[job.arm]),
            seed=self.seed_of(job.arm),
            state=self._states.get(job.arm),
            travels=not self._inline or retries,
            protected=retries,
            sign=self._sign,
            best_reward=self._best_reward(),
        )
        if self._inline:
            task = task._replace(interrupted=lambda: self._interrupted)
        try:
            future = self._executor.submit(run_task, self.trainable, task)
        except Exception as error:
            raise self._executor_failed(error) from error
        self._futures[future] = job

    def _next_done(self) -> tuple[Job, Outcome]:
        """Return the first finished job; of several, the one asked for first."""
        done, _ = concurrent.futures.wait(
            self._futures, return_when=concurrent.futures.FIRST_COMPLETED
        )
        future = min(done, key=lambda future: self._futures[future].id)
        try:
            outcome = future.result()
        except Exception as error:
            raise self._executor_failed(error) from error
        return self._futures.pop(future), outcome

    def _settle(self, job: Job, outcome: Outcome) -> None:
        report = outcome.report
        self._reports[job.id] = report
        self._n_calls += outcome.n_calls
        self._states[job.arm] = outcome.resume_from
        self._returned.add(job.arm)
        if outcome.snapshot is not None:
            epoch, checkpoint = outcome.snapshot
            reward = self._sign * report.scores[epoch - job.from_epoch - 1]
            self._snapshots[job.arm, epoch] = (reward, checkpoint)
        if report.failure is None:
            self.scheduler.tell(
                job, report.scores, outcome.elapsed, ended=outcome.ended
            )
        else:
            self.scheduler.fail(job, report.failure, report.scores, outcome.elapsed)
        self._forget()
        for callback in self.callbacks:
            callback(self, report)
        if self._raise_failures:
            self._raise_failure(report)
        elif report.failure is not None:
            without_frames(report.failure)

    def _forget(self) -> None:
        """Drop the states of arms that are over, and the snapshots that are beaten."""
        for arm in list(self._returned):
            status = self.scheduler.status(arm)
            if status != "running":  # else its result waits to be taken in
                self._returned.remove(arm)
                # Without max_epochs, a larger budget may bring a finished arm back.
                capped = self.scheduler.max_epochs is not None
                if status == "failed" or (status == "finished" and capped):
                    self._states.pop(arm, None)
        best = self._best_reward()
        self._snapshots = {
            key: kept for key, kept in self._snapshots.items() if kept[0] >= best
        }

    def _best_reward(self) -> float:
        """Return the best score so far, turned so that higher is better."""
        best = self.scheduler.best_score
        return -math.inf if math.isnan(best) else self._sign * best

    def _abandon(self) -> None:
        """Charge what is in flight and will not be waited for."""
        for future in self._futures:
            future.cancel()
        self._futures.clear()
        for job in self.scheduler.in_flight:
            self._reports[job.id] = Report(job)
            self._returned.add(job.arm)
            self.scheduler.fail(job, "interrupted")
        self.scheduler.flush()
        self._forget()

    # ----------------------------------------------------------------------- results

    def _history(self) -> History:
        rows = History()
        n_rows: Counter[int] = Counter()
        for row in self.scheduler.history:
            report = self._reports[row["job"]]
            k = n_rows[row["job"]]
            n_rows[row["job"]] += 1
            trained = k < len(report.scores)
            facts = {name: fact for name, fact in row.items() if name != "cost"}
            arm, epoch, score = (facts.pop(name) for name in ("arm", "epoch", "score"))
            seconds = report.seconds[k] if trained else math.nan
            metrics = report.metrics[k] if trained else {}
            rows.append(
                {"arm": arm, "epoch": epoch, "score": score, "seconds": seconds}
                | facts
                | metrics
            )
        return rows

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


@contextlib.contextmanager
def _interrupts(call: Callable[[], None] | None) -> Iterator[None]:
    """Let the first Ctrl-C call instead of raise, where nobody else handles it."""
    main = threading.current_thread() is threading.main_thread()
    usual = signal.default_int_handler
    if call is None or not main or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return

    def first(signum: int, frame: object) -> None:
        signal.signal(signal.SIGINT, usual)
        call()

    signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


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


class _Inline(concurrent.futures.Executor):
    """Runs what is submitted at once, in this thread."""

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        msg = "pandas is not installed; run: pip install pandas"
        raise MissingDependencyError(msg) from error
    return pd.DataFrame(rows)
