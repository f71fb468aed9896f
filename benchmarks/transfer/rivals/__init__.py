"""Other tools that learn from earlier tasks, on a recorded table.

What they open need not be in the table: the nearest configuration that none had yet
trains.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.draws import Search
from benchmarks.hpo.tools import syne, tpe
from benchmarks.peers.environments import NotInstalledError, python_of

OPTUNA = "optuna"
SYNE = ("rush", "bounding-box", "zero-shot", "zero-shot-asha", "quantile")
RIVALS = (*SYNE, OPTUNA)

PACKAGES = (
    *syne.PACKAGES,
    "pandas==2.2.3",
    "scikit-learn==1.5.2",
    "xgboost-cpu==3.2.0",
)
RUNNER = "benchmarks.transfer.rivals.syne_runner"


class EarlierTable(NamedTuple):
    """What is known of an earlier task."""

    features: NDArray[np.float64]  # (n_runs, n_features), as those of the new task
    scores: NDArray[np.float64]  # (n_runs, n_epochs), NaN after the end


def installed(folder: Path) -> str | None:
    """Return the interpreter of Syne Tune's rivals; None where there can be none.

    It is an environment of its own, which is kept in the folder.
    """
    try:
        return str(python_of("syne-transfer", PACKAGES, folder))
    except NotInstalledError as error:
        print(f"left out: {', '.join(SYNE)}: not installed: {error}", file=sys.stderr)
        return None


def left_out(python: str | None) -> tuple[str, ...]:
    """Return the rivals that cannot be played with this interpreter."""
    optuna = () if importlib.util.find_spec("optuna") else (OPTUNA,)
    return optuna if python else (*SYNE, *optuna)


def play(
    run: Search,
    budget: int,
    earlier: Sequence[EarlierTable],
    *,
    rival: str,
    python: str | None,
) -> NDArray[np.int64] | None:
    """Return the configuration of every epoch; None if the search fails.

    ``earlier`` holds one task or more; ``python`` is what ``installed`` returns.
    """
    if rival in left_out(python):
        return None
    known = [cleaned(table) for table in earlier]
    if rival == OPTUNA:
        return tpe.play(run, budget, best_of(known))
    assert python is not None
    more = {
        f"earlier_{name}_{i}": array
        for i, table in enumerate(known)
        for name, array in table._asdict().items()
    }
    return syne.play(run, budget, search=rival, python=python, runner=RUNNER, more=more)


def cleaned(table: EarlierTable) -> EarlierTable:
    """Return the runs that have a score, each with its last one up to the end.

    >>> scores = np.array([[0.1, 0.2, np.nan], [np.nan, np.nan, np.nan]])
    >>> cleaned(EarlierTable(np.array([[0.5], [1.5]]), scores))
    EarlierTable(features=array([[0.5]]), scores=array([[0.1, 0.2, 0.2]]))
    """
    known = ~np.isnan(table.scores)
    some = known.any(axis=1)
    columns = np.arange(table.scores.shape[1])
    last = np.maximum.accumulate(np.where(known, columns, 0), axis=1)
    filled = np.take_along_axis(table.scores, last, axis=1)
    return EarlierTable(np.clip(table.features, 0.0, 1.0)[some], filled[some])


def best_of(tables: Sequence[EarlierTable]) -> list[list[float]]:
    """Return the best configuration of each task, each once."""
    best = [
        tuple(table.features[table.scores.max(axis=1).argmax()].tolist())
        for table in tables
    ]
    return [list(point) for point in dict.fromkeys(best)]
