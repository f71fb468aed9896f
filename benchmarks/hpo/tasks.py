"""Tables of recorded learning curves as tasks for a tuner: one row per configuration.

The format is that of the folders ``hpo_curves*``: a folder per family, an npz file per
task with ``valid`` (configurations, epochs), and if known ``length``, ``cost``
(seconds per epoch) and ``X``, ``hp_names``, ``hp_log`` and ``meta`` (the
configurations). CSV files are read as well, and a file of LCDB holds many tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from risingsearch.curves import load_curves
from risingsearch.errors import InvalidParameterError, RisingSearchError

COLLECTIONS = "hpo_curves*"
SUFFIXES = (".csv", ".npz", ".parquet")

POINTS = 50
"""Curves of twice as many epochs or more are thinned to about as many."""
LCDB_SIZES = 40
LCDB_SMALLEST = 1_500
"""Data sets of LCDB with fewer samples are left out."""


class Task(NamedTuple):
    """One table, ready to be searched.

    A configuration trains for at most ``max_epochs``, the 90 % quantile of the
    lengths: what a longer curve does after that is kept for ``best`` and ``typical``
    alone.
    """

    family: str
    name: str
    curves: NDArray[np.float64]  # (n_configurations, max_epochs), NaN after the end
    best: float  # the highest score of the whole table
    typical: float  # the median of the configurations' best scores
    cost: NDArray[np.float64] | None = None  # seconds, of the shape of curves
    features: NDArray[np.float64] | None = None  # (n_configurations, n_features)

    @property
    def max_epochs(self) -> int:
        """Epochs that a configuration can get at most, ``R``."""
        return int(self.curves.shape[1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Epochs after which each curve ends."""
        return np.sum(~np.isnan(self.curves), axis=1)

    @property
    def score_range(self) -> tuple[float, float]:
        """What a user would declare: 0 to 1, or what the table spans."""
        low, high = float(np.nanmin(self.curves)), float(np.nanmax(self.curves))
        return (0.0, 1.0) if low >= 0.0 and high <= 1.0 else (low, high)

    def regret(self, score: float) -> float:
        """Return how much of the way from typical to best is missing, from 0 to 1."""
        missing = (self.best - score) / (self.best - self.typical)
        return min(1.0, max(0.0, missing))


def load_tasks(data_dir: Path | None, left_out: list[str] | None = None) -> list[Task]:
    """Return all tasks of a folder, or of its subfolders ``COLLECTIONS``.

    Why a file holds no task is added to ``left_out``; without that, it is an error.

    Raises
    ------
    InvalidParameterError
        If there is none, or a file cannot be read.
    """
    if data_dir is None:
        msg = "no recorded curves: give --data-dir, or set RISINGSEARCH_DATA"
        raise InvalidParameterError(msg)
    bases = sorted(path for path in data_dir.glob(COLLECTIONS) if path.is_dir())
    tasks: list[Task] = []
    for path in (path for base in bases or [data_dir] for path in _files(base)):
        with _leaving_out(path, left_out):
            for table in _tables_of(path):
                with _leaving_out(path, left_out):
                    tasks.append(make_task(*table))
    if not tasks:
        msg = (
            f"data_dir={data_dir} holds no recorded curves: files {', '.join(SUFFIXES)}"
            f" are looked for in it, in its folders and in those of {COLLECTIONS}"
        )
        msg = "; ".join([msg, *(left_out or ())])
        raise InvalidParameterError(msg)
    return tasks


def make_task(
    family: str,
    name: str,
    curves: NDArray[np.float64],
    cost: NDArray[np.float64] | None = None,
    features: NDArray[np.float64] | None = None,
) -> Task:
    """Return the task of a table, long curves thinned and cut at ``R``.

    Raises
    ------
    InvalidParameterError
        If no configuration is better than the typical one.
    """
    step = stride(curves)
    curves = thinned(curves, step)
    highest = np.nanmax(curves, axis=1)
    best, typical = float(highest.max()), float(np.median(highest))
    if best <= typical:
        msg = f"{family}/{name}: half of the configurations are as good as the best"
        raise InvalidParameterError(msg)
    longest = _quantile(np.sum(~np.isnan(curves), axis=1))
    if cost is not None:
        blocks = cost[:, : step * longest].reshape(len(cost), -1, step)
        cost = np.sum(blocks, axis=2)
    return Task(family, name, curves[:, :longest], best, typical, cost, features)


