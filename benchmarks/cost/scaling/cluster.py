"""A simulated cluster around the real ``Scheduler``: virtual clock, one controller.

Workers train epochs of random length, fail and come back. The controller is one core:
what ``ask``, ``tell`` and ``fail`` take on the real clock passes on the virtual one,
and requests queue behind each other.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch import Scheduler
from risingsearch.arms import Job
from risingsearch.budget import Budget

MAX_EPOCHS = 81
SLOW_SHARE, SLOWNESS = 0.05, 3.0
FAILURE_RATE = 0.001  # per epoch
REPAIR_SECONDS = 10.0
MAX_FAILURES = 3
NOISE = 0.005


def measured(seconds: float) -> float:
    """Charge the controller the time that a request took."""
    return seconds


def free(seconds: float) -> float:
    """Charge the controller nothing."""
    return 0.0


class Curves(NamedTuple):
    """Rising curves ``end - drop (e + 1)^-rate``, whose ends are known."""

    end: NDArray[np.float64]  # (n_arms,)
    drop: NDArray[np.float64]  # (n_arms,)
    rate: NDArray[np.float64]  # (n_arms,)
    noise: NDArray[np.float64]  # looked up by arm and epoch, so the same in every run

    @classmethod
    def draw(cls, n_arms: int, seed: int) -> Curves:
        """Return the curves of so many arms."""
        rng = np.random.default_rng(seed)
        end = rng.beta(6.0, 3.0, n_arms)
        drop = end * rng.uniform(0.3, 1.0, n_arms)
        rate = rng.uniform(0.3, 1.5, n_arms)
        return cls(end, drop, rate, rng.normal(0.0, NOISE, 99_991))

    def mean(self, arm: int, epoch: int) -> float:
        """Return the score of an epoch, from 1, without the noise."""
        return float(self.end[arm] - self.drop[arm] * (epoch + 1) ** -self.rate[arm])

    def score(self, arm: int, epoch: int) -> float:
        """Return the score of an epoch, from 1."""
        lookup = (arm * MAX_EPOCHS + epoch) % len(self.noise)
        return self.mean(arm, epoch) + float(self.noise[lookup])

    def regret(self, arm: int | None, epoch: int) -> float:
        """Return 0 for the best arm after all its epochs, 1 for the typical one."""
        if arm is None:
            return math.nan
        last = self.end - self.drop * (MAX_EPOCHS + 1) ** -self.rate
        best, typical = float(last.max()), float(np.median(last))
        return (best - self.mean(arm, epoch)) / (best - typical)


class Run(NamedTuple):
    """What a simulated search came to.

    All times are virtual seconds, those of the workers summed over them.
    """

    n_workers: int
    seconds: float  # until the last job came back, or the limit cut it off
    training: float
    waiting: float  # for the controller
    down: float  # after failures
    controller: float  # of ask, tell and fail
    slowest: float  # of one request
    n_jobs: int
    n_failures: int
    n_epochs: int  # charged
    n_opened: int
    spent: float  # in the unit of the budget
    finished: bool  # False: cut off
    regret: float  # of the best arm found, 0 to 1
    busy: float  # share of training until a budget by the clock has one epoch left

    def share(self, part: float) -> float:
        """Return a part of the workers' time, from 0 to 1."""
        return part / (self.n_workers * self.seconds)

    @property
    def without_work(self) -> float:
        """Time of workers that got no job from the policy or the budget."""
        whole = self.n_workers * self.seconds
        return whole - self.training - self.waiting - self.down

    @property
    def utilisation_at_work(self) -> float:
        """Share of training while there are jobs: what the controller leaves of 1."""
        return self.training / (self.training + self.waiting)

    @property
    def decision(self) -> float:
        """Controller seconds per job: its ask, its tell, and asks that got no job."""
        return self.controller / self.n_jobs


