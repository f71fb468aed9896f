"""What the figures of all suites share: one look per policy, PNG and SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from benchmarks.shared.results import at, half_width, ranks
from risingsearch.simulation import Comparison

DPI = 150


class Look(NamedTuple):
    """How a policy is drawn, in every figure of every suite."""

    color: str
    line: str = "-"
    marker: str = "o"


# Solid lines: rising bandits. Dashed: bandits for change. Dash-dotted: rotting bandits.
# Dotted: all others.
LOOKS = {
    "cure-ucb": Look("#D55E00", "-", "o"),
    "r-ed-ucb": Look("#0072B2", "-", "s"),
    "et-swgts": Look("#56B4E9", "-", "^"),
    "ti-ucb": Look("#009E73", "-", "D"),
    "r-ed-ae": Look("#332288", "-", "v"),
    "sw-ucb": Look("#CC79A7", "--", "s"),
    "sw-kl-ucb": Look("#882255", "--", "^"),
    "sw-ts": Look("#E69F00", "--", "D"),
    "rexp3": Look("#8C8C8C", "--", "v"),
    "ser4": Look("#999933", "--", "o"),
    "d-ucb": Look("#117733", "--", "s"),
    "f-dsw-ts": Look("#AA4499", "--", "^"),
    "wls-ots": Look("#6699CC", "--", "D"),
    "wswa": Look("#0072B2", "-.", "s"),
    "cto-sim": Look("#D55E00", "-.", "D"),
    "d-cto-sim-ucb": Look("#D55E00", "-.", "v"),
    "fewa": Look("#56B4E9", "-.", "^"),
    "raw-ucb": Look("#882255", "-.", "o"),
    "ucb1": Look("#000000", ":", "s"),
    "ucb-v": Look("#661100", ":", "^"),
    "ccb": Look("#0072B2", ":", "D"),
    "ucb-improved": Look("#8C8C8C", ":", "v"),
    "epsilon-greedy": Look("#009E73", ":", "s"),
    "thompson-beta": Look("#E69F00", ":", "^"),
    "raven-ucb": Look("#D55E00", ":", "D"),
    "be-s": Look("#D55E00", "--", "o"),
    "be-ns": Look("#0072B2", "--", "s"),
}
_OTHERS = [
    Look(color, ":", marker)
    for marker in "oXP*"
    for color in ("#000000", "#117733", "#AA4499", "#44AA99", "#661100", "#6699CC")
]


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Return a look per name: its own, or else the next unused one."""
    names = list(names)
    others = [name for name in names if name not in LOOKS]
    return LOOKS | dict(zip(others, _OTHERS, strict=False))


def new(
    width: float, height: float, n_axes: int = 1, n_rows: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure, in inches, and its axes, ``n_axes`` of them in every row."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(n_rows, n_axes, squeeze=False, **options).ravel()
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize="small")
    return figure, list(axes)


def save(figure: Figure, out: Path, name: str) -> str:
    """Write ``name.png`` and ``name.svg``; return the line that shows it in a page."""
    figure.savefig(out / f"{name}.png", dpi=DPI)
    # Without date and random ids, the same figure is the same file.
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(out / f"{name}.svg", metadata={"Date": None})
    return f"![{name}]({name}.png)"


def title(ax: Axes, text: str) -> None:
    """Write a title above the left end of the axes."""
    ax.set_title(text, loc="left", fontsize="medium")


def band(
    ax: Axes, x: ArrayLike, samples: NDArray[np.float64], name: str, look: Look
) -> None:
    """Draw the means of the rows of ``samples`` within the band of their intervals."""
    mean, half = samples.mean(axis=1), half_width(samples)
    ax.plot(
        x,
        mean,
        color=look.color,
        linestyle=look.line,
        marker=look.marker,
        markersize=4,
        linewidth=1.5,
        label=name,
    )
    ax.fill_between(
        x, mean - half, mean + half, color=look.color, alpha=0.13, linewidth=0
    )


def legend(figure: Figure, ax: Axes) -> None:
    """Name the lines beside the axes, in the order in which they end."""
    lines = sorted(ax.get_lines(), key=lambda line: -np.asarray(line.get_ydata())[-1])
    figure.legend(
        handles=lines,
        loc="outside right upper",
        fontsize="small",
        frameon=False,
        handlelength=3.2,
    )


