"""How far a journal has come, written beside it: so lines cut off its end are missed.

The file may be behind the journal or missing, but is never ahead of it: it is written
once an event is on disk. Nobody waits for it, so that an event costs one write more and
no more waiting; a damaged one says nothing.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

from risingsearch.storage.files import open_plain, overwrite
from risingsearch.storage.lines import decoded, encoded


class Known(NamedTuple):
    """How many events a journal has, and the checksum of the last, where known."""

    events: int
    checksum: str | None = None


def write(path: Path, known: Known) -> None:
    """Write how far the journal has come; where that fails, the file is behind."""
    with contextlib.suppress(OSError):
        overwrite(path, encoded(known._asdict()))


def read(path: Path) -> Known:
    """Return how far the journal had come at least; an OSError if it is no file."""
    try:
        with open_plain(path) as file:
            facts = decoded(file.readline())
    except FileNotFoundError:
        return Known(0)
    match facts:
        case {"events": int(n_events), "checksum": str(checksum)} if n_events >= 0:
            return Known(n_events, checksum)
    return Known(0)
