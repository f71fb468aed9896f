"""The experiments of the CURE-UCB paper: what its synthetic suites have in common.

Song, Gan, Yoon, Wang, Chen, Ok: "Rising Multi-Armed Bandits with Known Horizons",
arXiv 2602.10727, section 6 and appendices A, E and F. The paper gives neither the noise
of its environments nor the ``sigma`` of the policies; here both are the same, 0.01
first, and a sweep shows what they decide.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np

from benchmarks.papers.cure_ucb.policies import (
    below_cure,
    other_policies,
    paper_policies,
    reconstructed,
    without_reconstructed,
)
from benchmarks.shared import claims, figures, report, results
from benchmarks.shared.claims import Claim
from benchmarks.shared.results import at, means
from risingsearch.curves import make_environment
from risingsearch.simulation import Comparison, compare

SHORT, MIDDLE, LONG = HORIZONS = 10_000, 30_000, 50_000
NOISE = 0.01
SWEEP = (0.001, 0.01, 0.03, 0.1)


class Scale(NamedTuple):
    """How much is measured."""

    instances: int
    horizons: tuple[int, ...]
    reference_instances: int
    beyond: bool  # also policies that the paper does not have


SCALES = {
    "quick": Scale(20, HORIZONS, 100, beyond=False),
    "default": Scale(40, tuple(range(10_000, LONG + 1, 10_000)), 400, beyond=True),
    "full": Scale(100, tuple(range(5_000, LONG + 1, 5_000)), 1000, beyond=True),
}


@dataclass(frozen=True)
class Study:
    """One environment, and how much of it is measured."""

    environment: str
    et_swgts: Mapping[str, int]
    scale: Scale
    seed: int = 0
    jobs: int | None = None

    def play(
        self,
        policies: Mapping[str, Any] | None = None,
        horizons: Sequence[int] | None = None,
        noise: float = NOISE,
        instances: int | None = None,
    ) -> Comparison:
        """Compare policies, by default the paper's, on the same instances."""
        horizons = horizons or self.scale.horizons
        instances = instances or self.scale.instances
        policies = policies or paper_policies(noise, self.et_swgts)
        print(
            f"{self.environment}: {len(policies)} policies, {instances} instances, "
            f"{len(horizons)} horizons, noise {noise:g}",
            file=sys.stderr,
        )
        return compare(
            policies,
            {self.environment: (self.environment, {"noise": noise})},
            horizons,
            instances,
            self.seed,
            self.jobs,
        )

    def sweep(self, main: Comparison) -> dict[float, Comparison]:
        """Return a comparison at the short and the long horizon per noise."""
        return {
            noise: at_ends(main)
            if noise == NOISE
            else self.play(noise=noise, horizons=(SHORT, LONG))
            for noise in SWEEP
        }

    def beside(self, references: Mapping[int, Mapping[str, float]]) -> Comparison:
        """Play what there are reference figures for, on many instances."""
        policies = paper_policies(NOISE, self.et_swgts)
        named = next(iter(references.values()))
        return self.play(
            {name: policies[name] for name in named},
            tuple(references),
            instances=self.scale.reference_instances,
        )

    def beyond(self) -> Comparison:
        """Play all other policies, and CURE-UCB with and without a known sigma."""
        cure = {
            "cure-ucb": paper_policies(NOISE, self.et_swgts)["cure-ucb"],
            "cure-ucb (sigma estimated)": ("cure-ucb", {}),
        }
        return self.play(cure | other_policies(), (SHORT, LONG))


def at_ends(comparison: Comparison) -> Comparison:
    """Return the comparison at the short and the long horizon alone."""
    kept = [comparison.horizons.index(horizon) for horizon in (SHORT, LONG)]
    return replace(
        comparison,
        horizons=[SHORT, LONG],
        regret=comparison.regret[:, kept],
        best_mean=comparison.best_mean[:, kept],
    )


