"""The parts of the suite: which methods search which tasks under which conditions."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain, product
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.draws import draw_search
from benchmarks.hpo.methods import (
    BASELINES,
    DYHPO,
    Method,
    by_cost,
    everyone,
    in_conditions,
    settings,
    without_horizon,
)
from benchmarks.hpo.replay import Outcome, Setting, search
from benchmarks.hpo.tasks import Task

MULTIPLES = (1, 2, 5, 10, 20)
NOISES = (0.01, 0.03)
JOBS = (4, 16)

REAL, LCDB, SURROGATE = "real", "LCDB", "LCBench surrogate"
GROUPS = {"lcdb": LCDB, "lcbench_surrogate": SURROGATE}
"""Families that make a group of their own; all others are the real ones."""

CLEAN, SETTINGS, UNKNOWN, SECONDS = "clean", "settings", "unknown", "seconds"
TOOLS = "other tools"
TOOL_SEEDS = 2


class Scale(NamedTuple):
    """How much is measured."""

    per_family: int | None  # of the real tasks; None: all of them
    seeds: int  # on the real tasks
    noisy_seeds: int
    other_seeds: int  # on the other groups
    live_seeds: int  # through the scheduler, in Python
    timed_seeds: int  # the same, with budgets in seconds
    multiples: tuple[int, ...]
    live_multiples: tuple[int, ...]
    every: int  # of the tasks of the other groups, one in so many


SCALES = {
    "quick": Scale(1, 1, 1, 1, 1, 1, (1, 5), (1, 5), 20),
    "default": Scale(None, 10, 4, 3, 3, 2, MULTIPLES, (1, 5, 20), 4),
    "full": Scale(None, 20, 5, 3, 3, 3, MULTIPLES, MULTIPLES, 2),
}


class Part(NamedTuple):
    """Some methods on some tasks under the same conditions."""

    name: str
    tasks: Sequence[Task]
    methods: Sequence[Method]
    setting: Setting
    multiples: Sequence[int]
    seeds: range


@dataclass(frozen=True)
class Played:
    """A part, and what came of it.

    Parameters
    ----------
    part : Part
        What was played.
    outcomes : ndarray
        Of shape (methods, tasks, multiples, seeds, fields of ``Outcome``); NaN where a
        table does not hold the budget.
    """

    part: Part
    outcomes: NDArray[np.float64]

    @property
    def names(self) -> list[str]:
        """The methods."""
        return [method.name for method in self.part.methods]

    @property
    def families(self) -> NDArray[np.str_]:
        """The family of every task."""
        return np.array([task.family for task in self.part.tasks])

    @property
    def regret(self) -> NDArray[np.float64]:
        """Of shape (methods, tasks, multiples, seeds)."""
        return self.field("regret")

    def field(self, name: str) -> NDArray[np.float64]:
        """Return one field of all outcomes."""
        values: NDArray[np.float64] = self.outcomes[..., Outcome._fields.index(name)]
        return values

    def of(self, name: str) -> NDArray[np.float64]:
        """Return the regret of one method."""
        values: NDArray[np.float64] = self.regret[self.names.index(name)]
        return values

    def where(self, other: Part) -> Played:
        """Return the outcomes of the methods, budgets and orders of another part."""
        methods = [self.names.index(method.name) for method in other.methods]
        budgets = [self.part.multiples.index(multiple) for multiple in other.multiples]
        orders = [self.part.seeds.index(seed) for seed in other.seeds]
        chosen = self.outcomes[methods][:, :, budgets][:, :, :, orders]
        return Played(other._replace(setting=self.part.setting), chosen)


def group(tasks: Sequence[Task], name: str) -> list[Task]:
    """Return the tasks of one group."""
    return [task for task in tasks if GROUPS.get(task.family, REAL) == name]


def real_ones(tasks: Sequence[Task], scale: Scale) -> Sequence[Task]:
    """Return the first real tasks of every family; where there is none, all tasks."""
    families: dict[str, list[Task]] = {}
    for task in group(tasks, REAL):
        families.setdefault(task.family, []).append(task)
    first = (own[: scale.per_family] for own in families.values())
    return list(chain.from_iterable(first)) or tasks


def settings_part(tasks: Sequence[Task], scale: Scale, seed: int) -> Part:
    """Return the part in which the settings of the default are compared."""
    seeds = range(seed, seed + scale.seeds)
    real = real_ones(tasks, scale)
    return Part(SETTINGS, real, settings(), Setting(), scale.multiples, seeds)


def parts(
    tasks: Sequence[Task], scale: Scale, seed: int, default: Sequence[Method]
) -> Iterator[Part]:
    """Yield all parts for which there are tasks, with these settings of the default."""
    rivals, growing = in_conditions(default), without_horizon(default)
    real, many, few = real_ones(tasks, scale), scale.multiples, scale.live_multiples

    def orders(n: int) -> range:
        return range(seed, seed + n)

    clean = able(everyone(default), real)
    yield Part(CLEAN, real, clean, Setting(), many, orders(scale.seeds))
    noisy, live = orders(scale.noisy_seeds), orders(scale.live_seeds)
    for noise in NOISES:
        setting = Setting(noise=noise)
        yield Part(noisy_name(noise), real, rivals, setting, many, noisy)
    for name in (LCDB, SURROGATE):
        if (others := group(tasks, name)[:: scale.every]) and real is not tasks:
            other = orders(scale.other_seeds)
            yield Part(name, others, rivals, Setting(), many, other)
    for n_jobs in JOBS:
        setting = Setting(n_jobs=n_jobs)
        yield Part(parallel_name(n_jobs), real, rivals, setting, few, live)
    yield Part(UNKNOWN, real, growing, Setting(known=False), few, live)
    if timed := [task for task in real if task.cost is not None]:
        setting = Setting(unit="seconds")
        seconds = orders(scale.timed_seeds)
        yield Part(SECONDS, timed, by_cost(default), setting, few, seconds)


def able(methods: Sequence[Method], tasks: Sequence[Task]) -> list[Method]:
    """Return the methods that can search all tasks: some need features."""
    described = all(task.features is not None for task in tasks)
    return [method for method in methods if described or method.play is None]


def tools_parts(
    tasks: Sequence[Task], seed: int, default: Sequence[Method], tools: Sequence[Method]
) -> Iterator[Part]:
    """Yield the part of other tools, which take long: few tasks, budgets and orders."""
    scale = SCALES["quick"]
    real = [one for one in real_ones(tasks, scale) if one.features is not None]
    if real and tools:
        methods = [*default, *BASELINES, DYHPO, *tools]
        seeds = range(seed, seed + TOOL_SEEDS)
        yield Part(TOOLS, real, methods, Setting(), scale.live_multiples, seeds)


def noisy_name(noise: float) -> str:
    """Return the name of the part with this noise."""
    return f"noise {noise:g}"


def parallel_name(n_jobs: int) -> str:
    """Return the name of the part with so many jobs in flight."""
    return f"{n_jobs} in flight"


def play(plan: Sequence[Part], jobs: int | None) -> dict[str, Played]:
    """Play all parts in ``jobs`` processes; with one job, in this process."""
    if jobs == 1:
        return {
            part.name: _gathered(part, (play_item(*item) for item in items(part)))
            for part in plan
        }
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        ahead = {
            part.name: [pool.submit(play_item, *item) for item in items(part)]
            for part in plan
        }
        return {
            part.name: _gathered(part, (one.result() for one in ahead[part.name]))
            for part in plan
        }
    finally:
        pool.shutdown(cancel_futures=True)


def items(part: Part) -> Iterator[tuple[Task, Method, Part]]:
    """Yield what is played at a time: one method on one task.

    All methods on the first task come first, so that no two processes compile the same
    policy: the others find it in the cache on disk.
    """
    rest = part._replace(tasks=(), methods=())
    for task, method in product(part.tasks, part.methods):
        yield task, method, rest


def play_item(task: Task, method: Method, part: Part) -> NDArray[np.float64]:
    """Return the outcomes of one method on one task."""
    shape = len(part.multiples), len(part.seeds), len(Outcome._fields)
    outcomes = np.full(shape, np.nan)
    for k, seed in enumerate(part.seeds):
        run = draw_search(task, seed, part.setting.noise)
        for b, multiple in enumerate(part.multiples):
            outcome = search(run, method, multiple, part.setting)
            if outcome is not None:
                outcomes[b, k] = outcome
    return outcomes


def _gathered(part: Part, outcomes: Iterable[NDArray[np.float64]]) -> Played:
    begin = time.perf_counter()
    found = np.array(list(outcomes))
    print(
        f"hpo: {part.name}, {len(part.methods)} methods, {len(part.tasks)} tasks, "
        f"{len(part.seeds)} orders: {time.perf_counter() - begin:.0f} s",
        file=sys.stderr,
    )
    shape = len(part.tasks), len(part.methods), *found.shape[1:]
    return Played(part, found.reshape(shape).swapaxes(0, 1))
