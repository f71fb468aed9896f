"""Reports of ``risingsearch simulate``, as plain values and as lines of text."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from risingsearch.curves import LoadedCurves, list_environments, make_environment
from risingsearch.json_values import Json
from risingsearch.policies import make_policy, resolve_policy
from risingsearch.simulation import recorded_search
from risingsearch.simulation.calls import Calls
from risingsearch.simulation.comparison import compare
from risingsearch.simulation.plan import Parameters

REFERENCES = {
    "best-arm": "the best single arm",
    "greedy": "always the arm with the best next mean",
    "allocation": "the best numbers of pulls",
    "dynamic": "the best arm of every round",
    "static": "a constant mean per round",
}
BASELINE = "random-search"
WIDTH = 79

HORIZONS = (10_000, 50_000)
RISING = ("cure-ucb", "r-ed-ucb", "ti-ucb", "sw-ucb", "ucb1", "round-robin")
ROTTING = ("swa", "wswa", "sw-ucb", "d-ucb", "ucb1", "round-robin")
RESTLESS = ("be", "rexp3", "sw-ucb", "d-ucb", "raven-ucb", "ucb1", "round-robin")

_SAME_FOR_ALL = ("environment", "n_runs")


def environment_report(
    name: str,
    policies: Calls | None,
    horizons: Sequence[int] | None,
    n_runs: int,
    seed: int,
    jobs: int | None,
    parameters: Parameters,
    *,
    progress: bool = False,
) -> Json:
    """Play policies in a named environment; return one row per horizon and policy."""
    horizons = horizons or HORIZONS
    sample = make_environment(
        name,
        horizons[0],
        seed,
        **parameters,
    )
    if not policies:
        [setting] = [info.setting for info in list_environments() if info.name == name]
        suitable: Sequence[str] = RISING
        if setting == "restless":
            suitable = RESTLESS
        elif sample.reference == "greedy":
            suitable = ROTTING
        policies = {policy: (policy, {}) for policy in suitable}
    named = _resolved(policies)
    # What is wrong is said before anything compiles.
    for policy, params in named.values():
        make_policy(
            policy,
            sample.n_arms,
            horizons[0],
            **params,
        )
    environments = {name: (name, parameters)}
    result = compare(
        named, environments, horizons, n_runs, seed, jobs, progress=progress
    )
    return {
        "environment": name,
        "parameters": dict(parameters),
        "reference": sample.reference,
        "n_runs": n_runs,
        "seed": seed,
        "rows": [
            {name: row[name] for name in row if name not in _SAME_FOR_ALL}
            for _, block in _blocks(result.rows(), "horizon")
            for row in sorted(block, key=lambda row: row["mean_regret"])
        ],
    }


def _resolved(policies: Calls) -> Calls:
    """Replace ``auto`` by the policy that it stands for."""
    named = {}
    for label, (name, params) in policies.items():
        resolved = resolve_policy(name)
        named[resolved + label.removeprefix(name)] = resolved, params
    return named


def environment_lines(report: Json) -> Iterator[str]:
    """Yield the lines of a table: policies by their regret, horizon by horizon."""
    rows = report["rows"]
    width = max(len(row["policy"]) for row in rows)
    yield from [
        f"{report['environment']}: regret against {REFERENCES[report['reference']]}",
        f"mean of {_counted(report['n_runs'], 'run')}, its 95 % interval, and the "
        "average rank (1 is the lowest)",
    ]
    for horizon, block in _blocks(rows, "horizon"):
        digits = _digits(max(abs(row["mean_regret"]) for row in block), 3)
        yield ""
        title = f"{horizon} rounds"
        yield f"{title:{width + 2}}{'regret':>12}{'95 % interval':>24}{'rank':>8}"
        for row in block:
            interval = f"{row['low']:.{digits}f} to {row['high']:.{digits}f}"
            yield (
                f"  {row['policy']:{width}}{row['mean_regret']:>12.{digits}f}"
                f"{interval if report['n_runs'] > 1 else '-':>24}"
                f"{row['average_rank']:>8.2f}"
            )


def recorded_report(
    file: str,
    curves: LoadedCurves,
    policies: Calls | None,
    budgets: Sequence[int] | None,
    n_runs: int,
    seed: int,
    jobs: int | None,
    *,
    noise: float,
    minimize: bool,
    within: float | None,
    progress: bool = False,
) -> Json:
    """Replay searches on recorded curves; return one row per budget and policy."""
    result = recorded_search.search_recorded(
        curves.means,
        _resolved(policies) if policies else recorded_search.EPOCH_SCHEDULERS,
        budgets,
        n_runs,
        seed,
        jobs,
        noise=noise,
        minimize=minimize,
        progress=progress,
    )
    lengths = np.isfinite(curves.means).sum(axis=1)
    return {
        "file": file,
        "form": curves.form,
        "n_configurations": len(lengths),
        "longest": int(lengths.max()),
        "n_epochs": int(lengths.sum()),
        "best": result.best,
        "typical": result.typical,
        "direction": "minimize" if minimize else "maximize",
        "noise": noise,
        "n_runs": n_runs,
        "seed": seed,
        "rows": result.rows(),
        "verdict": verdict(result, within),
    }


def recorded_lines(report: Json) -> Iterator[str]:
    """Yield the lines of a table: policies by their score, budget by budget."""
    rows = report["rows"]
    digits = _score_digits(report["best"], report["typical"])
    width = max(len(row["policy"]) for row in rows)
    minimize = report["direction"] == "minimize"
    yield from _wrapped(
        f"{Path(report['file']).name}: {report['form']}, "
        f"{_counted(report['n_configurations'], 'configuration')} of up to "
        f"{_counted(report['longest'], 'epoch')} ({report['n_epochs']} in all)"
    )
    yield (
        f"best recorded score {report['best']:.{digits}f}; best of the median "
        f"configuration {report['typical']:.{digits}f}"
    )
    yield (
        "score: of the epoch that a search found best; mean of "
        f"{_counted(report['n_runs'], 'run')} in random order"
    )
    yield "*: best of its budget; =: no clear difference from it"
    away = "below best"
    if minimize:
        away = "above best"
    for budget, block in _blocks(rows, "budget"):
        yield ""
        title = _counted(budget, "epoch")
        yield (f"{title:{width + 4}}{'score':>10}{'95 % +-':>10}{away:>12}{'used':>8}")
        for row in block:
            mark = " "
            if row["best"]:
                mark = "*"
            elif row["as_good"]:
                mark = "="
            half = f"{row['high'] - row['mean_score']:.{digits}f}"
            yield (
                f"  {row['policy']:{width}} {mark}{row['mean_score']:>10.{digits}f}"
                f"{half if report['n_runs'] > 1 else '-':>10}"
                f"{row['distance']:>12.{digits}f}{row['epochs']:>8.0f}"
            )
    yield from ["", *_wrapped(report["verdict"])]


def verdict(result: recorded_search.RecordedSearch, within: float | None) -> str:
    """Return a sentence that says which policy and budget would have been enough."""
    digits = _score_digits(result.best, result.typical)
    scores = result.score.mean(axis=-1)
    distance = result.mean_distance
    enough = result.enough(within)
    if enough is None:
        b, p = divmod(int(distance.argmin()), len(result.policies))
    else:
        b = result.budgets.index(enough[0])
        p = result.policies.index(enough[1])
    policy = result.policies[p]
    budget = _counted(result.budgets[b], "epoch")
    score = f"{scores[b, p]:.{digits}f}"
    best = f"{result.best:.{digits}f}"
    if enough is None:
        words = (
            f"No policy comes within {result.near(within):.{digits}f} of the best "
            f"recorded score, {best}, on average. Nearest is {policy} with {budget}: "
            f"{score}."
        )
    else:
        words = (
            f"{policy} with {budget} would have found {score} on average (best "
            f"recorded {best})."
        )
    if BASELINE not in result.policies or policy == BASELINE:
        return words
    baseline = result.policies.index(BASELINE)
    reached = np.flatnonzero(distance[:, baseline] <= distance[b, p])
    if len(reached) > 0:
        needs = _counted(result.budgets[reached[0]], "epoch")
        return f"{words} {BASELINE} needs {needs} for that."
    return (
        f"{words} {BASELINE} does not get there: {scores[-1, baseline]:.{digits}f} "
        f"with {_counted(result.budgets[-1], 'epoch')}."
    )


def _blocks(rows: Sequence[Json], key: str) -> Iterator[tuple[int, list[Json]]]:
    for value in dict.fromkeys(row[key] for row in rows):
        yield value, [row for row in rows if row[key] == value]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def _score_digits(best: float, typical: float) -> int:
    # Four figures of what separates the good from the usual, at most five of a score.
    digits = _digits(max(abs(best), abs(typical)), 5)
    if best == typical:
        return digits
    return min(digits, _digits(abs(best - typical), 4))


def _digits(scale: float, figures: int) -> int:
    """Return the decimals that show so many figures of a number of this size."""
    if scale <= 0.0:
        return figures - 1
    return max(0, figures - 1 - math.floor(math.log10(scale)))
