"""Rotting arms: section 5, Fig. 1 and Table 1 of the rotting bandits paper.

Levine, Crammer, Mannor: "Rotting Bandits", NIPS 2017. The constant ``xi`` in the index
of SW-UCB and D-UCB is not in the paper. Here it is the one that makes both UCB1 where
nothing is forgotten, 2 and 0.5; a part of the suite shows what it decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.papers.rotting import grids, table
from benchmarks.papers.rotting.paper import CASES, HORIZON, PAPER_RUNS, SIGMA, Case
from benchmarks.papers.rotting.study import SCALES, Scale, Study
from benchmarks.papers.rotting.table import P_BAR, p_value, wins
from benchmarks.shared import figures, report, results
from benchmarks.shared.claims import Claim
from benchmarks.shared.results import means
from risingsearch.policies import list_policies
from risingsearch.simulation import Comparison, simulate

BENCHMARKS = ("ucb1", "d-ucb", "sw-ucb")
LATER = ("fewa", "raw-ucb")

WINS_BAR = 8.0
"""Percentage points by which a share of wins may differ from the reference."""
MEANS_BAR = 0.15
"""Share by which a mean regret may differ from the reference."""


def run(out: Path, *, scale: str, seed: int, jobs: int | None = None) -> None:
    """Play the paper's policies, fill in its Table 1, and repeat its grid searches."""
    study = Study(SCALES[scale], seed, jobs)
    main = {case: study.play(case, policies(case)) for case in CASES}
    padded = grids.play_paddings(study)
    measured = {"main": main, "xi": padded}
    parts = [
        setting(study.scale),
        "## The bars",
        report.table([*bars(main)]),
        "## The paper's claims",
        report.table([claim.row() for claim in check(main)]),
        "## Table 1",
        *table.parts(main),
        "## The constant in the index",
        *grids.padding_parts(padded),
        "## Mean regret",
        *mean_parts(main),
    ]
    if study.scale.full:
        searched = grids.search(study)
        beyond = {case: others(study, case) for case in CASES}
        measured |= {"grid": searched, "beyond": beyond}
        parts += ["## The grid searches", *grids.parts(searched, out)]
        parts += ["## Beyond the paper", *beyond_parts(beyond)]
    parts += ["## Figures", draw_regret(study, out), draw_wins(main, out)]
    report.write_results(
        out,
        [
            row
            for part, cases in measured.items()
            for comparison in cases.values()
            for row in results.rows(part, comparison)
        ],
    )
    report.write_summary(out, "Rotting bandits paper, section 5", parts)


def policies(case: Case) -> dict[str, Any]:
    """Return the policies of section 5 with the paper's parameters, and later ones."""
    sigma = {"sigma": SIGMA}
    informed = {"cto-sim": {}, "d-cto-sim-ucb": sigma}
    parameters: dict[str, dict[str, Any]] = {
        "ucb1": {},
        "d-ucb": {"discount": case.discount, "xi": 0.5},
        "sw-ucb": {"window": case.window, "xi": 2.0},
        "wswa": {"alpha": case.alpha} | sigma,
        **{name: informed[name] for name in case.informed},
        **dict.fromkeys(LATER, sigma),
    }
    return {name: (name, given) for name, given in parameters.items()}


def setting(scale: Scale) -> str:
    """Return what is played, in words."""
    return (
        f"{scale.runs:,} runs of {HORIZON:,} rounds, Gaussian noise of variance 0.2; "
        f"the paper has {PAPER_RUNS} runs, the first {PAPER_RUNS} of ours stand beside "
        "them. The arms of AV and ANV are drawn anew for each run. Regret: the sum of "
        "means of the policy that always takes the highest next mean, less that of the "
        "arms pulled. FEWA and RAW-UCB are not in the paper; like wSWA they are told "
        "the standard deviation of the noise."
    )


def bars(main: Mapping[Case, Comparison]) -> Iterator[dict[str, str]]:
    """Check wins and mean regrets against those of the reference, case by case."""
    for case, comparison in main.items():
        shares = wins(comparison)
        apart = {
            f"{row} over {column}": abs(shares.loc[row, column] - counts.reference)
            for (row, column), counts in case.wins.items()
        }
        mean = means(comparison, HORIZON)
        off = {name: abs(mean[name] / of - 1) for name, of in case.means.items()}
        for bar, found, allowed, form in (
            (f"{len(apart)} shares of wins within 8 points", apart, WINS_BAR, "{:.1f}"),
            (f"{len(off)} mean regrets within 15 %", off, MEANS_BAR, "{:.1%}"),
        ):
            worst = max(found, key=found.__getitem__)
            yield {
                "bar": f"{case.name}: {bar}",
                "measured": f"at most {form.format(found[worst])} ({worst})",
                "verdict": "holds" if found[worst] <= allowed else "does not hold",
            }


