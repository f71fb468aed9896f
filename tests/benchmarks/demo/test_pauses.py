"""The README's picture shows where arms train and where they are paused."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

from benchmarks.demo.pauses import plot_pauses
from risingsearch.plotting.figures import WINNER


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def rows(*told):
    return [{"arm": a, "epoch": e, "score": s} for a, e, s in told]


# Arm 0 waits while arm 1 trains, and wins in the end.
PAUSED = rows((0, 1, 0.3), (1, 1, 0.4), (1, 2, 0.5), (0, 2, 0.6), (0, 3, 0.7))


def drawn(ax, color, line):
    """Return the points of the lines of one colour and kind."""
    return [
        np.column_stack([found.get_xdata(), found.get_ydata()]).tolist()
        for found in ax.get_lines()
        if found.get_color() == color and found.get_linestyle() == line
    ]


def test_a_curve_is_solid_where_the_arm_trains_and_dotted_over_its_pause():
    ax = plot_pauses(PAUSED)
    assert drawn(ax, WINNER, "-") == [[[1, 0.3]], [[4, 0.6], [5, 0.7]]]
    assert drawn(ax, WINNER, ":") == [[[1, 0.3], [4, 0.6], [5, 0.7]]]
