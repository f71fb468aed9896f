"""What the tests of the scheduler drive it with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Job
from risingsearch.policies import WAIT, list_policies
from risingsearch.policies.base import arm_arrays, least_pulled
from risingsearch.scheduling.scheduler import Scheduler

INFOS = {info.name: info for info in list_policies()}


def rising(arm: int, epoch: int) -> float:
    """Curves that cross: the later the arm, the slower and the higher."""
    return (1 + arm / 10) * (1 - 1 / (1 + epoch / (1 + arm)))


def ask(scheduler: Scheduler) -> Job:
    """Return the next job where there must be one."""
    job = scheduler.ask()
    assert job is not None
    return job


def scores_of(job: Job, curve: Callable[[int, int], float] = rising) -> list[float]:
    first = job.from_epoch + 1
    return [curve(job.arm, epoch) for epoch in range(first, first + job.n_epochs)]


def finish(
    scheduler: Scheduler, curve: Callable[[int, int], float] = rising
) -> list[Job]:
    """Ask and tell one job after the other until the search is done."""
    jobs = []
    while (job := scheduler.ask()) is not None:
        scheduler.tell(job, scores_of(job, curve))
        jobs.append(job)
    assert scheduler.done
    return jobs


def pulls(jobs: Iterable[Job]) -> list[int]:
    """The arm of every single epoch."""
    return [job.arm for job in jobs for _ in range(job.n_epochs)]


def saved(scheduler: Scheduler) -> dict[str, Any]:
    """The state after a trip through JSON."""
    text = json.dumps(scheduler.state_dict(), allow_nan=False)
    return json.loads(text)  # type: ignore[no-any-return]


class Gambler(NamedTuple):
    """Uses all that the contract allows, and remembers all that it is shown.

    It draws in both methods and waits now and then while another arm trains.
    """

    available: NDArray[np.bool_]
    pulls_left: NDArray[np.int64]
    horizon: NDArray[np.float64]
    pulls: NDArray[np.int64]
    memory: NDArray[np.float64]  # (1,)

    @classmethod
    def create(cls, n_arms: int, horizon: int, max_pulls: int | None) -> Gambler:
        return cls(*arm_arrays(n_arms, horizon, max_pulls), memory=np.zeros(1))

    def select(self, t: int, rng: np.random.Generator) -> int:
        busy = (self.pulls_left > 0) & ~self.available
        if busy.any() and rng.random() < 0.3:
            return WAIT
        free = np.flatnonzero(self.available)
        return int(free[int(self.memory[0] + len(free) * rng.random()) % len(free)])

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        self.pulls[arm] += 1
        shown = t + arm + self.pulls_left.sum() + self.horizon.sum()
        shown += np.flatnonzero(self.available).sum() + 10 * rng.random()
        self.memory[0] = (self.memory[0] + shown) % 97

    def slice_length(self, arm: int) -> int:
        return 1 + int(self.memory[0]) % 4


class Scripted(NamedTuple):
    """Takes turns among the arms it may pull, and writes down what it is called with.

    ``say`` may name another answer at a round.
    """

    available: NDArray[np.bool_]
    pulls_left: NDArray[np.int64]
    horizon: NDArray[np.float64]
    pulls: NDArray[np.int64]
    calls: list[tuple[Any, ...]]
    say: dict[int, int]
    length: int

    def select(self, t: int, rng: np.random.Generator) -> int:
        self.calls.append(("select", t))
        return self.say.get(t, least_pulled(self.available, self.pulls, 10**9))

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        self.pulls[arm] += 1
        self.calls.append(("update", t, arm, reward))

    def slice_length(self, arm: int) -> int:
        return self.length


def scripted(
    calls: list[tuple[Any, ...]] | None = None,
    say: dict[int, int] | None = None,
    length: int = 1,
) -> Callable[..., Scripted]:
    """Return the factory of a scripted policy."""

    def build(n_arms: int, horizon: int, max_pulls: int | None) -> Scripted:
        return Scripted(
            *arm_arrays(n_arms, horizon, max_pulls),
            calls=[] if calls is None else calls,
            say=say or {},
            length=length,
        )

    return build


def run_shuffled(
    scheduler: Scheduler, seed: int | None, curve: Callable[[int, int], float] = rising
) -> list[Job]:
    """Keep all workers busy; jobs finish in random order, or in that of the asks."""
    rng = np.random.default_rng(seed)
    jobs = []
    while not scheduler.done:
        while (job := scheduler.ask()) is not None:
            jobs.append(job)
        in_flight = scheduler.in_flight
        job = in_flight[0 if seed is None else int(rng.integers(len(in_flight)))]
        scheduler.tell(job, scores_of(job, curve), cost=float(1 + job.arm))
    return jobs


def run_by_cost(scheduler: Scheduler, cost: Sequence[float]) -> list[Job]:
    jobs = []
    while (job := scheduler.ask()) is not None:
        scheduler.tell(job, scores_of(job), cost=cost[job.arm] * job.n_epochs)
        jobs.append(job)
    return jobs
