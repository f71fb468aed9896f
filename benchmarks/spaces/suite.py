"""Continuous spaces: regret after 5 to 100 full trainings, beside other tools.

Regret is how far the best found is from the best that is known, as a share of its
distance from the median random configuration, from 0 to 1. The best found is the one
with the best reported score, judged by its true one. The best known is that of random
configurations with climbs from the best of them, or of any search here.
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
from benchmarks.spaces.methods import LISTED, METHODS, OPEN, search
from benchmarks.spaces.outside import installed
from benchmarks.spaces.problems import EPOCHS, Problem, problems
from benchmarks.spaces.reference import Reference, reference

MULTIPLES = {"quick": (5, 20), "default": (5, 20, 50), "full": (5, 20, 50, 100)}
SEEDS = {"quick": 1, "default": 2, "full": 5}
PROBLEMS = {"quick": 3, "default": 100, "full": 100}
JOBS = {"quick": (1,), "default": (1,), "full": (1, 8)}
Regrets = dict[tuple[int, str, str, int], list[float]]  # jobs, problem, method, budget


def run(out: Path, *, scale: str, seed: int, data_dir: Path | None = None) -> None:
    """Search every problem by every method; write tables."""
    multiples, found = MULTIPLES[scale], []
    if scale == "full":
        METHODS.update(installed(("BOHB", "MOBSTER"), out / "environments"))
    chosen = list(islice(problems(data_dir), PROBLEMS[scale]))
    references = {problem.name: reference(problem) for problem in chosen}
    for problem in chosen:
        for row in rows(problem, multiples, range(seed, seed + SEEDS[scale]), scale):
            found.append(row)
            report.write_results(out, found)
    regrets, seconds = regrets_of(found, references)
    parts = []
    for jobs in JOBS[scale]:
        parts += [
            f"Mean regret, {jobs} at a time; ± is half the 95 % interval over "
            "problems, in brackets is on how many this library leads:",
            by_method(regrets, chosen, multiples, jobs),
            "By problem, at " + ", ".join(f"{m} R" for m in multiples) + ":",
            by_problem(regrets, chosen, multiples, jobs),
        ]
    parts += ["Seconds of processor time, largest budget, trainings included:"]
    parts += [report.table([{m: float(np.mean(s)) for m, s in seconds.items()}])]
    intro = f"{SEEDS[scale]} seeds, R = {EPOCHS} epochs, {len(chosen)} problems."
    report.write_summary(out, "Continuous spaces", [intro, *parts])


def rows(
    problem: Problem, multiples: tuple[int, ...], seeds: range, scale: str
) -> Iterator[dict[str, Any]]:
    """Yield a row per search and budget; a search of Optuna's knows no budget."""
    for jobs in JOBS[scale]:
        for seed in seeds:
            for method in METHODS:
                plans = method in (OPEN, LISTED)
                for budget in multiples if plans else multiples[-1:]:
                    found = search(method, problem, budget * EPOCHS, seed, jobs)
                    for multiple in (budget,) if plans else multiples:
                        at = min(multiple * EPOCHS, len(found.true)) - 1
                        yield {
                            "problem": problem.name,
                            "method": method,
                            "jobs": jobs,
                            "seed": seed,
                            "multiple": multiple,
                            "true": found.true[at],
                            "seconds": found.seconds[at],
                        }


def regrets_of(
    found: list[dict[str, Any]], references: dict[str, Reference]
) -> tuple[Regrets, dict[str, list[float]]]:
    """Return regrets, and the seconds of searches of the largest budget."""
    regrets: Regrets = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)
    largest = max(row["multiple"] for row in found)
    for row in found:
        own = [each["true"] for each in found if each["problem"] == row["problem"]]
        typical = references[row["problem"]].typical.validation
        best = max(references[row["problem"]].best.validation, *own)
        regret = min(1.0, max(0.0, (best - row["true"]) / (best - typical)))
        key = row["jobs"], row["problem"], row["method"], row["multiple"]
        regrets[key].append(regret)
        if row["multiple"] == largest:
            seconds[row["method"]].append(row["seconds"])
    return regrets, seconds


def means(
    regrets: Regrets, chosen: list[Problem], jobs: int, method: str, multiple: int
) -> Any:
    """Return the mean regret on every problem."""
    keys = [(jobs, problem.name, method, multiple) for problem in chosen]
    return np.array([np.mean(regrets[key]) for key in keys])


def interval(values: Any) -> float:
    """Return half the 95 % interval of the mean."""
    n = len(values)
    return float(1.96 * values.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan


def by_method(
    regrets: Regrets, chosen: list[Problem], multiples: tuple[int, ...], jobs: int
) -> str:
    """Return a table of the methods: mean regret at every budget, and differences."""
    lines = []
    for method in METHODS:
        line = {"method": method}
        for multiple in multiples:
            own = means(regrets, chosen, jobs, OPEN, multiple)
            other = means(regrets, chosen, jobs, method, multiple)
            less, n = own - other, int((own < other).sum())
            line[f"{multiple} R"] = f"{other.mean():.3f} ± {interval(other):.3f}"
            line[f"{OPEN} less that, {multiple} R"] = (
                f"{less.mean():+.3f} ± {interval(less):.3f} ({n} of {len(less)})"
            )
        lines.append(line)
    return report.table(lines)


def by_problem(
    regrets: Regrets, chosen: list[Problem], multiples: tuple[int, ...], jobs: int
) -> str:
    """Return a table of the problems: mean regret of every method."""
    lines = []
    for method in METHODS:
        line = {"method": method}
        for k, problem in enumerate(chosen):
            at = [means(regrets, chosen, jobs, method, m)[k] for m in multiples]
            line[problem.name] = " ".join(f"{value:.2f}" for value in at)
        lines.append(line)
    return report.table(lines)
