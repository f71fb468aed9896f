"""Earlier searches in tables: a row per run, or a row per epoch of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from risingsearch.errors import InvalidParameterError, missing
from risingsearch.priors.earlier import (
    HOW_TO_NAME,
    Asked,
    EarlierRun,
    EarlierSearch,
    as_number,
    by_epoch,
    checked_score,
    earlier_search,
    known_direction,
    mean,
)

SUFFIXES = (".csv", ".csv.gz", ".parquet")
RUN, EPOCH, SECONDS, DIRECTION = "run", "epoch", "seconds", "direction"
EXPORTED = {"arm", EPOCH, "score", "round", "job", DIRECTION}
"""Columns by which a table of ``risingsearch export`` is recognised."""
PARAMETER = "param_"
_MISSING = ["", "nan", "NaN"]  # cells of text without a value; "None" is a category


def of_file(path: Path, asked: Asked) -> EarlierSearch:
    """Return the runs in a CSV or parquet file."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise missing("pandas", extra="sim") from error
    try:
        if path.name.lower().endswith(".parquet"):
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, na_values=_MISSING, keep_default_na=False)
    except ImportError as error:
        raise missing("pyarrow", extra="sim") from error
    except Exception as error:  # pyarrow and pandas raise many kinds
        first = (str(error).splitlines() or [type(error).__name__])[0]
        msg = f"{path} cannot be read as a table ({first:.200})"
        raise InvalidParameterError(msg) from error
    return of_frame(frame, asked, path.name)


def of_frame(frame: Any, asked: Asked, name: str = "the data frame") -> EarlierSearch:
    """Return the runs in a pandas DataFrame.

    All columns are parameters but the score, ``run``, ``epoch`` and ``seconds``, and
    those that vary among the epochs of a run. A run without a score has failed.
    """
    direction, score = asked.direction, asked.score
    if set(frame.columns) >= EXPORTED:
        said = str(frame[DIRECTION].iloc[0])
        score = score or "score"
        direction = known_direction(asked, name, said if score == "score" else None)
        frame = _parameters_of_export(frame).assign(
            **{RUN: frame["arm"], EPOCH: frame[EPOCH], "score": frame[score]}
        )
        metric, score = score, "score"
    elif score is None or direction is None:
        absent = "score" if score is None else "direction"
        msg = f"{name}: a table needs score and direction: name its {absent}"
        raise InvalidParameterError(f"{msg} {HOW_TO_NAME}")
    else:
        metric = score
    runs = _runs(frame, checked_score(score, map(str, frame.columns), name), name)
    return earlier_search(name, runs, asked, direction, metric=metric)


def _parameters_of_export(frame: Any) -> Any:
    """Return the columns with parameters, and the seconds of each epoch."""
    columns = {
        name: _unquoted(name.removeprefix(PARAMETER))
        for name in frame.columns
        if name.startswith(PARAMETER) and name != f"{PARAMETER}as_text"
    }
    parameters = frame[list(columns)].rename(columns=columns).map(_unquoted)
    return parameters.assign(**{SECONDS: frame[SECONDS]})


def _unquoted(cell: Any) -> Any:
    """Return a cell without the apostrophe that marks text that is no formula."""
    is_quoted = isinstance(cell, str) and cell[:1] == "'" and cell[1:2] in "=+-@\t\r"
    return cell[1:] if is_quoted else cell


def _runs(frame: Any, score: str, name: str) -> Iterator[EarlierRun]:
    """Yield the runs of a table, in the order of their first rows."""
    columns = {str(column): frame[column].tolist() for column in frame.columns}
    scores = [as_number(_value(cell)) for cell in columns[score]]
    epochs = [as_number(_value(cell)) for cell in columns.get(EPOCH, range(len(frame)))]
    if RUN not in columns and EPOCH in columns:
        msg = (
            f"{name}: it has a column {EPOCH!r} and none that says whose: add a column "
            f"{RUN!r}, or leave {EPOCH!r} out"
        )
        raise InvalidParameterError(msg)
    if any(map(math.isnan, epochs)):
        msg = f"{name}: every row needs a number in its column {EPOCH!r}"
        raise InvalidParameterError(msg)
    groups: dict[str, list[int]] = {}
    for row, run in enumerate(columns.get(RUN, range(len(frame)))):
        groups.setdefault(repr(run), []).append(row)
    params = {
        column: cells
        for column, cells in columns.items()
        if column not in {score, RUN, EPOCH, SECONDS}
        and all(len({repr(cells[row]) for row in run}) == 1 for run in groups.values())
    }
    for rows in groups.values():
        own = {column: _value(cells[rows[0]]) for column, cells in params.items()}
        curve = by_epoch((epochs[row], scores[row]) for row in rows)
        yield EarlierRun(
            {column: cell for column, cell in own.items() if not _is_missing(cell)},
            curve,
            mean(as_number(columns[SECONDS][row]) for row in rows)
            if SECONDS in columns
            else math.nan,
            failed=not any(map(math.isfinite, curve)),
        )


def _value(cell: Any) -> Any:
    """Return a cell, as a number if its text is one: some tools keep all as text."""
    if isinstance(cell, str):
        with suppress(ValueError, OverflowError):
            number = float(cell)
            return int(number) if number.is_integer() else number
    return cell


def _is_missing(cell: Any) -> bool:
    """Return whether a cell has no value: None, NaN, or their equals in pandas."""
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")
