"""Draw the README's picture, on light ground and on dark.

It is the search of the demo with one seed: ``python -m benchmarks.demo.readme``.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from risingsearch.cli.demo import OWN, run

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SEED = 2
DARK = "#0D1117"
TEXT = "#C9D1D9"
WINNER, RIVAL, OTHER = "C0", "C1", "C2"
GROUNDS = {  # with colours in which letters are read, too
    "light": {"axes.prop_cycle": cycler(color=["#BC4C00", "#0072B2", "#6E7781"])},
    "dark": {
        "axes.prop_cycle": cycler(color=["#F0883E", "#56B4E9", "#8C959F"]),
        **dict.fromkeys(("figure.facecolor", "axes.facecolor"), DARK),
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), TEXT),
        **dict.fromkeys(("xtick.color", "ytick.color"), TEXT),
    },
}
COLOURS = 64  # which make a quarter of the bytes
DPI = 100  # 800 pixels wide: letters are still read at half of that


def main() -> None:
    """Run the search, and draw it twice."""
    history = run(OWN, SEED).result.history
    arms, scores = np.array(history["arm"]), np.array(history["score"])
    for ground, style in GROUNDS.items():
        with mpl.rc_context({"font.size": 18, **style}):
            figure = Figure(figsize=(8.0, 5.6), layout="constrained")
            draw(figure.subplots(), arms, scores)
            drawn = BytesIO()
            figure.savefig(drawn, dpi=DPI)
            picture = Image.open(drawn).convert("RGB").quantize(COLOURS)
            picture.save(FOLDER / f"search-{ground}.png", optimize=True)


def draw(ax: Axes, arms: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
    """Draw the winner, its rivals and all others over the epochs of the search."""
    best = int(np.argmax(scores))
    lengths = np.bincount(arms)
    for arm in np.flatnonzero(lengths):
        rows = np.flatnonzero(arms == arm)
        if arm == arms[best]:
            continue
        color = RIVAL if len(rows) >= 8 else OTHER
        _curve(ax, rows, scores, color, 2.0)
    rows = np.flatnonzero(arms == arms[best])
    _curve(ax, rows, scores, WINNER, 4.0)
    stretches = _stretches(rows)
    longest = int(np.argmax([b[0] - a[-1] for a, b in pairwise(stretches)]))
    pause = (stretches[longest][-1], stretches[longest + 1][0])
    _label(ax, "opened", (rows[0], scores[rows[0]]), (-56, -10))
    _label(ax, "paused", (np.mean(pause), np.mean(scores[list(pause)])), (-30, 40))
    _label(ax, "revived", (pause[1], scores[pause[1]]), (10, 44))
    _label(ax, "wins", (best, scores[best]), (-30, 30))
    ax.plot(best, scores[best], "*", color=WINNER, markersize=24, zorder=9)
    ax.text(112, 0.17, "short looks at many", color=OTHER)
    ax.text(160, 0.46, "others that\nmight have won", color=RIVAL)
    ax.set(xlim=(0, len(arms) + 4), ylim=(0.1, 1.02))
    ax.set(xlabel="epochs spent, all runs together", ylabel="validation accuracy")
    ax.spines[["top", "right"]].set_visible(False)


def _label(
    ax: Axes, text: str, at: Sequence[float], offset: tuple[float, float]
) -> None:
    arrow = {"arrowstyle": "-", "color": WINNER, "linewidth": 1.2}
    ax.annotate(
        text, at, offset, textcoords="offset points", color=WINNER, weight="bold",
        ha="center", arrowprops=arrow, zorder=10,
    )  # fmt: skip


def _curve(
    ax: Axes,
    rows: NDArray[np.int64],
    scores: NDArray[np.float64],
    color: str,
    width: float,
) -> None:
    """Draw a run: solid where it trains, dotted where it is paused."""
    ax.plot(rows, scores[rows], ":", color=color, linewidth=width / 2, zorder=width)
    for one in _stretches(rows):
        ax.plot(one, scores[one], ".-", color=color, linewidth=width, zorder=width)


def _stretches(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)


if __name__ == "__main__":
    main()
