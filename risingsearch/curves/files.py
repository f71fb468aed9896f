"""Recorded learning curves from files: CSV, parquet, npz."""

from __future__ import annotations

import csv
import math
import re
import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.curves.inputs import checked_path
from risingsearch.errors import InvalidParameterError, RisingSearchError, missing

ARM_COLUMNS = ("arm", "config", "configuration", "model", "name", "run", "trial")
EPOCH_COLUMNS = ("epoch", "iteration", "pull", "step")
SCORE_COLUMNS = ("score", "valid", "value", "reward", "mean", "accuracy")
UNNAMED = ("", "index", "unnamed: 0")
EMPTY = ("", "na", "nan", "none", "null", "<na>")
ARRAYS = ("valid", "means", "mean")

LONG = "one row per arm and epoch"
BY_EPOCH = "one column per arm"
BY_ARM = "one row per arm"

_EPOCH = re.compile(r"(?:(?:epoch|iteration|pull|step)[ _-]?)?(\d+)")


class LoadedCurves(NamedTuple):
    """Recorded learning curves, as ``load_curves`` found them in a file.

    Parameters
    ----------
    means : ndarray of shape (n_arms, n_epochs)
        The scores, NaN after an arm's last epoch; what ``CurveTable.create`` takes.
    names : tuple of str
        The arms.
    form : str
        How the file was read: "one row per arm", "one column per arm" or "one row per
        arm and epoch".
    test : ndarray of shape (n_arms, n_epochs), optional
        Test scores of the same epochs, where an npz file has them.
    """

    means: NDArray[np.float64]
    names: tuple[str, ...]
    form: str
    test: NDArray[np.float64] | None = None


def load_curves(path: str | PathLike[str]) -> LoadedCurves:
    r"""Return the learning curves of a file.

    Good for seeing what a policy would have made of your own past runs.

    A table (``.csv``, or ``.parquet`` through pandas) can have three forms; its column
    names, in any case, tell which one. With an arm column (arm, config, configuration,
    model, name, run or trial) and an epoch column (epoch, iteration, pull or step) it
    has *one row per arm and epoch*, and the score stands in the column score, valid,
    value, reward, mean or accuracy, or in the only one left. With an arm column alone
    it has *one row per arm*, and the other columns are epochs: 1, 2, 3 or epoch_1,
    epoch_2, epoch_3. With an epoch column alone, or names alone, it has *one column per
    arm*. A first column without a name goes by the others: it holds arms if they are
    epochs, and epochs if not. A CSV file may also be bare numbers, one row per arm.

    An ``.npz`` file holds an array ``valid``, ``means`` or ``mean`` of shape (n_arms,
    n_epochs), or a single array of two dimensions under any name, which is all that an
    ``.npy`` file holds. Optional beside it: ``length``, the epochs of each arm that
    count; ``test``, scores of the same shape; ``names`` of the arms.

    An empty cell, or NaN, means that the arm had ended. Epochs are counted in their
    order, not by their numbers.

    Parameters
    ----------
    path : str or path
        The file.

    Raises
    ------
    InvalidParameterError
        If the file is not there, or does not hold curves in one of these forms.
    MissingDependencyError
        If a parquet file needs pandas or pyarrow.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "runs.csv")
    >>> _ = path.write_text("run,epoch,score\na,1,0.5\na,2,0.6\nb,1,0.3\n")
    >>> curves = load_curves(path)
    >>> curves.names, curves.form
    (('a', 'b'), 'one row per arm and epoch')
    >>> curves.means
    array([[0.5, 0.6],
           [0.3, nan]])
    """
    path = checked_path("path", path)
    readers = {".csv": _csv, ".npy": _npy, ".npz": _npz, ".parquet": _parquet}
    if path.suffix.lower() not in readers:
        msg = f"curves come from {', '.join(readers)} files; got {path}"
        raise InvalidParameterError(msg)
    try:
        curves = readers[path.suffix.lower()](path)
        _check(curves)
    except RisingSearchError as error:
        msg = f"{path}: {error}"
        raise type(error)(msg) from error
    except (OSError, ValueError, csv.Error, zipfile.BadZipFile) as error:
        msg = f"cannot read {path}: {error}"
        raise InvalidParameterError(msg) from error
    return curves


