"""Where the epochs went, and what they bought: two figures of one search.

Both read the rows of ``SearchResult.history``, one per epoch in the order told, and
draw with a handful of artists, so ten thousand epochs stay fast. The colours can be
told apart with any colour vision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from risingsearch.plotting.epochs import (
    RUNNERS_UP,
    WINNER,
    Epochs,
    Ink,
    best_rows,
    new_axes,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

LABEL_SIZE = 7  # points, of the arms' names


def plot_allocation(
    history: Sequence[Mapping[str, Any]],
    ax: Axes | None = None,
    *,
    direction: str = "maximize",
    labels: Mapping[int, str] | None = None,
    metric: str = "score",
) -> Axes:
    """Draw which arm trained when, coloured by score.

    Shows at a glance whether a search spent its epochs well: every row is an arm, the
    most trained on top, every block one epoch, from left to right in the order told.

    Parameters
    ----------
    history : sequence of dict
        One row per epoch in the order told, at least one, with ``"arm"``, ``"epoch"``
        (the arm's own, from 1) and ``"score"`` (NaN where the epoch failed).
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure, as high as its arms need.
    direction : {"maximize", "minimize"}, default "maximize"
        Which scores are the better ones.
    labels : dict of int to str, optional
        Names of arms, shortened to 32 characters; by default "arm 3" and so on.
    metric : str, default "score"
        What the score is called, shortened as well.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InvalidParameterError
        If the history is empty, or the direction unknown.
    MissingDependencyError
        If matplotlib is not installed.

    Examples
    --------
    >>> history = [
    ...     {"arm": 0, "epoch": 1, "score": 0.4},
    ...     {"arm": 1, "epoch": 1, "score": 0.5},
    ...     {"arm": 1, "epoch": 2, "score": 0.7},
    ... ]
    >>> print(plot_allocation(history).get_title(loc="left"))
    Where 3 epochs went, over 2 arms
    best score (star) is of arm 1: 0.7 at epoch 2
    """
    epochs = Epochs.read(history, direction, labels, metric)
    arms, row = _rows(epochs)
    if ax is None:
        ax = new_axes(8.0, min(9.0, max(2.8, 1.3 + 0.125 * len(arms))))
    _draw_blocks(ax, epochs, row)
    title = f"Where {len(epochs.arm):,} epochs went, over {epochs.n_arms:,} arms"
    failed = np.flatnonzero(np.isnan(epochs.score))
    if len(failed):
        ax.plot(failed + 0.5, row[failed], "x", color=Ink.on(ax).failed, markersize=4)
        title += f", {len(failed):,} failed (cross)"
    if epochs.best is not None:
        ax.plot(
            epochs.best + 0.5,
            row[epochs.best],
            "*",
            color=WINNER,
            markersize=14,
            markeredgecolor="white",
            clip_on=False,
            zorder=5,
        )
        best = epochs.describe(epochs.best)
        title += f"\nbest {epochs.metric} (star) is of {best}"
    ax.set_title(title, loc="left", fontsize="medium")
    ax.set_xlim(0, len(row))
    ax.set_ylim(len(arms) - 0.4, -0.6)
    ax.set_xlabel("epochs spent")
    ax.set_ylabel("arms, the most trained on top")
    whole_numbers(ax)
    _name_rows(ax, epochs, arms)
    return ax


def plot_curves(
    history: Sequence[Mapping[str, Any]],
    ax: Axes | None = None,
    *,
    direction: str = "maximize",
    labels: Mapping[int, str] | None = None,
    metric: str = "score",
) -> Axes:
    """Draw the learning curves of all arms, the best few in colour.

    Shows what the epochs bought: whether the winner was still improving, and how far
    behind the others were when they were left. Scores that are far out at the bad end
    stay outside the axes; the title says how many.

    Parameters
    ----------
    history, ax, direction, labels, metric
        As in ``plot_allocation``; a new figure has a fixed size.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InvalidParameterError, MissingDependencyError
        As ``plot_allocation``.

    Examples
    --------
    >>> scores = {(0, 1): 0.4, (1, 1): 0.5, (1, 2): 0.7}
    >>> rows = [{"arm": a, "epoch": e, "score": s} for (a, e), s in scores.items()]
    >>> ax = plot_curves(rows)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['best is arm 1: 0.7 at epoch 2', 'arm 0: 0.4 at epoch 1']
    """
    epochs = Epochs.read(history, direction, labels, metric)
    if ax is None:
        ax = new_axes(8.0, 4.8)
    leaders = best_rows(epochs)[: len(RUNNERS_UP) + 1]
    for place, best in enumerate(leaders):
        _draw_leader(ax, epochs, best, place)
    _draw_also_rans(ax, epochs, epochs.arm[leaders])
    _mark_failures(ax, epochs)
    _frame_curves(ax, epochs)
    return ax


def _rows(epochs: Epochs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the arms from top to bottom, and the row of every epoch.

    The most trained arm is on top; of equals the winner, then the one opened first.
    """
    arms, first, index, count = np.unique(
        epochs.arm, return_index=True, return_inverse=True, return_counts=True
    )
    if epochs.best is not None:
        first[index[epochs.best]] = -1
    order = np.lexsort((first, -count))
    row = np.empty(len(arms), dtype=np.int64)
    row[order] = np.arange(len(arms))
    return arms[order], row[index]


def _draw_blocks(ax: Axes, epochs: Epochs, row: NDArray[np.int64]) -> None:
    from matplotlib.collections import PolyCollection

    told = np.arange(len(row))
    x = told[:, np.newaxis] + np.array([0, 1, 1, 0])
    y = row[:, np.newaxis] + np.array([-0.42, -0.42, 0.42, 0.42])
    corners: Any = np.stack([x, y], axis=2)
    low, high = epochs.limits()
    ink = Ink.on(ax)
    blocks = PolyCollection(
        corners,
        array=np.ma.masked_invalid(epochs.score),
        # The better, the further from the ground: the eye goes to what stands out.
        cmap="cividis" if epochs.maximize == ink.dark else "cividis_r",
        clim=(low, high),
        # Its own edge keeps a block visible that is narrower than a pixel.
        edgecolors="face",
        linewidths=0.6,
        zorder=2,
    )
    ax.add_collection(blocks)
    rows, opened = np.unique(row, return_index=True)
    left = len(row) - np.unique(row[::-1], return_index=True)[1]
    ax.hlines(rows, opened, left, color=ink.guide, linewidth=0.6, zorder=1)
    if epochs.best is not None:
        below, above = (epochs.score < low).any(), (epochs.score > high).any()
        extend = "min" if below else "max" if above else "neither"
        ax.figure.colorbar(
            blocks, ax=ax, label=epochs.metric, extend=extend, pad=0.02, aspect=30
        )


def _name_rows(ax: Axes, epochs: Epochs, arms: NDArray[np.int64]) -> None:
    """Name as many arms as fit, the winner always."""
    points = ax.get_window_extent().height * 72 / ax.figure.dpi
    step = int(np.ceil(1.15 * LABEL_SIZE * len(arms) / points))
    named = list(range(0, len(arms), step))
    winner = None
    if epochs.best is not None:
        winner = int(np.flatnonzero(arms == epochs.arm[epochs.best])[0])
        named = [row for row in named if abs(row - winner) >= step]
        named = sorted([*named, winner])
    texts = [epochs.name(int(arms[row])) for row in named]
    ax.set_yticks(named, texts, fontsize=LABEL_SIZE)
    ax.tick_params(axis="y", length=0)
    if winner is not None:
        text = ax.get_yticklabels()[named.index(winner)]
        text.set(color=WINNER, fontweight="bold")


def _draw_also_rans(ax: Axes, epochs: Epochs, leaders: NDArray[np.int64]) -> None:
    # One line for all of them: a NaN between two arms lifts the pen.
    rows = np.flatnonzero(np.isfinite(epochs.score) & ~np.isin(epochs.arm, leaders))
    rows = rows[np.argsort(epochs.arm[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(epochs.arm[rows])) + 1
    if len(rows) == 0:
        return
    ax.plot(
        np.insert(epochs.epoch[rows].astype(np.float64), starts, np.nan),
        np.insert(epochs.score[rows], starts, np.nan),
        ".-",
        color=Ink.on(ax).also_ran,
        linewidth=0.7,
        markersize=2,
        label=f"{len(starts) + 1:,} others",
        zorder=1,
    )


def _draw_leader(ax: Axes, epochs: Epochs, best: int, place: int) -> None:
    winner = place == 0
    rows = np.flatnonzero(np.isfinite(epochs.score) & (epochs.arm == epochs.arm[best]))
    ax.plot(
        epochs.epoch[rows],
        epochs.score[rows],
        color=(WINNER, *RUNNERS_UP)[place],
        linewidth=2.6 if winner else 1.4,
        marker="*" if winner else ".",
        markersize=15 if winner else 4,
        markeredgecolor="white" if winner else None,
        markevery=[rows.tolist().index(best)] if winner else None,
        label=("best is " if winner else "") + epochs.describe(best),
        zorder=4 if winner else 3,
    )


def _mark_failures(ax: Axes, epochs: Epochs) -> None:
    failed = np.isnan(epochs.score)
    if failed.any():
        # Without a score there is no height: the marks stand along the bad end.
        height = 0.02 if epochs.maximize else 0.98
        ax.plot(
            epochs.epoch[failed],
            np.full(failed.sum(), height),
            "x",
            color=Ink.on(ax).failed,
            markersize=4,
            label=f"{failed.sum():,} failed",
            transform=ax.get_xaxis_transform(),
        )


def _frame_curves(ax: Axes, epochs: Epochs) -> None:
    low, high = epochs.limits()
    margin = 0.06 * (high - low) or 0.5
    ax.set_ylim(low - margin, high + margin)
    ax.set_xlim(0.5, 1.02 * epochs.epoch.max() + 0.5)
    whole_numbers(ax)
    ax.set_xlabel("epochs of the arm")
    ax.set_ylabel(epochs.metric)
    title = f"Learning curves of {epochs.n_arms:,} arms, {len(epochs.arm):,} epochs"
    outside = int(((epochs.score < low) | (epochs.score > high)).sum())
    if outside:
        title += f", {outside:,} outside the axes"
    ax.set_title(title, loc="left", fontsize="medium")
    # In the corner that good curves leave free, clear of the marks of failures.
    if epochs.maximize:
        ax.legend(loc="lower right", bbox_to_anchor=(1, 0.03), fontsize="small")
    else:
        ax.legend(loc="upper right", bbox_to_anchor=(1, 0.97), fontsize="small")
