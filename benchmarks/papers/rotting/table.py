"""Table 1 of the rotting bandits paper: wins of each policy over each other one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from scipy import stats

from benchmarks.papers.rotting.paper import HORIZON, PAPER_RUNS, Case
from benchmarks.shared import report
from benchmarks.shared.claims import LEVEL
from benchmarks.shared.results import at, paired_p_value
from risingsearch.simulation import Comparison

P_BAR = 1e-5
"""What the table calls significant is far below this."""


def parts(main: Mapping[Case, Comparison]) -> Iterator[str]:
    """Return the table, case by case, and every count beside the others'."""
    yield (
        f"The first {PAPER_RUNS} runs. Below the diagonal the runs in percent in which "
        "the row had less regret than the column, above it the p-value of a paired "
        "t-test; in brackets the paper's."
    )
    for case, comparison in main.items():
        yield table_1(case, first_runs(comparison))
    runs = next(iter(main.values())).regret.shape[-1]
    yield (
        f"Wins beside: what the paper counted in {PAPER_RUNS} runs, an independent "
        f"implementation in 300, and this one in {PAPER_RUNS} and in {runs:,}; in "
        "percent. That ours and the paper's do not differ by chance alone is said "
        f"where Fisher's exact test gives p < {LEVEL:g}; of so many pairs, one or two "
        "would be called so by chance."
    )
    yield report.table([row for case in main for row in counts(case, main[case])])


def table_1(case: Case, comparison: Comparison) -> str:
    """Return wins below the diagonal and p-values above, with the paper's."""
    pairs = case.wins.keys()
    shares = wins(comparison)

    def cell(row: str, column: str) -> str:
        if (row, column) in pairs:
            return f"{shares.loc[row, column]:.0f} ({case.wins[row, column].paper})"
        if (column, row) in pairs:
            p = p_value(comparison, row, column)
            ours = "<1e-5" if p < P_BAR else f"{p:.2g}"
            return f"{ours} ({case.p_values.get((row, column), '<<1e-5')})"
        return ""

    names = [name for name in comparison.policies if any(name in p for p in pairs)]
    return report.table(
        [{case.name: row} | {name: cell(row, name) for name in names} for row in names]
    )


def counts(case: Case, comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Return for every pair the paper's count, the reference's, and both of ours."""
    shares, first = wins(comparison), wins(first_runs(comparison))
    n = comparison.regret.shape[-1]
    for (row, column), wins_of in case.wins.items():
        ours = round(shares.loc[row, column] * n / 100)
        table = [[wins_of.paper, PAPER_RUNS - wins_of.paper], [ours, n - ours]]
        p = float(stats.fisher_exact(table)[1])
        yield {
            "case": case.name,
            "wins of": row,
            "over": column,
            "paper": wins_of.paper,
            "reference": wins_of.reference,
            f"first {PAPER_RUNS}": f"{first.loc[row, column]:.0f}",
            "all": f"{shares.loc[row, column]:.1f}",
            "ours and the paper's": f"differ, p = {p:.2g}" if p < LEVEL else "agree",
        }


def first_runs(comparison: Comparison) -> Comparison:
    """Return the comparison of as many runs as the paper's."""
    return replace(
        comparison,
        regret=comparison.regret[..., :PAPER_RUNS],
        best_mean=comparison.best_mean[..., :PAPER_RUNS],
    )


def wins(comparison: Comparison) -> Any:
    """Return in how many percent of the runs the row beat the column."""
    return 100 * comparison.wins(comparison.environments[0], HORIZON)


def p_value(comparison: Comparison, first: str, second: str) -> float:
    """Return the p-value of a paired t-test; 1 where the two never differ."""
    regret = at(comparison, HORIZON)
    p = paired_p_value(*(regret[comparison.policies.index(n)] for n in (first, second)))
    return 1.0 if math.isnan(p) else p
