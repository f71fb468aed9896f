"""Recorded learning curves from files: CSV, parquet, npz."""

from __future__ import annotations

import csv
import re
import warnings
import zipfile
from collections.abc import Sequence
from itertools import compress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import checked_path
from risingsearch.errors import InvalidParameterError, RisingSearchError, needed
from risingsearch.policies.arrays import Bools, Floats

if TYPE_CHECKING:
    import pandas as pd

ARM_COLUMNS = ("arm", "config", "configuration", "model", "name", "run", "trial")
EPOCH_COLUMNS = ("epoch", "iteration", "pull", "step")
SCORE_COLUMNS = ("score", "valid", "value", "reward", "mean", "accuracy")
ARRAYS = ("valid", "means", "mean")

LONG = "one row per arm and epoch"
BY_EPOCH = "one column per arm"
BY_ARM = "one row per arm"

_EPOCH = re.compile(r"(?:(?:epoch|iteration|pull|step)[ _-]?)?(\d+)")
_UNNAMED = re.compile(r"index|unnamed: 0|")


class LoadedCurves(NamedTuple):
    """Recorded learning curves, as ``load_curves`` found them in a file.

    Parameters
    ----------
    means : ndarray of shape (n_arms, n_epochs)
        The scores, NaN after an arm's last epoch, as ``CurveTable.create`` takes them.
    names : tuple of str
        The arms.
    form : str
        How the file was read: "one row per arm", "one column per arm" or "one row per
        arm and epoch".
    direction : str, optional
        "maximize" or "minimize", if the file says so, as an exported run does.

    Examples
    --------
    >>> LoadedCurves(np.array([[0.5, 0.6]]), names=("a",), form="one row per arm")
    LoadedCurves(means=array([[0.5, 0.6]]), names=('a',), form='one row per arm', ...)
    """

    means: Floats
    names: tuple[str, ...]
    form: str
    direction: str | None = None


def load_curves(path: str | PathLike[str]) -> LoadedCurves:
    r"""Return the learning curves of a file.

    Good for seeing how a policy would have done on your own past runs.

    A table (``.csv`` or ``.parquet``) can have three forms; its column names, in any
    case, tell which one. With an arm column (arm, config, configuration, model, name,
    run or trial) and an epoch column (epoch, iteration, pull or step) it has *one row
    per arm and epoch*, and the score stands in the column score, valid, value, reward,
    mean or accuracy, or in the only one left. With an arm column alone it has *one row
    per arm*, and the other columns are epochs: 1, 2, 3 or epoch_1, epoch_2, epoch_3.
    With an epoch column alone, or names alone, it has *one column per arm*. A first
    column without a name is interpreted by the others: it holds arms if they are
    epochs, and epochs if not. A CSV file may also be bare numbers, one row per arm.

    An ``.npz`` file holds an array ``valid``, ``means`` or ``mean`` of shape (n_arms,
    n_epochs), or a single array of two dimensions under any name, which is all that an
    ``.npy`` file holds. Optional beside it: ``length``, the epochs of each arm that
    count; ``names`` of the arms.

    An empty cell, or NaN, means that the arm had ended. Epochs are counted in their
    order, not by their numbers. An arm without a score, as it is exported if it has
    failed, is left out with a warning.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    LoadedCurves
        The scores, the names of the arms, and how the file was read.

    Raises
    ------
    InvalidParameterError
        If the file is not there, or does not hold curves in one of these forms.
    MissingDependencyError
        If a table needs pandas, or a parquet file pyarrow.

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
    readers = {
        ".csv": _table,
        ".npy": _npy,
        ".npz": _npz,
        ".parquet": _table,
    }
    if path.suffix.lower() not in readers:
        raise InvalidParameterError(
            f"curves come from {', '.join(readers)} files; got {path}"
        )
    try:
        curves = _without_empty(readers[path.suffix.lower()](path), path)
        _check(curves)
    except RisingSearchError as error:
        raise type(error)(f"{path}: {error}") from error
    except (OSError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise InvalidParameterError(f"cannot read {path}: {error}") from error
    return curves


def _npy(path: Path) -> LoadedCurves:
    means = _two_dimensional("the array", np.load(path, allow_pickle=False))
    return LoadedCurves(means, _numbered(len(means)), BY_ARM)


def _npz(path: Path) -> LoadedCurves:
    with np.load(path, allow_pickle=False) as arrays:
        flat = [name for name in arrays.files if arrays[name].ndim == 2]
        named = [name for name in ARRAYS if name in arrays.files]
        if not named and len(flat) != 1:
            raise InvalidParameterError(
                f"an npz file needs an array named {' or '.join(ARRAYS)}, or a single "
                f"one of two dimensions; it has {', '.join(arrays.files) or 'none'}"
            )
        name = (named or flat)[0]
        means = _two_dimensional(name, arrays[name])
        n_arms, n_epochs = means.shape
        if "length" in arrays.files:
            length = arrays["length"]
            if length.shape != (n_arms,):
                raise InvalidParameterError(
                    f"length must hold {n_arms} numbers; got shape {length.shape}"
                )
            means[np.arange(n_epochs) >= length[:, None]] = np.nan
        names = _numbered(n_arms)
        if "names" in arrays.files and arrays["names"].shape == (n_arms,):
            names = tuple(str(arm) for arm in arrays["names"])
    return LoadedCurves(means, names, BY_ARM)


def _two_dimensional(name: str, array: NDArray[np.generic]) -> Floats:
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.number):
        raise InvalidParameterError(
            f"{name} must hold numbers in two dimensions, arms and epochs; got "
            f"{array.dtype} of shape {array.shape}"
        )
    return array.astype(float)


def _numbered(n_arms: int) -> tuple[str, ...]:
    return tuple(str(arm) for arm in range(n_arms))


def _table(path: Path) -> LoadedCurves:
    """Read a table in whichever of the three forms it has."""
    frame = _frame(path)
    columns = list(frame.columns)
    arm = _find(columns, ARM_COLUMNS)
    epoch = _find(columns, EPOCH_COLUMNS)
    if arm and epoch:
        return _long(frame, arm, epoch)
    if not arm and not epoch and _UNNAMED.fullmatch(columns[0].lower()):
        if _epochs(columns[1:]):
            arm = columns[0]
        else:
            epoch = columns[0]
    has_rows_of_arms = arm or (not epoch and _epochs(columns))
    if arm or epoch:
        frame = frame.set_index(arm or epoch)
    if has_rows_of_arms:
        form = BY_ARM
        numbers = _epochs(list(frame.columns))
        if not numbers:
            raise InvalidParameterError(
                "with one row per arm, every other column must be an epoch, 1 or "
                f"epoch_1; got {', '.join(frame.columns)}"
            )
        frame = frame.set_axis(numbers, axis=1)
    else:
        form = BY_EPOCH
        frame = frame.T
    if frame.columns.hasnans or frame.columns.has_duplicates:
        raise InvalidParameterError("every epoch needs its own number")
    return _loaded(frame.sort_index(axis=1), form)


def pandas() -> Any:
    """Return pandas, or raise how to install it.

    Returns
    -------
    module
        ``pandas``.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    with needed("pandas", "sim"):
        import pandas
    return pandas


