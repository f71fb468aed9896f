"""What the suite must show: the reference's figures, and bars for the default."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks.hpo import methods
from benchmarks.hpo.decision_times import Decisions
from benchmarks.hpo.methods import DEFAULT, GATED, SIMPLE
from benchmarks.hpo.parts import (
    CLEAN,
    MULTIPLES,
    NOISES,
    UNKNOWN,
    Played,
    noisy_name,
    parallel_name,
)
from benchmarks.hpo.statistics import (
    Interval,
    over_seeds,
    overall,
    paired,
    per_task,
)
from benchmarks.shared import report


class Row(NamedTuple):
    """A row of the reference's table: the mean, its interval, and the families."""

    mean: float
    half: float
    families: tuple[float, float, float, float]


FAMILIES = ("algoperf", "deepobs", "nmtlc", "taskset")
TASKS = {
    "algoperf": (
        *("criteo1tb", "criteo1tb_embed_init", "imagenet_resnet"),
        *("imagenet_resnet_large_bn_init", "librispeech_deepspeech", "ogbg"),
        "ogbg_model_size",
    ),
    "deepobs": ("cifar100_allcnnc", "fmnist_2c2d", "mnist_vae", "tolstoi_char_rnn"),
    "nmtlc": ("finetune_fr-en", "scratch_en-ja", "scratch_ru-en", "scratch_so-en"),
    "taskset": (
        *("imdb_patch128_LSTM128_avg_bs64", "imdb_patch128_LSTM128_bs64"),
        *("imdb_patch32_GRU128_bs128", "imdb_patch32_IRNN64_relu_avg_bs128"),
        *("imdb_patch32_LSTM128_E128_bs128", "imdb_patch32_VRNN64_tanh_avg_bs128"),
    ),
}
"""The public tasks, on which the reference's figures were measured."""
ORDERS = 30

REFERENCE = {
    DEFAULT: Row(0.220, 0.010, (0.494, 0.037, 0.073, 0.277)),
    SIMPLE: Row(0.239, 0.012, (0.488, 0.036, 0.086, 0.347)),
    GATED: Row(0.232, 0.011, (0.489, 0.037, 0.079, 0.323)),
    "epsilon-greedy": Row(0.255, 0.011, (0.493, 0.060, 0.090, 0.375)),
    "successive-halving-4": Row(0.275, 0.009, (0.602, 0.044, 0.082, 0.372)),
    "successive-halving-3": Row(0.279, 0.009, (0.611, 0.044, 0.085, 0.377)),
    "asha-4": Row(0.283, 0.011, (0.609, 0.046, 0.082, 0.395)),
    "asha-3": Row(0.285, 0.011, (0.599, 0.050, 0.093, 0.400)),
    "cure-ucb": Row(0.325, 0.011, (0.735, 0.066, 0.092, 0.406)),
    "hyperband": Row(0.330, 0.012, (0.581, 0.090, 0.142, 0.506)),
    "random-search": Row(0.451, 0.020, (0.466, 0.277, 0.316, 0.743)),
}

MEAN_BAR, UNKNOWN_BAR, PARALLEL_BAR = 0.220, 0.245, 1.05
WON_BAR, P_BAR = 0.75, 0.05
DECISION_BARS = {200: 5.0, 2_000: 50.0}
RIVALS = (
    *("successive-halving-4", "successive-halving-3", "asha-4", "asha-3"),
    *("hyperband", "epsilon-greedy"),
)


def bars(played: Mapping[str, Played], times: Sequence[Decisions]) -> Iterator[dict]:
    """Yield a row per bar: what was measured, and whether it holds."""
    clean = played[CLEAN]
    if as_reference(clean):
        yield from reproduced(clean)
    yield below("mean regret without noise", clean, MEAN_BAR)
    for noise in NOISES:
        yield not_above_the_best(noise, played[noisy_name(noise)])
    for rival in RIVALS:
        yield better(clean, rival)
    yield below("mean regret, budget unknown", played[UNKNOWN], UNKNOWN_BAR, exact=True)
    four = played[parallel_name(4)]
    yield parallel(clean.where(four.part), four)
    for time in times:
        if time.method == DEFAULT:
            yield in_time(time)


def as_reference(played: Played) -> bool:
    """Return whether these are the tasks and the orders of the reference."""
    tasks = sorted((task.family, task.name) for task in played.part.tasks)
    same = sorted((family, name) for family, of in TASKS.items() for name in of)
    return tasks == same and played.part.seeds == range(ORDERS)