def bars(
    ax: Axes,
    names: Sequence[str],
    samples: NDArray[np.float64],
    form: str = "{:,.0f}",
) -> None:
    """Draw the means of the rows of ``samples``, the lowest on top, with intervals."""
    values = samples.mean(axis=1)
    errors = np.nan_to_num(half_width(samples))
    order = np.argsort(values, kind="stable")[::-1]
    styles = looks(names)
    rows = np.arange(len(names))
    ax.barh(
        rows,
        values[order],
        xerr=errors[order],
        color=[styles[names[i]].color for i in order],
        error_kw={"elinewidth": 1.2, "capsize": 2.5, "ecolor": "#222222"},
    )
    for row, i in zip(rows, order, strict=True):
        ax.annotate(
            form.format(values[i]),
            (values[i] + errors[i], row),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
    ax.set_yticks(rows, [names[i] for i in order])
    ax.set_xlim(0, 1.14 * float((values + errors).max()))


def win_rates(ax: Axes, shares: Any) -> None:
    """Draw how often the row beat the column, in percent, from red to blue."""
    names, percent = list(shares.index), 100 * shares.to_numpy()
    ax.imshow(percent, cmap="RdBu", vmin=0, vmax=100)
    for i, j in np.argwhere(np.isfinite(percent)):
        far = abs(percent[i, j] - 50) > 32
        ax.text(
            j,
            i,
            f"{percent[i, j]:.0f}",
            ha="center",
            va="center",
            fontsize="x-small",
            color="white" if far else "black",
        )
    ticks = np.arange(len(names))
    ax.set_xticks(ticks, names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(ticks, names)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def from_zero(ax: Axes) -> None:
    """Start the vertical axis at 0, with room for what lies there."""
    top = ax.get_ylim()[1]
    ax.set_ylim(-0.02 * top, top)


def log_axis(axis: Axis) -> None:
    """Put numbers at 1, 2 and 5 times the powers of ten, with M for a million."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(EngFormatter(sep=""))
    axis.set_minor_formatter(NullFormatter())


def thousands(ax: Axes, axes: str = "x") -> None:
    """Write the numbers of an axis with separators: 50,000."""
    form = FuncFormatter(lambda value, _: f"{value:,.0f}")
    for name in axes:
        getattr(ax, f"{name}axis").set_major_formatter(form)


def regret(
    comparison: Comparison, out: Path, name: str = "regret", note: str = ""
) -> str:
    """Draw mean regret against the horizon, with 95 % bands."""
    figure, [ax] = new(8.4, 4.8)
    styles = looks(comparison.policies)
    for p, policy in enumerate(comparison.policies):
        samples = comparison.regret[0, :, p]
        band(ax, comparison.horizons, samples, policy, styles[policy])
    note = note or f"mean and 95 % band of {comparison.regret.shape[-1]} runs"
    title(ax, f"{comparison.environments[0]}, {note}")
    ax.set_xlabel("horizon T (rounds)")
    ax.set_ylabel("policy regret (sum of mean rewards)")
    from_zero(ax)
    thousands(ax, "xy")
    legend(figure, ax)
    return save(figure, out, name)


def average_ranks(comparison: Comparison, horizons: Sequence[int], out: Path) -> str:
    """Draw the average rank of every policy at some horizons."""
    figure, axes = new(4.5 * len(horizons), 3.8, len(horizons))
    for ax, horizon in zip(axes, horizons, strict=True):
        bars(ax, comparison.policies, ranks(comparison, horizon), "{:.2f}")
        title(ax, f"{comparison.environments[0]}, T = {horizon:,}")
        ax.set_xlabel("average rank (1 is best), 95 % interval")
    return save(figure, out, "ranks")


def at_horizon(comparison: Comparison, horizon: int, out: Path) -> str:
    """Draw mean regrets, and how often each policy beat each other one."""
    figure, [left, right] = new(11.5, 4.8, 2)
    environment = comparison.environments[0]
    bars(left, comparison.policies, at(comparison, horizon))
    title(left, f"{environment}, T = {horizon:,}")
    left.set_xlabel("mean policy regret, 95 % interval")
    thousands(left)
    win_rates(right, comparison.wins(environment, horizon))
    title(right, "runs in which the row has less regret than the column (%)")
    return save(figure, out, f"at-{horizon}")
