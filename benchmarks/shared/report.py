"""Every suite leaves the same behind: ``results.csv`` and ``summary.md``."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def write(
    out: Path, title: str, rows: Sequence[dict[str, Any]], notes: Sequence[str]
) -> None:
    """Write and print the rows as a table, with notes below."""
    write_results(out, rows)
    write_summary(out, title, [table(rows), "\n".join(notes)])


def write_results(out: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows as ``results.csv``."""
    with (out / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_summary(out: Path, title: str, parts: Iterable[str]) -> None:
    """Write and print ``summary.md``: a title and its paragraphs and tables."""
    text = "\n\n".join([f"# {title}", *parts]) + "\n"
    (out / "summary.md").write_text(text)
    print(text)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows as a table in Markdown."""
    columns = list(rows[0])
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [
        max(len(column), *(len(line[i]) for line in cells))
        for i, column in enumerate(columns)
    ]
    lines = [columns, ["-" * width for width in widths], *cells]
    return "\n".join(
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