def _frame(path: Path) -> pd.DataFrame:
    """Return a table with text as the names of its columns."""
    pd = pandas()
    if path.suffix.lower() == ".csv":
        with path.open(newline="", encoding="utf-8-sig") as file:
            bare = _is_bare(next(filter(None, csv.reader(file)), []))
        frame = pd.read_csv(path, header=None if bare else 0, index_col=False)
        if bare:
            frame.columns = frame.columns + 1
    else:
        with needed("pyarrow", "sim", ImportError):
            frame = pd.read_parquet(path)
        if not isinstance(frame.index, pd.RangeIndex):
            frame = frame.reset_index()
    return frame.set_axis([str(name).strip() for name in frame.columns], axis=1)


def _is_bare(row: list[str]) -> bool:
    """Return whether a first row holds scores; whole rising numbers are epochs."""
    try:
        numbers = [float(cell) for cell in row]
    except ValueError:
        return False
    return not _epochs(row) or bool(np.any(np.diff(numbers) <= 0.0))


def _long(
    frame: pd.DataFrame,
    arm: str,
    epoch: str,
) -> LoadedCurves:
    score = _find(list(frame.columns), SCORE_COLUMNS)
    others = [name for name in frame.columns if name not in (arm, epoch)]
    if score is None:
        if len(others) != 1:
            raise InvalidParameterError(
                f"which column is the score? Name it {SCORE_COLUMNS[0]!r}; there are "
                f"{', '.join(map(repr, others)) or 'none'}"
            )
        score = others[0]
    arms = frame[arm].unique()
    # A row without a score is of an epoch that failed; it may have been tried again.
    frame = frame[frame[score].notna()]
    twice = frame.duplicated([arm, epoch])
    if twice.any():
        name, at = frame.loc[twice, [arm, epoch]].iloc[0]
        raise InvalidParameterError(f"arm {str(name)!r} has two scores at epoch {at}")
    wide = frame.pivot(
        index=arm,
        columns=epoch,
        values=score,
    )
    loaded = _loaded(wide.reindex(arms), LONG)
    directions = set(frame.get("direction", ()))
    if directions in ({"maximize"}, {"minimize"}):
        return loaded._replace(direction=directions.pop())
    return loaded


def _loaded(frame: pd.DataFrame, form: str) -> LoadedCurves:
    return LoadedCurves(frame.to_numpy(float), tuple(map(str, frame.index)), form)


def _find(columns: Sequence[str], names: Sequence[str]) -> str | None:
    lower = {column.lower(): column for column in reversed(columns)}
    return next((lower[name] for name in names if name in lower), None)


def _epochs(names: Sequence[str]) -> list[int]:
    """Return the epochs that the names stand for; none where one is no epoch."""
    epochs = []
    for name in names:
        match = _EPOCH.fullmatch(name.strip().lower())
        if match is None:
            return []
        epochs.append(int(match[1]))
    return epochs


def _without_empty(curves: LoadedCurves, path: Path) -> LoadedCurves:
    """Return the curves of arms that have a score; warn of the others."""
    is_scored: Bools = ~np.all(np.isnan(curves.means), axis=1)
    left_out = [*compress(curves.names, ~is_scored)]
    if not left_out or not is_scored.any():
        return curves
    listed = ", ".join(left_out[:5])
    if len(left_out) > 5:
        listed += f", and {len(left_out) - 5} more"
    msg = f"{path}: arms without a score are left out: {listed}"
    warnings.warn(msg, RuntimeWarning, stacklevel=3)
    names = tuple(compress(curves.names, is_scored))
    return curves._replace(means=curves.means[is_scored], names=names)


def _check(curves: LoadedCurves) -> None:
    recorded = ~np.isnan(curves.means)
    if not recorded.size or np.any(np.isinf(curves.means)):
        raise InvalidParameterError(
            "scores must be finite, and there must be at least one"
        )
    for name, has_score in zip(curves.names, recorded, strict=True):
        if not has_score[: has_score.sum()].all():
            gap = int(np.argmin(has_score)) + 1
            raise InvalidParameterError(
                f"arm {name!r} has no score at its {gap}. epoch, but later ones: give "
                "it one there, or leave the arm out"
            )
