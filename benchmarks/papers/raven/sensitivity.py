"""Which alpha0 and beta0: section 4.2 and Fig. 3 of the RAVEN-UCB paper.

The paper plays every pair ten times in three kinds of change; here they are played more
often, in all kinds of its Table 1. The parameters of the kinds that its script lacks
are ours, see ``risingsearch.curves``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.raven.study import Study
from benchmarks.shared import figures, report
from benchmarks.shared.claims import LEVEL, Claim
from benchmarks.shared.results import paired_p_value
from risingsearch.simulation import Comparison

SHORT, LONG = HORIZONS = 1_000, 10_000
VALUES = (0.5, 1.0, 5.0, 10.0)
PAIRS = tuple(itertools.product(VALUES, VALUES))
EPS = 0.1
PAPER_RUNS = 10

VARIANCE, INCREMENTAL, BLIPS = STUDIED = (
    "sensitivity-variance",
    "sensitivity-incremental",
    "sensitivity-blips",
)
TABLE_1 = (
    *("incremental", "variance-drift", "gradual", "localised-jump"),
    *("periodic", "blip", "add-remove"),
)


class Best(NamedTuple):
    """The best pair of an environment at a horizon, and its mean regret."""

    alpha0: float
    beta0: float
    regret: float


PAPER = {
    (VARIANCE, SHORT): Best(0.5, 0.5, 6.55),
    (VARIANCE, LONG): Best(1.0, 5.0, 27.14),
    (INCREMENTAL, SHORT): Best(0.5, 10.0, 7.55),
    (INCREMENTAL, LONG): Best(1.0, 5.0, 13.48),
    (BLIPS, SHORT): Best(1.0, 5.0, 9.95),
    (BLIPS, LONG): Best(5.0, 1.0, 202.37),
}


def measure(study: Study) -> Comparison:
    """Play every pair in every environment at both horizons."""
    policies = {
        label(*pair): (
            "raven-ucb",
            {"alpha0": pair[0], "beta0": pair[1], "eps": EPS, "variance": "eq5"},
        )
        for pair in PAIRS
    }
    return study.play(policies, [*STUDIED, *TABLE_1], HORIZONS, study.scale.grid_runs)


def label(alpha0: float, beta0: float) -> str:
    """Return the name of a pair."""
    return f"({alpha0:g}, {beta0:g})"


def parts(grid: Comparison, out: Path) -> Iterator[str]:
    """Return what Fig. 3 shows, and the paper's claims about it."""
    runs = grid.regret.shape[-1]
    yield (
        f"Ten arms, `eps` {EPS}, {runs} runs per pair, all pairs on the same arms; the "
        f"paper has {PAPER_RUNS}, without a seed and for every pair on arms of its "
        "own. Dynamic regret."
    )
    yield report.table([claim.row() for claim in check(grid)])
    yield (
        "The paper's choices. `p`: of a paired t-test between its pair and the one "
        "that is best here. `error of 10 runs`: the standard error of a mean of as "
        "many. The last columns repeat its study on our runs, "
        f"{PAPER_RUNS} of its own for every pair: how often its pair would have been "
        "chosen, how often that which is best over all runs. At T = 1,000 nothing "
        "changes before the end, so the three scenarios are one."
    )
    yield report.table([*choices(grid)])
    yield (
        "The best pair in every kind of change, and what the worst costs. The first "
        "three are those of the paper's script, the others its Table 1."
    )
    yield report.table([*optima(grid)])
    yield from (draw(grid, horizon, out) for horizon in HORIZONS)


def check(grid: Comparison) -> list[Claim]:
    """Return what section 4.2 says, and what came out."""
    alphas, betas = (
        {place: PAIRS[best(grid, *place)][i] for place in PAPER} for i in (0, 1)
    )
    rising = [alphas[name, SHORT] < alphas[name, LONG] for name in STUDIED]
    small = max(betas[VARIANCE, horizon] for horizon in HORIZONS)
    large = min(betas[INCREMENTAL, horizon] for horizon in HORIZONS)
    return [
        *(best_pair(grid, *place, said) for place, said in PAPER.items()),
        Claim(
            "alpha0 scales with the horizon, from 0.5 to 5.0",
            f"the best alpha0 is larger at {LONG:,} than at {SHORT:,}, in all three",
            "; ".join(
                f"{name}: {alphas[name, SHORT]:g} to {alphas[name, LONG]:g}"
                for name in STUDIED
            ),
            all(rising),
        ),
        Claim(
            "beta0: 0.5 to 1 for high variance, 5 to 10 for gradual drift",
            "at both horizons the best is 1 or less in variance drift, 5 or more in "
            "incremental drift",
            f"at most {small:g} and at least {large:g}",
            small <= 1.0 and large >= 5.0,
        ),
    ]


