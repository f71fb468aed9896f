"""Earlier searches in tables: a row per run, or a row per epoch of a run."""

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from risingsearch.errors import InvalidParameterError, missing, needed
from risingsearch.json_values import AS_TEXT
from risingsearch.priors.earlier import (
    HOW_TO_NAME,
    EarlierRun,
    EarlierSearch,
    Reader,
    Source,
    as_number,
    checked_score,
)

SUFFIXES = (".csv", ".csv.gz", ".parquet")
Frame = Any  # of pandas, which is imported where a file is read
RUN = "run"
EPOCH = "epoch"
SECONDS = "seconds"
DIRECTION = "direction"
EXPORTED = {"arm", EPOCH, "score", "round", "job", DIRECTION}
"""Columns by which a table of ``risingsearch export`` is recognised."""
PARAMETER = "param_"
_MISSING = ["", "nan", "NaN"]  # cells of text without a value; "None" is a category
_FORMULA = re.compile("'*[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]")
"""How a text begins that a spreadsheet would run, quoted or not."""


def of_file(path: Path, asked: Source) -> EarlierSearch:
    """Return the runs in a CSV or parquet file.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    asked : Source
        The score and the direction, which a file does not say.

    Returns
    -------
    EarlierSearch
        A row is a run, or an epoch of one.

    Raises
    ------
    InvalidParameterError
        If it cannot be read, or lacks what is asked for.
    MissingDependencyError
        If pandas or pyarrow is not installed.
    """
    with needed("pandas", "sim"):
        import pandas as pd
    try:
        if path.name.lower().endswith(".parquet"):
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(
                path,
                na_values=_MISSING,
                keep_default_na=False,
            )
            if set(frame.columns) >= EXPORTED:
                frame = frame.map(_unquoted)
    except ImportError as error:
        raise missing("pyarrow", extra="sim") from error
    except Exception as error:  # pyarrow and pandas raise many kinds
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidParameterError(
            f"{path} cannot be read as a table ({first:.200})"
        ) from error
    return of_frame(frame, asked, path.name)


def _is_frame(source: object) -> bool:
    return hasattr(source, "iloc") and hasattr(source, "columns")


def quoted(cell: object) -> object:
    """Return a cell of an exported CSV file, which no spreadsheet takes for a formula.

    >>> quoted("=1+1"), quoted("-0.5"), quoted(-0.5), quoted("adam")
    ("'=1+1", '-0.5', -0.5, 'adam')
    """
    if isinstance(cell, str) and _FORMULA.match(cell) and _value(cell) is cell:
        return f"'{cell}"
    return cell


def _unquoted(cell: object) -> object:
    """Inverse of ``quoted``."""
    if isinstance(cell, str) and cell[:1] == "'" and _FORMULA.match(cell):
        return cell[1:]
    return cell


def of_frame(
    frame: Frame,
    asked: Source,
    name: str = "the data frame",
) -> EarlierSearch:
    """Return the runs in a pandas DataFrame; one without a score has failed.

    Parameters
    ----------
    frame : pandas.DataFrame
        A row per run, or with columns ``run`` and ``epoch`` per epoch.
    asked : Source
        The score and the direction, which a table does not say.
    name : str
        The table, for messages and as the name of the search.

    Returns
    -------
    EarlierSearch
        All columns but the score are parameters.

    Raises
    ------
    InvalidParameterError
        If it lacks what is asked for.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"rate": [0.1, 0.2], "loss": [0.5, 0.4]})
    >>> of_frame(frame, Source(frame, score="loss", direction="minimize")).scores
    array([-0.5, -0.4])
    """
    direction = asked.direction
    score = asked.score
    metric = score
    if set(frame.columns) >= EXPORTED:
        said = None
        if score in (None, "score"):
            said = str(frame[DIRECTION].iloc[0])
        direction = asked.checked_direction(name, said)
        metric = score or "score"
        params = {
            column: column.removeprefix(PARAMETER)
            for column in frame.columns
            if column.startswith(PARAMETER) and column != PARAMETER + AS_TEXT
        }
        others = {
            RUN: frame["arm"],
            EPOCH: frame[EPOCH],
            "score": frame[metric],
        }
        frame = frame[list(params)].rename(columns=params).assign(**others)
        score = "score"
    elif score is None or direction is None:
        absent = "score" if score is None else "direction"
        msg = f"{name}: a table needs score and direction: name its {absent}"
        raise InvalidParameterError(f"{msg} {HOW_TO_NAME}")
    frame = frame.set_axis(frame.columns.map(str), axis="columns")
    runs = _runs(frame, checked_score(score, frame.columns, name), name)
    return asked.search(
        name,
        runs,
        direction,
        metric=metric,
    )


def _runs(
    frame: Frame,
    score: str,
    name: str,
) -> Iterator[EarlierRun]:
    """Yield the runs of a table, in the order of their first rows."""
    if RUN not in frame and EPOCH in frame:
        raise InvalidParameterError(
            f"{name}: it has a column {EPOCH!r} and none that says whose: add a column "
            f"{RUN!r}, or leave {EPOCH!r} out"
        )
    frame = frame.reset_index(drop=True).astype(object).map(_value)
    frame = frame.astype(object)  # a row of whole numbers and others keeps each kind
    if EPOCH in frame:
        frame[EPOCH] = frame[EPOCH].map(as_number)
        if frame[EPOCH].isna().any():
            raise InvalidParameterError(
                f"{name}: every row needs a number in its column {EPOCH!r}"
            )
        frame = frame.drop_duplicates([RUN, EPOCH], keep="last")
        frame = frame.sort_values(EPOCH, kind="stable")
    runs = frame.index
    if RUN in frame:
        runs = frame[RUN].map(repr)
    params = frame.drop(columns={score, RUN, EPOCH, SECONDS} & set(frame.columns))
    n_different = params.map(repr).groupby(runs).nunique().max()
    params = params.loc[:, n_different <= 1]
    for _, rows in frame.groupby(runs, sort=False):
        cells = params.loc[rows.index[0]].items()
        yield EarlierRun(
            params={column: cell for column, cell in cells if not _is_missing(cell)},
            scores=[as_number(cell) for cell in rows[score]],
        )


def _value(cell: object) -> object:
    """Return a cell, as a number if its text is one: some tools keep all as text."""
    if isinstance(cell, str):
        with suppress(ValueError, OverflowError):
            number = float(cell)
            if number.is_integer():
                return int(number)
            return number
    return cell


def _is_missing(cell: object) -> bool:
    """Return whether a cell has no value: None, NaN, or their equals in pandas."""
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


FRAMES = Reader(
    "a pandas DataFrame", _is_frame, lambda asked: [of_frame(asked.source, asked)]
)
