"""Linear-then-flat arms: section 6.1, Figs. 4, 8 and 10 of the CURE-UCB paper."""

from __future__ import annotations

from pathlib import Path

from benchmarks.papers.cure_ucb import policies, synthetic
from benchmarks.papers.cure_ucb.synthetic import LONG, SHORT
from benchmarks.shared import claims, results
from benchmarks.shared.claims import Claim
from risingsearch.simulation import Comparison

ET_SWGTS = {"window": 1000, "forced_pulls": 10}

REFERENCES = {
    SHORT: {"cure-ucb": 598, "r-ed-ucb": 823, "sw-ucb": 1555},
    LONG: {"cure-ucb": 3335, "r-ed-ucb": 10_074, "sw-ucb": 6537},
}


def run(out: Path, *, scale: str, seed: int, jobs: int | None = None) -> None:
    """Play the paper's policies, check its claims and Theorem 5.2."""
    study = synthetic.Study("ltf", ET_SWGTS, synthetic.SCALES[scale], seed, jobs)
    exact = study.play(policies.exact_policies(), noise=0.0)
    synthetic.run(
        study,
        out,
        "CURE-UCB paper, linear-then-flat arms",
        lambda main: [*check(main), theorem(exact)],
        REFERENCES,
        more_rows=results.rows("exact", exact, noise=0.0),
    )


def check(main: Comparison) -> list[Claim]:
    """Return what section 6.1 and the captions say, and what came out."""
    return [
        *synthetic.cure_claims(main, "Fig. 4a", "Fig. 4b, c", "Fig. 10"),
        claims.order_changes(
            main,
            "cure-ucb",
            SHORT,
            LONG,
            "rankings among the baselines fluctuate (section 6.1)",
        ),
    ]


def theorem(exact: Comparison) -> Claim:
    """Return what Theorem 5.2 says, and what came out without noise."""
    return claims.never_above(
        exact,
        "cure-ucb",
        "r-ed-ucb",
        "without noise, CURE-UCB never has more regret than R-ed-UCB (Theorem 5.2)",
    )
