"""Concave arms: section 6.2, Figs. 5, 9 and 11 of the CURE-UCB paper."""

from __future__ import annotations

from pathlib import Path

from benchmarks.papers.cure_ucb import synthetic
from benchmarks.papers.cure_ucb.policies import NON_STATIONARY, RISING
from benchmarks.papers.cure_ucb.synthetic import LONG, SHORT
from benchmarks.shared import claims
from benchmarks.shared.claims import Claim
from risingsearch.simulation import Comparison

ET_SWGTS = {"window": 200, "forced_pulls": 1000}

REFERENCES = {
    SHORT: {"cure-ucb": 921, "r-ed-ucb": 2003, "sw-ucb": 2085},
    LONG: {"cure-ucb": 4206, "r-ed-ucb": 5300, "sw-ucb": 6842},
}


def run(out: Path, *, scale: str, seed: int, jobs: int | None = None) -> None:
    """Play the paper's policies and check its claims."""
    study = synthetic.Study("concave", ET_SWGTS, synthetic.SCALES[scale], seed, jobs)
    synthetic.run(study, out, "CURE-UCB paper, concave arms", check, REFERENCES)


def check(main: Comparison) -> list[Claim]:
    """Return what section 6.2 and the captions say, and what came out."""
    return [
        *synthetic.cure_claims(main, "Fig. 5a", "Fig. 5b, c", "Fig. 11"),
        claims.group_ahead(
            main,
            RISING,
            NON_STATIONARY,
            LONG,
            "rising bandits outperform non-stationary ones at T = 50,000 (Fig. 5c)",
        ),
        claims.second_to(
            main, "r-ed-ae", "cure-ucb", "R-ed-AE is robust too (section 6.2)"
        ),
        claims.flattens(
            main,
            "r-ed-ae",
            "R-ed-AE's regret hardly grows towards the longest horizon (section 6.2)",
        ),
    ]
