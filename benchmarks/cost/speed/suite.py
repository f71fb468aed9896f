"""Steps per second of every policy, beside SMPyBandits, MABWiser and C, in one run."""

from __future__ import annotations

import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cost.speed import processes, rivals, transcription
from benchmarks.cost.speed.processes import CACHED, GROWTH, MACHINE, THREADS, Measured
from benchmarks.cost.speed.stepping import (
    HORIZON,
    N_ARMS,
    NOISE,
    AbsentToolError,
    Contestant,
    Times,
    own,
    race,
)
from benchmarks.shared import figures, report
from risingsearch.policies import list_policies

OURS, C, SMPYBANDITS, MABWISER = "risingsearch", "C", "SMPyBandits", "MABWiser"
INTERPRETED = "interpreted"

LOOKS = {
    OURS: ("#D55E00", "o"),
    C: ("#000000", "*"),
    SMPYBANDITS: ("#0072B2", "s"),
    MABWISER: ("#009E73", "^"),
    INTERPRETED: ("#8C8C8C", "|"),
}
"""Colour and marker of every tool, in the order of the tables."""


class Scale(NamedTuple):
    """How much is measured."""

    rounds: int
    python_steps: int  # per run, of what is not compiled
    starts: int
    more_runs: int  # whose memory is compared with that of few


SCALES = {
    "quick": Scale(rounds=5, python_steps=1000, starts=3, more_runs=8000),
    "default": Scale(rounds=15, python_steps=2000, starts=7, more_runs=12_000),
    "full": Scale(rounds=41, python_steps=10_000, starts=15, more_runs=20_000),
}


def run(out: Path, *, scale: str, seed: int) -> None:
    """Measure step times, starts, threads and memory; hold them against the bars."""
    effort, machine = SCALES[scale], _machine()
    players, absent = contestants(effort.python_steps)
    machine += f"; {_versions(absent)}"
    print(f"{len(players)} contestants, {effort.rounds} rounds", file=sys.stderr)
    times = race(players, effort.rounds, seed)
    others = [
        *processes.starts(effort.starts),
        *processes.threads(effort.rounds, seed),
        *processes.memory(effort.more_runs),
    ]
    report.write_results(out, list(results(times, others)))
    report.write_summary(
        out,
        "Speed",
        [
            report.table(bars(times, others)),
            report.table(list(step_table(times))),
            report.table([processes.row(measured) for measured in others]),
            notes(times, absent, machine),
            draw(out, times),
        ],
    )


def contestants(python_steps: int) -> tuple[list[Contestant], dict[str, str]]:
    """Return the contestants, policy by policy, and why other tools are absent."""
    infos = {info.name: info for info in list_policies()}
    print(f"compiling {len(infos)} policies", file=sys.stderr)
    entries: dict[str, Callable[[str], Iterable[Contestant]]] = {
        OURS: lambda tool: [
            own(info, tool, HORIZON, compiled=True) for info in infos.values()
        ],
        INTERPRETED: lambda tool: [
            own(info, tool, python_steps, compiled=False) for info in infos.values()
        ],
        C: lambda tool: [transcription.contestant(tool)],
        SMPYBANDITS: lambda tool: rivals.smpybandits(tool, infos, python_steps),
        MABWISER: lambda tool: rivals.mabwiser(tool, infos, python_steps),
    }
    players: list[Contestant] = []
    absent = {}
    for tool in LOOKS:
        try:
            players += entries[tool](tool)
        except AbsentToolError as reason:
            absent[tool] = str(reason)
    return sorted(players, key=lambda player: player.policy), absent


def nanoseconds(times: Times, policy: str, tool: str) -> float | None:
    """Return the median time of a step, None if the tool does not have the policy."""
    runs = times.get((policy, tool))
    return statistics.median(run.nanoseconds for run in runs) if runs else None


def ratio(times: Times, policy: str, tool: str, other: str) -> float | None:
    """Return a tool's time in terms of another's, as the median over the rounds."""
    above, below = times.get((policy, tool)), times.get((policy, other))
    if above is None or below is None:
        return None
    pairs = zip(above, below, strict=True)
    return statistics.median(a.nanoseconds / b.nanoseconds for a, b in pairs)


def bars(times: Times, others: Iterable[Measured]) -> list[dict[str, Any]]:
    """Return what is promised, what was measured, and whether it holds."""
    faster = {
        policy: factor
        for policy, tool in times
        if tool == SMPYBANDITS
        and (factor := ratio(times, policy, tool, OURS)) is not None
    }
    slowest = min(faster, key=lambda policy: faster[policy], default="")
    mean = statistics.geometric_mean(faster.values()) if faster else None
    value = {measured.what: measured.value for measured in others}
    threads, machine = value[THREADS] or 0.0, value[MACHINE] or 0.0
    idle = max(threads, machine) >= 1.7  # has a second processor to spare
    return [
        _bar(
            "each policy that SMPyBandits has, too: at least 50 times its speed",
            faster.get(slowest),
            f"{{:.0f}} times ({slowest})",
            lambda factor: factor >= 50,
        ),
        _bar(
            "all of these, geometric mean: at least 250 times",
            mean,
            f"{{:.0f}} times ({len(faster)} policies)",
            lambda factor: factor >= 250,
        ),
        _bar(
            "CURE-UCB: at most 1.25 times the time of a transcription to C",
            ratio(times, "cure-ucb", OURS, C),
            "{:.2f} times",
            lambda factor: factor <= 1.25,
        ),
        _bar(
            "cached start: under 1.5 s",
            value[CACHED],
            "{:.2f} s",
            lambda seconds: seconds < 1.5,
        ),
        _bar(
            "two threads on an idle machine: at least 1.7 times one",
            threads if idle else None,
            "{:.2f} times",
            lambda factor: factor >= 1.7,
            f"machine not idle: SHA-256 {machine:.2f} times",
        ),
        _bar(
            "memory does not grow with the runs: below 1 kB each, results included",
            value[GROWTH],
            "{:.2f} kB",
            lambda growth: growth < 1.0,
        ),
    ]


