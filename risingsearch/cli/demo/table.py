"""The table and the picture of the demo: medians and ranges over the seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from risingsearch.cli.demo.problem import BUDGET
from risingsearch.cli.demo.searches import OWN, DemoRun
from risingsearch.simulation.statistics import half_width

LOOKS = (("#D55E00", "-"), ("#0072B2", "--"), ("#7F7F7F", ":"), ("#009E73", "-."))
EARLY = 20
"""Scores are shown from that of a twentieth of the budget on."""


def by_search(found: Sequence[DemoRun]) -> dict[str, list[DemoRun]]:
    """Return the runs of every search, in the order of the seeds."""
    groups: dict[str, list[DemoRun]] = {}
    for run in sorted(found, key=lambda run: run.seed):
        groups.setdefault(run.search, []).append(run)
    return groups


def rows(found: Sequence[DemoRun]) -> list[dict[str, Any]]:
    """Return a row per search."""
    return [
        {
            "search": search,
            "score": _spread([run.score for run in runs]),
            "test": _spread([run.test_score for run in runs]),
            "epochs": round(median(run.epochs for run in runs)),
            "tried": round(median(run.tried for run in runs)),
        }
        for search, runs in by_search(found).items()
    ]


def as_text(table: Sequence[dict[str, Any]]) -> str:
    """Return the rows in columns."""
    lines = [list(table[0]), *([str(cell) for cell in row.values()] for row in table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )


class Margin(NamedTuple):
    """How this package's search stands beside another one."""

    above: str  # the other search
    of: str  # "score", on the rows that models are chosen by, or "test_score"
    on_seeds: int  # where the other one has the lower one
    n_seeds: int
    mean: float  # by how much
    half_width: float  # of the 95 % interval over the seeds

    def __str__(self) -> str:
        rows = "" if self.of == "score" else "by the test rows, "
        return (
            f"{OWN} is above {self.above} on {self.on_seeds} of {self.n_seeds} seeds, "
            f"{rows}by {self.mean:+.4f} ± {self.half_width:.4f} on average."
        )


def margins(found: Sequence[DemoRun], of: str = "score") -> Iterator[Margin]:
    """Yield by how much this package's search is ahead of each other one."""
    groups = by_search(found)
    own = groups.pop(OWN)
    for search, runs in groups.items():
        pairs = zip(own, runs, strict=True)
        ahead = np.array(
            [getattr(ours, of) - getattr(theirs, of) for ours, theirs in pairs]
        )
        on_seeds = int((ahead > 0).sum())
        mean, half = float(ahead.mean()), float(half_width(ahead))
        yield Margin(search, of, on_seeds, len(ahead), mean, half)


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def best_by_epochs(found: Sequence[DemoRun]) -> Figure:
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


def _best_at(run: DemoRun, grid: Any) -> Any:
    """Return the best score after so many epochs; NaN outside of the search."""
    epochs, scores = np.array(run.best).T
    places = np.searchsorted(epochs, grid, side="right")
    best = np.concatenate([[np.nan], scores])[places]
    return np.where(grid <= run.epochs, best, np.nan)
