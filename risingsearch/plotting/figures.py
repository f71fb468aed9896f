"""Allocation of epochs, and learning curves: two figures of one search.

Both read the rows of ``SearchResult.history``, one per epoch in the order told, and
draw with a handful of artists, so ten thousand epochs stay fast. The colours can be
told apart with any colour vision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from risingsearch.arms import sign_of
from risingsearch.checks import checked_choice
from risingsearch.errors import InvalidParameterError, needed
from risingsearch.plotting.result import Row
from risingsearch.plotting.words import plural, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

# Okabe and Ito's palette, the winner's colour first.
WINNER = "#D55E00"
LEADERS = (WINNER, "#0072B2", "#E69F00", "#56B4E9", "#009E73")
LABEL_LENGTH = 32  # characters of an arm's name
LABEL_SIZE = 7  # points, of the arms' names


def plot_allocation(
    history: Sequence[Row],
    ax: Axes | None = None,
    *,
    direction: str = "maximize",
    labels: Mapping[int, str] | None = None,
    metric: str = "score",
) -> Axes:
    """Draw which arm trained when, coloured by score; return the axes.

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
        The name of the score, shortened as well.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn in; ``axes.figure`` has ``savefig``.

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
    epochs = Epochs(history, direction, labels, metric)
    arms = epochs.arms_by_training()
    places = {arm: place for place, arm in enumerate(arms)}
    row = np.array([places[arm] for arm in epochs.arm.tolist()])
    if ax is None:
        height = max(2.8, 1.3 + 0.125 * len(arms))
        ax = new_axes(8.0, min(9.0, height))
    _draw_blocks(ax, epochs, row)
    n_epochs = plural(len(row), "epoch")
    n_arms = plural(len(arms), "arm")
    title = f"Where {n_epochs} went, over {n_arms}"
    failed = np.flatnonzero(~epochs.is_scored)
    if len(failed):
        ax.plot(
            failed + 0.5,
            row[failed],
            "x",
            color=ink_on(ax).failed,
            markersize=4,
        )
        title += f", {len(failed):,} failed (cross)"
    winner = None
    if epochs.leaders:
        best = epochs.leaders[0]
        winner = int(row[best])
        ax.plot(
            best + 0.5, winner, "*", color=WINNER, markersize=14,
            markeredgecolor="white", clip_on=False, zorder=5,
        )  # fmt: skip
        title += f"\nbest {epochs.metric} (star) is of {epochs.describe(best)}"
    ax.set_xlim(0, len(row))
    ax.set_ylim(len(arms) - 0.4, -0.6)
    _frame(ax, title, "epochs spent", "arms, the most trained on top")
    _name_rows(ax, [epochs.name(arm) for arm in arms], winner)
    return ax


