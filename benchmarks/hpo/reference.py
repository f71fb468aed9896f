"""The reference's figures on the public tasks, and whether ours reproduce them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.hpo.parts import MULTIPLES, Played
from benchmarks.hpo.statistics import Interval, over_seeds, overall, per_task
from benchmarks.hpo.tables import bar_row, with_half
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
ORDERS, FEWEST = 30, 20
"""Of the reference, and of ours from which on they are compared with it."""

REFERENCE = {
    "epsilon-greedy": Row(0.255, 0.011, (0.493, 0.060, 0.090, 0.375)),
    "successive-halving-4": Row(0.275, 0.009, (0.602, 0.044, 0.082, 0.372)),
    "successive-halving-3": Row(0.279, 0.009, (0.611, 0.044, 0.085, 0.377)),
    "asha-4": Row(0.283, 0.011, (0.609, 0.046, 0.082, 0.395)),
    "asha-3": Row(0.285, 0.011, (0.599, 0.050, 0.093, 0.400)),
    "cure-ucb": Row(0.325, 0.011, (0.735, 0.066, 0.092, 0.406)),
    "hyperband": Row(0.330, 0.012, (0.581, 0.090, 0.142, 0.506)),
    "random-search": Row(0.451, 0.020, (0.466, 0.277, 0.316, 0.743)),
}


def public(played: Played) -> Played | None:
    """Return the reference's tasks; None if not all are there, or with few orders."""
    tasks = [
        i
        for i, task in enumerate(played.part.tasks)
        if task.name in TASKS.get(task.family, ())
    ]
    part = played.part._replace(tasks=[played.part.tasks[i] for i in tasks])
    complete = len(tasks) == sum(len(names) for names in TASKS.values())
    enough = part.seeds.start == 0 and len(part.seeds) >= FEWEST
    if not (complete and enough and tuple(part.multiples) == MULTIPLES):
        return None
    return Played(part, played.outcomes[:, tasks])


def reproduced(played: Played) -> Iterator[dict[str, str]]:
    """Yield whether the reference's means come out, within their own intervals.

    Fewer orders than the reference's have a wider one.
    """
    orders = len(played.part.seeds)
    for name, row in REFERENCE.items():
        mine = ours(played, name)
        if mine is not None:
            half = row.half * math.sqrt(max(1.0, ORDERS / orders))
            bar = f"reproduced: {name} {row.mean:.3f} ± {half:.3f}"
            yield bar_row(bar, with_half(mine), abs(mine.mean - row.mean) <= half)


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
