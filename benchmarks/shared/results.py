"""What suites read off a ``Comparison`` in one environment: numbers and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.shared import report
from risingsearch.simulation import Comparison
from risingsearch.simulation.statistics import half_width


def at(comparison: Comparison, horizon: int) -> NDArray[np.float64]:
    """Return the regrets at a horizon, of shape (n_policies, n_runs)."""
    h = comparison.horizons.index(horizon)
    regret: NDArray[np.float64] = comparison.regret[0, h]
    return regret


def only(comparison: Comparison, names: Sequence[str]) -> Comparison:
    """Return the comparison of some of its policies."""
    kept = [comparison.policies.index(name) for name in names]
    return replace(
        comparison,
        policies=list(names),
        regret=comparison.regret[:, :, kept],
        best_mean=comparison.best_mean[:, :, kept],
    )


def means(comparison: Comparison, horizon: int) -> dict[str, float]:
    """Return the mean regret of every policy, the lowest first."""
    return _ascending(comparison.policies, at(comparison, horizon).mean(axis=1))


def ranks(comparison: Comparison, horizon: int) -> NDArray[np.float64]:
    """Return the ranks by regret, of shape (n_policies, n_runs); ties share a rank."""
    shared: NDArray[np.float64] = stats.rankdata(at(comparison, horizon), axis=0)
    return shared


def average_ranks(comparison: Comparison, horizon: int) -> dict[str, float]:
    """Return the average rank of every policy, the best first."""
    return _ascending(comparison.policies, ranks(comparison, horizon).mean(axis=1))


def rows(part: str, comparison: Comparison, **columns: Any) -> list[dict[str, Any]]:
    """Return the rows of ``results.csv`` for a part of a suite."""
    records = comparison.to_frame().to_dict("records")
    return [{"part": part, **columns, **record} for record in records]


def regret_table(comparison: Comparison, horizons: Sequence[int]) -> str:
    """Return mean regret with its interval, and average rank; the lowest on top."""
    lines = []
    for name in means(comparison, horizons[-1]):
        p = comparison.policies.index(name)
        line: dict[str, Any] = {"policy": name}
        for horizon in horizons:
            line[f"T = {horizon:,}"] = with_interval(at(comparison, horizon)[p])
            rank = average_ranks(comparison, horizon)[name]
            line[f"rank, {horizon:,}"] = f"{rank:.2f}"
        lines.append(line)
    return report.table(lines)


def reference_table(
    comparison: Comparison, references: Mapping[int, Mapping[str, float]]
) -> str:
    """Return mean regrets beside those of another source, per horizon and policy."""
    lines = []
    for horizon, expected in references.items():
        for name, figure in expected.items():
            regret = at(comparison, horizon)[comparison.policies.index(name)]
            more = regret.mean() - figure
            # In percent of a handful of rounds a difference says nothing.
            difference = f"{more / figure:+.1%}" if figure >= 10 else f"{more:+.1f}"
            lines.append(
                {
                    "policy": name,
                    "T": f"{horizon:,}",
                    "theirs": f"{figure:,.0f}",
                    "ours": with_interval(regret),
                    "difference": difference,
                }
            )
    return report.table(lines)


def with_interval(samples: NDArray[np.float64]) -> str:
    """Return the mean and half its 95 % interval, in words."""
    text = f"{round(samples.mean()):,}"  # an int, which knows no -0
    return text if len(samples) == 1 else f"{text} ± {half_width(samples):,.0f}"


def paired_p_value(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of a paired t-test; NaN where none differs."""
    difference = first - second
    n = len(difference)
    if n == 1 or not difference.any():
        return math.nan
    error = difference.std(ddof=1) / math.sqrt(n)
    t = abs(difference.mean()) / error if error > 0.0 else math.inf
    return float(2.0 * stats.t.sf(t, n - 1))


def _ascending(names: Sequence[str], values: NDArray[np.float64]) -> dict[str, float]:
    pairs = zip(names, values.tolist(), strict=True)
    return dict(sorted(pairs, key=lambda pair: pair[1]))
