"""How many trials may train at the same time."""

from __future__ import annotations

import math
import sys
from typing import Any

import ray
from ray.tune.experiment import Trial
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter


def lift_limit(search_alg: Any) -> int | None:
    """Return ``max_concurrent_trials``, and let the searcher propose beyond it.

    Ray counts paused trials too, so that a limit of two would never open a third arm.
    The scheduler keeps the limit instead, for trials that train.
    """
    limits = []
    if isinstance(search_alg, BasicVariantGenerator) and search_alg.max_concurrent:
        limits.append(search_alg.max_concurrent)
        search_alg.max_concurrent = 0
    searcher = getattr(search_alg, "searcher", None)
    while searcher is not None:
        if isinstance(searcher, ConcurrencyLimiter):
            limits.append(searcher.max_concurrent)
            searcher.max_concurrent = sys.maxsize
            searcher.searcher.set_max_concurrency(sys.maxsize)  # of its own, if any
        searcher = getattr(searcher, "searcher", None)
    return min(limits, default=None)


def room_for(trial: Trial) -> int:
    """Return how many trials like this one the cluster holds, at least 1."""
    there = ray.cluster_resources()
    needed = trial.placement_group_factory.required_resources
    fits = [there.get(name, 0.0) / n for name, n in needed.items() if n > 0]
    return max(1, math.floor(min(fits, default=1.0)))