def check(main: Mapping[Case, Comparison]) -> list[Claim]:
    """Return what section 5 says, and what came out."""
    leaders = [
        next(name for name in means(comparison, HORIZON) if name in BENCHMARKS)
        for comparison in main.values()
    ]
    informed = {case: found for case, found in main.items() if case.informed}
    return [
        Claim(
            "no clear winner between the three benchmark algorithms",
            "not the same one of the three has the lowest mean regret in every case",
            ", ".join(
                f"{case.name}: {leader}"
                for case, leader in zip(main, leaders, strict=True)
            ),
            len(set(leaders)) > 1,
        ),
        beats(
            main,
            dict.fromkeys(main, "wswa"),
            BENCHMARKS,
            "wSWA consistently and significantly outperformed them",
        ),
        beats(
            informed,
            {case: case.informed[0] for case in informed},
            (*BENCHMARKS, "wswa"),
            "with prior knowledge, (D-)CTO outperformed all the others",
        ),
    ]


def beats(
    main: Mapping[Case, Comparison],
    winners: Mapping[Case, str],
    losers: Sequence[str],
    claim: str,
) -> Claim:
    """Check that a policy wins most runs against others, beyond chance, everywhere."""
    parts, holds = [], True
    for case, comparison in main.items():
        winner = winners[case]
        share = wins(comparison).loc[winner, list(losers)]
        p = max(p_value(comparison, winner, loser) for loser in losers)
        holds &= bool(share.min() > 50 and p < P_BAR)
        parts.append(
            f"{case.name}: {winner} wins {share.min():.0f} % or more "
            f"({share.idxmin()}), {'p < 1e-5' if p < P_BAR else f'p up to {p:.2g}'}"
        )
    reading = f"wins more than half of the runs against each, p < {P_BAR:g}"
    return Claim(claim, reading, "; ".join(parts), holds)


def mean_parts(main: Mapping[Case, Comparison]) -> Iterator[str]:
    """Return mean regrets beside the reference's, and those of later policies."""
    yield (
        "Theirs: means of 300 runs of an independent implementation; the paper has "
        "curves alone."
    )
    for case, comparison in main.items():
        mean = means(comparison, HORIZON)
        best = next(name for name in mean if name not in case.informed)
        yield f"### {case.name}"
        yield results.reference_table(comparison, {HORIZON: case.means})
        yield (
            f"Not in the paper: {', '.join(f'{n} {mean[n]:,.0f}' for n in LATER)}. "
            f"The lowest that is not told the curves: {best}."
        )


def others(study: Study, case: Case) -> Comparison:
    """Play all policies: those that are not in the main part with their defaults."""
    shown = policies(case)
    names = [info.name for info in list_policies() if info.adaptive]
    rest = {name: (name, {}) for name in names if name not in shown}
    return study.play(case, shown | rest, PAPER_RUNS)


def beyond_parts(beyond: Mapping[Case, Comparison]) -> Iterator[str]:
    """Return the mean regret of all policies, case by case."""
    yield (
        "All policies that play to the end. Those that are not above have their "
        "defaults; among them, those that need rewards in [0, 1] clip these."
    )
    for case, comparison in beyond.items():
        yield f"### All in {case.name}"
        yield results.regret_table(comparison, [HORIZON])


def draw_regret(study: Study, out: Path) -> str:
    """Draw the mean regret over the rounds, one panel per case (Fig. 1)."""
    figure, axes = figures.new(12.5, 4.2, len(CASES))
    names = list(dict.fromkeys(name for case in CASES for name in policies(case)))
    styles, lines = figures.looks(names), {}
    for ax, case in zip(axes, CASES, strict=True):
        for name, (policy, params) in policies(case).items():
            found = simulate(
                policy,
                case.environment,
                HORIZON,
                study.scale.drawn_runs,
                study.seed,
                checkpoints=60,
                jobs=study.jobs,
                policy_params=params,
            )
            figures.band(ax, found.checkpoints, found.regret.T, name, styles[name])
            lines[name] = ax.get_lines()[-1]
            lines[name].set_markevery(10)
        figures.title(ax, f"{case.name}, {study.scale.drawn_runs} runs")
        ax.set_xlabel("rounds")
        figures.from_zero(ax)
        figures.thousands(ax, "xy")
    axes[0].set_ylabel("mean regret so far, 95 % band")
    figure.legend(
        handles=[lines[name] for name in names],
        loc="outside right upper",
        fontsize="small",
        frameon=False,
        handlelength=3.2,
    )
    return figures.save(figure, out, "regret")


def draw_wins(main: Mapping[Case, Comparison], out: Path) -> str:
    """Draw how often each policy beat each other one."""
    figure, axes = figures.new(13, 4.6, len(main))
    for ax, (case, comparison) in zip(axes, main.items(), strict=True):
        figures.win_rates(ax, comparison.wins(case.environment, HORIZON))
        runs = comparison.regret.shape[-1]
        figures.title(ax, f"{case.name}: row beats column (% of {runs:,} runs)")
    return figures.save(figure, out, "wins")
