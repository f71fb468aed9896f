"""Recorded learning curves of online learners on IMDB: section 6.3, Figs. 6 and 7.

Song et al., "Rising Multi-Armed Bandits with Known Horizons", arXiv 2602.10727. The
curves are those of Metelli et al., "Stochastic Rising Bandits", ICML 2022. All counts
are in reviews, also where a pull takes many, so that the two games can be compared.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.cure_ucb.imdb import figures, ties
from benchmarks.papers.cure_ucb.imdb.arms import ARMS
from benchmarks.papers.cure_ucb.imdb.settings import (
    BATCH,
    HORIZON,
    SETTINGS,
    Found,
    bar_row,
    paper_policies,
    pull_size,
    recorded_curves,
    standard_error,
    with_error,
)
from benchmarks.papers.cure_ucb.policies import (
    below_cure,
    other_policies,
    reconstructed,
    without_reconstructed,
)
from benchmarks.shared import report, results
from benchmarks.shared.claims import LEVEL, Claim
from benchmarks.shared.results import at, means, paired_p_value
from risingsearch.curves.rising import IMDB_ARMS
from risingsearch.simulation import Comparison, compare, simulate
from risingsearch.simulation.statistics import half_width


class Scale(NamedTuple):
    """How much is measured."""

    runs: int
    runs_of_all_arms: int
    horizons: tuple[int, ...]
    beyond: bool  # also policies that the paper does not have


SCALES = {
    "quick": Scale(20, 10, (10_000, HORIZON), beyond=False),
    "default": Scale(100, 50, tuple(range(10_000, HORIZON + 1, 10_000)), beyond=True),
    "full": Scale(300, 100, tuple(range(5_000, HORIZON + 1, 5_000)), beyond=True),
}


class Game(NamedTuple):
    """Which arms play, and how many reviews a pull takes."""

    arms: str
    batch: int

    @property
    def name(self) -> str:
        """What tables call it."""
        n_arms = {"paper": 7, "all": 29}[self.arms]
        return f"{n_arms} arms, {pull_size(self.batch)}"


SINGLE, BATCHES = Game("paper", 1), Game("paper", BATCH)
GAMES = (SINGLE, BATCHES, Game("all", 1), Game("all", BATCH))

NEARLY = 0.9
"""Share of the pulls from which on a run counts as locked in on an arm."""
SIGMAS = {1: (0.01, 0.1, 0.5, None), BATCH: (0.001, 0.01, 0.05, None)}
"""Of the sweep; about the noise itself, below it, and estimated."""


@dataclass(frozen=True)
class Study:
    """The recorded curves, and how much of them is measured."""

    data_dir: Path
    scale: Scale
    seed: int = 0
    jobs: int | None = None

    def play(
        self,
        game: Game,
        policies: Mapping[str, Any] | None = None,
        horizons: Sequence[int] = (HORIZON,),
    ) -> Comparison:
        """Compare policies, by default the paper's; horizons and regret in reviews."""
        policies = policies or paper_policies(game.batch)
        small = game.arms == "paper"
        runs = self.scale.runs if small else self.scale.runs_of_all_arms
        print(f"{game.name}: {len(policies)} policies, {runs} runs", file=sys.stderr)
        played = compare(
            policies,
            {f"IMDB, {game.name}": ("imdb", self.parameters(game))},
            [horizon // game.batch for horizon in horizons],
            runs,
            self.seed,
            self.jobs,
        )
        regret = played.regret * game.batch
        return replace(played, horizons=list(horizons), regret=regret)

    def locked(self, game: Game, policy: str) -> float:
        """Return the share of runs in which one arm gets nearly all pulls."""
        name, parameters = paper_policies(game.batch)[policy]
        pulls = simulate(
            name,
            "imdb",
            HORIZON // game.batch,
            self.scale.runs,
            self.seed,
            jobs=self.jobs,
            policy_params=parameters,
            environment_params=self.parameters(game),
        ).pulls
        return float(np.mean(pulls.max(axis=1) > NEARLY * pulls.sum(axis=1)))

    def parameters(self, game: Game) -> dict[str, Any]:
        """Return the parameters of the environment."""
        return {"data_dir": self.data_dir, "arms": game.arms, "batch": game.batch}


def measure(study: Study, out: Path) -> Found:
    """Play and draw."""
    main = {game: study.play(game, horizons=study.scale.horizons) for game in GAMES}
    tied = study.play(SINGLE, ties.policies())
    swept = {game: study.play(game, sweep_policies(game)) for game in (SINGLE, BATCHES)}
    played = {"main": main, "ties": {SINGLE: tied}, "sweep": swept}
    curves = recorded_curves(study.data_dir, IMDB_ARMS)
    parts = [
        setting(study.scale),
        "### The paper's claims",
        report.table([c.row() for game in swept for c in check(game, main[game])]),
        "### Mean regret and average rank",
        *regret_parts(main, (study.scale.horizons[0], HORIZON)),
        "### What the tie rule decides",
        *ties.parts(tied),
        lock_in(study),
        "### What sigma and eps decide",
        *sweep_parts(swept, main),
    ]
    if study.scale.beyond:
        others = {game: study.play(game, beyond(game)) for game in (SINGLE, BATCHES)}
        played["beyond"] = others
        parts += ["### Beyond the paper", *beyond_parts(others)]
    parts += [
        "### Figures 6 and 7",
        figures.recorded(curves, out),
        leaders(curves),
        figures.regret([main[game] for game in GAMES[:2]], out, "regret"),
        figures.regret([main[game] for game in GAMES[2:]], out, "regret-all-arms"),
    ]
    rows = [
        row
        for part, games in played.items()
        for game, comparison in games.items()
        for row in results.rows(f"replay, {part}", comparison)
    ]
    return Found(rows, [*bars(main)], parts)


def setting(scale: Scale) -> str:
    """Return what is played, in words."""
    sigma, eps, et_swgts = SETTINGS[BATCH]
    return (
        "A curve is the share of right predictions on the k-th review of an arm, over "
        "1,000 recorded runs. A pull pays one Bernoulli trial of that share, or the "
        f"mean of {BATCH}. {scale.runs} runs ({scale.runs_of_all_arms} of all arms) at "
        f"{len(scale.horizons)} horizons up to {HORIZON:,} reviews; every policy is "
        "told the horizon and started anew for each. Regret: right predictions of the "
        "best single arm, less those of the arms pulled, by the curves. Intervals: "
        "95 %, Student's t over the runs.\n\n"
        "The paper names neither its arms nor the noise nor the `sigma` of its "
        "policies, and gives `eps` for R-ed-UCB alone. Single reviews: the seven arms "
        f"of the published experiment, `sigma` {SETTINGS[1].sigma:g}, and `eps` 1/32 "
        f"for CURE-UCB too. Pulls of {BATCH} reviews are ours, and so are `sigma` "
        f"{sigma:g} and `eps` {eps:g} there, chosen from the sweep below. ET-SWGTS is "
        f"forced through {et_swgts['forced_pulls']} of them, the paper's 1,000 "
        "reviews. All other parameters are the paper's, counted in pulls."
    )


# ------------------------------------------------------------------- bars and claims


def bars(main: Mapping[Game, Comparison]) -> Iterator[dict[str, str]]:
    """Yield what is to come out, what did, and whether it holds."""
    for name in ("cure-ucb", "r-ed-ucb"):
        regret = of(main[SINGLE], name)
        mean, error = ties.REFERENCES[name]
        combined = math.hypot(standard_error(regret), error)
        distance = abs(regret.mean() - mean) / combined
        yield bar_row(
            f"{name}, {SINGLE.name}, T = {HORIZON:,}: mean regret within 3 combined "
            f"standard errors of {ties.reference_text(name)}",
            f"{with_error(regret)}, {distance:.1f} away",
            distance <= 3,
        )
    cure, rest = (
        of(main[BATCHES], name).mean() for name in ("cure-ucb", "round-robin")
    )
    yield bar_row(
        f"cure-ucb, {BATCHES.name}, T = {HORIZON:,}: at most half of round-robin's "
        "mean regret",
        f"{cure:,.0f} of {rest:,.0f}, {cure / rest:.2f}",
        bool(cure <= 0.5 * rest),
    )


def check(game: Game, main: Comparison) -> list[Claim]:
    """Return what section 6.3 says, and what came out in a game."""
    cure, red = of(main, "cure-ucb"), of(main, "r-ed-ucb")
    p = paired_p_value(cure, red)
    low, half = red.mean() - half_width(red), half_width(cure)
    return [
        strongest_baseline(main, f"R-ed-UCB is the strongest baseline; {game.name}"),
        strongest_baseline(
            without_reconstructed(main),
            f"R-ed-UCB is the strongest baseline; {game.name}; reconstructions left "
            "out",
        ),
        Claim(
            f"CURE-UCB is comparable to R-ed-UCB; {game.name}",
            "its mean regret is not above R-ed-UCB's beyond chance",
            f"{cure.mean():,.0f} against {red.mean():,.0f} (p = {p:.2g})",
            bool(cure.mean() <= red.mean() or p >= LEVEL),
        ),
        Claim(
            "the average regret of CURE-UCB aligns with the lower confidence bound of "
            f"R-ed-UCB; {game.name}",
            "the bound lies in the 95 % interval of CURE-UCB's mean",
            f"bound {low:,.0f}; CURE-UCB {cure.mean():,.0f} ± {half:,.0f}",
            bool(abs(low - cure.mean()) <= half),
        ),
    ]


def strongest_baseline(main: Comparison, claim: str) -> Claim:
    """Check that of all others only CURE-UCB may have less regret than R-ed-UCB."""
    others = means(main, HORIZON)
    del others["cure-ucb"], others["round-robin"]
    best = next(iter(others))
    return Claim(
        claim,
        f"lowest mean regret of all baselines at {HORIZON:,}",
        f"lowest: {best}, {others[best]:,.0f}; r-ed-ucb {others['r-ed-ucb']:,.0f}",
        best == "r-ed-ucb",
    )


# ---------------------------------------------------------------------------- tables


def regret_parts(
    main: Mapping[Game, Comparison], horizons: Sequence[int]
) -> Iterator[str]:
    """Yield a table per game."""
    for game, comparison in main.items():
        yield f"{game.name}:"
        yield results.regret_table(comparison, horizons)
    yield (
        "Reconstructed, because their papers' formulas were not at hand: "
        f"{', '.join(reconstructed(main[SINGLE]))}."
    )


def lock_in(study: Study) -> str:
    """Return how many runs end up with one arm, in words."""
    shares = [
        f"{name} in {study.locked(game, name):.0%} with {pull_size(game.batch)}"
        for game in (SINGLE, BATCHES)
        for name in ("cure-ucb", "r-ed-ucb")
    ]
    return (
        f"Runs in which one arm gets more than {NEARLY:.0%} of all pulls: "
        f"{', '.join(shares)}. Such a run has the regret of its arm, whichever that "
        "is; hence the wide intervals, and claims that hold or fail by chance."
    )


def sweep_policies(game: Game) -> dict[str, Any]:
    """Return CURE-UCB and R-ed-UCB with several sigmas and both of the paper's eps."""
    fixed: dict[str, dict[str, Any]] = {"cure-ucb": {}, "r-ed-ucb": {"delta": 0.001}}
    return {
        label(name, eps, sigma): (name, {"eps": eps, "sigma": sigma} | more)
        for name, more in fixed.items()
        for eps in (1 / 32, 1 / 4)
        for sigma in SIGMAS[game.batch]
    }


def sweep_parts(
    swept: Mapping[Game, Comparison], main: Mapping[Game, Comparison]
) -> Iterator[str]:
    """Yield a table per game of mean regret by eps and sigma, the lowest in bold."""
    for game, comparison in swept.items():
        mean, lines = means(comparison, HORIZON), []
        lowest = next(iter(mean))
        for name in ("cure-ucb", "r-ed-ucb"):
            for eps in (1 / 32, 1 / 4):
                line = {"policy": name, "eps": f"1/{1 / eps:.0f}"}
                for sigma in SIGMAS[game.batch]:
                    key = label(name, eps, sigma)
                    mark = "**" if key == lowest else ""
                    line[sigma_text(sigma)] = f"{mark}{mean[key]:,.0f}{mark}"
                lines.append(line)
        rest = of(main[game], "round-robin").mean()
        yield f"{game.name}; round-robin has {rest:,.0f}:"
        yield report.table(lines)
    yield (
        "A single review has noise of standard deviation 0.5 at most, the mean of "
        f"{BATCH} of 0.05. With a `sigma` of that size, estimated or not, the bonus "
        "outweighs what the arms differ by until the horizon is near, and what comes "
        "out is close to round-robin."
    )


def beyond(game: Game) -> dict[str, Any]:
    """Return all other policies that play to the end, beside CURE-UCB."""
    cure = {
        "cure-ucb": paper_policies(game.batch)["cure-ucb"],
        "cure-ucb (defaults)": "cure-ucb",
    }
    return cure | other_policies()


def beyond_parts(others: Mapping[Game, Comparison]) -> Iterator[str]:
    """Yield how the other policies fare."""
    yield "All other policies that play to the end, with their defaults."
    for game, comparison in others.items():
        yield f"{game.name}. {below_cure(comparison, HORIZON)}"
        yield results.regret_table(comparison, (HORIZON,))


def leaders(curves: Mapping[str, NDArray[np.float64]]) -> str:
    """Return which arm is the best single one at which horizons, in words."""
    names = list(curves)
    best = np.cumsum(list(curves.values()), axis=1).argmax(axis=0)
    ends = np.flatnonzero(np.append(np.diff(best) != 0, True)) + 1
    spans = [
        f"{ARMS[names[best[end - 1]]].name} from {start + 1:,} to {end:,}"
        for start, end in zip([0, *ends[:-1]], ends, strict=True)
        if end - start >= len(best) // 100
    ]
    return f"Best single arm by horizon, short spells left out: {'; '.join(spans)}."


# -------------------------------------------------------------------------- in words


def of(comparison: Comparison, policy: str) -> NDArray[np.float64]:
    """Return the regrets of a policy at the full horizon, one per run."""
    regrets: NDArray[np.float64] = at(comparison, HORIZON)[
        comparison.policies.index(policy)
    ]
    return regrets


def label(name: str, eps: float, sigma: float | None) -> str:
    """Return what the sweep calls a policy with its settings."""
    return f"{name}, eps 1/{1 / eps:.0f}, {sigma_text(sigma)}"


def sigma_text(sigma: float | None) -> str:
    """Return a sigma, in words."""
    return "sigma estimated" if sigma is None else f"sigma {sigma:g}"