def _bar(
    promise: str,
    value: float | None,
    form: str,
    holds: Callable[[float], bool],
    otherwise: str = "",
) -> dict[str, Any]:
    if value is None:
        return {"bar": promise, "measured": otherwise, "verdict": "not measured"}
    verdict = "holds" if holds(value) else "does not hold"
    return {"bar": promise, "measured": form.format(value), "verdict": verdict}


def results(times: Times, others: Iterable[Measured]) -> Iterable[dict[str, Any]]:
    """Yield the rows of ``results.csv``, one per figure."""

    def figure(policy: str, tool: str, measure: str, value: Any) -> dict[str, Any]:
        return {"policy": policy, "tool": tool, "measure": measure, "value": value}

    for (policy, tool), runs in times.items():
        spent = [run.nanoseconds for run in runs]
        yield figure(policy, tool, "ns per step, median", statistics.median(spent))
        yield figure(policy, tool, "ns per step, fastest", min(spent))
        if tool != OURS:
            factor = ratio(times, policy, tool, OURS)
            yield figure(policy, tool, f"times that of {OURS}", factor)
    for what, value, unit, _ in others:
        yield figure("cure-ucb", OURS, f"{what}, {unit}", value)


def step_table(times: Times) -> Iterable[dict[str, Any]]:
    """Yield a row per policy: steps a second, and the time of a step by tool."""
    for policy in _policies(times):
        row: dict[str, Any] = {"policy": policy}
        for tool in LOOKS:
            spent = nanoseconds(times, policy, tool)
            if tool == OURS and spent is not None:
                row["million steps / s"] = f"{1e3 / spent:,.1f}"
            row[f"{tool}, ns"] = "" if spent is None else f"{spent:,.0f}"
            if tool in (SMPYBANDITS, MABWISER):
                factor = ratio(times, policy, tool, OURS)
                row[f"/ {tool}"] = "" if factor is None else f"{factor:,.0f} x"
        yield row


def notes(times: Times, absent: Mapping[str, str], machine: str) -> str:
    """Return how it was measured, with what, and what is missing."""
    lines = [
        f"A step: choose an arm, its mean, the noise, the update. {N_ARMS} linear-then-"
        f"flat arms, Gaussian noise {NOISE:g}, horizon {HORIZON:,}; every policy with "
        "its defaults.",
        f"CPU time of one thread, medians of {_n_rounds(times)} rounds in which all "
        "take their turn; ratios are medians over the rounds.",
        f"{INTERPRETED}: {OURS} without numba. What is not compiled plays the first "
        "rounds of the game only; the loop around a library does nothing but the step.",
        "SMPyBandits imports two names that SciPy and numba have dropped. They are put "
        "back, so that its Kullback-Leibler functions are compiled as they once were.",
        *(f"{tool}: not measured, {reason}." for tool, reason in absent.items()),
        *same_runs(times),
        f"{machine}.",
    ]
    return "\n".join(f"- {line}" for line in lines)


def same_runs(times: Times) -> Iterable[str]:
    """Say whether the runs in C are those of the policy, pull by pull."""
    if ("cure-ucb", C) in times:
        runs = zip(times["cure-ucb", C], times["cure-ucb", OURS], strict=True)
        equal = sum(a.total == b.total and a.pulls == b.pulls for a, b in runs)
        yield (
            f"C: `benchmarks/cost/speed/cure_ucb.c` with "
            f"{' '.join(transcription.FLAGS)}. Sum of means and pulls of every arm are "
            "those of the policy in "
            f"{equal} of {_n_rounds(times)} runs."
        )


def draw(out: Path, times: Times) -> str:
    """Draw the time of a step by policy and tool, the fastest policy on top."""
    spent = {policy: nanoseconds(times, policy, OURS) for policy in _policies(times)}
    policies = sorted(spent, key=lambda policy: -(spent[policy] or 0.0))
    figure, (ax,) = figures.new(7.5, 1.2 + 0.19 * len(policies))
    for tool, (color, marker) in LOOKS.items():
        values = [nanoseconds(times, policy, tool) for policy in policies]
        ax.plot(
            [float("nan") if value is None else value for value in values],
            range(len(policies)),
            color=color,
            marker=marker,
            markersize=5,
            linestyle="",
            label=tool,
        )
    ax.set_xscale("log")
    ax.set_yticks(range(len(policies)), policies)
    ax.set_ylim(-0.7, len(policies) - 0.3)
    ax.grid(alpha=0.25)
    ax.set_xlabel("CPU time of a step in ns")
    figure.legend(
        loc="outside upper center",
        ncols=len(LOOKS),
        fontsize="small",
        frameon=False,
        handlelength=1.0,
        columnspacing=1.5,
    )
    return figures.save(figure, out, "steps")


def _policies(times: Times) -> list[str]:
    return list(dict.fromkeys(policy for policy, _ in times))


def _n_rounds(times: Times) -> int:
    return len(next(iter(times.values())))


def _machine() -> str:
    text = f"{platform.platform()}, {os.cpu_count()} processors"
    if hasattr(os, "getloadavg"):
        text += f", load {os.getloadavg()[0]:.1f} at the start"
    return text


def _versions(absent: Mapping[str, str]) -> str:
    packages = ["numpy", "numba"]
    packages += [tool for tool in (SMPYBANDITS, MABWISER) if tool not in absent]
    found = [f"{package} {version(package)}" for package in packages]
    return ", ".join([f"Python {platform.python_version()}", *found])
