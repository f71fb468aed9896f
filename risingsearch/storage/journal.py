"""Append-only journal of events: an event is on disk before it counts."""

import json
import os
import zlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from risingsearch.errors import RunDirError
from risingsearch.json_values import Json
from risingsearch.storage.files import PRIVATE, atomic_write, open_regular_file, usable

VERSION = 3


class Recorded(NamedTuple):
    """Content of a journal: its header, all events, and where the last one ends."""

    header: Json
    events: list[Json]
    n_bytes: int


class Journal:
    """Events on disk, a numbered line of JSON each with a checksum; see ``create``."""

    def __init__(self, path: Path, recorded: Recorded) -> None:
        self.path = path
        self.n_events = len(recorded.events)
        self.n_bytes = recorded.n_bytes
        with _writable(path):
            os.truncate(path, recorded.n_bytes)

    def append(self, event: Mapping[str, object]) -> None:
        """Write one event and wait until it is on disk; else the file is as before."""
        number = self.n_events + 1
        line = _encoded(number, event)
        before = self.n_events, self.n_bytes
        with _writable(self.path):
            try:
                with self.path.open("r+b", buffering=0) as file:
                    file.truncate(self.n_bytes)  # of what could not be taken back
                    file.seek(self.n_bytes)
                    try:
                        n_written = 0
                        while n_written < len(line):
                            n_written += file.write(line[n_written:])
                        os.fsync(file.fileno())
                        self.n_events, self.n_bytes = number, self.n_bytes + len(line)
                    except BaseException:  # Ctrl-C as well
                        file.truncate(self.n_bytes)
                        raise
            except OSError:  # perhaps it could not be closed
                self.n_events, self.n_bytes = before
                raise


def create(path: Path, header: Mapping[str, object]) -> None:
    """Write a journal that has no events yet."""
    line = _encoded(0, {"journal": VERSION, **header})
    with _writable(path):
        atomic_write(path, line, mode=PRIVATE)


def read(path: Path, *, header_only: bool = False) -> Recorded:
    """Header and events of a journal, without a torn last line; else a RunDirError."""
    content = _content(path, header_only=header_only)
    end = content.find(b"\n") + 1
    header = _decoded(path, content[:end], 0, 0)
    version = header.pop("journal", None)
    if version != VERSION:
        raise RunDirError(
            f"{path} is a journal of version {version!r}, and this release reads "
            f"version {VERSION}: use the release that wrote it"
        )
    return _with_events(path, content[end:], Recorded(header, [], end))


def read_appended(path: Path, recorded: Recorded) -> Recorded:
    """Content of a journal by now, given an earlier one, whose list of events grows."""
    return _with_events(path, _content(path, recorded.n_bytes), recorded)


def _content(path: Path, start: int = 0, *, header_only: bool = False) -> bytes:
    readable = usable(path, "read", ": is this a run directory?")
    with readable, open_regular_file(path) as file:
        n_bytes = file.seek(0, os.SEEK_END)
        file.seek(start)
        content = file.readline() if header_only else file.read()
    if n_bytes < start:
        raise RunDirError(f"{path} is shorter than it was: {start} bytes were known")
    return content


def _with_events(
    path: Path,
    rest: bytes,
    recorded: Recorded,
) -> Recorded:
    """Add all events in the rest of the journal."""
    header, events, n_bytes = recorded
    begin = 0
    while end := rest.find(b"\n", begin) + 1:
        events.append(
            _decoded(
                path,
                rest[begin:end],
                len(events) + 1,
                n_bytes + begin,
            )
        )
        begin = end
    return Recorded(header, events, n_bytes + begin)


_MARK = b', "crc": "'
_END = b'"}\n'
_json = json.JSONEncoder(allow_nan=False).encode


def _encoded(number: int, event: Mapping[str, object]) -> bytes:
    """Line of an event, with its number and the checksum of all before the checksum."""
    body = _json({"n": number, **event}).encode()[:-1]
    return b"%s%s%08x%s" % (body, _MARK, zlib.crc32(body), _END)


def _decoded(
    path: Path,
    line: bytes,
    number: int,
    begin: int,
) -> Json:
    """Event of a line; one that is damaged, or has another number, is an error."""
    body, _, end = line.rpartition(_MARK)
    try:
        if end != b"%08x%s" % (zlib.crc32(body), _END):
            raise ValueError
        event: Json = json.loads(f"{body.decode()}}}")
        noted = event.pop("n", None)
    except ValueError:
        raise _damaged(
            path,
            number,
            begin,
            "its checksum does not fit",
        ) from None
    if noted != number:
        how = "it is not the next one: lines are missing, doubled or exchanged"
        raise _damaged(path, number, begin, how)
    return event


def _damaged(
    path: Path,
    number: int,
    begin: int,
    how: str,
) -> RunDirError:
    advice = "start again in another run_dir"
    if number:
        advice = f"keep its first {begin} bytes and lose the rest"
    return RunDirError(
        f"{path} is damaged in line {number + 1}, which begins at byte {begin}: {how}; "
        f"restore it from a backup, or {advice}"
    )


def _writable(path: Path) -> AbstractContextManager[None]:
    advice = "make room or change the permissions, and resume"
    return usable(path, "written", f"; what it holds is safe: {advice}")