def plot_curves(
    history: Sequence[Row],
    ax: Axes | None = None,
    *,
    direction: str = "maximize",
    labels: Mapping[int, str] | None = None,
    metric: str = "score",
) -> Axes:
    """Draw the curves of all arms, the best few in colour; return the axes.

    Shows the gain from the epochs: whether the winner was still improving, and how far
    behind the others were when they were left. Scores that are far out at the bad end
    stay outside the axes; the title says how many.

    Parameters
    ----------
    history, ax, direction, labels, metric
        As in ``plot_allocation``; a new figure has a fixed size.

    Returns
    -------
    matplotlib.axes.Axes
        The axes drawn in; ``axes.figure`` has ``savefig``.

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
    epochs = Epochs(history, direction, labels, metric)
    ax = ax or new_axes(8.0, 4.8)
    for place, best in enumerate(epochs.leaders):
        _draw_curve(ax, epochs, best, place)
    _draw_also_rans(ax, epochs)
    _mark_failures(ax, epochs)
    low, high = score_limits(epochs.score, maximize=epochs.maximize)
    margin = 0.06 * (high - low) or 0.5
    ax.set_ylim(low - margin, high + margin)
    ax.set_xlim(0.5, 1.02 * epochs.epoch.max() + 0.5)
    n_arms = plural(len(np.unique(epochs.arm)), "arm")
    title = f"Learning curves of {n_arms}, {plural(len(epochs.arm), 'epoch')}"
    is_outside = (epochs.score < low) | (epochs.score > high)
    outside = int(is_outside.sum())
    if outside:
        title += f", {outside:,} outside the axes"
    _frame(ax, title, "epochs of the arm", epochs.metric)
    # In the corner that good curves leave free, clear of the marks of failures.
    ax.legend(
        loc="lower right" if epochs.maximize else "upper right",
        bbox_to_anchor=(1, 0.03 if epochs.maximize else 0.97),
        fontsize="small",
    )
    return ax


def score_limits(values: ArrayLike, *, maximize: bool) -> tuple[float, float]:
    """Return the range of scores without those that are far out.

    Far out is beyond Tukey's outer fence, at the bad end only: one diverged run must
    not flatten all others.

    Examples
    --------
    >>> score_limits([0.5, 0.55, 0.7, 0.65, 0.6, -900.0], maximize=True)
    (0.5, 0.7)
    """
    scores = np.asarray(values, dtype=np.float64)
    scores = scores[np.isfinite(scores)]
    if len(scores) == 0:
        return 0.0, 1.0
    good = scores if maximize else -scores
    quarter, three_quarters = np.quantile(good, (0.25, 0.75))
    reach = 3.0 * (three_quarters - quarter)
    if reach > 0:
        scores = scores[good >= quarter - reach]
    return float(scores.min()), float(scores.max())


class Ink(NamedTuple):
    """Colours of everything beside the leaders, on light ground or on dark."""

    failed: str
    guide: str
    also_ran: str


ON_LIGHT = Ink("#000000", "#E4E4E4", "#BDBDBD")
ON_DARK = Ink("#FFFFFF", "#3D444D", "#6E7681")


def ink_on(ax: Axes) -> Ink:
    """Return the colours that can be seen on the ground of these axes."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(ax.get_facecolor())
    brightness = 0.3 * red + 0.6 * green + 0.1 * blue
    if brightness < 0.5:
        return ON_DARK
    return ON_LIGHT


class Epochs:
    """The columns of a history, and the best rows of its best arms."""

    def __init__(
        self,
        history: Sequence[Row],
        direction: str,
        labels: Mapping[int, str] | None,
        metric: str,
    ) -> None:
        checked_choice("direction", direction, ("maximize", "minimize"))
        if len(history) == 0:
            raise InvalidParameterError(
                "history is empty; plot it after the first epoch"
            )
        self.arm = np.array([row["arm"] for row in history], dtype=int)
        self.epoch = np.array([row["epoch"] for row in history], dtype=int)
        self.score = np.array([row["score"] for row in history], dtype=float)
        self.is_scored = np.isfinite(self.score)
        self.score[~self.is_scored] = np.nan  # failed
        self.maximize = sign_of(direction) > 0.0
        self.metric = _as_text(metric)
        self._labels = labels or {}
        worst_last = np.argsort(-sign_of(direction) * self.score, kind="stable")
        scored = worst_last[: self.is_scored.sum()]  # NaN is last
        _, bests = np.unique(self.arm[scored], return_index=True)
        self.leaders: list[int] = scored[np.sort(bests)][: len(LEADERS)].tolist()

    def arms_by_training(self) -> list[int]:
        """Return the arms, the most trained first; of equals the winner, the oldest."""
        winner = dict.fromkeys(self.arm[self.leaders[:1]].tolist(), 0)
        counts = Counter(winner)
        counts.update(self.arm.tolist())
        return [arm for arm, _ in counts.most_common()]

    def name(self, arm: int) -> str:
        """Return the label of an arm, shortened to fit a figure."""
        return _as_text(str(self._labels.get(arm, f"arm {arm}")))

    def describe(self, row: int) -> str:
        """Return the name of a row's arm, with the score and epoch of the row."""
        name = self.name(int(self.arm[row]))
        return f"{name}: {self.score[row]:.4g} at epoch {self.epoch[row]}"


