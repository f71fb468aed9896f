"""What one controller can drive: workers, arms, decisions per second, memory, disk.

The real ``Scheduler`` drives a simulated, asynchronous cluster. Its cost is the CPU
time of its process, which other processes on the machine hardly affect.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, wait
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray

from benchmarks.cost.scaling.cluster import (
    MAX_EPOCHS,
    Curves,
    Run,
    free,
    measured,
    search,
)
from benchmarks.shared import figures, report
from benchmarks.shared.figures import Look
from benchmarks.shared.results import half_width
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
ALONE = ("auto", "asha")
"""Policies that are timed decision by decision."""
ARMS = (1000, 10_000, 100_000)
WORKERS = (1, 10, 100, 1000)
BAR, BAR_WORKERS = 0.95, 1000
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
LOOKS = {
    "auto": Look("#D55E00", "-", "o"),
    "asha": Look("#0072B2", "--", "s"),
}


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


def run(out: Path, *, scale: str, seed: int, jobs: int | None = None) -> None:
    """Simulate and measure; write results, a figure and a summary."""
    effort = SCALES[scale]
    with ProcessPoolExecutor(jobs or os.cpu_count()) as pool:
        runs = simulated(pool, effort, seed)
        timed = [
            pool.submit(decisions, policy, n_arms, effort, seed)
            for policy, n_arms in product(ALONE, ARMS)
        ]
        regret = regrets(pool, effort, seed)
        by_clock = by_the_clock(pool, effort, seed)
        started = slow_starts(pool, effort, seed)
        kept = [
            pool.submit(memory_and_state, policy, n_arms)
            for policy, n_arms in product(POLICIES, ARMS)
        ]
        costs = [future.result() for future in timed]
        states = [future.result() for future in kept]
    with tempfile.TemporaryDirectory(dir=out) as folder:
        writes = [*disk(Path(folder), effort.lines), *waits()]
    tables = {
        "cluster": list(cluster_rows(runs)),
        "decisions": costs,
        "asynchrony": list(regret_rows(regret)),
        "by the clock": list(clock_rows(by_clock)),
        "slow starts": list(start_rows(started)),
        "kept": states,
        "around": writes,
    }
    report.write_results(out, list(long_form(tables)))
    report.write_summary(
        out,
        "Scaling",
        [
            "\n".join(f"- {line}" for line in verdicts(runs)),
            *(report.table(rows) for rows in tables.values()),
            "\n".join(f"- {line}" for line in notes(effort)),
            draw(out, runs, costs, regret),
        ],
    )


# ------------------------------------------------------------------------ the cluster


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


def cluster_rows(runs: dict[Cell, dict[str, Run]]) -> Iterator[Row]:
    """Yield where the workers' time has gone, cluster by cluster."""
    for (policy, (n_workers, n_arms)), by_charge in runs.items():
        paid, gratis = by_charge["measured"], by_charge["free"]
        yield {
            "policy": policy,
            "workers": n_workers,
            "arms": n_arms,
            "played": _percent(paid.n_epochs / (EPOCHS_PER_ARM * n_arms)),
            "utilisation": _percent(paid.share(paid.training)),
            "waiting for the controller": _percent(paid.share(paid.waiting)),
            "without work": _percent(paid.share(paid.without_work)),
            "down": _percent(paid.share(paid.down)),
            "utilisation while there is work": _percent(paid.utilisation_at_work),
            "utilisation, free controller": (
                _percent(gratis.share(gratis.training)) if gratis.finished else ""
            ),
            "ms per job": 1e3 * paid.decision,
            "slowest request, ms": 1e3 * paid.slowest,
            "jobs per second": 1 / paid.decision,
            "epochs per job": paid.n_epochs / paid.n_jobs,
            "failures": paid.n_failures,
        }


