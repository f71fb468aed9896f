"""Every suite leaves the same behind: ``results.csv`` and ``summary.md``."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write(
    out: Path, title: str, rows: Sequence[dict[str, Any]], notes: Sequence[str]
) -> None:
    """Write and print the rows as a table, with notes below."""
    columns = list(rows[0])
    with (out / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [
        max(len(column), *(len(line[i]) for line in cells))
        for i, column in enumerate(columns)
    ]
    lines = [columns, ["-" * width for width in widths], *cells]
    table = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    text = "\n".join([f"# {title}", "", *table, "", *notes, ""])
    (out / "summary.md").write_text(text)
    print(text)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
