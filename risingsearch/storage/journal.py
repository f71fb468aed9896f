"""An append-only file of events: what was paid for is on disk before it counts."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from risingsearch.errors import JournalError
from risingsearch.storage.files import write_whole

VERSION = 1

Event = dict[str, Any]


class Recorded(NamedTuple):
    """What a journal holds: the first line, all events, and where the last one ends."""

    header: Event
    events: list[Event]
    n_bytes: int


class Journal:
    """Events on disk, one line of JSON each, safe once ``append`` returns.

    Every line carries its number and a checksum, the first one the version of the
    format. A crash in the middle of a write leaves a torn last line, which the next
    ``Journal`` cuts off; any other damage is an error. ``create`` has made the file,
    and ``read`` has found what is recorded in it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "journal.jsonl")
    ...     create(path, {"budget": 9})
    ...     Journal(path, read(path)).append({"event": "told", "score": 0.5})
    ...     header, events, _ = read(path)
    >>> header, events
    ({'budget': 9}, [{'event': 'told', 'score': 0.5}])
    """

    def __init__(self, path: Path, recorded: Recorded) -> None:
        self.path = path
        self.n_events = len(recorded.events)
        self.n_bytes = recorded.n_bytes
        try:
            os.truncate(path, self.n_bytes)
        except OSError as error:
            raise _unwritable(path, error) from error

    def append(self, event: Mapping[str, Any]) -> None:
        """Write one event and wait until it is on disk.

        If it cannot be written, that is a JournalError, and what was written before is
        as it was.
        """
        line = _line(self.n_events + 1, event)
        try:
            with self.path.open("r+b", buffering=0) as file:
                file.seek(self.n_bytes)
                try:
                    _write_all(file, line)
                    os.fsync(file.fileno())
                except BaseException:  # Ctrl-C as well
                    file.truncate(self.n_bytes)
                    raise
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self.n_events += 1
        self.n_bytes += len(line)


def create(path: Path, header: Mapping[str, Any]) -> None:
    """Write a journal that has no events yet."""
    try:
        write_whole(path, [_line(0, {"journal": VERSION, **header})])
    except OSError as error:
        raise _unwritable(path, error) from error


def read(path: Path, *, header_only: bool = False) -> Recorded:
    """Return all that a journal holds, or its header, without a torn last line.

    A file that cannot be read, is damaged, or of another version is a JournalError.
    """
    try:
        with path.open("rb") as file:
            content = file.readline() if header_only else file.read()
    except OSError as error:
        msg = f"{path} cannot be read ({error.strerror}): is this a run directory?"
        raise JournalError(msg) from error
    events = list(_events(path, content))
    if not events:
        raise _damaged(path, 0, 0, "it is not whole")
    header = events.pop(0)
    version = header.pop("journal", None)
    if version != VERSION:
        msg = (
            f"{path} is a journal of version {version!r}, this release reads version "
            f"{VERSION}: use the release that wrote it"
        )
        raise JournalError(msg)
    return Recorded(header, events, content.rfind(b"\n") + 1)


def _write_all(file: IO[bytes], line: bytes) -> None:
    written = 0
    while written < len(line):
        written += file.write(line[written:])


_MARK = b', "crc": "'


def _line(number: int, event: Mapping[str, Any]) -> bytes:
    body = json.dumps({"n": number, **event}, allow_nan=False).encode()[:-1]
    return b'%s%s%08x"}\n' % (body, _MARK, zlib.crc32(body))


def _events(path: Path, content: bytes) -> Iterator[Event]:
    begin = 0
    number = 0
    while (end := content.find(b"\n", begin)) >= 0:
        body, _, crc = content[begin:end].rpartition(_MARK)
        if crc != b'%08x"}' % zlib.crc32(body):
            raise _damaged(path, number, begin, "its checksum does not fit")
        event: Event = json.loads(f"{body.decode()}}}")
        if event.pop("n") != number:
            raise _damaged(path, number, begin, "lines before it are missing")
        yield event
        begin = end + 1
        number += 1


def _damaged(path: Path, number: int, begin: int, how: str) -> JournalError:
    return JournalError(
        f"{path} is damaged in line {number + 1}, which begins at byte {begin}: {how}; "
        f"restore it from a backup, or keep its first {begin} bytes and lose the rest"
    )


def _unwritable(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"{path} cannot be written ({error.strerror}); what it holds is safe: make "
        "room or change the permissions, and resume"
    )
