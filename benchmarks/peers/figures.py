"""Best score against epochs and against time, and where the epochs went."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from numpy.typing import NDArray

from benchmarks.peers.results import Result, searches
from benchmarks.shared import figures
from benchmarks.shared.figures import Look
from benchmarks.shared.problems import BUDGET, MAX_EPOCHS, candidates, label

LATE = "late-bloomers"
SHALLOW = "shallow"
LOOKS = {
    "RisingSearchCV": Look("#D55E00", "-"),
    "HalvingRandomSearchCV": Look("#0072B2", "--"),
    "random search, in full": Look("#000000", ":"),
    "Optuna TPE, Hyperband": Look("#009E73", "-"),
    "Optuna TPE, halving": Look("#009E73", "--"),
    "Optuna TPE, median": Look("#009E73", ":"),
    "dask-ml Hyperband": Look("#CC79A7", "--"),
    "Ray Tune ASHA": Look("#332288", "-."),
    "Syne Tune ASHA": Look("#E69F00", "-."),
}
EPOCHS, SECONDS = 0, 1  # columns of a curve


def against_epochs(results: Sequence[Result], out: Path) -> str:
    """Draw the mean over the seeds of the best score, by audited epochs."""
    grid = np.arange(1, BUDGET + 1, dtype=float)
    return _draw(results, EPOCHS, grid, "audited epochs", out, "best-by-epochs")


def against_time(results: Sequence[Result], out: Path) -> str:
    """Draw the same by the seconds since the search began."""
    longest = max(result.run.seconds for result in results)
    grid = np.geomspace(0.1, max(longest, 0.2), 300)
    return _draw(results, SECONDS, grid, "seconds", out, "best-by-seconds")


def _draw(
    results: Sequence[Result],
    column: int,
    grid: NDArray[np.float64],
    unit: str,
    out: Path,
    name: str,
) -> str:
    problems = list(dict.fromkeys(result.run.problem for result in results))
    n_rows = -(-len(problems) // 2)
    figure, axes = figures.new(11.0, 3.4 * n_rows, 2, n_rows)
    for ax in axes[len(problems) :]:
        ax.set_visible(False)
    for ax, problem in zip(axes, problems, strict=False):
        ends = []
        for search, group in searches(results, problem).items():
            mean = np.mean([at(result, column, grid) for result in group], axis=0)
            look = LOOKS[search]
            width = 2.4 if search == "RisingSearchCV" else 1.3
            ax.plot(grid, mean, color=look.color, ls=look.line, lw=width, label=search)
            ends.append(float(mean[-1]))
        figures.title(ax, problem)
        ax.set_xlabel(unit)
        ax.set_ylabel("best accuracy so far")
        if column == SECONDS:
            ax.set_xscale("log")
        top, bottom = max(ends), min(ends)
        room = max(top - bottom, 0.01)
        ax.set_ylim(bottom - 1.5 * room, top + 0.15 * room)
    lines = {line.get_label(): line for ax in axes for line in ax.get_lines()}
    drawn = [lines[search] for search in LOOKS if search in lines]
    figure.legend(handles=drawn, loc="outside right upper", frameon=False)
    return figures.save(figure, out, name)


def at(result: Result, column: int, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the best score at every place of a grid; NaN before the first."""
    curve = result.curve
    places = np.searchsorted(curve[:, column], grid, side="right")
    return np.concatenate([[np.nan], curve[:, 2]])[places]


def where_epochs_went(results: Sequence[Result], out: Path) -> str:
    """Draw how the networks learn, and which ones got the epochs."""
    groups = searches(results, LATE)
    figure, [left, right] = figures.new(11.5, 4.2, 2)
    _draw_networks(left, [result for group in groups.values() for result in group])
    _draw_shares(right, groups)
    return figures.save(figure, out, LATE)


def networks() -> dict[str, str]:
    """Return what every configuration of the late bloomers counts as."""
    return {
        label(c): SHALLOW if c["kind"] == "shallow" else f"deep, {c['warm_up']}"
        for c in candidates(LATE)
    }


def shares(group: Sequence[Result]) -> dict[str, float]:
    """Return the share of the budget's epochs that went to each kind of network."""
    kinds = networks()
    trained = [
        kinds[event.configuration]
        for result in group
        for event in [e for e in result.events if e.score is None][:BUDGET]
    ]
    return {kind: trained.count(kind) / len(trained) for kind in _colors()}


def _colors() -> dict[str, Any]:
    """Return a color per kind of network, the darker the longer it warms up."""
    kinds = list(dict.fromkeys(networks().values()))[1:]
    greens = colormaps["viridis_r"](np.linspace(0.1, 1.0, len(kinds)))
    return {SHALLOW: "#BBBBBB", **dict(zip(kinds, greens, strict=True))}


def _draw_networks(ax: Axes, results: Sequence[Result]) -> None:
    """Draw the curves of one seed, as far as any search has trained them."""
    seed = min(result.run.seed for result in results)
    curves: dict[str, dict[int, float]] = {}
    for result in results:
        for event in result.events if result.run.seed == seed else []:
            if event.score is not None:
                curves.setdefault(event.configuration, {})[event.epoch] = event.score
    kinds, colors = networks(), _colors()
    for configuration, curve in curves.items():
        scores = [curve[epoch] for epoch in takewhile(curve.__contains__, count(1))]
        epochs = range(1, len(scores) + 1)
        ax.plot(epochs, scores, color=colors[kinds[configuration]], lw=1.0)
    figures.title(ax, "networks, as far as any search trained them (one seed)")
    ax.set_xlim(0, MAX_EPOCHS)
    ax.set_xlabel("epoch")
    ax.set_ylabel("accuracy")


def _draw_shares(ax: Axes, groups: dict[str, list[Result]]) -> None:
    """Draw a bar per search, from shallow to the longest warm-up."""
    found = [shares(group) for group in groups.values()]
    left = np.zeros(len(found))
    for kind, color in _colors().items():
        width = np.array([share[kind] for share in found])
        ax.barh(list(groups), width, left=left, color=color, label=kind)
        left += width
    ax.invert_yaxis()
    ax.set_xlabel(f"share of the first {BUDGET} epochs, all seeds")
    figures.title(ax, "where the epochs went")
    ax.legend(
        title="network, warm-up",
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize="small",
    )
