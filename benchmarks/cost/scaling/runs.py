"""What ``scaling`` runs and times: clusters, decisions, memory, disk."""

from __future__ import annotations

import json
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cost.scaling.cluster import (
    MAX_EPOCHS,
    Curves,
    Run,
    free,
    measured,
    search,
)
from risingsearch import Scheduler
from risingsearch.arms import Job, Report
from risingsearch.budget import Budget
from risingsearch.search.run_log import as_event
from risingsearch.search.training import Outcome
from risingsearch.storage.checkpoints import Key
from risingsearch.storage.run_directory import RunDirectory

POLICIES = ("auto", "asha")
CLUSTERS = ((1, 100), (10, 200), (100, 1000), (1000, 10_000), (10_000, 100_000))
"""Workers and arms."""
EPOCHS_PER_ARM = 10
"""Of the budget."""
CHARGES: dict[str, Callable[[float], float]] = {"measured": measured, "free": free}
ARMS = (1000, 10_000, 100_000)
WORKERS = (1, 10, 100, 1000)
CLOCK_SECONDS = 2.0 * MAX_EPOCHS
CLOCK_EPOCHS_PER_ARM = 5
"""Of the searches that end by the clock: time, and epochs for each of the arms."""
START_SECONDS = 30.0
START_WORKERS, START_ARMS = 4, 200
FULL_TRAININGS = 30
"""Of the searches whose jobs start slowly: the time is what so many jobs of a whole
arm take."""
ANY_LENGTH = "the policy's"
LENGTHS: dict[str, dict[str, Any]] = {
    ANY_LENGTH: {},
    "5 epochs": {"epochs_per_job": 5},
    "15 epochs": {"epochs_per_job": 15},
    f"{MAX_EPOCHS} epochs": {"epochs_per_job": MAX_EPOCHS},
}
"""Of their jobs."""
TOLD_ARMS, TOLD_EPOCHS = 100, 4
CHECKPOINT_BYTES = 1_000_000


class Scale(NamedTuple):
    """How much is measured."""

    cpu_seconds: float  # of the controller, at most, in a search that is timed
    budget: int  # of the search that is timed decision by decision
    seeds: int  # of the searches whose regret is compared
    regret_arms: int
    clock_workers: tuple[int, ...]  # of the searches that end by the clock
    lines: int  # of the journal


SCALES = {
    "quick": Scale(
        2.0, budget=300, seeds=3, regret_arms=200, clock_workers=(4, 16), lines=100
    ),
    "default": Scale(
        15.0,
        budget=1000,
        seeds=10,
        regret_arms=1000,
        clock_workers=(4, 16),
        lines=1000,
    ),
    "full": Scale(
        900.0,
        budget=4000,
        seeds=20,
        regret_arms=1000,
        clock_workers=(4, 16, 100),
        lines=10_000,
    ),
}

Cell = tuple[str, tuple[int, int]]
Row = dict[str, Any]


def simulated(
    pool: ProcessPoolExecutor, effort: Scale, seed: int
) -> dict[Cell, dict[str, Run]]:
    """Run every cluster with the controller's cost and without."""
    cells = list(product(POLICIES, CLUSTERS))
    futures = {
        (cell, charge): pool.submit(
            search,
            cell[0],
            cell[1][1],
            EPOCHS_PER_ARM * cell[1][1],
            cell[1][0],
            seed,
            most_seconds=effort.cpu_seconds,
            charge=CHARGES[charge],
        )
        for cell in cells
        for charge in CHARGES
    }
    return {
        cell: {charge: futures[cell, charge].result() for charge in CHARGES}
        for cell in cells
    }


def timed(pool: ProcessPoolExecutor, effort: Scale, seed: int) -> list[Row]:
    """Time the decisions of every policy among more and more arms."""
    cells = product(POLICIES, ARMS)
    futures = [pool.submit(decisions, *cell, effort, seed) for cell in cells]
    return [future.result() for future in futures]


def decisions(policy: str, n_arms: int, effort: Scale, seed: int) -> Row:
    """Time ask and tell in a search by one worker, from its first to its last epoch."""
    scheduler = Scheduler(
        policy, n_arms, effort.budget, max_epochs=MAX_EPOCHS, seed=seed
    )
    curves = Curves.draw(n_arms, seed)
    asks: list[float] = []
    tells: list[float] = []
    while sum(asks) + sum(tells) < effort.cpu_seconds:
        begin = time.process_time()
        job = scheduler.ask()
        asks.append(time.process_time() - begin)
        if job is None:
            break
        epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
        scores = [curves.score(job.arm, epoch) for epoch in epochs]
        begin = time.process_time()
        scheduler.tell(job, scores)
        tells.append(time.process_time() - begin)
    return {
        "policy": policy,
        "arms": n_arms,
        "played": percent(scheduler.n_epochs / effort.budget),
        "ask, ms": 1e3 * statistics.mean(asks),
        "slowest ask, ms": 1e3 * max(asks),
        "tell per epoch, ms": 1e3 * sum(tells) / scheduler.n_epochs,
        "ask and tell, ms per job": 1e3 * (sum(asks) + sum(tells)) / len(tells),
        "jobs per second": len(tells) / (sum(asks) + sum(tells)),
    }


def regrets(
    pool: ProcessPoolExecutor, effort: Scale, seed: int
) -> dict[tuple[str, int], list[Run]]:
    """Spend the same budget with more and more workers; the controller is free."""
    n_arms = effort.regret_arms
    seeds = range(seed, seed + effort.seeds)
    futures = {
        (policy, n_workers): [
            pool.submit(search, policy, n_arms, 5 * n_arms, n_workers, own, charge=free)
            for own in seeds
        ]
        for policy, n_workers in product(POLICIES, WORKERS)
    }
    return {cell: [f.result() for f in found] for cell, found in futures.items()}


