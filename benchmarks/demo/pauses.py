"""The learning curves of a search over its epochs, for the README's picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from risingsearch.plotting.figures import LEADERS, Epochs, Ink, frame, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


def plot_pauses(
    history: Sequence[Mapping[str, Any]],
    ax: Axes | None = None,
    *,
    direction: str = "maximize",
    labels: Mapping[int, str] | None = None,
    metric: str = "score",
) -> Axes:
    """Draw the learning curves over the epochs of the whole search.

    Shows how a search decides: the curves of the best few arms are solid where they
    train, and dotted where they are paused and others train. A ring is where a paused
    arm trains on. The grey points are the scores of other arms, as far as these reach.

    The arguments are those of ``plot_allocation``.
    """
    epochs = Epochs(history, direction, labels, metric)
    ax = ax or new_axes(8.0, 4.8)
    for place, best in enumerate(epochs.leaders):
        _draw_over_pauses(ax, epochs, best, place)
    others = ~np.isin(epochs.arm, epochs.arm[epochs.leaders])
    told = np.arange(1, len(epochs.arm) + 1)
    grey = Ink.on(ax).also_ran
    ax.plot(told[others], epochs.score[others], ".", color=grey, markersize=3)
    if epochs.leaders:
        shown = epochs.score[~others]
        margin = 0.06 * (np.nanmax(shown) - np.nanmin(shown)) or 0.5
        ax.set_ylim(np.nanmin(shown) - margin, np.nanmax(shown) + margin)
    ax.set_xlim(0, len(epochs.arm) + 1)
    arms = np.unique(epochs.arm)
    n = sum(len(_revivals(epochs, arm)) for arm in arms)
    title = f"{len(arms):,} arms, {n:,} pause{'s' * (n != 1)} that ended (ring)"
    frame(ax, title, "epochs spent", epochs.metric)
    return ax


def _draw_over_pauses(ax: Axes, epochs: Epochs, best: int, place: int) -> None:
    color = LEADERS[place]
    rows = np.flatnonzero(epochs.arm == epochs.arm[best])
    told, score = rows + 1, epochs.score[rows]
    width, order = (2.4, 5) if place == 0 else (1.4, 4)
    ax.plot(told, score, ":", color=color, linewidth=0.6 * width, zorder=3)
    stretches = np.split(np.arange(len(rows)), np.flatnonzero(np.diff(rows) > 1) + 1)
    for stretch in stretches:
        ax.plot(
            told[stretch],
            score[stretch],
            ".-",
            color=color,
            linewidth=width,
            markersize=2 * width,
            zorder=order,
        )
    revived = _revivals(epochs, int(epochs.arm[best]))
    ax.plot(
        revived + 1,
        epochs.score[revived],
        "o",
        color=color,
        markerfacecolor=ax.get_facecolor(),
        markersize=5,
        zorder=order + 1,
    )
    if place == 0:
        ax.plot(
            best + 1,
            epochs.score[best],
            "*",
            color=color,
            markersize=15,
            markeredgecolor=ax.get_facecolor(),
            zorder=7,
        )


def _revivals(epochs: Epochs, arm: int) -> NDArray[np.int64]:
    """Return the rows at which an arm trains on after others have."""
    rows = np.flatnonzero(epochs.arm == arm)
    return rows[1:][np.diff(rows) > 1]