def _as_text(text: str) -> str:
    """Return a text that fits a figure, of which matplotlib makes no formula."""
    return short(text, LABEL_LENGTH).replace("$", r"\$")


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure, in inches."""
    with needed("matplotlib", "plot"):
        from matplotlib import pyplot
    _, ax = pyplot.subplots(
        figsize=(width, height),
        dpi=150,
        layout="constrained",
    )
    return ax


def _frame(
    ax: Axes,
    title: str,
    x: str,
    y: str,
) -> None:
    """Name the axes; epochs are counted in whole numbers."""
    from matplotlib.ticker import MaxNLocator

    ax.set_title(
        title,
        loc="left",
        fontsize="medium",
    )
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def _draw_blocks(
    ax: Axes,
    epochs: Epochs,
    row: NDArray[np.int64],
) -> None:
    from matplotlib import colormaps
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import ListedColormap

    x = np.arange(len(row))[:, np.newaxis] + np.array([0, 1, 1, 0])
    y = row[:, np.newaxis] + np.array([-0.42, -0.42, 0.42, 0.42])
    corners: Any = np.stack([x, y], axis=2)
    low, high = score_limits(epochs.score, maximize=epochs.maximize)
    ink = ink_on(ax)
    # The better, the further from the ground: the eye goes to what stands out. The
    # other end is left out, where it could hardly be seen.
    worst, best = (0.15, 1.0) if ink is ON_DARK else (0.8, 0.0)
    shades = np.linspace(worst, best, 256)
    if not epochs.maximize:
        shades = shades[::-1]
    blocks = PolyCollection(
        corners,
        array=np.ma.masked_invalid(epochs.score),
        cmap=ListedColormap(colormaps["cividis"](shades)),
        clim=(low, high),
        # Its own edge keeps a block visible that is narrower than a pixel.
        edgecolors="face",
        linewidths=0.6,
        zorder=2,
    )
    ax.add_collection(blocks)
    rows, opened = np.unique(row, return_index=True)
    _, from_end = np.unique(row[::-1], return_index=True)
    left = len(row) - from_end
    ax.hlines(
        rows,
        opened,
        left,
        color=ink.guide,
        linewidth=0.6,
        zorder=1,
    )
    if epochs.leaders:
        below = (epochs.score < low).any()
        above = (epochs.score > high).any()
        extend = "neither"
        if above:
            extend = "max"
        if below:
            extend = "min"
        ax.figure.colorbar(
            blocks, ax=ax, label=epochs.metric, extend=extend, pad=0.02, aspect=30
        )


def _name_rows(
    ax: Axes,
    names: Sequence[str],
    winner: int | None,
) -> None:
    """Name as many arms as fit, the winner always."""
    points = ax.get_window_extent().height * 72 / ax.figure.dpi
    needed_points = 1.15 * LABEL_SIZE * len(names)
    step = int(np.ceil(needed_points / points))
    named = range((winner or 0) % step, len(names), step)
    ax.set_yticks(named, [names[row] for row in named], fontsize=LABEL_SIZE)
    ax.tick_params(axis="y", length=0)
    if winner is not None:
        label = ax.get_yticklabels()[winner // step]
        label.set(color=WINNER, fontweight="bold")


def _draw_also_rans(ax: Axes, epochs: Epochs) -> None:
    # One line for all of them: a NaN between two arms lifts the pen.
    is_leader = np.isin(epochs.arm, epochs.arm[epochs.leaders])
    rows = np.flatnonzero(epochs.is_scored & ~is_leader)
    if len(rows) == 0:
        return
    rows = rows[np.argsort(epochs.arm[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(epochs.arm[rows])) + 1
    ax.plot(
        np.insert(epochs.epoch[rows].astype(np.float64), starts, np.nan),
        np.insert(epochs.score[rows], starts, np.nan),
        ".-",
        color=ink_on(ax).also_ran,
        linewidth=0.7,
        markersize=2,
        label=plural(len(starts) + 1, "other"),
        zorder=1,
    )


def _draw_curve(
    ax: Axes,
    epochs: Epochs,
    best: int,
    place: int,
) -> None:
    is_of_arm = epochs.arm == epochs.arm[best]
    rows = np.flatnonzero(epochs.is_scored & is_of_arm)
    (curve,) = ax.plot(
        epochs.epoch[rows],
        epochs.score[rows],
        ".-",
        color=LEADERS[place],
        linewidth=1.4,
        markersize=4,
        label=epochs.describe(best),
        zorder=3,
    )
    if place == 0:
        curve.set(
            linewidth=2.6,
            marker="*",
            markersize=15,
            markeredgecolor="white",
            markevery=[rows.tolist().index(best)],
            label=f"best is {epochs.describe(best)}",
            zorder=4,
        )


def _mark_failures(ax: Axes, epochs: Epochs) -> None:
    failed = epochs.epoch[~epochs.is_scored]
    if len(failed):
        # Without a score there is no height: the marks stand along the bad end.
        ax.plot(
            failed,
            np.full(len(failed), 0.02 if epochs.maximize else 0.98),
            "x",
            color=ink_on(ax).failed,
            markersize=4,
            label=f"{len(failed):,} failed",
            transform=ax.get_xaxis_transform(),
        )