def stride(curves: NDArray[np.float64]) -> int:
    """Return how many recorded epochs make one of ours."""
    if _quantile(np.sum(~np.isnan(curves), axis=1)) < 2 * POINTS:
        return 1
    return curves.shape[1] // POINTS


def thinned(curves: NDArray[np.float64], step: int) -> NDArray[np.float64]:
    """Return every ``step``-th epoch of each curve; of shorter ones the last."""
    kept = curves[:, step - 1 :: step].copy()
    short = np.isnan(kept[:, 0])
    last = np.sum(~np.isnan(curves), axis=1) - 1
    kept[short, 0] = curves[short, last[short]]
    return kept


def scaled_features(
    x: NDArray[np.float64], log: NDArray[np.bool_], categorical: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return configurations as numbers from 0 to 1, a column for every category.

    On a log scale where the search space has one, from the lowest to the highest of
    the table, which stand for the bounds; what a configuration lacks lies half-way.
    """
    columns = []
    for column, is_log, is_category in zip(x.T, log, categorical, strict=True):
        known = np.isfinite(column)
        if is_category:
            columns += [
                np.where(column == category, np.sqrt(0.5), 0.0)
                for category in np.unique(column[known])
            ]
            continue
        if is_log and np.all(column[known] > 0.0):
            column = np.log(column, where=known, out=np.full(len(column), np.nan))
        low, high = np.nanmin(column), np.nanmax(column)
        if high > low:
            columns.append(np.where(known, (column - low) / (high - low), 0.5))
    return np.column_stack(columns) if columns else np.empty((len(x), 0))


def _quantile(lengths: NDArray[np.int64]) -> int:
    return max(1, round(float(np.quantile(lengths, 0.9))))


def _files(base: Path) -> list[Path]:
    return sorted(
        path
        for path in (*base.glob("*"), *base.glob("*/*"))
        if path.suffix.lower() in SUFFIXES
    )


@contextmanager
def _leaving_out(path: Path, reasons: list[str] | None) -> Iterator[None]:
    """Add why a file or one of its tables is no task; without a list, raise it."""
    try:
        yield
    except (RisingSearchError, BadZipFile, OSError, ValueError, KeyError) as error:
        if reasons is None:
            raise
        reasons.append(f"{path.name}: {error}")


def _tables_of(path: Path) -> Iterator[tuple[Any, ...]]:
    """Yield what ``make_task`` takes."""
    family, name = path.parent.name, path.stem
    if path.suffix.lower() != ".npz":
        yield family, name, load_curves(path).means
        return
    with np.load(path, allow_pickle=False) as arrays:
        if "anchors" in arrays.files:
            yield from _lcdb(family, arrays)
            return
        cost = arrays["cost"].astype(float) if "cost" in arrays.files else None
        features = _features(arrays)
    yield family, name, load_curves(path).means, cost, features


def _features(arrays: Mapping[str, Any]) -> NDArray[np.float64] | None:
    if "X" not in arrays or "hp_log" not in arrays:
        return None
    categories = {}
    if "meta" in arrays:
        categories = json.loads(str(arrays["meta"])).get("hp_categories") or {}
    categorical = np.array([str(name) in categories for name in arrays["hp_names"]])
    return scaled_features(arrays["X"].astype(float), arrays["hp_log"], categorical)


def _lcdb(family: str, arrays: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield a table per data set: learners, and training-set sizes as epochs."""
    anchors, valid = arrays["anchors"].astype(float), arrays["valid"].astype(float)
    names, largest = arrays["dataset_names"], arrays["max_anchor"]
    for i in np.flatnonzero(largest >= LCDB_SMALLEST):
        sizes = np.linspace(anchors[0], largest[i], LCDB_SIZES)
        rows = [
            np.where(
                sizes <= anchors[known][-1],
                np.interp(sizes, anchors[known], learner[known]),
                np.nan,
            )
            for learner in valid[i]
            if (known := ~np.isnan(learner)).any()
        ]
        yield family, str(names[i]), np.array(rows)
