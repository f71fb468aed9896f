"""How much of the rotting bandits paper is measured."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.papers.rotting.paper import HORIZON, PAPER_RUNS, Case
from risingsearch.simulation import Comparison, compare


class Scale(NamedTuple):
    """How much is measured."""

    runs: int
    drawn_runs: int
    full: bool  # also the grid searches, and policies that the paper does not have


SCALES = {
    "quick": Scale(300, 20, full=False),
    "default": Scale(500, PAPER_RUNS, full=False),
    "full": Scale(1000, PAPER_RUNS, full=True),
}


class Study(NamedTuple):
    """How much is measured, from which seed on, in how many threads."""

    scale: Scale
    seed: int
    jobs: int | None

    def play(
        self, case: Case, policies: Mapping[str, Any], runs: int | None = None
    ) -> Comparison:
        """Compare policies at the paper's horizon."""
        runs = runs or self.scale.runs
        print(f"{case.name}: {len(policies)} policies, {runs} runs", file=sys.stderr)
        environments = [case.environment]
        return compare(policies, environments, [HORIZON], runs, self.seed, self.jobs)
