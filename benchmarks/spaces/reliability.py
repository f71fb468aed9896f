"""Problems of 56 kinds: how far the default can be relied on.

Regret is that of ``spaces``, by validation and by test scores. Beside its mean stand
the mean over the worst quarter of the seeds of each problem, on how many problems it is
more than .05 above the best of the others and above random search, and in how many
searches four times the budget ended more than .1 worse. The default scale has the half
of the kinds that may choose rules; only ``--full`` has the half that reports. Searches
that ``results.csv`` has already are not repeated.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.shared import report
from benchmarks.spaces import outside
from benchmarks.spaces.kinds import CHOOSES, kind_of, makers, problems_of
from benchmarks.spaces.methods import CMA_ES, LISTED, METHODS, OPEN, search
from benchmarks.spaces.problems import Problem, Scores
from benchmarks.spaces.reference import reference
from benchmarks.spaces.suite import interval
from risingsearch.errors import InvalidParameterError

BUDGETS = (5, 20)
SEEDS = {"quick": 1, "default": 4, "full": 8}
PROBLEMS = {"quick": 2, "default": 1000, "full": 1000}
RANDOM = "random"
NGOPT = "NGOpt"
SMAC = "SMAC3"
PEERS = ("TPE", "TPE + median", "TPE + Hyperband", RANDOM)
SLOW = ("GPSampler", CMA_ES, NGOPT, "DEHB", SMAC)
KNOW_THE_BUDGET = (OPEN, LISTED, NGOPT, SMAC)
ABOVE = 0.05
WORSE = 0.1
Floats = NDArray[np.float64]


class Run(NamedTuple):
    """A search of a problem, up to a budget of so many trainings."""

    problem: str
    method: str
    seed: int
    budget: int


Regrets = dict[Run, Scores]


def run(
    out: Path,
    *,
    scale: str,
    seed: int,
    data_dir: Path | None = None,
    seeds: int | None = None,
    kinds: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    budgets: Sequence[int] | None = None,
) -> None:
    """Search every problem by every method; write tables."""
    known = [kind for kind in makers(data_dir) if scale == "full" or kind in CHOOSES]
    without_data = sorted(CHOOSES.difference(known))
    if without_data and kinds is None:
        print(f"left out: {', '.join(without_data)}: no data in {data_dir}")
    problems = list(islice(problems_of(kinds or known, data_dir), PROBLEMS[scale]))
    methods = searches(
        methods or [OPEN, *PEERS, *(SLOW if scale == "full" else ())],
        out / "environments",
    )
    every = sorted(budgets or BUDGETS)
    n_seeds = seeds or SEEDS[scale]
    own_seeds = range(seed, seed + n_seeds)
    regrets = earlier(out / "results.csv")
    for problem in problems:
        regrets |= missing(problem, methods, own_seeds, every, regrets)
        report.write_results(
            out,
            [
                {**found._asdict(), "regret": regret.validation, "on test": regret.test}
                for found, regret in regrets.items()
            ],
        )
    parts = [f"{n_seeds} seeds; ± is half the 95 % interval over problems."]
    for title, chooses in (("chooses", True), ("reports", False)):
        half = [one for one in problems if (kind_of(one.name) in CHOOSES) == chooses]
        if half:
            parts.append(f"## The half that {title}: {len(half)} problems")
            parts += tables(regrets, half, methods, every, own_seeds)
    report.write_summary(out, "Reliability", parts)


def tables(
    regrets: Regrets,
    problems: Sequence[Problem],
    methods: Sequence[str],
    budgets: Sequence[int],
    seeds: range,
) -> Iterator[str]:
    """Yield the tables of some problems."""
    every = product([one.name for one in problems], methods, budgets, seeds)
    rows = [
        regrets[Run(problem, method, seed, budget)]
        for problem, method, budget, seed in every
    ]
    shape = len(problems), len(methods), len(budgets), len(seeds), 2
    validation, test = np.moveaxis(np.reshape(rows, shape), -1, 0)
    for budget in budgets:
        yield report.table(measures(validation, methods, budgets, budget))
    yield "By kind, at " + ", ".join(f"{budget} R" for budget in budgets) + ":"
    yield report.table(by_kind(validation, methods, problems))
    tested = [problem.has_test for problem in problems]
    if any(tested):
        yield f"The regret of test scores, on {sum(tested)} problems that have them:"
        for budget in budgets:
            yield report.table(measures(test[tested], methods, budgets, budget))


def searches(wanted: Sequence[str], cache: Path) -> list[str]:
    """Return those of the methods that are installed, or can be."""
    known = dict.fromkeys([*METHODS, CMA_ES, *outside.PEERS])
    unknown = [name for name in wanted if name not in known]
    if unknown:
        msg = f"methods={', '.join(unknown)}: there are {', '.join(known)}"
        raise InvalidParameterError(msg)
    if CMA_ES in wanted and CMA_ES not in METHODS:
        print(f"left out: {CMA_ES}: not installed: pip install cmaes")
    elsewhere = [name for name in wanted if name in outside.PEERS]
    METHODS.update(outside.installed(elsewhere, cache))
    return [name for name in wanted if name in METHODS]


def earlier(file: Path) -> Regrets:
    """Return what an earlier call has written."""
    if not file.is_file():
        return {}
    with file.open(newline="") as rows:
        return {
            Run(row["problem"], row["method"], int(row["seed"]), int(row["budget"])): (
                Scores(float(row["regret"]), float(row["on test"]))
            )
            for row in csv.DictReader(rows)
        }


def missing(
    problem: Problem,
    methods: Sequence[str],
    seeds: range,
    budgets: Sequence[int],
    known: Regrets,
) -> Regrets:
    """Return the regrets that are not known yet.

    A search that does not know its budget is one for all of them.
    """
    found: Regrets = {}
    wanted = [
        Run(problem.name, method, seed, budget)
        for seed in seeds
        for method in methods
        for budget in sorted(budgets, reverse=True)
    ]
    best = None
    for run in wanted:
        if run in known or run in found:
            continue
        best = best or reference(problem)
        n_epochs = run.budget * problem.n_epochs
        result = search(run.method, problem, n_epochs, run.seed, 1)
        plans = run.method in KNOW_THE_BUDGET
        for budget in (run.budget,) if plans else budgets:
            if budget <= run.budget:
                last = budget * problem.n_epochs - 1
                scores = Scores(result.true[last], result.test[last])
                found[run._replace(budget=budget)] = best.regret(scores)
    return found


def worst_quarter(regrets: Floats) -> Floats:
    """Return the mean of the worst quarter of the last axis, at least of one."""
    n = max(1, regrets.shape[-1] // 4)
    found: Floats = np.sort(regrets, axis=-1)[..., -n:].mean(axis=-1)
    return found


def measures(
    regrets: Floats, methods: Sequence[str], budgets: Sequence[int], budget: int
) -> list[dict[str, str]]:
    """Return a row per method; the axes are problem, method, budget and seed."""
    at = regrets[:, :, budgets.index(budget)]
    means = at.mean(axis=-1)
    peers = [name not in (OPEN, LISTED) for name in methods]
    lines = []
    for k, method in enumerate(methods):
        line = {
            f"{budget} R": method,
            "mean": shown(means[:, k]),
            "worst quarter": shown(worst_quarter(at[:, k])),
        }
        if any(peers):
            least = means[:, peers].min(axis=1)
            line["> .05 above the best other"] = shown(means[:, k] > least + ABOVE)
        if RANDOM in methods:
            drawn = means[:, methods.index(RANDOM)]
            line["> .05 above random"] = shown(means[:, k] > drawn + ABOVE)
        if 4 * budget in budgets:
            later = regrets[:, k, budgets.index(4 * budget)]
            line["> .1 worse with four times"] = shown(
                (later > at[:, k] + WORSE).mean(axis=1)
            )
        lines.append(line)
    return lines


def shown(values: Floats | NDArray[np.bool_]) -> str:
    """Return a mean over problems and its interval."""
    figures = values.astype(float)
    return f"{figures.mean():.3f} ± {interval(figures):.3f}"


def by_kind(
    regrets: Floats, methods: Sequence[str], problems: Sequence[Problem]
) -> list[dict[str, str]]:
    """Return a row per kind: the mean regret of every method, at every budget."""
    kinds = [kind_of(problem.name) for problem in problems]
    lines = []
    for kind in dict.fromkeys(kinds):
        inside = [own == kind for own in kinds]
        means = regrets[inside].mean(axis=(0, 3))
        lines.append(
            {"kind": kind}
            | {
                method: " ".join(f"{regret:.2f}" for regret in row)
                for method, row in zip(methods, means, strict=True)
            }
        )
    return lines
