"""What a seed draws: the order of a table's configurations, and the noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.tasks import Task

FIRST_SEED = 1_000
"""Of the random orders; those of the reference are 1000 to 1029."""


class Search(NamedTuple):
    """A table for one search: in random order, with noise added to the scores."""

    task: Task
    seed: int
    order: NDArray[np.int64]  # in which configurations may be opened
    seen: NDArray[np.float64]  # noisy scores, of the shape of the task's curves
    lengths: NDArray[np.int64]  # in that order


def draw_search(task: Task, seed: int, noise: float) -> Search:
    """Return the order and the noise of a seed, the same for all methods."""
    rng = np.random.default_rng(FIRST_SEED + seed)
    order = rng.permutation(len(task.curves))
    seen = task.curves
    if noise > 0.0:
        seen = seen + noise * rng.standard_normal(seen.shape)
    return Search(task, seed, order, seen, task.lengths[order])
