"""Figures of the suite: regret against budget, ranks, families, allocations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from benchmarks.hpo.draws import draw_search
from benchmarks.hpo.methods import (
    BANDITS,
    BASELINES,
    DEFAULT,
    ORACLE,
    Method,
    ablations,
    shipped,
)
from benchmarks.hpo.parts import CLEAN, NOISES, Played, noisy_name
from benchmarks.hpo.replay import Setting, own_epochs, scheduled
from benchmarks.hpo.statistics import (
    balanced,
    cliques,
    critical_difference,
    overall,
    task_ranks,
)
from benchmarks.hpo.tables import ascending
from benchmarks.hpo.tasks import Task
from benchmarks.shared import figures
from benchmarks.shared.figures import Look

LOOKS = {
    "auto": Look("#D55E00", "-", "o"),
    "looks-then-slope": Look("#E69F00", "-", "D"),
    "cure-ucb": Look("#0072B2", "-", "s"),
    "r-ed-ucb": Look("#56B4E9", "-", "^"),
    "successive-halving-4": Look("#009E73", "--", "s"),
    "successive-halving-3": Look("#117733", "--", "^"),
    "asha-4": Look("#CC79A7", "--", "o"),
    "asha-3": Look("#882255", "--", "D"),
    "hyperband": Look("#332288", "--", "v"),
    "epsilon-greedy": Look("#000000", ":", "s"),
    "median-stopping": Look("#661100", ":", "v"),
    "random-search": Look("#8C8C8C", ":", "o"),
    "r-sr": Look("#44AA99", "-", "v"),
    "r-ucbe": Look("#999933", "-", "P"),
    "max-ucb": Look("#6699CC", "-", "X"),
    "rising-bandits-cash": Look("#AA4499", "-", "*"),
    "oracle": Look("#AAAAAA", "-", "x"),
}
FEWEST = 5
"""Orders from which on a band is drawn around a line."""
ALLOCATIONS = ("successive-halving-4", "asha-3", "epsilon-greedy", "cure-ucb")


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Return a look per method."""
    return figures.looks([name for name in names if name not in LOOKS]) | LOOKS


def main_methods(played: Played) -> list[str]:
    """Return all methods but the ablations, the lowest mean regret first."""
    left_out = {method.name for method in ablations()}
    return [name for name in ascending(played) if name not in left_out]


def in_lines(played: Played) -> list[str]:
    """Return the methods that are drawn as lines: few enough to tell apart."""
    bandits = {method.name for method in BANDITS[1:]}
    return [name for name in main_methods(played) if name not in bandits]


def regret(played: Mapping[str, Played], out: Path) -> str:
    """Draw mean regret against the budget, a panel per noise."""
    parts = [played[CLEAN], *(played[noisy_name(noise)] for noise in NOISES)]
    figure, axes = figures.new(14, 4.8, len(parts), sharey=True)
    for ax, part, noise in zip(axes, parts, (0.0, *NOISES), strict=True):
        styles = looks(in_lines(part))
        for name in in_lines(part):
            samples = balanced(part.of(name), part.families)
            if samples.shape[1] < FEWEST:
                samples = samples.mean(axis=1, keepdims=True)
            figures.band(ax, part.part.multiples, samples, name, styles[name])
        ax.set_xscale("log")
        ax.set_xticks(part.part.multiples, [f"{m}x" for m in part.part.multiples])
        ax.minorticks_off()
        figures.title(ax, f"noise {noise:g}, {len(part.part.seeds)} orders")
        ax.set_xlabel("budget, in multiples of R epochs")
    axes[0].set_ylabel("normalised regret, families alike, 95 % band")
    axes[0].set_ylim(0.0, 1.0)
    figures.legend(figure, axes[0])
    return figures.save(figure, out, "regret")


def ranks(played: Played, out: Path) -> str:
    """Draw average ranks over tasks; a bar joins ranks that Nemenyi cannot separate."""
    names = [name for name in main_methods(played) if name != ORACLE]
    rows = [played.names.index(name) for name in names]
    average = task_ranks(played.regret[rows])
    order = np.argsort(average, kind="stable")
    difference = critical_difference(len(names), len(played.part.tasks))
    figure, [ax] = figures.new(10, 1.6 + 0.2 * len(names))
    _critical_difference(
        ax, [names[i] for i in order], average[order].tolist(), difference
    )
    figures.title(
        ax,
        f"average rank over {len(played.part.tasks)} tasks by mean regret; "
        f"Nemenyi, 5 %: {difference:.2f} apart",
    )
    return figures.save(figure, out, "ranks")