def reproduced(played: Played) -> Iterator[dict]:
    """Yield whether the reference's means come out, within their own intervals."""
    for name, row in REFERENCE.items():
        mine = ours(played, name)
        if mine is not None:
            bar = f"reproduced: {name} {row.mean:.3f} ± {row.half:.3f}"
            holds = abs(mine.mean - row.mean) <= row.half
            yield bar_row(bar, with_half(mine), holds)


def reference_table(played: Played) -> str:
    """Return our means per family beside the reference's."""
    lines = []
    for name, row in REFERENCE.items():
        mine = ours(played, name)
        if mine is None:
            continue
        regret = played.of(name)
        line = {"method": name, "mean": f"{mine.mean:.3f} / {row.mean:.3f}"}
        for family, theirs in zip(FAMILIES, row.families, strict=True):
            own = per_task(regret[played.families == family]).mean()
            line[family] = f"{own:.3f} / {theirs:.3f}"
        lines.append(line)
    return report.table(lines)


def ours(played: Played, name: str) -> Interval | None:
    """Return our mean for a row of the reference; None if we have no such method."""
    if name not in played.names:
        return None
    return over_seeds(overall(played.of(name), played.families))


def below(what: str, played: Played, bar: float, *, exact: bool = False) -> dict:
    """Check the default's mean; unless exact, the bar is widened by its interval."""
    mean = over_seeds(overall(played.of(DEFAULT), played.families))
    allowed = bar if exact else bar + mean.high - mean.mean
    text = f"{DEFAULT}: {what} at most {bar:.3f}" + ("" if exact else " + its interval")
    budgets = played.part.multiples
    if tuple(budgets) != MULTIPLES:
        text += f" (here at {', '.join(f'{multiple}x' for multiple in budgets)} alone)"
    return bar_row(text, with_half(mean), mean.mean <= allowed)


def not_above_the_best(noise: float, played: Played) -> dict:
    """Check the default against the best baseline under noise, order by order."""
    regret = {name: overall(played.of(name), played.families) for name in played.names}
    baselines = [method.name for method in methods.BASELINES]
    best = min(baselines, key=lambda name: float(regret[name].mean()))
    more = over_seeds(regret[DEFAULT] - regret[best])
    measured = (
        f"{regret[DEFAULT].mean():.3f}, {best} {regret[best].mean():.3f}: "
        f"{more.mean:+.3f} ± {more.high - more.mean:.3f}"
    )
    bar = f"{DEFAULT}: noise {noise:g}, not above the best baseline beyond the interval"
    return bar_row(bar, measured, more.low <= 0.0)


def better(played: Played, rival: str) -> dict:
    """Check that the default wins most tasks against a rival, beyond chance."""
    found = paired(played.of(DEFAULT), played.of(rival), played.families)
    bar = f"{DEFAULT}: better than {rival} on {WON_BAR:.0%} of the tasks, p < {P_BAR:g}"
    measured = f"{found.won:.0%}, p = {found.p_value:.2g}"
    return bar_row(bar, measured, found.won >= WON_BAR and found.p_value < P_BAR)


def parallel(one: Played, four: Played) -> dict:
    """Check what four jobs in flight cost the default, on the same orders."""
    means = [overall(part.of(DEFAULT), part.families).mean() for part in (one, four)]
    bar = f"{DEFAULT}: with 4 jobs in flight at most {PARALLEL_BAR - 1:.0%} worse"
    measured = f"{means[0]:.3f} with one, {means[1]:.3f} with 4"
    return bar_row(bar, measured, bool(means[1] <= PARALLEL_BAR * means[0]))


def in_time(time: Decisions) -> dict:
    """Check the time of a decision."""
    bar = DECISION_BARS[time.n_arms]
    text = f"{DEFAULT}: {bar:g} ms per decision among {time.n_arms:,} arms"
    return bar_row(text, f"{time.mean:.2f} ms", time.mean <= bar)


def with_half(mean: Interval) -> str:
    """Return a mean and half its interval, in words."""
    if math.isnan(mean.high):  # of one order
        return f"{mean.mean:.3f}"
    return f"{mean.mean:.3f} ± {mean.high - mean.mean:.3f}"


def bar_row(bar: str, measured: str, holds: bool) -> dict[str, str]:
    """Return a row of the table of bars."""
    verdict = "holds" if holds else "does not hold"
    return {"bar": bar, "measured": measured, "verdict": verdict}