def run(
    study: Study,
    out: Path,
    title: str,
    check: Callable[[Comparison], Sequence[Claim]],
    references: Mapping[int, Mapping[str, float]],
    *,
    n_examples: int = 3,
    more_rows: Sequence[dict[str, Any]] = (),
    more_parts: Sequence[str] = (),
) -> None:
    """Measure, draw and report what all suites of the paper have."""
    main = study.play()
    sweep = study.sweep(main)
    many = study.beside(references)
    rows = [
        *results.rows("main", main, noise=NOISE),
        *(r for s, c in sweep.items() for r in results.rows("sweep", c, noise=s)),
        *results.rows("reference", many, noise=NOISE),
        *more_rows,
    ]
    parts = [
        setting(study),
        "## The paper's claims",
        report.table([claim.row() for claim in check(main)]),
        *regret_parts(main),
        *noise_parts(sweep),
        *reference_parts(study, many, references),
        *more_parts,
    ]
    if study.scale.beyond:
        beyond = study.beyond()
        rows += results.rows("beyond", beyond, noise=NOISE)
        parts += beyond_parts(beyond)
    parts += [
        "## Figures",
        figures.regret(main, out),
        figures.average_ranks(main, (SHORT, LONG), out),
        *(figures.at_horizon(main, horizon, out) for horizon in HORIZONS),
        draw_instances(study, n_examples, out),
        draw_sweep(sweep, out),
    ]
    report.write_results(out, rows)
    report.write_summary(out, title, parts)


# --------------------------------------------------------------- parts of the summary


def regret_parts(main: Comparison) -> Iterator[str]:
    """Yield the regrets and ranks of the paper's policies."""
    yield "## Mean regret and average rank"
    yield results.regret_table(main, HORIZONS)
    yield (
        "Reconstructed, because their papers' formulas were not at hand: "
        f"{', '.join(reconstructed(main))}."
    )


def noise_parts(sweep: Mapping[float, Comparison]) -> Iterator[str]:
    """Yield what the noise decides."""
    yield "## The noise"
    yield (
        "The paper does not give it, and it decides. Mean regret by horizon and "
        "noise, which is also the `sigma` of the policies; the lowest in bold:"
    )
    yield noise_table(sweep)
    yield report.table([claim.row() for claim in noise_claims(sweep)])


def reference_parts(
    study: Study, many: Comparison, references: Mapping[int, Mapping[str, float]]
) -> Iterator[str]:
    """Yield our regrets beside those of another implementation."""
    yield "## Beside an independent implementation"
    yield (
        f"The figures to compare with are means of 100 instances or fewer; ours of "
        f"{study.scale.reference_instances:,}, noise {NOISE:g}."
    )
    yield results.reference_table(many, references)


def beyond_parts(beyond: Comparison) -> Iterator[str]:
    """Yield the regrets of the policies that are not in the paper."""
    yield "## Beyond the paper"
    yield (
        "All other policies that play to the end, with their defaults. "
        + " ".join(below_cure(beyond, horizon) for horizon in (SHORT, LONG))
    )
    yield results.regret_table(beyond, (SHORT, LONG))


def cure_claims(main: Comparison, lines: str, bars: str, wins: str) -> list[Claim]:
    """Return what both sections say of CURE-UCB, by the figures that show it.

    Once against all baselines, and once without those that had to be reconstructed:
    where one of them is ahead, the paper's version of it may not have been.
    """
    return [
        claim
        for comparison, suffix in (
            (main, ""),
            (without_reconstructed(main), "; reconstructions left out"),
        )
        for claim in (
            claims.lowest_everywhere(
                comparison,
                "cure-ucb",
                f"CURE-UCB has the lowest regret at all T ({lines}){suffix}",
            ),
            claims.best_average_rank(
                comparison,
                "cure-ucb",
                (SHORT, LONG),
                f"CURE-UCB has the lowest rank ({bars}){suffix}",
            ),
            claims.wins_most(
                comparison,
                "cure-ucb",
                HORIZONS,
                f"CURE-UCB wins most runs against any ({wins}){suffix}",
            ),
        )
    ]


