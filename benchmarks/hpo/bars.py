"""The bars for the default: what it must show beside the best of its rivals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo import reference
from benchmarks.hpo.decision_times import Decisions
from benchmarks.hpo.methods import DEFAULT
from benchmarks.hpo.parts import (
    CLEAN,
    JOBS,
    NOISES,
    SECONDS,
    UNKNOWN,
    Played,
    noisy_name,
    parallel_name,
)
from benchmarks.hpo.statistics import balanced, over_seeds, overall, paired, per_task
from benchmarks.hpo.tables import bar_row

RIVALS = (
    *("asha-3", "asha-4", "successive-halving-3", "successive-halving-4"),
    *("hyperband", "epsilon-greedy", "cure-ucb", "random-search", "dyhpo"),
)
IN_FULL = "random-search"
MARGIN, WON, P_VALUE = 0.03, 0.7, 0.01
AT_A_BUDGET, OF_A_FAMILY = 0.01, 0.04
LATE_FAMILIES = ("grokking", "rl")
IN_VAIN, MULTIPLE = 0.25, 10
DECISION_BARS = {200: 5.0, 2_000: 50.0}
CONDITIONS = (
    *map(noisy_name, NOISES),
    *map(parallel_name, JOBS),
    *(UNKNOWN, SECONDS),
)


def bars(
    played: Mapping[str, Played], times: Sequence[Decisions]
) -> Iterator[dict[str, str]]:
    """Yield a row per bar: what was measured, and whether it holds."""
    clean = played[CLEAN]
    if (public := reference.public(clean)) is not None:
        yield from reference.reproduced(public)
    yield ahead(clean)
    for rival in rivals(clean):
        yield better(clean, rival)
    yield from at_each_budget(clean)
    yield from of_each_family(clean)
    for condition in CONDITIONS:
        if condition in played:
            yield level(condition, played[condition])
    if MULTIPLE in clean.part.multiples:
        yield not_in_vain(clean)
    for time in times:
        if time.method == DEFAULT:
            yield in_time(time)


def rivals(played: Played) -> list[str]:
    """Return the baselines that were played."""
    return [name for name in RIVALS if name in played.names]


def ahead(played: Played) -> dict[str, str]:
    """Check the default's mean against the best baseline's."""
    means = {
        name: float(overall(played.of(name), played.families).mean())
        for name in (DEFAULT, *rivals(played))
    }
    bar = f"{DEFAULT}: mean at least {MARGIN:g} below the best baseline"
    return compared(bar, means, -MARGIN)


def at_each_budget(played: Played) -> Iterator[dict[str, str]]:
    """Check the default at every budget."""
    means = {
        name: balanced(played.of(name), played.families).mean(axis=-1)
        for name in (DEFAULT, *rivals(played))
    }
    for b, multiple in enumerate(played.part.multiples):
        bar = f"{DEFAULT}: at {multiple}x at most {AT_A_BUDGET:g} above the best"
        yield compared(bar, picked(means, b), AT_A_BUDGET)


def of_each_family(played: Played) -> Iterator[dict[str, str]]:
    """Check the default in every family."""
    names = (DEFAULT, *rivals(played))
    for family in np.unique(played.families):
        own = played.families == family
        means = {name: float(per_task(played.of(name)[own]).mean()) for name in names}
        bar = f"{DEFAULT}: {family}, at most {OF_A_FAMILY:g} above the best"
        yield compared(bar, means, OF_A_FAMILY)
        if family in LATE_FAMILIES and IN_FULL in means:
            two = {name: means[name] for name in (DEFAULT, IN_FULL)}
            yield compared(f"{DEFAULT}: {family}, not above random in full", two, 0.0)


def picked(means: Mapping[str, NDArray[np.float64]], i: int) -> dict[str, float]:
    """Return one figure of every method."""
    return {name: float(values[i]) for name, values in means.items()}


def compared(bar: str, means: Mapping[str, float], allowed: float) -> dict[str, str]:
    """Check that the default is at most so much above the lowest of the others."""
    best = min((name for name in means if name != DEFAULT), key=lambda n: means[n])
    more = means[DEFAULT] - means[best]
    measured = f"{means[DEFAULT]:.3f}, {best} {means[best]:.3f}: {more:+.3f}"
    return bar_row(bar, measured, more <= allowed)


def better(played: Played, rival: str) -> dict[str, str]:
    """Check that the default wins most tasks against a rival, beyond chance."""
    found = paired(played.of(DEFAULT), played.of(rival), played.families)
    bar = f"{DEFAULT}: better than {rival} on {WON:.0%} of the tasks, p < {P_VALUE:g}"
    measured = f"{found.won:.0%}, p = {found.p_value:.2g}"
    return bar_row(bar, measured, found.won >= WON and found.p_value < P_VALUE)


def level(condition: str, played: Played) -> dict[str, str]:
    """Check the default against the best baseline of a condition, order by order."""
    regret = {
        name: overall(played.of(name), played.families)
        for name in (DEFAULT, *rivals(played))
    }
    best = min(rivals(played), key=lambda name: float(regret[name].mean()))
    more = over_seeds(regret[DEFAULT] - regret[best])
    half = "" if math.isnan(more.low) else f" ± {more.high - more.mean:.3f}"
    measured = (
        f"{regret[DEFAULT].mean():.3f}, {best} {regret[best].mean():.3f}: "
        f"{more.mean:+.3f}{half}"
    )
    bar = f"{DEFAULT}: {condition}, not above the best baseline beyond the interval"
    lowest = more.mean if math.isnan(more.low) else more.low  # of one order
    return bar_row(bar, measured, lowest <= 0.0)


def not_in_vain(played: Played) -> dict[str, str]:
    """Check how many of the default's epochs beat nothing any more."""
    of_default = played.field("in_vain")[played.names.index(DEFAULT)]
    shares = balanced(of_default, played.families).mean(axis=-1)
    share = float(shares[played.part.multiples.index(MULTIPLE)])
    bar = f"{DEFAULT}: at {MULTIPLE}x at most {IN_VAIN:.0%} of the epochs in vain"
    return bar_row(bar, f"{share:.0%}", share <= IN_VAIN)


def in_time(time: Decisions) -> dict[str, str]:
    """Check the time of a decision."""
    bar = DECISION_BARS[time.n_arms]
    text = f"{DEFAULT}: {bar:g} ms per decision among {time.n_arms:,} arms"
    return bar_row(text, f"{time.mean:.2f} ms", time.mean <= bar)
