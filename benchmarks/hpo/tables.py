"""The tables of the summary, and the rows of ``results.csv``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.decision_times import Decisions
from benchmarks.hpo.methods import DEFAULT
from benchmarks.hpo.parts import Played
from benchmarks.hpo.replay import Outcome
from benchmarks.hpo.statistics import (
    Interval,
    balanced,
    cell_ranks,
    mean_known,
    over_seeds,
    over_tasks,
    overall,
    paired,
    per_task,
)
from benchmarks.shared import report


def ascending(played: Played) -> list[str]:
    """Return the methods, the lowest mean regret first."""
    means = [overall(played.of(n), played.families).mean() for n in played.names]
    return [played.names[i] for i in np.argsort(means, kind="stable")]


def regrets(played: Played) -> str:
    """Return mean regret per budget, overall and per family, and ranks."""
    ranks = dict(zip(played.names, cell_ranks(played.regret), strict=True))
    lines = []
    for name in ascending(played):
        regret = played.of(name)
        tasks = over_tasks(per_task(regret), played.families)
        lines.append(
            {
                "method": name,
                **by_budget(played, regret),
                "mean": with_half(over_seeds(overall(regret, played.families))),
                "over tasks": f"{tasks.low:.3f} to {tasks.high:.3f}",
                "rank": f"{ranks[name]:.2f}",
                **{
                    family: three(per_task(regret[played.families == family]).mean())
                    for family in np.unique(played.families)
                },
            }
        )
    return report.table(lines)


def against(played: Played, method: str = DEFAULT) -> str:
    """Return how one method does against each other one, task by task."""
    lines = []
    for name in ascending(played):
        if name == method:
            continue
        found = paired(played.of(method), played.of(name), played.families)
        low, high = found.difference.low, found.difference.high
        lines.append(
            {
                "against": name,
                "tasks won": f"{found.won:.0%}",
                "difference": f"{found.difference.mean:+.3f}",
                "over tasks": f"{low:+.3f} to {high:+.3f}",
                "Wilcoxon p": f"{found.p_value:.2g}",
            }
        )
    return report.table(lines)


def behaviour(played: Played) -> str:
    """Return what the searches do, per budget: the fields of ``Outcome``."""
    lines = []
    for name in ascending(played):
        m = played.names.index(name)
        line = {"method": name}
        for what, field, form in (
            ("winner's share", "winner_share", "{:.2f}"),
            ("pauses", "pauses", "{:.0f}"),
            ("arms", "opened", "{:.0f}"),
            ("used", "used", "{:.2f}"),
            ("in vain", "in_vain", "{:.0%}"),
        ):
            values = balanced(played.field(field)[m], played.families).mean(axis=-1)
            line[what] = ", ".join(form.format(value) for value in values)
        lines.append(line)
    return report.table(lines)


def in_flight(one: Played, parts: Mapping[int, Played]) -> str:
    """Return mean regret with one job and with several in flight, and idle time."""
    lines = []
    for name in ascending(one):
        line = {"method": name}
        for n_jobs, part in {1: one, **parts}.items():
            mean = over_seeds(overall(part.of(name), part.families))
            idle = balanced(
                part.field("idle")[part.names.index(name)], part.families
            ).mean()
            line[f"{n_jobs} in flight"] = with_half(mean)
            if n_jobs > 1:
                line[f"{n_jobs}: idle"] = f"{idle:.0%}"
        lines.append(line)
    return report.table(lines)


def decisions(times: Sequence[Decisions]) -> str:
    """Return milliseconds per decision."""
    return report.table(
        [
            {
                "method": time.method,
                "arms": f"{time.n_arms:,}",
                "mean (ms)": f"{time.mean:.2f}",
                "99 % (ms)": f"{time.slowest_percent:.2f}",
            }
            for time in times
        ]
    )


def by_budget(played: Played, regret: NDArray[np.float64]) -> dict[str, str]:
    """Return the balanced mean regret of every budget."""
    means = balanced(regret, played.families).mean(axis=-1)
    return {
        f"{multiple}x": three(mean)
        for multiple, mean in zip(played.part.multiples, means, strict=True)
    }


def three(value: float) -> str:
    """Return a regret with three digits."""
    return f"{value:.3f}"


def with_half(mean: Interval) -> str:
    """Return a mean and half its interval, in words."""
    if math.isnan(mean.high):  # of one order
        return f"{mean.mean:.3f}"
    return f"{mean.mean:.3f} ± {mean.high - mean.mean:.3f}"


def bar_row(bar: str, measured: str, holds: bool) -> dict[str, str]:
    """Return a row of the table of bars."""
    verdict = "holds" if holds else "does not hold"
    return {"bar": bar, "measured": measured, "verdict": verdict}


def rows(name: str, played: Played) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``results.csv``: means over the orders, per task and budget."""
    part = played.part
    means = mean_known(played.outcomes, axis=-2)
    for m, t, b in np.ndindex(means.shape[:3]):
        yield {
            "part": name,
            "family": part.tasks[t].family,
            "task": part.tasks[t].name,
            "method": part.methods[m].name,
            "budget": part.multiples[b],
            **dict(zip(Outcome._fields, means[m, t, b].tolist(), strict=True)),
            "regret_sd": float(np.nanstd(played.regret[m, t, b])),
            "orders": len(part.seeds),
        }
