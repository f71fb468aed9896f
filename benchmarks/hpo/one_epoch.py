"""i-Epoch's rule with i = 1: everything is discarded by the score of its first epoch.

Egele, Mohr, Viering, Balaprakash (2024), "The Unreasonable Effectiveness of Early
Discarding after One Epoch in Neural Network Hyperparameter Optimization". Half of the
budget opens arms, for an epoch each; then they train to the end, the best first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.draws import Search


def play(run: Search, budget: int) -> NDArray[np.int64]:
    """Return the configuration of every epoch."""
    enough = int(np.searchsorted(np.cumsum(run.lengths), budget)) + 1
    n_arms = min(len(run.order), max(budget // 2, enough))
    ranks = np.argsort(-run.seen[run.order[:n_arms], 0], kind="stable")
    rest = np.repeat(ranks, run.lengths[ranks] - 1)
    return run.order[np.concatenate([np.arange(n_arms), rest])[:budget]]
