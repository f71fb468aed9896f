"""Families of recorded tasks whose configurations can be compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.hpo.tasks import Task, make_task, scaled_features
from risingsearch.curves import load_curves
from risingsearch.errors import InvalidParameterError
from risingsearch.priors import EarlierSearch

FOLDERS = "hpo_curves", "hpo_curves_2"
"""Collections with families of several tasks, as in the lab book."""
RUNS = 60
"""Runs of an earlier task that are known."""
SAME = {
    "batch": "batch_size",
    "initial_lr": "learning_rate",
    "learning_rate_init": "learning_rate",
    "lr": "learning_rate",
    "num_train_epochs": "epochs",
    "train_batch_size": "batch_size",
}
"""What different families call the same parameter."""
NEGATED, PERMUTED = "negated", "permuted"


class TransferTask(NamedTuple):
    """A task, and the parameters of its configurations by their names."""

    task: Task
    candidates: list[dict[str, Any]]

    @property
    def parameters(self) -> set[str]:
        """The names of its parameters."""
        return {name for params in self.candidates for name in params}


def load_families(data_dir: Path | None) -> dict[str, list[TransferTask]]:
    """Return the tasks of every family whose configurations are recorded.

    Raises
    ------
    InvalidParameterError
        If there is none.
    """
    families: dict[str, list[TransferTask]] = {}
    for folder in FOLDERS if data_dir is not None else ():
        for path in sorted((data_dir / folder).glob("*/*.npz")):
            with np.load(path, allow_pickle=False) as arrays:
                if "hp_log" in arrays.files:
                    family = families.setdefault(path.parent.name, [])
                    family.append(_task(path, arrays))
    if not families:
        msg = "no recorded configurations: give --data-dir, or set RISINGSEARCH_DATA"
        raise InvalidParameterError(msg)
    return families


def drawn_runs(
    others: Sequence[TransferTask], n: int, seed: int
) -> list[tuple[TransferTask, NDArray[np.int64]]]:
    """Return so many other tasks, and which of the runs of each are known."""
    rng = np.random.default_rng(seed)
    chosen = [others[k] for k in rng.permutation(len(others))[:n]]
    return [(one, rng.permutation(len(one.candidates))[:RUNS]) for one in chosen]


def earlier_searches(
    others: Sequence[TransferTask], n: int, seed: int, mislead: str | None = None
) -> list[EarlierSearch]:
    """Return so many other tasks as earlier searches, some of their runs each.

    ``mislead`` negates the scores, or permutes them among the runs.
    """
    rng = np.random.default_rng(seed)
    searches = []
    for one, runs in drawn_runs(others, n, seed):
        scores = rng.permutation(runs) if mislead == PERMUTED else runs
        curves = [one.task.curves[run] for run in scores]
        known = [curve[~np.isnan(curve)] for curve in curves]
        if mislead == NEGATED:
            known = [np.array([-curve.max()]) for curve in known]
        params = [one.candidates[run] for run in runs]
        searches.append(EarlierSearch(one.task.name, params, known))
    return searches


def _task(path: Path, arrays: Mapping[str, Any]) -> TransferTask:
    family, name = path.parent.name, path.stem
    x, log = arrays["X"].astype(float), arrays["hp_log"]
    names = [str(one) for one in arrays["hp_names"]]
    meta = json.loads(str(arrays["meta"])) if "meta" in arrays else {}
    categories = meta.get("hp_categories") or {}
    categorical = np.array([one in categories for one in names])
    features = scaled_features(x, log, categorical)
    task = make_task(family, name, load_curves(path).means, features=features)
    candidates = [
        {
            SAME.get(name, name): f"{value:g}" if name in categories else float(value)
            for name, value in zip(names, row, strict=True)
            if np.isfinite(value)
        }
        for row in x
    ]
    return TransferTask(task, candidates)