def by_the_clock(
    pool: ProcessPoolExecutor, effort: Scale, seed: int
) -> dict[tuple[str, int], list[Run]]:
    """Search for so many seconds by the clock, whatever the workers train meanwhile."""
    futures = {
        (policy, n_workers): [
            pool.submit(
                search,
                policy,
                int(n_workers * CLOCK_SECONDS / CLOCK_EPOCHS_PER_ARM),
                Budget(wall_seconds=CLOCK_SECONDS),
                n_workers,
                own,
                charge=free,
            )
            for own in range(seed, seed + effort.seeds)
        ]
        for n_workers, policy in product(effort.clock_workers, POLICIES)
    }
    return {cell: [f.result() for f in found] for cell, found in futures.items()}


def slow_starts(
    pool: ProcessPoolExecutor, effort: Scale, seed: int
) -> dict[tuple[str, str], list[Run]]:
    """Search with jobs that take long to start, and are of one length or another."""
    futures = {
        (unit, length): [
            pool.submit(
                search,
                "auto",
                START_ARMS,
                start_budget(unit),
                START_WORKERS,
                own,
                charge=free,
                start_seconds=START_SECONDS,
                **LENGTHS[length],
            )
            for own in range(seed, seed + effort.seeds)
        ]
        for unit, length in product(("seconds", "wall_seconds"), LENGTHS)
    }
    return {cell: [f.result() for f in found] for cell, found in futures.items()}


def start_budget(unit: str) -> Budget:
    """Return the same time summed over the workers, or by the clock."""
    seconds = FULL_TRAININGS * (START_SECONDS + MAX_EPOCHS)
    given = seconds / START_WORKERS if unit == "wall_seconds" else seconds
    return Budget(**{unit: given})


def kept(pool: ProcessPoolExecutor) -> list[Row]:
    """Measure memory and saved state of every policy with more and more arms."""
    cells = product(POLICIES, ARMS)
    futures = [pool.submit(memory_and_state, *cell) for cell in cells]
    return [future.result() for future in futures]


def memory_and_state(policy: str, n_arms: int) -> Row:
    """Measure the memory of a scheduler, and its saved state."""
    tracemalloc.start()
    scheduler = Scheduler(
        policy, n_arms, EPOCHS_PER_ARM * n_arms, max_epochs=MAX_EPOCHS
    )
    empty = tracemalloc.get_traced_memory()[0]
    empty_state = len(json.dumps(scheduler.state_dict()))
    before = tracemalloc.get_traced_memory()[0]
    for arm in list(range(TOLD_ARMS)) * 2:
        job = scheduler.start(arm, TOLD_EPOCHS // 2)
        scheduler.tell(job, [0.123456789 + arm / 7] * job.n_epochs)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    begin = time.process_time()
    state = json.dumps(scheduler.state_dict())
    saved = time.process_time()
    scheduler.load_state_dict(json.loads(state))
    loaded = time.process_time()
    n_epochs = TOLD_ARMS * TOLD_EPOCHS
    return {
        "policy": policy,
        "arms": n_arms,
        "memory, MB": empty / 1e6,
        "memory per arm, bytes": empty / n_arms,
        "memory per epoch told, bytes": grown / n_epochs,
        "state, MB": empty_state / 1e6,
        "state per arm, bytes": empty_state / n_arms,
        "state per epoch told, bytes": (len(state) - empty_state) / n_epochs,
        "save, s": saved - begin,
        "load, s": loaded - saved,
    }


def disk(folder: Path, n_lines: int) -> Iterator[Row]:
    """Time what a run directory writes per job; it waits for the disk, so wall time."""
    directory = RunDirectory(folder / "run")
    directory.open({})
    lines = []
    for k in range(n_lines):
        trained = Report(Job(k % 1000, 1, 1, k), (0.123456789,), (1.0,), ({},))
        event = as_event(Outcome(trained, False, None, None, 1, 1.0))
        begin = time.perf_counter()
        directory.journal.append(event.to_json())
        lines.append(time.perf_counter() - begin)
    yield _latencies("a line of the journal", lines)
    states = []
    for k in range(max(10, n_lines // 10)):
        begin = time.perf_counter()
        directory.checkpoints.save(Key(k % 10, 1), bytes(CHECKPOINT_BYTES))
        states.append(time.perf_counter() - begin)
    yield _latencies("a checkpoint of 1 MB", states)


def waits(n_calls: int = 20) -> Iterator[Row]:
    """Time how a search waits for the first of its jobs in flight."""
    for n_jobs in (100, 1000, 10_000):
        futures: list[Future[None]] = [Future() for _ in range(n_jobs)]
        futures[0].set_result(None)
        took = []
        for _ in range(n_calls):
            begin = time.process_time()
            wait(futures, return_when="FIRST_COMPLETED")
            took.append(time.process_time() - begin)
        yield _latencies(f"waiting for one of {n_jobs:,} jobs", took)


def _latencies(what: str, seconds: list[float]) -> Row:
    middle = statistics.median(seconds)
    return {
        "what": what,
        "median, ms": 1e3 * middle,
        "slowest, ms": 1e3 * max(seconds),
        "per second": 1 / statistics.mean(seconds),
    }


def percent(share: float) -> str:
    return f"{abs(share):.1%}"  # a sum may miss 0 by the last bit
