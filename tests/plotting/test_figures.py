"""The figures say what the history says, whatever the history holds."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from risingsearch.errors import InvalidParameterError, MissingDependencyError
from risingsearch.plotting import plot_allocation, plot_curves

PLOTS = [plot_allocation, plot_curves]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def epoch(arm, number, score):
    return {"arm": arm, "epoch": number, "score": score, "seconds": 1.0, "reason": ""}


# Arm 1 gets most epochs, arm 2 the best score; arm 0 is opened first.
HISTORY = [
    epoch(0, 1, 0.3),
    epoch(1, 1, 0.4),
    epoch(2, 1, 0.5),
    epoch(1, 2, 0.6),
    epoch(2, 2, 0.9),
    epoch(1, 3, 0.7),
]


def rising(n_arms, n_epochs, seed=0):
    """Return a made-up search: every arm opened once, then the highest go on."""
    rng = np.random.default_rng(seed)
    limit, speed = rng.uniform(0.5, 0.95, n_arms), rng.uniform(2, 12, n_arms)
    trained = np.zeros(n_arms, dtype=int)
    history = []
    for told in range(n_epochs):
        arm = told if told < n_arms else int(rng.choice(np.argsort(-limit)[:8]))
        trained[arm] += 1
        score = limit[arm] * (1 - np.exp(-trained[arm] / speed[arm]))
        history.append(epoch(arm, int(trained[arm]), float(score)))
    return history


def blocks(ax):
    (collection,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    return collection


def names(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def legend_colours(ax):
    return [line.get_color() for line in ax.get_legend().get_lines()]


def overlapping(texts, figure):
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in texts]
    return [
        (a, b)
        for i, a in enumerate(boxes)
        for b in boxes[i + 1 :]
        if a.overlaps(b) and a.width and b.width
    ]


class TestAllocation:
    def test_one_block_per_epoch_from_left_to_right_in_the_row_of_its_arm(self):
        ax = plot_allocation(HISTORY)
        corners = [path.vertices[:4] for path in blocks(ax).get_paths()]
        assert [c[:, 0].min() for c in corners] == [0, 1, 2, 3, 4, 5]
        assert [c[:, 0].max() for c in corners] == [1, 2, 3, 4, 5, 6]
        # top to bottom: arm 1 with three epochs, arm 2 with two, arm 0 with one
        assert [round(c[:, 1].mean()) for c in corners] == [2, 0, 1, 0, 1, 0]
        assert names(ax) == ["arm 1", "arm 2", "arm 0"]

    def test_blocks_are_coloured_by_score(self):
        ax = plot_allocation(HISTORY)
        assert blocks(ax).get_array().tolist() == [row["score"] for row in HISTORY]

    @pytest.mark.parametrize("direction", ["maximize", "minimize"])
    def test_the_better_score_is_the_darker(self, direction):
        collection = blocks(plot_allocation(HISTORY, direction=direction))
        low, high = (collection.to_rgba(score)[:3] for score in (0.3, 0.9))
        assert (sum(high) < sum(low)) == (direction == "maximize")

    def test_the_title_names_the_winner_and_the_star_stands_on_its_best_epoch(self):
        ax = plot_allocation(HISTORY)
        assert ax.get_title(loc="left") == (
            "Where 6 epochs went, over 3 arms\n"
            "best score (star) is of arm 2: 0.9 at epoch 2"
        )
        (star,) = ax.get_lines()
        assert star.get_xydata().tolist() == [[4.5, 1.0]]

    def test_failed_epochs_are_crossed_and_counted(self):
        ax = plot_allocation([*HISTORY, epoch(0, 2, float("nan"))])
        assert "1 failed (cross)" in ax.get_title(loc="left")
        crosses = next(line for line in ax.get_lines() if line.get_marker() == "x")
        assert crosses.get_xdata().tolist() == [6.5]

    @pytest.mark.parametrize("n_arms", [1, 7, 60, 200])
    def test_names_do_not_overlap_and_the_winner_is_always_named(self, n_arms):
        history = rising(n_arms, n_arms + 210)
        winner = max(history, key=lambda row: row["score"])["arm"]
        ax = plot_allocation(history)
        assert not overlapping(ax.get_yticklabels(), ax.figure)
        assert f"arm {winner}" in names(ax)
        bold = [t for t in ax.get_yticklabels() if t.get_fontweight() == "bold"]
        assert [text.get_text() for text in bold] == [f"arm {winner}"]


class TestCurves:
    def test_the_legend_ranks_the_best_arms(self):
        assert legend(plot_curves(HISTORY)) == [
            "best is arm 2: 0.9 at epoch 2",
            "arm 1: 0.7 at epoch 3",
            "arm 0: 0.3 at epoch 1",
        ]

    def test_the_winner_is_thickest_and_starred_at_its_best_epoch(self):
        history = [*HISTORY, epoch(2, 3, 0.8)]
        winner, *others = plot_curves(history).get_lines()
        assert winner.get_xydata().tolist() == [[1, 0.5], [2, 0.9], [3, 0.8]]
        assert winner.get_marker() == "*"
        assert winner.get_markevery() == [1]
        assert all(winner.get_linewidth() > line.get_linewidth() for line in others)

    def test_all_but_the_best_five_are_one_grey_line_with_gaps(self):
        ax = plot_curves(rising(60, 270))
        assert legend(ax)[-1] == "55 others"
        assert legend(plot_curves(rising(6, 27)))[-1] == "1 other"
        assert len(ax.get_lines()) == 6
        assert np.isnan(ax.get_lines()[-1].get_xdata()).sum() == 54
        assert len(set(legend_colours(ax))) == 6

    def test_failed_epochs_are_marked_apart_from_the_curve(self):
        nan = float("nan")
        history = [epoch(0, 1, 0.1), epoch(0, 2, nan), epoch(0, 3, 0.3)]
        curve, crosses = plot_curves(history).get_lines()
        assert curve.get_xydata().tolist() == [[1, 0.1], [3, 0.3]]
        assert crosses.get_xdata().tolist() == [2]
        assert crosses.get_label() == "1 failed"

    @pytest.mark.parametrize("direction", ["maximize", "minimize"])
    def test_a_diverged_score_stays_outside_and_the_title_says_so(self, direction):
        bad = -1e6 if direction == "maximize" else 1e6
        ax = plot_curves([*rising(20, 100), epoch(0, 2, bad)], direction=direction)
        low, high = ax.get_ylim()
        assert -1 < low < high < 2
        assert "1 outside the axes" in ax.get_title(loc="left")


@pytest.mark.parametrize("plot", PLOTS)
class TestBoth:
    def test_draws_on_the_axes_given_and_opens_no_figure(self, plot):
        ax = Figure().add_subplot()
        assert plot(HISTORY, ax=ax) is ax
        assert plt.get_fignums() == []
        ax.figure.draw_without_rendering()

    def test_labels_replace_numbers_and_are_shortened(self, plot):
        labels = {1: "cost=$3$", 2: "learning rate 0.01, momentum 0.95, depth 12"}
        ax = plot(HISTORY, labels=labels)
        ax.figure.draw_without_rendering()
        texts = " ".join(names(ax) if plot is plot_allocation else legend(ax))
        assert r"cost=\$3\$" in texts
        assert "learning rate 0.01, momentum 0.…" in texts
        assert "arm 0" in texts

    @pytest.mark.parametrize(
        "scores",
        [[0.5], [0.5, 0.5], [float("nan")] * 3, [float("inf"), 0.1], [0, 0, 0, 0, -9]],
        ids=["one", "equal", "all failed", "infinite", "far out but no spread"],
    )
    def test_draws_the_smallest_histories(self, plot, scores):
        history = [epoch(arm, 1, score) for arm, score in enumerate(scores)]
        plot(history).figure.draw_without_rendering()

    def test_an_empty_history_is_refused(self, plot):
        with pytest.raises(InvalidParameterError, match="history is empty"):
            plot([])

    def test_an_unknown_direction_is_refused(self, plot):
        with pytest.raises(InvalidParameterError, match="direction must be one of"):
            plot(HISTORY, direction="up")

    def test_a_missing_matplotlib_names_the_command(self, plot, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(
            MissingDependencyError, match=r'pip install "risingsearch\[plot\]"'
        ):
            plot(HISTORY)


def rows(*told):
    return [{"arm": a, "epoch": e, "score": s} for a, e, s in told]


# Arm 0 waits while arm 1 trains, and wins in the end.
PAUSED = rows((0, 1, 0.3), (1, 1, 0.4), (1, 2, 0.5), (0, 2, 0.6), (0, 3, 0.7))


@pytest.mark.parametrize(("style", "brighter"), [("default", False), (None, True)])
def test_the_best_scores_stand_out_from_light_and_dark_ground(style, brighter):
    with plt.style.context(style or "dark_background"):
        ax = plot_allocation(PAUSED)
        blocks = ax.collections[0]
    worst, best = (sum(to_rgb(blocks.to_rgba(score))) for score in (0.3, 0.7))
    assert (best > worst) == brighter