def setting(study: Study) -> str:
    """Return what is played, in words."""
    scale = study.scale
    return (
        f"{scale.instances} runs of `{study.environment}`, seed {study.seed}, at "
        f"{len(scale.horizons)} horizons up to {LONG:,}; every policy is told the "
        "horizon and started anew for each. Gaussian noise of standard deviation "
        f"{NOISE:g}, which is also the `sigma` of the policies that take one. Regret: "
        "the sum of means of the best single arm, less that of the arms pulled. "
        "Intervals: 95 %, Student's t over the runs."
    )


def noise_table(sweep: Mapping[float, Comparison]) -> str:
    """Return mean regret per policy, horizon and noise, the lowest in bold."""
    columns = [(horizon, noise) for horizon in (SHORT, LONG) for noise in sweep]
    lines = []
    for name in sweep[NOISE].policies:
        line = {"policy": name}
        for horizon, noise in columns:
            of_all = means(sweep[noise], horizon)
            text = f"{of_all[name]:,.0f}"
            lowest = name == next(iter(of_all))
            line[f"{horizon // 1000}k, {noise:g}"] = f"**{text}**" if lowest else text
        lines.append(line)
    return report.table(lines)


def noise_claims(sweep: Mapping[float, Comparison]) -> Iterator[Claim]:
    """Check at every noise that CURE-UCB has the lowest regret."""
    for noise, comparison in sweep.items():
        for part, suffix in (
            (comparison, ""),
            (without_reconstructed(comparison), "; reconstructions left out"),
        ):
            said = f"CURE-UCB has the lowest regret, noise {noise:g}{suffix}"
            yield claims.lowest_everywhere(part, "cure-ucb", said)


def draw_instances(study: Study, n_examples: int, out: Path) -> str:
    """Draw the arms of example instances, and name the best (Figs. 1a, 3, 8, 9)."""
    figure, axes = figures.new(4 * n_examples, 3.4, n_examples, sharey=True)
    rng = np.random.default_rng(study.seed)
    pulls = range(1, LONG + 1)
    for ax in axes:
        arms = make_environment(study.environment, LONG, rng)
        curves = np.array(
            [[arms.mean(arm, n, n) for n in pulls] for arm in range(arms.n_arms)]
        )
        shades = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(curves)))
        for arm, curve in enumerate(curves):
            label = f"arm {arm}"
            ax.plot(pulls[::50], curve[::50], c=shades[arm], linewidth=2, label=label)
        early, late = (curves[:, :T].sum(axis=1).argmax() for T in (SHORT, LONG))
        then = "" if early == late else f" at {SHORT:,}, arm {late} at {LONG:,}"
        figures.title(ax, f"best: arm {early}{then}")
        ax.set_xlabel("pulls of the arm")
        ax.legend(fontsize="small", frameon=False)
        figures.thousands(ax)
    axes[0].set_ylabel("mean reward")
    return figures.save(figure, out, "instances")


def draw_sweep(sweep: Mapping[float, Comparison], out: Path) -> str:
    """Draw mean regret against the noise at the short and the long horizon."""
    figure, axes = figures.new(11, 4.4, 2)
    names = sweep[NOISE].policies
    styles = figures.looks(names)
    for ax, horizon in zip(axes, (SHORT, LONG), strict=True):
        for p, name in enumerate(names):
            samples = np.array(
                [at(comparison, horizon)[p] for comparison in sweep.values()]
            )
            figures.band(ax, list(sweep), samples, name, styles[name])
        ax.set_xscale("log")
        ax.set_xticks(list(sweep), [f"{noise:g}" for noise in sweep])
        ax.minorticks_off()
        figures.from_zero(ax)
        ax.set_xlabel("standard deviation of the noise, and sigma")
        figures.title(ax, f"{sweep[NOISE].environments[0]}, T = {horizon:,}")
        figures.thousands(ax, "y")
    axes[0].set_ylabel("mean policy regret, 95 % band")
    figures.legend(figure, axes[-1])
    return figures.save(figure, out, "noise")
