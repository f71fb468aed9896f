"""The one-armed sinusoid of the smooth non-stationary bandits paper, section 7.2."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.smooth.slopes import slope
from benchmarks.shared import claims, figures, report, results
from benchmarks.shared.claims import Claim
from benchmarks.shared.results import at, means
from risingsearch.curves import make_environment
from risingsearch.curves.restless import Sinusoid
from risingsearch.simulation import Comparison, simulate

NAMES = ("be-ns", "be-s", "rexp3")
VARIATION = 0.05
PAPER_SLOPES = {"be-ns": 0.69, "be-s": 0.63}
THEORY = {"be-ns": 2 / 3, "be-s": 3 / 5, "rexp3": 2 / 3}
REFERENCES = {
    10**6: {"be-ns": 6370, "be-s": 5306, "rexp3": 5899},
    10**7: {"be-ns": 44_122, "be-s": 27_999, "rexp3": 41_502},
    10**8: {"be-ns": 257_335, "be-s": 140_654, "rexp3": 288_704},
}
BERNOULLI_REFERENCES = {10**7: {"be-s": 28_453, "rexp3": 22_844}}

MEANS_BAR = 0.15
NANOSECONDS_BAR = {"be-ns": 3.0, "be-s": 3.0, "rexp3": 50.0}
MEMORY_BAR = 1.0  # MB that a run of the longest horizon may add
SLOPES_NEAR = 0.05


class Study(NamedTuple):
    """How many instances are played, of which horizons, from which seed on."""

    instances: int
    horizons: tuple[int, ...]
    bernoulli_horizons: tuple[int, ...]
    seed: int
    jobs: int | None

    def play(self, noise: float | str) -> Comparison:
        """Play every instance at every horizon, the long ones first."""
        horizons = self.horizons if noise != "bernoulli" else self.bernoulli_horizons
        regret = np.empty((1, len(horizons), len(NAMES), self.instances))

        def play(h: int, k: int) -> None:
            regret[0, h, :, k] = regrets(horizons[h], noise, self.seed + k)

        print(
            f"sinusoid: {len(NAMES)} policies, {self.instances} instances, "
            f"{noise_text(noise)} noise, up to {horizons[-1]:,} rounds",
            file=sys.stderr,
        )
        pool = ThreadPoolExecutor(self.jobs or os.cpu_count())
        try:
            order = [(h, k) for h in range(len(horizons)) for k in range(len(regret.T))]
            for done in [pool.submit(play, *pair) for pair in reversed(order)]:
                done.result()
        finally:
            pool.shutdown(cancel_futures=True)
        environment = [f"sinusoid, {noise_text(noise)} noise"]
        unknown = np.full_like(regret, np.nan)
        return Comparison(list(NAMES), environment, list(horizons), regret, unknown)


def regrets(horizon: int, noise: float | str, seed: int) -> list[float]:
    """Return the regret of every policy on the instance of a seed, with the same draws.

    BE knows the constant arm's reward, which differs by instance.
    """
    arms = instance(horizon, noise, seed)
    return [
        float(
            simulate(
                name, arms, horizon, seed=seed, jobs=1, policy_params=parameters
            ).regret[0, -1]
        )
        for name, parameters in policies(arms).values()
    ]


def instance(horizon: int, noise: float | str, seed: int) -> Sinusoid:
    """Return the arms of a seed: the same cycles whatever the horizon."""
    rng = np.random.default_rng(seed)
    arms: Sinusoid = make_environment("sinusoid", horizon, rng, noise=noise)
    return arms


def policies(arms: Sinusoid) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the three policies of section 7."""
    known = {"known_reward": arms.amplitude}
    return {
        "be-ns": ("be", {"rate": "non-smooth", **known}),
        "be-s": ("be", {"rate": "smooth", **known}),
        "rexp3": ("rexp3", {"variation": VARIATION}),
    }


# ------------------------------------------------------------------- bars and claims


def bars(gaussian: Comparison) -> Iterator[dict[str, str]]:
    """Yield the bars for Gaussian noise, what was measured, and whether they hold."""
    lowest = claims.lowest_everywhere(gaussian, "be-s", "")
    yield bar("BE-S below BE-NS and Rexp3 at every T", lowest.ours, lowest.holds)
    off = {
        f"{name}, T = {horizon:,}": means(gaussian, horizon)[name] / theirs - 1
        for horizon, expected in known(gaussian, REFERENCES).items()
        for name, theirs in expected.items()
    }
    worst = max(off, key=lambda key: abs(off[key]))
    yield bar(
        f"{len(off)} mean regrets within 15 % of an independent implementation's",
        f"at most {off[worst]:+.1%} ({worst})",
        abs(off[worst]) <= MEANS_BAR,
    )


def bar(text: str, measured: str, holds: bool) -> dict[str, str]:
    """Return a row of the table of bars."""
    verdict = "holds" if holds else "does not hold"
    return {"bar": text, "measured": measured, "verdict": verdict}


def costs(study: Study) -> Iterator[dict[str, str]]:
    """Measure time per round on one processor, and what a long run adds to memory."""
    horizon = study.horizons[-1]
    for noise in (1.0, "bernoulli"):
        arms = instance(horizon, noise, study.seed)
        for name, (policy, parameters) in policies(arms).items():
            before = peak_megabytes()
            begin = time.process_time()
            simulate(policy, arms, horizon, jobs=1, policy_params=parameters)
            each = 1e9 * (time.process_time() - begin) / horizon
            more = peak_megabytes() - before
            limit = NANOSECONDS_BAR[name]
            form = "{:.0f}" if each > 10 else "{:.2f}"
            yield bar(
                f"{name}, {noise_text(noise)}, T = {horizon:,}: at most {limit:g} ns "
                "a round, constant memory",
                f"{form.format(each)} ns, {more:.1f} MB more",
                each <= limit and more <= MEMORY_BAR,
            )


