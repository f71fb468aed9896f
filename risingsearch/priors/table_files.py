"""Tables from files and data frames."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from risingsearch.errors import PriorError, missing
from risingsearch.priors.folders import as_text, content_of
from risingsearch.priors.table_forms import Table
from risingsearch.priors.values import value_of

TEXTS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
SUFFIXES = (*TEXTS, ".parquet")
MOST_UNPACKED = 2**30
"""Bytes of an unpacked table at most: a small file can say to fill all memory."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_DECIMAL_POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"^([+-]?[0-9]*),([0-9]+(?:[eE][+-]?[0-9]+)?)$", re.ASCII)
_DELIMITERS = (",", ";", "\t")
_INDEX = "__index_level_"


def table_in(path: Path) -> Table:
    """Return the table in a file."""
    where = str(path)
    name = path.name.lower()
    if not name.endswith(TEXTS):
        return _parquet(path)
    content = content_of(path) or b""
    if name.endswith(".gz"):
        content = _unpacked(content, where)
    text = as_text(content, path)
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    if ".tsv" in name:
        delimiter = "\t"
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        msg = f"{where} is damaged, and no CSV: {error}"
        raise PriorError(msg) from error
    rows = _without_decimal_commas([row for row in rows if row], delimiter)
    if not rows:
        msg = f"{where} is empty: give a table with a header and a row per run"
        raise PriorError(msg)
    header = [_text(name).strip() for name in rows.pop(0)]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            msg = (
                f"{where}: row {number} has {len(row)} cells and the header "
                f"{len(header)}: mend it or remove it"
            )
            raise PriorError(msg)
    columns = [list(map(_value, column)) for column in zip(*rows, strict=True)]
    return _checked(where, header, columns)


def _unpacked(content: bytes, where: str) -> bytes:
    try:
        with gzip.open(io.BytesIO(content)) as file:
            whole = file.read(MOST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error) as error:
        msg = f"{where} is damaged, and no gzip: {error}"
        raise PriorError(msg) from error
    if len(whole) > MOST_UNPACKED:
        msg = (
            f"{where} is more than {MOST_UNPACKED:,} bytes, unpacked: unpack it "
            "yourself, and give the columns and rows that are needed"
        )
        raise PriorError(msg)
    return whole


def _without_decimal_commas(rows: list[list[str]], delimiter: str) -> list[list[str]]:
    """Return cells with points in the place of decimal commas.

    They are such between semicolons, unless another cell has a decimal point.
    """
    cells = (cell for row in rows for cell in row)
    if delimiter != ";" or any(_DECIMAL_POINT.fullmatch(cell) for cell in cells):
        return rows
    return [[_DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in row] for row in rows]


def table_of(frame: Any, where: str = "the data frame") -> Table:
    """Return the table in a pandas DataFrame."""
    header = [_joined(name) for name in frame.columns]
    columns = [frame.iloc[:, i].tolist() for i in range(len(header))]
    return _checked(where, header, columns)


def _parquet(path: Path) -> Table:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise missing("pyarrow", extra="sim") from error
    try:
        table = pq.ParquetFile(path).read()
        columns = [
            [math.nan if value is None else value for value in column.to_pylist()]
            for column in table.columns
        ]
    except (OSError, pa.ArrowException, ValueError) as error:
        msg = f"{path} is damaged, and no parquet: {str(error).splitlines()[0]:.200}"
        raise PriorError(msg) from error
    return _checked(str(path), table.column_names, columns)


def _checked(
    where: str, header: Sequence[str], columns: Sequence[Sequence[Any]]
) -> Table:
    """Return the table, without columns that number the rows."""
    named = {
        name: column
        for name, column in zip(header, columns, strict=False)
        if name and not name.startswith((_INDEX, "Unnamed: "))
    }
    times = Counter(header)
    doubled = {name for name in named if times[name] > 1}
    if doubled:
        msg = f"{where}: more than one column is called {min(doubled)!r}: rename them"
        raise PriorError(msg)
    if not columns or not len(columns[0]):
        msg = f"{where} has no rows, so nothing can be learnt from it: leave it out"
        raise PriorError(msg)
    return Table(where, named)


def _joined(name: Any) -> str:
    """Return the name of a column; one of several levels as Optuna joins them."""
    levels: Iterable[Any] = name if isinstance(name, tuple) else (name,)
    return "_".join(str(level) for level in levels if level != "")


def _value(cell: str) -> Any:
    return value_of(_text(cell))


def _text(cell: str) -> str:
    """Return a cell without the apostrophe that keeps spreadsheets from a formula."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in _FORMULA else cell
