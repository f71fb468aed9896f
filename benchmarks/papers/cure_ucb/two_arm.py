"""An early peaker and a late bloomer: section 3.1 and Fig. 1 of the CURE-UCB paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers.cure_ucb import policies, synthetic
from benchmarks.papers.cure_ucb.synthetic import LONG, MIDDLE, SHORT
from benchmarks.shared import claims, figures, results
from benchmarks.shared.claims import Claim
from risingsearch.curves import make_environment
from risingsearch.simulation import Comparison

ET_SWGTS = {"window": 1000, "forced_pulls": 10}  # not given: as for linear-then-flat

SMALL = 0.1

REFERENCES = {
    SHORT: {"cure-ucb": 225, "r-ed-ucb": 1266, "sw-ucb": 237},
    MIDDLE: {"cure-ucb": 520, "r-ed-ucb": 3358, "sw-ucb": 8484},
}
EXACT_REFERENCES = {
    5_000: {"cure-ucb": 1, "r-ed-ucb": 1},
    10_000: {"cure-ucb": 1, "r-ed-ucb": 701},
    16_010: {"cure-ucb": 1, "r-ed-ucb": 1604},
    20_000: {"cure-ucb": 1, "r-ed-ucb": 3200},
    30_000: {"cure-ucb": 1, "r-ed-ucb": 4798},
    50_000: {"cure-ucb": 1, "r-ed-ucb": 4798},
}


def run(out: Path, *, scale: str, seed: int, jobs: int | None = None) -> None:
    """Play the paper's policies in its example, with noise and without."""
    study = synthetic.Study("two-arm", ET_SWGTS, synthetic.SCALES[scale], seed, jobs)
    exact = study.play(
        policies.exact_policies(), tuple(EXACT_REFERENCES), noise=0.0, instances=1
    )
    synthetic.run(
        study,
        out,
        "CURE-UCB paper, the two-arm example",
        check,
        REFERENCES,
        n_examples=1,
        more_rows=results.rows("exact", exact, noise=0.0),
        more_parts=[
            "Without noise, both policies in their noiseless form:",
            results.reference_table(exact, EXACT_REFERENCES),
            figures.regret(exact, out, "regret-without-noise", "without noise"),
        ],
    )


def check(main: Comparison) -> list[Claim]:
    """Return what sections 1 and 3.1 and the caption say, and what came out."""
    return [
        switch(),
        small(main),
        failures(main),
        claims.far_ahead(
            main,
            "cure-ucb",
            "r-ed-ucb",
            [SHORT],
            "R-ed-UCB incurs high regret in short horizons (caption: T = 10,000)",
        ),
        claims.far_ahead(
            main,
            "cure-ucb",
            "sw-ucb",
            [MIDDLE, LONG],
            "SW-UCB fails in long horizons (caption: T = 30,000; section 1: 50,000)",
        ),
    ]


def switch() -> Claim:
    """Check at which horizon the late bloomer becomes the better arm."""
    arms = make_environment("two-arm", LONG, np.random.default_rng(0))
    horizons = np.arange(1, LONG + 1)
    early, late = (
        np.cumsum([arms.mean(arm, int(n), int(n)) for n in horizons]) for arm in (0, 1)
    )
    b_is_better = late - early > 1e-6
    first = int(horizons[np.argmax(b_is_better)])
    return Claim(
        "arm A is optimal for T < 16,000, arm B for T > 16,000 (section 3.1)",
        "sum of means of B above that of A for T > 16,000, and not before 16,000",
        f"from {first:,} on",
        first in (16_000, 16_001) and bool(b_is_better[first:].all()),
    )


def small(main: Comparison) -> Claim:
    """Check that CURE-UCB loses little of what there is at every horizon."""
    lost = worst_losses(main)["cure-ucb"]
    return Claim(
        "CURE-UCB has small regret at all horizons (caption)",
        f"at most {SMALL:.0%} of what the best arm collects, at every horizon",
        f"at most {lost:.1%}",
        lost <= SMALL,
    )


def failures(main: Comparison) -> Claim:
    """Check that every baseline loses much at some horizon."""
    losses = worst_losses(main)
    losses.pop("cure-ucb")
    least = min(losses, key=losses.__getitem__)
    return Claim(
        "baselines suffer structural failures (caption)",
        f"each loses more than {SMALL:.0%} at some horizon",
        f"the least: {least}, {losses[least]:.1%}",
        losses[least] > SMALL,
    )


def worst_losses(main: Comparison) -> dict[str, float]:
    """Return the largest share of the best arm's sum that each policy loses."""
    arms = make_environment("two-arm", LONG, np.random.default_rng(0))
    best = arms.optimal(np.array(main.horizons))
    shares = main.regret[0].mean(axis=-1) / best[:, None]
    return dict(zip(main.policies, shares.max(axis=0).tolist(), strict=True))
