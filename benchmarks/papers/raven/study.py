"""How much of the RAVEN-UCB paper is measured, with which policies, and its rows."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.curves.shifting import MEANS
from risingsearch.policies import list_policies
from risingsearch.simulation import Comparison, compare

HORIZONS = (
    *(100, 200, 250, 500, 1_000, 2_000, 5_000, 5_200, 5_400, 5_500, 6_000, 7_000),
    *(8_000, 9_000, 9_500, 10_000, 10_500, 11_000, 13_000, 13_500, 14_000, 14_500),
    15_000,
)
SCRIPT = {"denominator": "n+1"}

# What the scripts of the paper do, which is not always what the paper cites. Thompson
# sampling and f-dsw TS scale rewards there by the true means of all arms at that time,
# which no policy can know; here by the range that is declared.
PAPER: dict[str, dict[str, Any]] = {
    "raven-ucb": {"alpha0": 0.5, "beta0": 1.0, "eps": 1e-6, "variance": "table4"},
    "ccb": {},
    "thompson-beta": {"fractional": True, "reward_range": MEANS},
    "epsilon-greedy": {"epsilon": 0.1},
    "wls-ots": {"decay": 0.95, "window": 50},
    "f-dsw-ts": {"discount": 0.99, "window": None, "reward_range": MEANS},
    "ucb1": SCRIPT,
    "ucb-v": {"variance": "table4", "zeta": 1.0} | SCRIPT,
    "ucb-improved": {"order": "random"},
}


class Scale(NamedTuple):
    """How much is measured."""

    horizons: tuple[int, ...]  # of the regret reduction
    fresh_runs: int  # on which what was tuned is played again
    grid_runs: int  # of every pair of the sensitivity study
    trials: int  # of the logistics experiment
    other_runs: int  # of policies that the paper does not have; 0: none


SCALES = {
    "quick": Scale((100, 1_000, 5_000), 50, 40, 10, 0),
    "default": Scale(HORIZONS, 200, 160, 50, 0),
    "full": Scale(HORIZONS, 500, 400, 50, 20),
}


class Study(NamedTuple):
    """How much is measured, from which seed on, in how many threads."""

    scale: Scale
    seed: int
    jobs: int | None

    def play(
        self,
        policies: Mapping[str, Any],
        environments: Sequence[str],
        horizons: Sequence[int],
        runs: int,
    ) -> Comparison:
        """Compare policies on the same runs of several environments."""
        announce(f"{len(policies)} policies, {runs} runs of {', '.join(environments)}")
        return compare(policies, environments, horizons, runs, self.seed, self.jobs)


def everyone() -> dict[str, Any]:
    """Return the paper's policies as it plays them, and all others that play on."""
    names = [info.name for info in list_policies() if info.adaptive]
    named = PAPER | {name: {} for name in names if name not in PAPER}
    return {name: (name, given) for name, given in named.items()}


def announce(what: str) -> None:
    """Say what is being done."""
    print(f"raven: {what}", file=sys.stderr)


def result_row(
    part: str,
    environment: str,
    horizon: int,
    what: str,
    measure: str,
    samples: NDArray[np.float64],
) -> dict[str, Any]:
    """Return a row of ``results.csv``: one measure of one policy or setting."""
    return {
        "part": part,
        "environment": environment,
        "horizon": horizon,
        "what": what,
        "measure": measure,
        "mean": float(samples.mean()),
        "standard_error": standard_error(samples),
        "n_runs": len(samples),
    }


def result_rows(part: str, comparison: Comparison) -> list[dict[str, Any]]:
    """Return a row for every mean regret of a comparison."""
    grid = np.ndindex(comparison.regret.shape[:3])
    return [
        result_row(
            part,
            comparison.environments[e],
            comparison.horizons[h],
            comparison.policies[p],
            "regret",
            comparison.regret[e, h, p],
        )
        for e, h, p in grid
    ]


def standard_error(samples: NDArray[np.float64]) -> float:
    """Return the standard error of the mean."""
    return float(samples.std(ddof=1)) / math.sqrt(len(samples))