class Cluster:
    """Workers that ask one controller for jobs, on a virtual clock.

    Parameters
    ----------
    scheduler : Scheduler
        The controller, whose arms are those of ``curves``.
    curves : Curves
        What the epochs score.
    n_workers : int
        Number of workers, at least 1.
    seed : int
        Seed of speeds, lengths and failures.
    charge : callable, default measured
        What a request passes on the virtual clock, given the CPU seconds it took.
    epoch_seconds : float, default 1.0
        Median length of an epoch of a typical worker.
    failure_rate : float, default 0.001
        Chance of an epoch that its worker fails in it.
    start_seconds : float, default 0.0
        Median time until a job has started and its first epoch begins.
    spread : float, default 0.3
        Spread of the lengths of epochs and starts, and half of it that of the workers'
        speeds, on a logarithmic scale. With 0 all epochs take ``epoch_seconds``.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        curves: Curves,
        n_workers: int,
        seed: int,
        *,
        charge: Callable[[float], float] = measured,
        epoch_seconds: float = 1.0,
        failure_rate: float = FAILURE_RATE,
        start_seconds: float = 0.0,
        spread: float = 0.3,
    ) -> None:
        self.scheduler = scheduler
        self.curves = curves
        self.n_workers = n_workers
        self.failure_rate = failure_rate
        self.start_seconds = start_seconds
        self.spread = spread
        self._charge = charge
        self._rng = np.random.default_rng(seed)
        speed = np.exp(self._rng.normal(0.0, spread / 2, n_workers))
        if spread:
            speed[self._rng.random(n_workers) < SLOW_SHARE] *= SLOWNESS
        self._seconds_of = epoch_seconds * speed
        self._epoch_seconds = epoch_seconds
        by_clock = scheduler.unit == "wall_seconds"
        self._deadline = scheduler.budget if by_clock else math.inf
        self._most_seconds = math.inf
        self._now = 0.0  # of the controller: its last request is answered
        self._controller = self._slowest = 0.0
        self._cpu = 0.0  # whatever is charged
        self._fresh = deque((worker, 0.0) for worker in range(n_workers))
        self._refused: deque[int] = deque()  # they got no job
        self._events: list[tuple[float, int, int, _Trained | None]] = []
        self._jobs: list[tuple[float, float]] = []  # from when to when
        self._repairs: list[tuple[float, float]] = []
        self._waits: list[tuple[float, float]] = []  # for the controller
        self._n_events = 0

    def run(self, most_seconds: float = math.inf) -> Run:
        """Search until the budget or the controller's CPU time is spent."""
        self._most_seconds = most_seconds
        self._assign_jobs()
        while self._events and not self._is_cut_off():
            when, _, worker, trained = heapq.heappop(self._events)
            self._now = max(self._now, when)
            if trained is None or not trained.failed:
                self._fresh.append((worker, when))
            else:
                self._repairs.append((when, when + REPAIR_SECONDS))
                self._push(when + REPAIR_SECONDS, worker, None)
            if trained is not None:
                self._answer(self._record, trained, when)
            self._assign_jobs()
        return self._summary()

    def _assign_jobs(self) -> None:
        """Ask for jobs until no worker is free, or nothing can start."""
        while (self._refused or self._fresh) and not self._is_cut_off():
            job = self._answer(self.scheduler.ask)
            if job is None:
                self._waits.extend((since, self._now) for _, since in self._fresh)
                self._refused.extend(worker for worker, _ in self._fresh)
                self._fresh.clear()
                return
            if self._refused:
                worker = self._refused.popleft()
            else:
                worker, since = self._fresh.popleft()
                self._waits.append((since, self._now))
            self._start(worker, job)

    def _is_cut_off(self) -> bool:
        return self._cpu >= self._most_seconds and bool(self._jobs)

    def _start(self, worker: int, job: Job) -> None:
        starting = 0.0
        if self.start_seconds:
            spread = math.exp(self._rng.normal(0.0, self.spread))
            starting = self.start_seconds * spread
        lengths = self._seconds_of[worker] * np.exp(
            self._rng.normal(0.0, self.spread, job.n_epochs)
        )
        lost = self._rng.random(job.n_epochs) < self.failure_rate
        begins = self._now + starting + np.cumsum(lengths) - lengths
        n_begun = max(1, int((begins < self._deadline).sum()))
        lengths, lost = lengths[:n_begun], lost[:n_begun]
        n_whole, took = n_begun, float(lengths.sum())
        if lost.any():
            n_whole = int(lost.argmax())
            share = self._rng.random()
            took = float(lengths[:n_whole].sum() + share * lengths[n_whole])
        took += starting
        epochs = range(job.from_epoch + 1, job.from_epoch + n_whole + 1)
        scores = [self.curves.score(job.arm, epoch) for epoch in epochs]
        self._jobs.append((self._now, self._now + took))
        trained = _Trained(job, scores, bool(lost.any()), took)
        self._push(self._now + took, worker, trained)

    def _record(self, trained: _Trained, when: float) -> None:
        scheduler, job, scores = self.scheduler, trained.job, trained.scores
        now = when if scheduler.unit == "wall_seconds" else None
        cost = trained.seconds if scheduler.unit == "seconds" else None
        if trained.failed:
            scheduler.fail(job, "the worker is gone", scores, cost, now=now)
        else:
            scheduler.tell(job, scores, cost, ended=False, now=now)

    def _answer(self, request: Callable[..., Any], *arguments: Any) -> Any:
        """Let the controller answer, and charge its time to the virtual clock."""
        begin = time.process_time()
        answer = request(*arguments)
        took = time.process_time() - begin
        self._cpu += took
        charged = self._charge(took)
        self._controller += charged
        self._slowest = max(self._slowest, charged)
        self._now += charged
        return answer

    def _push(self, when: float, worker: int, trained: _Trained | None) -> None:
        self._n_events += 1  # of two at the same time, the earlier request first
        heapq.heappush(self._events, (when, self._n_events, worker, trained))

    def _summary(self) -> Run:
        finished = not self._events
        until = max(end for _, end in self._jobs) if finished else self._now
        queue = [since for _, since in self._fresh]
        queue += [when for when, *_ in self._events if when < until]
        self._waits.extend((since, until) for since in queue)
        at = self.scheduler
        return Run(
            n_workers=self.n_workers,
            seconds=until,
            training=_within(self._jobs, until),
            waiting=_within(self._waits, until),
            down=_within(self._repairs, until),
            controller=self._controller,
            slowest=self._slowest,
            n_jobs=len(self._jobs),
            n_failures=len(self._repairs),
            n_epochs=at.n_epochs,
            n_opened=len({row["arm"] for row in at.history}),
            spent=at.spent,
            finished=finished,
            regret=self.curves.regret(at.best_arm, at.best_epoch),
            busy=self._busy(),
        )

    def _busy(self) -> float:
        until = self._deadline - self._epoch_seconds
        if math.isinf(until):
            return math.nan
        up = self.n_workers * until - _within(self._repairs, until)
        return _within(self._jobs, until) / up


def _within(spans: list[tuple[float, float]], until: float) -> float:
    return sum(max(0.0, min(end, until) - begin) for begin, end in spans)


class _Trained(NamedTuple):
    job: Job
    scores: list[float]
    failed: bool
    seconds: float


def search(
    policy: str,
    n_arms: int,
    budget: int | Budget,
    n_workers: int,
    seed: int,
    *,
    most_seconds: float = math.inf,
    epochs_per_job: int | None = None,
    **conditions: Any,
) -> Run:
    """Simulate one search by a policy; ``conditions`` are those of ``Cluster``."""
    scheduler = Scheduler(
        policy,
        n_arms,
        budget,
        max_epochs=MAX_EPOCHS,
        seed=seed,
        max_failures=MAX_FAILURES,
        n_jobs=n_workers,
        deterministic=False,
        epochs_per_job=epochs_per_job,
    )
    curves = Curves.draw(n_arms, seed)
    return Cluster(scheduler, curves, n_workers, seed, **conditions).run(most_seconds)
