"""RAVEN-UCB: section 4, Tables 3 and 4 and Figs. 2 to 5 of its paper.

Fang et al.: "From Theory to Practice with RAVEN-UCB: Addressing Non-Stationarity in
Multi-Armed Bandits through Variance Adaptation".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.raven import logistics, reduction, sensitivity
from benchmarks.papers.raven.sensitivity import LONG, TABLE_1
from benchmarks.papers.raven.study import PAPER, SCALES, Study, everyone, result_rows
from benchmarks.papers.raven.trials import DYNAMIC, Trials, play
from benchmarks.shared import report
from benchmarks.shared.results import with_interval
from risingsearch.simulation import Comparison
from risingsearch.simulation.statistics import average_ranks


def run(out: Path, *, scale: str, seed: int, jobs: int | None = None) -> None:
    """Repeat the three experiments of the paper, then play all other policies."""
    study = Study(SCALES[scale], seed, jobs)
    reduced = reduction.measure(study)
    grid = sensitivity.measure(study)
    trials = logistics.measure(study)
    rows = [
        *reduction.rows(reduced),
        *result_rows("sensitivity", grid),
        *logistics.rows("logistics", trials),
    ]
    parts = [
        "## Regret reduction",
        *reduction.parts(reduced, out),
        "## Sensitivity",
        *sensitivity.parts(grid, out),
        "## Logistics",
        *logistics.parts(trials, out),
    ]
    if runs := study.scale.other_runs:
        scenarios = study.play(everyone(), TABLE_1, [LONG], runs)
        rest = {name: given for name, given in everyone().items() if name not in PAPER}
        others = play(rest, runs, seed, jobs)
        rows += result_rows("scenarios", scenarios)
        rows += logistics.rows("other policies", others)
        parts += ["## Beyond the paper", *beyond_parts(scenarios, trials, others)]
    report.write_results(out, rows)
    report.write_summary(out, "RAVEN-UCB paper, section 4", parts)


def beyond_parts(
    scenarios: Comparison, trials: Trials, others: Trials
) -> Iterator[str]:
    """Return how all policies do in the kinds of change of Table 1, and in logistics.

    Those of the paper as in its Table 4, all others with their defaults.
    """
    runs = scenarios.regret.shape[-1]

    def warehouses(name: str) -> NDArray[np.float64]:
        played = trials if name in PAPER else others
        return played.ends(DYNAMIC, name)[:runs]

    yield (
        f"All policies that play to the end: {', '.join(PAPER)} as in Table 4, the "
        f"others with their defaults. Mean dynamic regret of {runs} runs of {LONG:,} "
        "rounds in each kind of change of Table 1, and of as many trials of the "
        "logistics experiment; ordered by average rank in the former."
    )
    rank = average_ranks(scenarios.regret[:, 0]).mean(axis=0)
    yield report.table(
        [
            {
                "policy": scenarios.policies[p],
                "rank": f"{rank[p]:.1f}",
                **{
                    name: f"{scenarios.regret[e, 0, p].mean():,.0f}"
                    for e, name in enumerate(scenarios.environments)
                },
                "logistics": with_interval(warehouses(scenarios.policies[p])),
            }
            for p in np.argsort(rank, kind="stable")
        ]
    )