def _csv(path: Path) -> LoadedCurves:
    with path.open(newline="", encoding="utf-8-sig") as lines:
        rows = [row for row in csv.reader(lines) if row]
    if not rows:
        msg = "the file is empty"
        raise InvalidParameterError(msg)
    if _bare(rows[0]):
        rows.insert(0, [str(i + 1) for i in range(len(rows[0]))])
    return _table([name.strip() for name in rows[0]], rows[1:])


def _parquet(path: Path) -> LoadedCurves:
    try:
        import pandas as pd
    except ImportError as error:
        raise missing("pandas", extra="sim") from error
    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise missing("pyarrow", extra="sim") from error
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    return _table([str(name) for name in frame.columns], frame.to_numpy().tolist())


def _npy(path: Path) -> LoadedCurves:
    means = _two_dimensional("the array", np.load(path, allow_pickle=False))
    return LoadedCurves(means, _numbered(len(means)), BY_ARM)


def _npz(path: Path) -> LoadedCurves:
    with np.load(path, allow_pickle=False) as arrays:
        flat = [name for name in arrays.files if arrays[name].ndim == 2]
        known = [name for name in ARRAYS if name in arrays.files]
        if not known and len(flat) != 1:
            msg = (
                f"an npz file needs an array named {' or '.join(ARRAYS)}, or a single "
                f"one of two dimensions; it has {', '.join(arrays.files) or 'none'}"
            )
            raise InvalidParameterError(msg)
        name = (known or flat)[0]
        means = _two_dimensional(name, arrays[name])
        n_arms, n_epochs = means.shape
        if "length" in arrays.files:
            length = arrays["length"]
            if length.shape != (n_arms,):
                msg = f"length must hold {n_arms} numbers; got shape {length.shape}"
                raise InvalidParameterError(msg)
            means[np.arange(n_epochs) >= length[:, None]] = np.nan
        test = None
        if "test" in arrays.files and arrays["test"].shape == means.shape:
            test = arrays["test"].astype(float)
        names = _numbered(n_arms)
        if "names" in arrays.files and arrays["names"].shape == (n_arms,):
            names = tuple(str(arm) for arm in arrays["names"])
    return LoadedCurves(means, names, BY_ARM, test)


def _two_dimensional(name: str, array: NDArray[Any]) -> NDArray[np.float64]:
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.number):
        msg = (
            f"{name} must hold numbers in two dimensions, arms and epochs; got "
            f"{array.dtype} of shape {array.shape}"
        )
        raise InvalidParameterError(msg)
    return array.astype(float)


def _numbered(n_arms: int) -> tuple[str, ...]:
    return tuple(str(arm) for arm in range(n_arms))


def _bare(row: Sequence[str]) -> bool:
    """Return whether a first row holds scores; whole rising numbers are epochs."""
    try:
        numbers = [float(cell) for cell in row]
    except ValueError:
        return False
    return not _all_epochs(row) or bool(np.any(np.diff(numbers) <= 0.0))


def _table(header: list[str], rows: Sequence[Sequence[Any]]) -> LoadedCurves:
    """Return the curves of a table, in whichever of the three forms it has."""
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            msg = f"row {number} has {len(row)} cells and the header {len(header)}"
            raise InvalidParameterError(msg)
    arm, epoch = _find(header, ARM_COLUMNS), _find(header, EPOCH_COLUMNS)
    if arm is not None and epoch is not None:
        return _long(header, rows, arm, epoch)
    if arm is None and epoch is None and header[0].lower() in UNNAMED:
        arm, epoch = (0, None) if _all_epochs(header[1:]) else (None, 0)
    others = [i for i in range(len(header)) if i not in (arm, epoch)]
    if arm is not None or (epoch is None and _all_epochs(header)):
        return _by_arm(header, rows, arm, others)
    columns = [_numbers(header, rows, i) for i in others]
    order = np.arange(len(rows))
    if epoch is not None:
        order = _order(_numbers(header, rows, epoch))
    names = tuple(header[i] for i in others)
    return LoadedCurves(np.array(columns)[:, order], names, BY_EPOCH)