def best_pair(grid: Comparison, environment: str, horizon: int, said: Best) -> Claim:
    """Check that the paper's pair has the lowest mean regret."""
    name = label(said.alpha0, said.beta0)
    first = best(grid, environment, horizon)
    regret = at(grid, environment, horizon).mean(axis=-1)
    of_paper = regret[grid.policies.index(name)]
    ours = f"lowest is {grid.policies[first]}, {regret[first]:.1f}"
    if grid.policies[first] != name:
        place = int((regret < of_paper).sum()) + 1
        ours += f"; {name} {of_paper:.1f}, place {place} of {len(PAIRS)}"
    return Claim(
        f"{environment}, T = {horizon:,}: the best pair is {name}",
        "lowest mean regret of the 16",
        ours,
        grid.policies[first] == name,
    )


def choices(grid: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row per choice of the paper: regrets, and how it depends on luck."""
    for (environment, horizon), said in PAPER.items():
        regret = at(grid, environment, horizon)
        theirs = grid.policies.index(label(said.alpha0, said.beta0))
        ours = best(grid, environment, horizon)
        chosen = repeated(regret)
        spread = regret[theirs].std(ddof=1) / math.sqrt(PAPER_RUNS)
        p = paired_p_value(regret[theirs], regret[ours])
        yield {
            "scenario": environment.removeprefix("sensitivity-"),
            "T": f"{horizon:,}",
            "the paper's": grid.policies[theirs],
            "it says": f"{said.regret:.1f}",
            "ours": f"{regret[theirs].mean():.1f}",
            f"error of {PAPER_RUNS} runs": f"{spread:.1f}",
            "best here": grid.policies[ours],
            "with": f"{regret[ours].mean():.1f}",
            "p": "the same" if theirs == ours else _p_text(p),
            "chosen again": f"{np.mean(chosen == theirs):.0%}",
            "best chosen": f"{np.mean(chosen == ours):.0%}",
        }


def optima(grid: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row per environment and horizon: the best pair, and how sure it is."""
    for environment, horizon in itertools.product(grid.environments, HORIZONS):
        regret = at(grid, environment, horizon)
        order = np.argsort(regret.mean(axis=1), kind="stable")
        first, last = order[0], order[-1]
        as_good = [
            pair
            for pair in order[1:]
            if not paired_p_value(regret[pair], regret[first]) < LEVEL
        ]
        yield {
            "environment": environment,
            "T": f"{horizon:,}",
            "best": grid.policies[first],
            "regret": f"{regret[first].mean():.1f}",
            "worst": grid.policies[last],
            "its regret": f"{regret[last].mean():.1f}",
            "as good as the best but for chance": f"{len(as_good)} of 15",
            "best chosen in ten runs": f"{np.mean(repeated(regret) == first):.0%}",
        }


def repeated(regret: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the pair that each repetition of the paper's study would choose.

    There are as many as blocks of ten runs. In each, a pair has a block that no other
    pair has, if there are enough of them.
    """
    n_pairs, n_runs = regret.shape
    n_blocks = n_runs // PAPER_RUNS
    blocks = regret[:, : n_blocks * PAPER_RUNS].reshape(n_pairs, n_blocks, PAPER_RUNS)
    means = blocks.mean(axis=2)
    shifted = np.array([np.roll(row, shift) for shift, row in enumerate(means)])
    chosen: NDArray[np.int64] = shifted.argmin(axis=0)
    return chosen


def at(grid: Comparison, environment: str, horizon: int) -> NDArray[np.float64]:
    """Return the regrets, of shape (n_pairs, n_runs)."""
    e, h = grid.environments.index(environment), grid.horizons.index(horizon)
    regret: NDArray[np.float64] = grid.regret[e, h]
    return regret


def best(grid: Comparison, environment: str, horizon: int) -> int:
    """Return the place of the pair with the lowest mean regret."""
    return int(at(grid, environment, horizon).mean(axis=1).argmin())


def draw(grid: Comparison, horizon: int, out: Path) -> str:
    """Draw mean regret over alpha0, one line per beta0, one panel per environment."""
    figure, axes = figures.new(13.5, 5.6, 5, n_rows=2)
    shades = mpl.colormaps["viridis"](np.linspace(0, 0.85, len(VALUES)))
    for ax, environment in zip(axes, grid.environments, strict=True):
        regret = at(grid, environment, horizon)
        for beta0, shade, marker in zip(VALUES, shades, "os^D", strict=True):
            places = [grid.policies.index(label(alpha0, beta0)) for alpha0 in VALUES]
            look = figures.Look(mpl.colors.to_hex(shade), "-", marker)
            figures.band(ax, VALUES, regret[places], f"beta0 = {beta0:g}", look)
        figures.title(ax, environment)
        figures.from_zero(ax)
        ax.set_xscale("log")
        ax.set_xticks(VALUES, [f"{value:g}" for value in VALUES])
        ax.minorticks_off()
    for ax in axes[5:]:
        ax.set_xlabel("alpha0")
    for ax in axes[::5]:
        ax.set_ylabel(f"mean regret, T = {horizon:,}")
    figures.legend(figure, axes[0])
    return figures.save(figure, out, f"sensitivity-{horizon}")


def _p_text(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.2g}"
