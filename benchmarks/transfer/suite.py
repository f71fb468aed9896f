"""What earlier searches are worth: recorded tasks, searched after others of them.

Every task is searched as in the suite ``hpo``: the same tables, orders, budgets and
normalised regret. Before that, the search is given other tasks of the same family as
earlier searches: 60 random runs of each, the runs and the tasks drawn anew with every
order. Other searches are given tasks that mislead.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.statistics import balanced, mean_known, over_seeds, paired
from benchmarks.shared import figures, report
from benchmarks.transfer import in_spaces, rivals
from benchmarks.transfer.methods import (
    METHODS,
    NONE,
    Method,
    Place,
    places,
    regret,
    rival_regret,
)
from benchmarks.transfer.tasks import RUNS, load_families

MULTIPLES = (1, 2, 5, 10, 20)
ORDERS = {"quick": 1, "default": 5, "full": 10}
TASKS = {"quick": 1, "default": 6, "full": 100}
"""Of a family, at most."""
MAIN = "4 earlier"
MOST_HARM = 0.02
RIVALS_ON = "taskset"
RIVAL_MULTIPLES = (1, 2, 5, 10)
RIVAL_ORDERS = 3


class Played(NamedTuple):
    """The regret of every method on every task."""

    places: list[Place]
    methods: tuple[Method, ...]
    regret: NDArray[np.float64]  # (methods, tasks, multiples, orders)

    @property
    def families(self) -> NDArray[np.str_]:
        """The family of every task."""
        return np.array([place.task.task.family for place in self.places])

    def of(self, name: str) -> NDArray[np.float64]:
        """Return the regret of one method."""
        values: NDArray[np.float64] = self.regret[
            [method.name for method in self.methods].index(name)
        ]
        return values


def run(
    out: Path,
    *,
    scale: str,
    seed: int,
    jobs: int | None = None,
    data_dir: Path | None = None,
) -> None:
    """Search all tasks with and without earlier ones; write tables and a figure."""
    found = first_of_families(places(load_families(data_dir)), TASKS[scale])
    played = play(found, range(seed, seed + ORDERS[scale]), jobs)
    report.write_results(out, [*rows(played)])
    report.write_summary(
        out,
        "Searches that learn from earlier ones",
        [
            f"Earlier searches are other tasks of the family, {RUNS} random runs of "
            "each. Normalised regret, mean over tasks of a family, then families; "
            "± is half the 95 % interval over the orders. Where a family has fewer "
            "other tasks, as many as there are; below three, or with no stranger that "
            "shares two parameters, a task is left out of that row.",
            by_method(played),
            "By family, without earlier searches and with four:",
            by_family(played),
            "In spaces, made families, R = 20 epochs; [95 % bootstrap interval over "
            "problems and seeds]:",
            in_spaces.compare(scale, seed),
            *(beside_rivals(played, out, seed, jobs) if scale == "full" else ()),
            "The bars:",
            report.table([*bars(played)]),
            draw(played, out),
        ],
    )


def first_of_families(found: list[Place], most: int) -> list[Place]:
    """Return so many tasks of every family at most."""
    kept: dict[str, list[Place]] = {}
    for place in found:
        kept.setdefault(place.task.task.family, []).append(place)
    return [place for own in kept.values() for place in own[:most]]


def play(found: list[Place], orders: range, jobs: int | None) -> Played:
    """Return the regret of every method; with one job, in this process."""
    items = list(product(METHODS, found, MULTIPLES, orders))
    if jobs == 1:
        values = [play_item(item) for item in items]
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            values = list(pool.map(play_item, items, chunksize=8))
    shape = len(METHODS), len(found), len(MULTIPLES), len(orders)
    return Played(found, METHODS, np.array(values).reshape(shape))


def play_item(item: tuple[Method, Place, int, int]) -> float:
    """Return the regret of one search."""
    method, place, multiple, seed = item
    return regret(place, method, multiple, seed)


def rows(played: Played) -> Iterator[dict[str, Any]]:
    """Yield a row per search."""
    for (m, t, b, k), value in np.ndenumerate(played.regret):
        task = played.places[t].task.task
        yield {
            "method": played.methods[m].name,
            "family": task.family,
            "task": task.name,
            "multiple": MULTIPLES[b],
            "order": k,
            "regret": float(value),
        }


def against_none(played: Played, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the regrets of a method and without a prior, on the tasks it has."""
    has = ~np.isnan(played.of(name)).all(axis=(1, 2))
    without = np.where(np.isnan(played.of(name)), np.nan, played.of(NONE.name))
    return played.of(name)[has], without[has]


def by_method(played: Played) -> str:
    """Return a table of the methods: mean regret at every budget, and differences."""
    lines = []
    for method in played.methods:
        own, without = against_none(played, method.name)
        families = played.families[~np.isnan(played.of(method.name)).all(axis=(1, 2))]
        if not len(own):
            continue
        means = balanced(own, families)
        change = means - balanced(without, families)
        line = {"prior": method.name, "tasks": str(len(own))}
        for b, multiple in enumerate(MULTIPLES):
            line[f"{multiple}x"] = f"{np.nanmean(means[b]):.3f}"
        for b, multiple in enumerate(MULTIPLES):
            interval = over_seeds(change[b])
            half = interval.high - interval.mean
            line[f"change at {multiple}x"] = f"{interval.mean:+.3f} ± {half:.3f}"
        lines.append(line)
    return report.table(lines)


