"""Sixty-four problems of sixteen kinds: how far the default can be relied on.

Regret is that of ``spaces``. Beside its mean stand the mean over the worst quarter of
the seeds of each problem, on how many problems it is more than .05 above the best of
the others, and in how many searches four times the budget ended more than .1 worse.
The default scale has the half of the kinds that may choose rules; only ``--full`` has
the half that reports.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared import report
from benchmarks.spaces.foundry import CHOOSES, KINDS, cast
from benchmarks.spaces.methods import LISTED, METHODS, OPEN, search
from benchmarks.spaces.problems import EPOCHS, Problem
from benchmarks.spaces.suite import reference

BUDGETS = (5, 20)
SEEDS = {"quick": 1, "default": 4, "full": 8}
PROBLEMS = {"quick": 2, "default": 100, "full": 100}
SLOW = {LISTED, "GPSampler", "CMA-ES"}  # beside which the others take no time
ABOVE = 0.05
WORSE = 0.1
Regrets = dict[tuple[str, str, int], list[float]]  # by method, problem and budget


def run(out: Path, *, scale: str, seed: int) -> None:
    """Search every problem by every method; write tables."""
    kinds = set(KINDS) if scale == "full" else CHOOSES
    problems = list(islice(cast(kinds), PROBLEMS[scale]))
    methods = [name for name in METHODS if scale == "full" or name not in SLOW]
    seeds = SEEDS[scale]
    regrets: Regrets = defaultdict(list)
    found = []
    for problem in problems:
        for row in rows(problem, methods, range(seed, seed + seeds)):
            found.append(row)
            key = row["method"], row["problem"], row["multiple"]
            regrets[key].append(row["regret"])
        report.write_results(out, found)
    halves = {
        "the half that chooses": [p for p in problems if kind_of(p) in CHOOSES],
        "the half that reports": [p for p in problems if kind_of(p) not in CHOOSES],
    }
    parts = [f"{seeds} seeds, R = {EPOCHS} epochs."]
    for title, half in halves.items():
        if half:
            names = [problem.name for problem in half]
            parts.append(f"{len(half)} problems, {title}:")
            parts.append(report.table(measures(regrets, methods, names)))
            parts.append("By kind, at " + " and ".join(f"{b} R" for b in BUDGETS) + ":")
            parts.append(report.table(by_kind(regrets, methods, half)))
    report.write_summary(out, "Reliability", parts)


def rows(
    problem: Problem, methods: list[str], seeds: range
) -> Iterator[dict[str, Any]]:
    """Yield a row per search and budget; a search of Optuna's knows no budget."""
    typical, best = reference(problem)
    for seed in seeds:
        for method in methods:
            plans = method in (OPEN, LISTED)
            for budget in BUDGETS if plans else BUDGETS[-1:]:
                found = search(method, problem, budget * EPOCHS, seed, 1)
                for multiple in (budget,) if plans else BUDGETS:
                    true = found.true[multiple * EPOCHS - 1]
                    share = (best - true) / (best - typical)
                    yield {
                        "problem": problem.name,
                        "method": method,
                        "seed": seed,
                        "multiple": multiple,
                        "regret": min(1.0, max(0.0, share)),
                    }


def kind_of(problem: Problem) -> str:
    """Return the name of the kind of a problem."""
    return problem.name.rpartition("-")[0]


def measures(
    regrets: Regrets, methods: list[str], problems: list[str]
) -> list[dict[str, Any]]:
    """Return a row per method."""
    others = [method for method in methods if method not in (OPEN, LISTED)]
    lines = []
    for method in methods:
        line: dict[str, Any] = {"method": method}
        for budget in BUDGETS:
            own = [regrets[method, problem, budget] for problem in problems]
            means = np.array([np.mean(values) for values in own])
            least = np.array(
                [
                    min(np.mean(regrets[other, problem, budget]) for other in others)
                    for problem in problems
                ]
            )
            half = 1.96 * means.std() / math.sqrt(len(means))
            above = float((means > least + ABOVE).mean())
            line[f"mean, {budget} R"] = f"{means.mean():.3f} ± {half:.3f}"
            line[f"worst quarter, {budget} R"] = float(np.mean([*map(worst, own)]))
            line[f"above the best other, {budget} R"] = f"{100 * above:.0f} %"
        share = broken_share(regrets, method, problems)
        line["more budget is worse"] = f"{100 * share:.1f} %"
        lines.append(line)
    return lines


def worst(values: list[float]) -> float:
    """Return the mean of the worst quarter of the seeds, at least of one."""
    return float(np.mean(sorted(values)[-max(1, len(values) // 4) :]))


def broken_share(regrets: Regrets, method: str, problems: list[str]) -> float:
    """Return the share of seeds in which four times the budget ends much worse."""
    less, more = (
        np.concatenate([regrets[method, problem, budget] for problem in problems])
        for budget in BUDGETS
    )
    return float((more > less + WORSE).mean())


def by_kind(
    regrets: Regrets, methods: list[str], problems: list[Problem]
) -> list[dict[str, Any]]:
    """Return a row per kind: the mean regret of every method."""
    names: dict[str, list[str]] = defaultdict(list)
    for problem in problems:
        names[kind_of(problem)].append(problem.name)
    return [
        {"kind": kind}
        | {
            method: " ".join(
                f"{np.mean([regrets[method, name, budget] for name in inside]):.2f}"
                for budget in BUDGETS
            )
            for method in methods
        }
        for kind, inside in names.items()
    ]
