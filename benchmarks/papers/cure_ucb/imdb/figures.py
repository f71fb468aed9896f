"""Figures of the IMDB experiment: learning curves, and regret by horizon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from benchmarks.papers.cure_ucb.imdb.arms import ARMS
from benchmarks.shared import figures
from benchmarks.shared.results import at
from risingsearch.simulation import Comparison

COLOURS = {
    "lr0003": "#0072B2",
    "ogd01": "#E69F00",
    "ada005": "#000000",
    "nn1": "#56B4E9",
    "nn2": "#D55E00",
    "nn6": "#009E73",
    "nn7": "#CC79A7",
    "nn11": "#999933",
}


def recorded(curves: Mapping[str, NDArray[np.float64]], out: Path) -> str:
    """Draw curves as they are recorded and smoothed, all of them and the start."""
    length = len(next(iter(curves.values())))
    figure, axes = figures.new(10.5, 4.4, 2, sharey=True)
    for ax, shown in zip(axes, (length, length // 10), strict=True):
        width, points = shown // 100, np.arange(0, shown, shown // 1000)
        for code, curve in curves.items():
            raw = curve[points]
            ax.plot(points + 1, raw, c=COLOURS[code], alpha=0.2, linewidth=0.5)
            ends, smooth = moving_mean(curve[:shown], width)
            draw(ax, code, ends - width / 2, smooth)
        figures.title(ax, f"first {shown:,} reviews; lines: means over {width}")
        ax.set_xlabel("pulls of the arm (reviews)")
        figures.thousands(ax)
    axes[0].set_ylabel("share of right predictions")
    name_lines(figure, axes[0])
    return figures.save(figure, out, "curves")


def alone(games: Mapping[str, Mapping[str, NDArray[np.float64]]], out: Path) -> str:
    """Draw what learners score alone: each order of the reviews, and their mean.

    ``games`` holds, by game and learner, arrays of shape (n_orders, n_reviews).
    """
    figure, axes = figures.new(4 * len(games) + 2, 4.2, len(games), sharey=True)
    for ax, (game, learners) in zip(axes, games.items(), strict=True):
        for code, right in learners.items():
            width = right.shape[1] // 10
            for one in right:
                ends, smooth = moving_mean(one, width)
                ax.plot(ends, smooth, c=COLOURS[code], alpha=0.3, linewidth=0.6)
            draw(ax, code, *moving_mean(right.mean(axis=0), width))
        figures.title(ax, game)
        ax.set_xlabel("reviews seen")
        figures.thousands(ax)
    axes[0].set_ylabel("share of right predictions, moving mean")
    name_lines(figure, axes[-1])
    return figures.save(figure, out, "alone")


def bars(comparisons: Sequence[Comparison], out: Path) -> str:
    """Draw the mean regret of every policy, game by game."""
    figure, axes = figures.new(4.5 * len(comparisons), 3.2, len(comparisons))
    for ax, comparison in zip(axes, comparisons, strict=True):
        [horizon] = comparison.horizons
        figures.bars(ax, comparison.policies, at(comparison, horizon))
        figures.title(ax, f"{comparison.environments[0]}, {horizon:,} reviews")
        ax.set_xlabel("regret (right predictions), 95 % interval")
        figures.thousands(ax)
    return figures.save(figure, out, "live-regret")


def regret(pair: Iterable[Comparison], out: Path, name: str) -> str:
    """Draw mean regret against the horizon, two games side by side."""
    figure, axes = figures.new(12, 4.8, 2, sharey=True)
    for ax, comparison in zip(axes, pair, strict=True):
        styles = figures.looks(comparison.policies)
        for p, policy in enumerate(comparison.policies):
            samples = comparison.regret[0, :, p]
            figures.band(ax, comparison.horizons, samples, policy, styles[policy])
        n_runs = comparison.regret.shape[-1]
        figures.title(ax, f"{comparison.environments[0]}, {n_runs} runs")
        figures.from_zero(ax)
        figures.thousands(ax, "xy")
        ax.set_xlabel("horizon T (reviews)")
    axes[0].set_ylabel("policy regret (right predictions), 95 % band")
    figures.legend(figure, axes[0])
    return figures.save(figure, out, name)


def draw(ax: Axes, code: str, x: ArrayLike, y: ArrayLike) -> None:
    """Draw the line of a learner, under its name."""
    ax.plot(x, y, c=COLOURS[code], linewidth=1.8, label=ARMS[code].name)


def moving_mean(
    values: NDArray[np.float64], width: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the means over windows of a width, and where these windows end."""
    means = np.convolve(values, np.full(width, 1 / width), "valid")
    return np.arange(width, len(values) + 1), means


def name_lines(figure: Figure, ax: Axes) -> None:
    """Name the labelled lines beside the axes, in the order in which they end."""
    lines = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    figure.legend(
        handles=sorted(lines, key=lambda line: -np.asarray(line.get_ydata())[-1]),
        loc="outside right upper",
        fontsize="small",
        frameon=False,
    )