def _critical_difference(
    ax: Axes, names: Sequence[str], average: Sequence[float], difference: float
) -> None:
    n, styles = len(names), looks(names)
    groups = cliques(average, difference)
    depth = 0.4 * len(groups) + 0.6
    for i, (name, rank) in enumerate(zip(names, average, strict=True)):
        left = i < (n + 1) // 2
        row = depth + (i if left else n - 1 - i)
        edge, align, nudge = (0.4, "right", -0.1) if left else (n + 0.6, "left", 0.1)
        color = styles[name].color
        ax.plot([rank, rank, edge], [0, row, row], color=color, linewidth=1.2)
        ax.text(
            edge + nudge,
            row,
            f"{name}  {rank:.2f}",
            ha=align,
            va="center",
            fontsize="small",
            color=color,
            fontweight="bold" if name == DEFAULT else "normal",
        )
    for k, (first, last) in enumerate(groups):
        ends = [average[first] - 0.05, average[last] + 0.05]
        ax.plot(ends, [0.4 * k + 0.4] * 2, color="#222222", linewidth=3)
    ax.set_xlim(-0.22 * n, 1.22 * n + 1)
    ax.set_ylim(depth + (n + 1) // 2, 0)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.spines["top"].set_visible(True)
    ax.spines["top"].set_bounds(1, n)
    ax.xaxis.tick_top()
    ax.set_xticks(range(1, n + 1))
    ax.set_yticks([])


def families(played: Played, out: Path) -> str:
    """Draw mean regret over the budgets, a panel per family."""
    names = [name for name in main_methods(played) if name != ORACLE]
    every = np.unique(played.families)
    figure, axes = figures.new(4.4 * len(every), 0.7 + 0.27 * len(names), len(every))
    for ax, family in zip(axes, every, strict=True):
        own = played.families == family
        samples = np.array(
            [overall(played.of(name)[own], played.families[own]) for name in names]
        )
        figures.bars(ax, names, samples, "{:.3f}")
        styles = looks(names)
        for bar, label in zip(ax.patches, ax.get_yticklabels(), strict=True):
            bar.set_facecolor(styles[label.get_text()].color)
        figures.title(ax, f"{family}, {own.sum()} tasks")
        ax.set_xlabel("normalised regret")
    return figures.save(figure, out, "families")


def allocations(
    task: Task, methods: Sequence[Method], out: Path, multiple: int = 5
) -> str:
    """Draw which configuration trained when, in one search of each method."""
    figure, axes = figures.new(15, 4.2, len(methods), sharex=True, sharey=True)
    run = draw_search(task, 0, 0.0)
    budget = multiple * task.max_epochs
    place = np.argsort(run.order)
    for ax, method in zip(axes, methods, strict=True):
        arms, _ = scheduled(run, method, budget, Setting())
        scores = task.curves[arms, own_epochs(arms)]
        points = ax.scatter(
            np.arange(1, len(arms) + 1),
            place[arms] + 1,
            c=scores,
            cmap="viridis",
            vmin=task.typical,
            vmax=task.best,
            s=9,
            marker="s",
            linewidths=0,
        )
        found = task.regret(float(scores.max()))
        figures.title(ax, f"{method.name}: regret {found:.2f}")
        ax.set_xlabel("epoch of the budget")
    axes[0].set_ylabel("configuration, in the order of opening")
    figure.colorbar(points, ax=axes, label="score", extend="min", fraction=0.02)
    figure.suptitle(
        f"{task.family}, {task.name}: {budget} epochs, the same order for all",
        x=0.01,
        ha="left",
        fontsize="medium",
    )
    return figures.save(figure, out, "allocation")


def shown_allocations() -> list[Method]:
    """Return the methods whose allocations are drawn."""
    names = (DEFAULT, *ALLOCATIONS)
    return [one for one in (*shipped(), *BASELINES, *BANDITS) if one.name in names]
