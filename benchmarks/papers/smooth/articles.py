"""Clicks on articles: section 7.3 of the smooth non-stationary bandits paper."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.papers.smooth.sinusoid import VARIATION, draw_regret
from benchmarks.papers.smooth.slopes import slope
from benchmarks.shared import claims, figures, report, results
from benchmarks.shared.claims import Claim
from benchmarks.shared.results import means
from risingsearch.curves import make_environment
from risingsearch.curves.clicks import ClickLog
from risingsearch.policies.drifting.budgeted_exploration import rate_optimal
from risingsearch.simulation import Comparison, compare

DAY = 86_400
HALVINGS = 5
N_ITEMS = 20
EXPERIMENTS = {
    "clicks": ("counterfactual", {"be-ns": 0.698, "be-s": 0.625}),
    "clicks-fitted": ("LOWESS-fitted", {"be-ns": 0.686, "be-s": 0.620}),
}
SLOPES_NEAR = 0.05


class Study(NamedTuple):
    """A log, and how much is played on it."""

    log: ClickLog
    runs: int
    fitted_horizons: tuple[int, ...]
    fitted_runs: int
    seed: int
    jobs: int | None

    @property
    def horizons(self) -> tuple[int, ...]:
        """A day in seconds, or as long as the log is, and its halves."""
        length = int(self.log.timestamps[-1] - self.log.timestamps[0]) + 1
        return tuple(
            min(DAY, length) // 2**halving for halving in range(HALVINGS, -1, -1)
        )

    def play(self, environment: str) -> Comparison:
        """Play all policies; the arms are those of the log in every run."""
        fitted = environment == "clicks-fitted"
        horizons = self.fitted_horizons if fitted else self.horizons
        runs = self.fitted_runs if fitted else self.runs
        print(f"{environment}: {runs} runs up to {horizons[-1]:,}", file=sys.stderr)
        found = []
        for horizon in horizons:
            arms = make_environment(
                environment, horizon, self.seed, log=self.log, n_items=N_ITEMS
            )
            named = {f"clicks, {EXPERIMENTS[environment][0]}": arms}
            tried = policies(self.log, arms.n_arms, horizon)
            found.append(
                compare(tried, named, [horizon], runs, self.seed, self.jobs),
            )
        return Comparison(
            found[0].policies,
            found[0].environments,
            list(horizons),
            np.concatenate([each.regret for each in found], axis=1),
            np.concatenate([each.best_mean for each in found], axis=1),
        )


def policies(log: ClickLog, n_arms: int, horizon: int) -> dict[str, Any]:
    """Return the three policies as published, and what their constants leave open.

    The paper uses the one-armed epoch ``E`` and budget ``B`` for its k arms. The budget
    of `noise` is the regret that clicks with standard deviation s can cause within an
    epoch by chance: ``s sqrt(2 (E / k) ln T)``.
    """
    tried: dict[str, Any] = {}
    rate = float(log.clicks.mean())
    deviation = math.sqrt(rate * (1.0 - rate))
    for name, smoothness in (("be-ns", "non-smooth"), ("be-s", "smooth")):
        length, budget = rate_optimal(smoothness, horizon, 1, 1.0)
        own_length, own_budget = rate_optimal(smoothness, horizon, n_arms, 1.0)
        small = deviation * math.sqrt(2.0 * length / n_arms * math.log(horizon))
        for suffix, allowed in (("", budget), (", noise", small)):
            tried[name + suffix] = (
                "be",
                {
                    "rate": smoothness,
                    "epoch_factor": length / own_length,
                    "budget_factor": allowed / own_budget,
                },
            )
    tried["be-s, Theorem 6.2"] = ("be", {"rate": "smooth"})
    tried["rexp3"] = ("rexp3", {"variation": VARIATION})
    tried["rexp3, printed"] = (
        "rexp3",
        {"variation": VARIATION, "batch_rule": "printed"},
    )
    tried["round-robin"] = ("round-robin", {})
    return tried


def parts(
    log: ClickLog, counterfactual: Comparison, fitted: Comparison, out: Path
) -> Iterator[str]:
    """Yield claims, tables and figures of both experiments."""
    yield report.table([c.row() for f in (counterfactual, fitted) for c in check(f)])
    for found in (counterfactual, fitted):
        yield stuck(found)
        yield f"### Mean regret, {found.environments[0]}"
        yield results.regret_table(found, found.horizons)
        yield report.table(
            [
                {"policy": name, "slope": str(slope(found, name))}
                for name in found.policies
            ]
        )
    yield (
        "`be-ns`, `be-s`: the one-armed epoch and budget, as section 7.3 has it; "
        "`noise`: a budget of the size that the noise allows to be lost in an epoch; "
        "`Theorem 6.2`: the theorem's own parameters for k arms; `printed`: the batch "
        "length of Rexp3 as the paper prints it, with k outside the cube root. "
        "`round-robin` takes every arm in turn: what it has, any policy has that "
        "learns nothing."
    )
    yield draw_rates(log, fitted.horizons[-1], out)
    yield draw_regret([counterfactual, fitted], out, "clicks")


def check(comparison: Comparison) -> Iterator[Claim]:
    """Yield what section 7.3 says, and what came out, as published and otherwise."""
    [name] = comparison.environments
    paper = next(slopes for title, slopes in EXPERIMENTS.values() if title in name)
    for suffix, said in (("", name), (", noise", f"{name}; budgets of the noise")):
        three = results.only(comparison, ["be-s" + suffix, "be-ns" + suffix, "rexp3"])
        yield claims.lowest_everywhere(
            three, "be-s" + suffix, f"BE-S outperforms both Rexp3 and BE-NS; {said}"
        )
        for policy, theirs in paper.items():
            fit = slope(comparison, policy + suffix)
            yield Claim(
                f"slope {theirs:g} for {policy}; {said}",
                f"within {SLOPES_NEAR:g}",
                str(fit),
                abs(fit.value - theirs) <= SLOPES_NEAR,
            )


def stuck(comparison: Comparison) -> str:
    """Return every regret as a share of that of round-robin, in words."""
    horizon = comparison.horizons[-1]
    mean = means(comparison, horizon)
    shares = ", ".join(
        f"{name} {mean[name] / mean['round-robin']:.2f}"
        for name in mean
        if name != "round-robin"
    )
    return f"{comparison.environments[0]}, T = {horizon:,}, over round-robin: {shares}."


def draw_rates(log: ClickLog, horizon: int, out: Path) -> str:
    """Draw the click rate of every item, as counted and as fitted (Fig. 4)."""
    figure, axes = figures.new(11, 3.6, 2, sharey=True)
    length = min(DAY, int(log.timestamps[-1] - log.timestamps[0]) + 1)
    for ax, (name, (title, _)), rounds in zip(
        axes, EXPERIMENTS.items(), (length, horizon), strict=True
    ):
        arms = make_environment(name, rounds, 0, log=log, n_items=N_ITEMS)
        t = np.linspace(1, rounds, 400).astype(int)
        for arm in range(arms.n_arms):
            rate = [arms.mean(arm, 1, int(s)) for s in t]
            ax.plot(t / rounds, rate, lw=0.9)
        ax.set_xlabel("round / T")
        figures.title(ax, f"{title}, {arms.n_arms} items")
    axes[0].set_ylabel("click rate")
    return figures.save(figure, out, "click-rates")