def by_family(played: Played) -> str:
    """Return a table of the families: mean regret at every budget."""
    lines = []
    for family in dict.fromkeys(played.families.tolist()):
        own = played.families == family
        line: dict[str, Any] = {"family": family, "tasks": str(int(own.sum()))}
        for b, multiple in enumerate(MULTIPLES):
            pair = [
                mean_known(played.of(name)[own][:, b].ravel(), axis=0)
                for name in (NONE.name, MAIN)
            ]
            line[f"{multiple}x"] = f"{pair[0]:.3f} → {pair[1]:.3f}"
        lines.append(line)
    return report.table(lines)


def beside_rivals(
    played: Played, out: Path, seed: int, jobs: int | None
) -> Iterator[str]:
    """Yield a table of other tools that learn from the same runs, on one family."""
    own = played.families == RIVALS_ON
    if not own.any():
        return
    python = rivals.installed(out / "environments")
    playable = [one for one in rivals.RIVALS if one not in rivals.left_out(python)]
    found = [place for place, is_own in zip(played.places, own, strict=True) if is_own]
    orders = range(seed, seed + RIVAL_ORDERS)
    items = list(product(playable, found, RIVAL_MULTIPLES, orders, [python]))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        values = np.array(list(pool.map(play_rival, items)))
    shape = len(playable), len(found), len(RIVAL_MULTIPLES), RIVAL_ORDERS
    known = dict(zip(playable, values.reshape(shape), strict=True))
    at = [MULTIPLES.index(multiple) for multiple in RIVAL_MULTIPLES]
    for name in (MAIN, NONE.name):
        known[name] = played.of(name)[own][:, at, :RIVAL_ORDERS]
    yield (
        f"Beside other tools, on {RIVALS_ON}, after the same runs of the same four "
        f"tasks, {RIVAL_ORDERS} orders:"
    )
    yield report.table(
        [
            {"method": name}
            | {
                f"{multiple}x": f"{np.nanmean(regrets[:, b]):.3f}"
                for b, multiple in enumerate(RIVAL_MULTIPLES)
            }
            for name, regrets in known.items()
        ]
    )


def play_rival(item: tuple[str, Place, int, int, str | None]) -> float:
    """Return the regret of one search of another tool."""
    rival, place, multiple, seed, python = item
    return rival_regret(place, rival, multiple, seed, python)


def bars(played: Played) -> Iterator[dict[str, Any]]:
    """Yield what was to be reached, and what was."""
    taskset = played.families == "taskset"
    if taskset.any():
        pair = [np.nanmean(played.of(n)[taskset], (0, 2)) for n in (MAIN, NONE.name)]
        for b, most in ((0, 0.5), (1, 0.6), (2, 1.0), (3, 1.0), (4, 1.0)):
            yield {
                "bar": f"TaskSet, {MULTIPLES[b]}x: at most {most:g} of the regret",
                "came out": f"{pair[1][b]:.3f} → {pair[0][b]:.3f}",
                "verdict": _verdict(pair[0][b] <= most * pair[1][b]),
            }
    own, without = against_none(played, MAIN)
    families = played.families[~np.isnan(played.of(MAIN)).all(axis=(1, 2))]
    small = paired(own[:, :2], without[:, :2], families)
    yield {
        "bar": "better on at least 80 % of the tasks at 1x and 2x, Wilcoxon p < .01",
        "came out": f"{small.won:.0%}, p = {small.p_value:.2g}",
        "verdict": _verdict(small.won >= 0.8 and small.p_value < 0.01),
    }
    for method in played.methods:
        if method.mislead:
            misled, without = against_none(played, method.name)
            if len(misled):
                change = np.nanmean(misled - without, axis=(0, 2))
                yield {
                    "bar": f"{method.name}: at most {MOST_HARM} worse at any budget",
                    "came out": f"{change.max():+.3f}",
                    "verdict": _verdict(change.max() <= MOST_HARM),
                }


def _verdict(holds: Any) -> str:
    return "holds" if holds else "does not hold"


def draw(played: Played, out: Path) -> str:
    """Draw regret against budget for the numbers of earlier searches."""
    figure, [ax] = figures.new(8.4, 4.8)
    shown = [method.name for method in played.methods if not method.mislead]
    looks = figures.looks(shown)
    for name in shown:
        means = balanced(played.of(name), played.families)
        if not np.isnan(means).all():
            figures.band(ax, np.array(MULTIPLES), means, name, looks[name])
    ax.set_xscale("log")
    ax.set_xticks(MULTIPLES, [f"{multiple}x" for multiple in MULTIPLES])
    ax.set_xlabel("budget, in trainings of one configuration")
    ax.set_ylabel("normalised regret")
    figures.legend(figure, ax)
    return figures.save(figure, out, "transfer")