def verdicts(runs: dict[Cell, dict[str, Run]]) -> Iterator[str]:
    """Hold the cluster of 1,000 workers against the bar, policy by policy."""
    for (policy, (n_workers, n_arms)), by_charge in runs.items():
        if n_workers == BAR_WORKERS:
            paid = by_charge["measured"]
            held = paid.utilisation_at_work >= BAR and paid.decision < 1e-3
            yield (
                f"{policy}, {n_workers:,} workers, {n_arms:,} arms, 1 s epochs: "
                f"{_percent(paid.utilisation_at_work)} utilisation while there is work "
                f"(bar {BAR:.0%}), {1e3 * paid.decision:.2f} ms a job (bar 1 ms): "
                f"{'holds' if held else 'does not hold'}"
                f"{'' if paid.finished else ', in a search that was cut off'}."
            )


# ---------------------------------------------------------------- decision by decision


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
        "played": _percent(scheduler.n_epochs / effort.budget),
        "ask, ms": 1e3 * statistics.mean(asks),
        "slowest ask, ms": 1e3 * max(asks),
        "tell per epoch, ms": 1e3 * sum(tells) / scheduler.n_epochs,
        "ask and tell, ms per job": 1e3 * (sum(asks) + sum(tells)) / len(tells),
        "jobs per second": len(tells) / (sum(asks) + sum(tells)),
    }


# -------------------------------------------------------------------------- asynchrony


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


def regret_rows(found: dict[tuple[str, int], list[Run]]) -> Iterator[Row]:
    """Yield the regret by workers, and what it is above that of one worker."""
    for (policy, n_workers), runs in found.items():
        own = _regrets(runs)
        lost = own - _regrets(found[policy, 1])
        alone = statistics.mean(run.seconds for run in found[policy, 1])
        yield {
            "policy": policy,
            "workers": n_workers,
            "regret": f"{own.mean():.4f}",
            "lost to asynchrony": f"{lost.mean():+.4f} ± {float(half_width(lost)):.4f}",
            "times as fast as 1": alone / statistics.mean(run.seconds for run in runs),
            "utilisation": _percent(
                statistics.mean(run.share(run.training) for run in runs)
            ),
        }


# -------------------------------------------------------------------- time as a budget


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


def clock_rows(found: dict[tuple[str, int], list[Run]]) -> Iterator[Row]:
    """Yield the regret when the time is over, and how busy the workers were."""
    for (policy, n_workers), runs in found.items():
        own = _regrets(runs)
        difference = own - _regrets(found["asha", n_workers])
        yield {
            "policy": policy,
            "workers": n_workers,
            "regret": f"{own.mean():.4f} ± {float(half_width(own)):.4f}",
            "above asha": f"{difference.mean():+.4f} ± {half_width(difference):.4f}",
            "busy": _percent(statistics.mean(run.busy for run in runs)),
            "least busy": _percent(min(run.busy for run in runs)),
            "seconds": statistics.mean(run.seconds for run in runs),
        }


# ------------------------------------------------------------------------- slow starts


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


def start_rows(found: dict[tuple[str, str], list[Run]]) -> Iterator[Row]:
    """Yield the regret by the length of the jobs, and what the budget went for."""
    for (unit, length), runs in found.items():
        own = _regrets(runs)
        above = own - _regrets(found[unit, ANY_LENGTH])
        budget = start_budget(unit)
        yield {
            "what": f"{START_SECONDS:g} s a start, {budget}",
            "jobs": length,
            "regret": f"{own.mean():.4f} ± {half_width(own):.4f}",
            "above the policy's own": f"{above.mean():+.4f} ± {half_width(above):.4f}",
            "epochs per job": sum(r.n_epochs for r in runs)
            / sum(r.n_jobs for r in runs),
            "arms opened": statistics.mean(run.n_opened for run in runs),
            "epochs": statistics.mean(run.n_epochs for run in runs),
            "spent": _percent(
                statistics.mean(run.spent for run in runs) / budget.amount
            ),
        }


def _regrets(runs: list[Run]) -> NDArray[np.float64]:
    return np.array([run.regret for run in runs])


# ------------------------------------------------------------------ memory, disk, queue


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
        event = as_event(trained.job, Outcome(trained, False, None, None, 1, 1.0))
        begin = time.perf_counter()
        directory.journal.append(event)
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


# ------------------------------------------------------------------------ what is shown


