"""What whole simulations cost: starting, a second thread, memory."""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cost.speed.stepping import ENVIRONMENT, HORIZON
from risingsearch.simulation import simulate

COLD, CACHED = "cold start", "cached start"
THREADS = "one thread / two threads"
MACHINE = "the same for SHA-256"
GROWTH = "memory per further run"

FEW_RUNS = 2000
THREADED_RUNS = 100


class Measured(NamedTuple):
    """One figure; None where the system does not report it."""

    what: str
    value: float | None
    unit: str
    note: str = ""


def starts(repeats: int) -> list[Measured]:
    """Time processes with one simulation each: nothing compiled yet, and cached."""
    seconds, cpu = [], []
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(1 + repeats):
            begin, begin_cpu = time.perf_counter(), _cpu_of_children()
            one_process(1, {"NUMBA_CACHE_DIR": cache})
            seconds.append(time.perf_counter() - begin)
            cpu.append(_cpu_of_children() - begin_cpu)
    again = (
        f"the same again, fastest of {repeats} processes; median "
        f"{statistics.median(seconds[1:]):.2f} s, {min(cpu[1:]):.2f} s of CPU time"
    )
    first = "a process that imports, compiles CURE-UCB and plays one run"
    return [
        Measured(COLD, seconds[0], "s", f"{first}; {cpu[0]:.2f} s of CPU time"),
        Measured(CACHED, min(seconds[1:]), "s", again),
    ]


def threads(rounds: int, seed: int) -> list[Measured]:
    """Compare two threads with one, by the clock; and what the machine gives now."""
    work: dict[str, Callable[[int], object]] = {
        THREADS: lambda jobs: simulate(
            "cure-ucb", ENVIRONMENT, HORIZON, THREADED_RUNS, seed, jobs=jobs
        ),
        MACHINE: _hash,
    }
    seconds: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for what, do in work.items():
            for n_threads in (1, 2):
                begin = time.perf_counter()
                do(n_threads)
                taken = time.perf_counter() - begin
                seconds.setdefault((what, n_threads), []).append(taken)
    found = []
    for what in work:
        one, two = seconds[what, 1], seconds[what, 2]
        median = statistics.median(a / b for a, b in zip(one, two, strict=True))
        note = f"fastest of {rounds} each; median of the pairs {median:.2f}"
        found.append(Measured(what, min(one) / min(two), "times", note))
    return found


def _hash(n_threads: int) -> None:
    """Do what needs neither the interpreter nor memory."""
    data = bytes(1 << 20)
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(hashlib.sha256, [data] * 400))


def memory(more_runs: int) -> list[Measured]:
    """Compare the peak of many runs with that of few, each in a process of its own."""
    few, many = one_process(FEW_RUNS), one_process(more_runs)
    growth = None
    if few is not None and many is not None:
        growth = 1024 * (many - few) / (more_runs - FEW_RUNS)
    note = f"from {FEW_RUNS:,} to {more_runs:,} runs of {HORIZON:,} rounds"
    return [
        Measured(f"peak memory, {FEW_RUNS:,} runs", few, "MB"),
        Measured(f"peak memory, {more_runs:,} runs", many, "MB"),
        Measured(GROWTH, growth, "kB", note),
    ]


def one_process(
    n_runs: int, environment: Mapping[str, str] | None = None
) -> float | None:
    """Simulate in a new process; return its peak memory in MB, None if not known."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.cost.speed.one_process", str(n_runs)],
        cwd=Path(__file__).parents[3],
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout) if done.stdout.strip() else None


def row(measured: Measured) -> dict[str, Any]:
    """Return a row of the table of these figures."""
    what, value, unit, note = measured
    text = "not known" if value is None else f"{value:.3g} {unit}"
    return {"what": what, "value": text, "note": note}


def _cpu_of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system
