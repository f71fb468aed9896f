"""Draw the README's picture, on light ground and on dark.

It is the search of the demo with seed 0: ``python -m benchmarks.demo.readme``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from risingsearch.cli.demo import pictures
from risingsearch.cli.demo.searches import OWN, run

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
            figure = pictures.one_search(result)
            figure.savefig(FOLDER / f"search-{ground}.png", dpi=DPI)


if __name__ == "__main__":
    main()