def long_form(tables: dict[str, list[Row]]) -> Iterator[Row]:
    """Yield the rows of ``results.csv``, one per figure."""
    names = ("policy", "workers", "arms", "what", "jobs")
    for title, rows in tables.items():
        for row in rows:
            of = {name: row.get(name, "") for name in names}
            for measure, value in row.items():
                if measure not in names:
                    yield {"table": title, **of, "measure": measure, "value": value}


def notes(effort: Scale) -> Iterator[str]:
    """Yield how it was measured."""
    yield (
        "Cluster: epochs of 1 s (median), 5 % of the workers three times slower, one "
        f"epoch in 1,000 lost with its worker for 10 s; {EPOCHS_PER_ARM} epochs per "
        f"arm to spend, {MAX_EPOCHS} at most for one. The controller is one core: its "
        "CPU time passes on the virtual clock, and requests queue."
    )
    yield (
        f"A timed search is cut off after {effort.cpu_seconds:g} s of the controller's "
        "CPU time; `played` is the share of the budget by then."
    )
    yield (
        "A free controller costs nothing; its figure is left out where the search was "
        "cut off, since its virtual clock has hardly advanced by then."
    )
    yield (
        "Without work: the policy waits for results, or nothing is left of the budget "
        "while the last jobs end. While there is work: training / (training + waiting "
        "for the controller)."
    )
    yield (
        f"Decision by decision: one worker, a budget of {effort.budget:,} epochs, so "
        "most of the arms are never opened, but all are considered."
    )
    yield (
        f"Asynchrony: {effort.regret_arms:,} arms, {5 * effort.regret_arms:,} epochs, "
        f"{effort.seeds} seeds, a controller that costs nothing. Regret is 0 for the "
        "best arm at its end and 1 for the typical one, without noise."
    )
    yield (
        f"By the clock: {CLOCK_SECONDS:g} s, one arm for every {CLOCK_EPOCHS_PER_ARM} "
        "epochs that the workers can train in it, a controller that costs nothing. "
        "Busy: share of the workers' time, until one epoch before the end, in training."
    )
    yield (
        f"Slow starts: `auto`, {START_WORKERS} workers, {START_ARMS} arms, time for "
        f"{FULL_TRAININGS} full trainings, their starts included, a controller that "
        "costs nothing."
    )
    yield "Journal and checkpoints: wall time, on the disk of `--out`; else CPU time."


def draw(
    out: Path,
    runs: dict[Cell, dict[str, Run]],
    costs: list[Row],
    regret: dict[tuple[str, int], list[Run]],
) -> str:
    """Draw utilisation, the cost of a decision, and regret."""
    figure, [left, middle, right] = figures.new(12.0, 3.8, 3)
    for policy in ALONE:
        color, line, marker = LOOKS[policy]
        look: dict[str, Any] = {
            "color": color,
            "linestyle": line,
            "marker": marker,
            "label": policy,
        }
        rows = [row for row in costs if row["policy"] == policy]
        middle.plot(
            [row["arms"] for row in rows],
            [row["ask and tell, ms per job"] for row in rows],
            **look,
        )
        own = [by_charge for (name, _), by_charge in runs.items() if name == policy]
        if own:
            left.plot(
                [by_charge["measured"].n_workers for by_charge in own],
                [100 * by_charge["measured"].utilisation_at_work for by_charge in own],
                **look,
            )
            samples = np.array([_regrets(regret[policy, w]) for w in WORKERS])
            figures.band(right, WORKERS, samples, policy, LOOKS[policy])
    for ax in (left, middle, right):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    left.axhline(100 * BAR, color="#8C8C8C", linewidth=0.8)
    left.set_ylim(0, 103)
    left.set_xlabel("workers, 1 s epochs, 10 to 100 arms each")
    left.set_ylabel("utilisation while there is work (%)")
    middle.set_yscale("log")
    middle.set_xlabel("arms")
    middle.set_ylabel("CPU ms per job: ask and tell")
    right.set_xlabel("workers, the same budget")
    right.set_ylabel("normalised regret")
    figures.legend(figure, middle)
    return figures.save(figure, out, "scaling")


def _percent(share: float) -> str:
    return f"{abs(share):.1%}"  # a sum may miss 0 by the last bit
