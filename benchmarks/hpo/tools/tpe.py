"""Optuna's TPE with Hyperband on a recorded table.

TPE suggests features freely, and the nearest configuration that none had yet trains.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.draws import Search


def play(
    run: Search, budget: int, first: Sequence[Sequence[float]] = ()
) -> NDArray[np.int64]:
    """Return the configuration of every epoch that was not trained before.

    When none is left that is new, TPE trains some again: those epochs are lost. The
    configurations ``first`` are suggested before its own.
    """
    import optuna

    from benchmarks.adapters.optuna import studies

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    task = run.task._replace(curves=run.seen)
    replayed, _ = studies.replay("HyperbandPruner", task, budget, run.seed, first)
    new = dict.fromkeys(replayed.trained)
    return np.array([row for row, _ in new], dtype=np.int64)
