"""The pictures of the demo: best score against epochs, and how one search decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from risingsearch.cli.demo.problem import BUDGET
from risingsearch.cli.demo.searches import Run
from risingsearch.cli.demo.table import by_search
from risingsearch.plotting import plot_allocation, plot_pauses

LOOKS = (("#D55E00", "-"), ("#0072B2", "--"), ("#7F7F7F", ":"), ("#009E73", "-."))
EARLY = 20
"""Scores are shown from that of a twentieth of the budget on."""


def best_by_epochs(found: Sequence[Run]) -> Figure:
    """Draw the median of the best scores so far, within their range over the seeds."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    ax = figure.subplots()
    grid = np.arange(1, max(run.epochs for run in found) + 1)
    early = []
    for (search, runs), (color, line) in zip(
        by_search(found).items(), LOOKS, strict=False
    ):
        best = np.array([_best_at(run, grid) for run in runs])
        ax.plot(grid, np.median(best, axis=0), line, color=color, lw=2, label=search)
        low, high = best.min(axis=0), best.max(axis=0)
        ax.fill_between(grid, low, high, color=color, alpha=0.15, linewidth=0)
        early.append(np.median(best, axis=0)[BUDGET // EARLY])
    ax.set_ylim(bottom=np.nanmin(early))  # before that, scores are too low to compare
    ax.set_xlabel("epochs spent, counted inside the models")
    ax.set_ylabel("best accuracy so far")
    ax.set_title(
        f"Median and range of {len(runs)} seeds", loc="left", fontsize="medium"
    )
    ax.legend(loc="lower right", frameon=False)
    return figure


def one_search(result: Any) -> Figure:
    """Draw which model trained when, beside the curves of the best ones."""
    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    labels = {arm: describe(params) for arm, params in enumerate(result.candidates)}
    options: dict[str, Any] = {"labels": labels, "metric": "accuracy"}
    plot_allocation(result.history, ax=left, **options)
    left.set_title("Where the epochs went (star: best)", loc="left", fontsize="medium")
    plot_pauses(result.history, ax=right, **options)
    return figure


def describe(params: Mapping[str, Any]) -> str:
    """Return a short name of a configuration."""
    size = f"{params['width']}x{params['depth']}"
    return f"{size} {params['activation']}, rate {params['rate']:.0e}"


def save(figure: Figure, path: Path) -> Path:
    """Write a picture and return where it is."""
    figure.savefig(path, dpi=150)
    return path


def _best_at(run: Run, grid: Any) -> Any:
    """Return the best score after so many epochs; NaN outside of the search."""
    epochs, scores = np.array(run.best).T
    places = np.searchsorted(epochs, grid, side="right")
    best = np.concatenate([[np.nan], scores])[places]
    return np.where(grid <= run.epochs, best, np.nan)
