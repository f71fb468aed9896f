"""What the paper searched by grid, and the constant that it does not give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from benchmarks.papers.rotting.paper import (
    ANV,
    AV,
    CASES,
    HORIZON,
    PAPER_RUNS,
    SIGMA,
    Case,
)
from benchmarks.papers.rotting.study import Study
from benchmarks.papers.rotting.table import p_value, wins
from benchmarks.shared import figures, report
from benchmarks.shared.results import at, means
from risingsearch.simulation import Comparison

DISCOUNTS = (0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
WINDOWS = tuple(range(1_000, 20_001, 1_000))
ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
PADDINGS = (0.6, 1.0, 1.5, 1.7, 2.0, 2.5)


def grids() -> dict[str, dict[float, Any]]:
    """Return the policies that the paper searched, by the value of their parameter."""
    return {
        "d-ucb": {d: ("d-ucb", {"discount": d, "xi": 0.5}) for d in DISCOUNTS},
        "sw-ucb": {w: ("sw-ucb", {"window": w, "xi": 2.0}) for w in WINDOWS},
        "wswa": {a: ("wswa", {"alpha": a, "sigma": SIGMA}) for a in ALPHAS},
    }


def search(study: Study) -> dict[Case, Comparison]:
    """Play every value of the three grids, on as many runs as the paper's."""
    tried = {
        f"{name} {value:g}": policy
        for name, values in grids().items()
        for value, policy in values.items()
    }
    return {case: study.play(case, tried, PAPER_RUNS) for case in CASES}


def parts(searched: Mapping[Case, Comparison], out: Path) -> Iterator[str]:
    """Return the best value of every grid beside the paper's choice."""
    yield (
        f"{PAPER_RUNS} runs. `p`: of a paired t-test between the value that is best "
        "here and the one that the paper chose. The best of many is best by luck, too."
    )
    yield report.table([row for case in CASES for row in choices(case, searched[case])])
    yield draw(searched, out)


def choices(case: Case, comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row per grid: the best value, the paper's, and what lies between."""
    mean = means(comparison, HORIZON)
    chosen = {"d-ucb": case.discount, "sw-ucb": case.window, "wswa": case.alpha}
    for name, values in grids().items():
        best = min(values, key=lambda value, name=name: mean[f"{name} {value:g}"])
        ours, theirs = f"{name} {best:g}", f"{name} {chosen[name]:g}"
        p = p_value(comparison, ours, theirs)
        yield {
            "case": case.name,
            "policy": name,
            "best here": f"{best:g}",
            "mean regret": f"{mean[ours]:,.0f}",
            "the paper's": f"{chosen[name]:g}",
            "its mean regret": f"{mean[theirs]:,.0f}",
            "p": "the same value" if ours == theirs else f"{p:.2g}",
        }


def draw(searched: Mapping[Case, Comparison], out: Path) -> str:
    """Draw mean regret over the values of every grid."""
    figure, axes = figures.new(12, 3.8, 3)
    shades = mpl.colormaps["viridis"](np.linspace(0, 0.8, len(searched)))
    labels = {"d-ucb": "1 - discount", "sw-ucb": "window (rounds)", "wswa": "alpha"}
    for (case, comparison), shade in zip(searched.items(), shades, strict=True):
        look = figures.Look(mpl.colors.to_hex(shade))
        for ax, (name, values) in zip(axes, grids().items(), strict=True):
            places = [comparison.policies.index(f"{name} {v:g}") for v in values]
            x = [1 - v if name == "d-ucb" else v for v in values]
            samples = at(comparison, HORIZON)[places]
            figures.band(ax, x, samples, case.name, look)
            figures.title(ax, name)
            ax.set_xlabel(labels[name])
            ax.set_yscale("log")
            figures.log_axis(ax.yaxis)
    axes[0].set_xscale("log")
    axes[0].set_ylabel("mean regret, 95 % band")
    figures.legend(figure, axes[0])
    return figures.save(figure, out, "grids")


def play_paddings(study: Study) -> dict[Case, Comparison]:
    """Play SW-UCB and D-UCB with several constants, and UCB1."""
    return {case: study.play(case, padded(case), PAPER_RUNS) for case in (AV, ANV)}


def padded(case: Case) -> dict[str, Any]:
    """Return UCB1, and the two others with each constant."""
    tried: dict[str, Any] = {"ucb1": "ucb1"}
    for xi in PADDINGS:
        tried[f"sw-ucb {xi:g}"] = "sw-ucb", {"window": case.window, "xi": xi}
        # The index of D-UCB has a factor of two before the root.
        tried[f"d-ucb {xi:g}"] = "d-ucb", {"discount": case.discount, "xi": xi / 4}
    return tried


def padding_parts(found: Mapping[Case, Comparison]) -> Iterator[str]:
    """Return what the constant decides."""
    yield (
        "The paper does not give the constant that pads the means of SW-UCB and D-UCB, "
        "sqrt(c ln(.) / n), and it decides. Percent of the runs in which they beat "
        "UCB1, whose c is 2:"
    )
    yield report.table([row for case, c in found.items() for row in paddings(case, c)])


def paddings(case: Case, comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Return a row per policy: its wins by constant, and where the paper's count is."""
    over_ucb1 = wins(comparison)["ucb1"]
    for name in ("sw-ucb", "d-ucb"):
        shares = [over_ucb1[f"{name} {xi:g}"] for xi in PADDINGS]
        paper = case.wins[name, "ucb1"].paper
        yield {
            "case": case.name,
            "policy": name,
            **{
                f"c = {xi:g}": f"{share:.0f}"
                for xi, share in zip(PADDINGS, shares, strict=True)
            },
            "paper": paper,
            "which lies": _place(shares, paper),
        }


def _place(shares: list[float], count: float) -> str:
    """Return between which constants a count lies; the shares fall with them."""
    above = [xi for xi, share in zip(PADDINGS, shares, strict=True) if share >= count]
    below = [xi for xi, share in zip(PADDINGS, shares, strict=True) if share < count]
    if not above or not below:
        return "outside"
    return f"between c = {max(above):g} and {min(below):g}"