def peak_megabytes() -> float:
    """Return the most memory that the process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def check(comparison: Comparison) -> list[Claim]:
    """Return what section 7.2 says, and what came out."""
    suffix = f"; {comparison.environments[0]}"
    fits = {name: slope(comparison, name) for name in NAMES}
    others = [fits[name] for name in ("be-ns", "rexp3")]
    return [
        claims.lowest_everywhere(
            comparison, "be-s", f"BE-S consistently outperforms the other two{suffix}"
        ),
        *(
            Claim(
                f"slope {paper:g} for {name}, close to theory's {THEORY[name]:.3g}"
                f"{suffix}",
                f"within {SLOPES_NEAR:g} of the paper's",
                str(fits[name]),
                abs(fits[name].value - paper) <= SLOPES_NEAR,
            )
            for name, paper in PAPER_SLOPES.items()
        ),
        Claim(
            f"the regret of BE-S grows considerably more slowly{suffix}",
            "the interval of its slope lies below those of both others",
            ", ".join(f"{name} {fits[name]}" for name in NAMES),
            fits["be-s"].high < min(other.low for other in others),
        ),
    ]


def known(
    comparison: Comparison, references: Mapping[int, Mapping[str, float]]
) -> dict[int, Mapping[str, float]]:
    """Return those references whose horizon was played."""
    return {h: found for h, found in references.items() if h in comparison.horizons}


# --------------------------------------------------------------- tables and figures


def parts(
    gaussian: Comparison, bernoulli: Comparison, out: Path, seed: int
) -> Iterator[str]:
    """Yield slopes, mean regrets and figures."""
    yield report.table(
        [claim.row() for found in (gaussian, bernoulli) for claim in check(found)]
    )
    yield (
        "Slopes of log10 regret over log10 T, least squares, with bootstrap 95 % "
        "intervals over the instances; by decade too, which shows how far these "
        "horizons are from the exponents of the theory."
    )
    yield report.table([*slope_rows(gaussian), *slope_rows(bernoulli)])
    for found, references in (
        (gaussian, REFERENCES),
        (bernoulli, BERNOULLI_REFERENCES),
    ):
        yield f"### Mean regret, {found.environments[0]}"
        yield results.regret_table(found, found.horizons)
        if beside := known(found, references):
            yield results.reference_table(found, beside)
    yield draw_arms(out, seed)
    yield draw_regret([gaussian, bernoulli], out, "sinusoid")


def slope_rows(comparison: Comparison) -> Iterator[dict[str, str]]:
    """Yield the slopes of every policy, over all horizons and by decade."""
    spans = {"all T": (0, comparison.horizons[-1])}
    for exponent in (6, 7):
        first, last = 10**exponent, 10 ** (exponent + 1)
        if {first, last} <= set(comparison.horizons):
            spans[f"1e{exponent} to 1e{exponent + 1}"] = first, last
    for name in comparison.policies:
        for span, ends in spans.items():
            yield {
                "arms": comparison.environments[0],
                "policy": name,
                "over": span,
                "slope": str(slope(comparison, name, *ends)),
                "paper": f"{PAPER_SLOPES.get(name, '')}" if span == "all T" else "",
                "theory": f"{THEORY[name]:.3f}",
            }


def draw_regret(comparisons: list[Comparison], out: Path, name: str) -> str:
    """Draw regret over T on logarithmic axes, with the fitted lines (Figs. 3, 5, 6)."""
    figure, axes = figures.new(5.4 * len(comparisons) + 2, 4.4, len(comparisons))
    for ax, comparison in zip(axes, comparisons, strict=True):
        styles = figures.looks(comparison.policies)
        for p, policy in enumerate(comparison.policies):
            samples = np.array([at(comparison, h)[p] for h in comparison.horizons])
            fit = slope(comparison, policy)
            label = f"{policy}, slope {fit.value:.2f}"
            look = styles[policy]._replace(line="")
            figures.band(ax, comparison.horizons, samples, label, look)
            ends = comparison.horizons[0], comparison.horizons[-1]
            ax.plot(ends, [fit.regret(end) for end in ends], c=look.color, lw=1)
        ax.set_xscale("log")
        ax.set_yscale("log")
        figures.log_axis(ax.xaxis)
        figures.log_axis(ax.yaxis)
        ax.set_xlabel("horizon T (rounds)")
        figures.title(ax, comparison.environments[0])
        ax.legend(fontsize="small", frameon=False)
    axes[0].set_ylabel("mean regret")
    return figures.save(figure, out, name)


def draw_arms(out: Path, seed: int) -> str:
    """Draw the arms of three instances."""
    figure, axes = figures.new(11, 2.8, 3, sharey=True)
    horizon = 10**6
    rounds: NDArray[np.int64] = np.arange(1, horizon, 2000)
    for k, ax in enumerate(axes):
        arms = instance(horizon, 1.0, seed + k)
        for arm, label in enumerate(("constant", "changing")):
            means_of_arm = [arms.mean(arm, 1, int(t)) for t in rounds]
            ax.plot(rounds / horizon, means_of_arm, label=label)
        ax.set_xlabel("round / T")
        figures.title(ax, f"instance {k}")
    axes[0].set_ylabel("mean reward")
    axes[0].legend(fontsize="small", frameon=False)
    return figures.save(figure, out, "instances")


def noise_text(noise: float | str) -> str:
    """Return a noise, in words."""
    return "Bernoulli" if noise == "bernoulli" else "N(0, 1)"
