"""Draw the README's picture, on light ground and on dark.

It is the search of the demo with seed 0: ``python -m benchmarks.demo.readme``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.demo.pauses import plot_pauses
from risingsearch.cli.demo import OWN, run
from risingsearch.plotting import plot_allocation

FOLDER = Path(__file__).parents[2] / "docs" / "images"
DARK = "#0D1117"
TEXT = "#C9D1D9"
GROUNDS = {
    "light": {},
    "dark": {
        **dict.fromkeys(("figure.facecolor", "axes.facecolor"), DARK),
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), TEXT),
        **dict.fromkeys(("xtick.color", "ytick.color"), TEXT),
    },
}
DPI = 80  # as wide as the text of a page


def main() -> None:
    """Run the search, and draw it twice."""
    result = run(OWN, seed=0).result
    for ground, style in GROUNDS.items():
        with mpl.rc_context(style):
            figure = one_search(result)
            figure.savefig(FOLDER / f"search-{ground}.png", dpi=DPI)


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


if __name__ == "__main__":
    main()