def _by_arm(
    header: list[str], rows: Sequence[Sequence[Any]], arm: int | None, others: list[int]
) -> LoadedCurves:
    for i in others:
        if not _all_epochs([header[i]]):
            msg = (
                f"with one row per arm, every other column must be an epoch, 1 or "
                f"epoch_1; remove the column {header[i]!r}"
            )
            raise InvalidParameterError(msg)
    epochs = [float(re.sub(r"\D", "", header[i])) for i in others]
    columns = [_numbers(header, rows, i) for i in others]
    means = np.array(columns)[_order(np.array(epochs))].T
    names = _numbered(len(rows))
    if arm is not None:
        names = tuple(str(row[arm]) for row in rows)
    return LoadedCurves(means, names, BY_ARM)


def _long(
    header: list[str], rows: Sequence[Sequence[Any]], arm: int, epoch: int
) -> LoadedCurves:
    score = _find(header, SCORE_COLUMNS)
    others = [i for i in range(len(header)) if i not in (arm, epoch)]
    if score is None:
        if len(others) != 1:
            msg = (
                f"which column is the score? Name it {SCORE_COLUMNS[0]!r}; there are "
                f"{', '.join(repr(header[i]) for i in others) or 'none'}"
            )
            raise InvalidParameterError(msg)
        score = others[0]
    recorded: dict[str, dict[float, float]] = {}
    epochs, scores = _numbers(header, rows, epoch), _numbers(header, rows, score)
    for row, at, value in zip(rows, epochs.tolist(), scores.tolist(), strict=True):
        curve = recorded.setdefault(str(row[arm]), {})
        if at in curve:
            msg = f"arm {str(row[arm])!r} has two scores at epoch {at:g}"
            raise InvalidParameterError(msg)
        curve[at] = value
    grid = np.unique(epochs).tolist()
    means = [[curve.get(at, math.nan) for at in grid] for curve in recorded.values()]
    return LoadedCurves(np.array(means), tuple(recorded), LONG)


def _find(header: list[str], names: Sequence[str]) -> int | None:
    lower = [name.lower() for name in header]
    return next((lower.index(name) for name in names if name in lower), None)


def _all_epochs(names: Sequence[str]) -> bool:
    return all(_EPOCH.fullmatch(name.strip().lower()) for name in names)


def _order(epochs: NDArray[np.float64]) -> NDArray[np.int64]:
    order = np.argsort(epochs, kind="stable")
    if np.any(np.isnan(epochs)) or np.any(np.diff(epochs[order]) <= 0.0):
        msg = "every epoch needs its own number"
        raise InvalidParameterError(msg)
    return order


def _numbers(
    header: list[str], rows: Sequence[Sequence[Any]], column: int
) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where a cell is empty."""
    numbers = np.full(len(rows), np.nan)
    for i, row in enumerate(rows):
        cell = row[column]
        if cell is None or str(cell).strip().lower() in EMPTY:
            continue
        try:
            numbers[i] = float(cell)
        except (TypeError, ValueError):
            msg = f"row {i + 1}, column {header[column]!r}: {cell!r} is not a number"
            raise InvalidParameterError(msg) from None
    return numbers


def _check(curves: LoadedCurves) -> None:
    known = ~np.isnan(curves.means)
    if not known.size or np.any(np.isinf(curves.means)):
        msg = "scores must be finite, and there must be at least one"
        raise InvalidParameterError(msg)
    for name, own in zip(curves.names, known, strict=True):
        n_epochs = int(own.sum())
        if n_epochs == 0:
            msg = f"arm {name!r} has no score"
            raise InvalidParameterError(msg)
        if not own[:n_epochs].all():
            gap = int(np.argmin(own)) + 1
            msg = f"arm {name!r} has no score at its {gap}. epoch, but later ones"
            raise InvalidParameterError(msg)
