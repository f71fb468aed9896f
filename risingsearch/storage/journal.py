"""An append-only file of events: what was paid for is on disk before it counts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from risingsearch.errors import JournalError
from risingsearch.storage.files import PRIVATE, open_plain, write_whole
from risingsearch.storage.lines import checksum, decoded, encoded

VERSION = 2
CHAINED = 2
"""The first version whose lines carry the checksum of the line before."""

Event = dict[str, Any]


class Recorded(NamedTuple):
    """What a journal holds: the first line, all events, and how it goes on."""

    header: Event
    events: list[Event]
    version: int
    n_bytes: int
    checksums: list[str]  # of the first line and of every event


class _End(NamedTuple):
    n_events: int
    n_bytes: int
    checksum: str


class Journal:
    """Events on disk, one line of JSON each, safe once ``append`` returns.

    The first line names the version of the format. Every line carries its number, the
    checksum of the line before and its own, so that a line which is changed, missing,
    doubled or elsewhere is an error. A crash in the middle of a write leaves a torn
    last line, which the next ``Journal`` cuts off. ``create`` has made the file, and
    ``read`` has found what is recorded in it.

    A journal of version 1, whose lines do not name the one before, goes on as such:
    the release that began it reads it too.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "journal.jsonl")
    ...     create(path, {"budget": 9})
    ...     Journal(path, read(path)).append({"event": "told", "score": 0.5})
    ...     recorded = read(path)
    >>> recorded.header, recorded.events
    ({'budget': 9}, [{'event': 'told', 'score': 0.5}])
    """

    def __init__(self, path: Path, recorded: Recorded) -> None:
        self.path = path
        self._version = recorded.version
        checksums = recorded.checksums
        # One attribute, so that Ctrl-C finds all of it changed or nothing.
        self._end = _End(len(recorded.events), recorded.n_bytes, checksums[-1])
        try:
            os.truncate(path, recorded.n_bytes)
        except OSError as error:
            raise _unwritable(path, error) from error

    @property
    def n_events(self) -> int:
        """How many events there are."""
        return self._end.n_events

    @property
    def n_bytes(self) -> int:
        """Where the last event ends."""
        return self._end.n_bytes

    @property
    def checksum(self) -> str:
        """The checksum of the last line."""
        return self._end.checksum

    def append(self, event: Mapping[str, Any]) -> None:
        """Write one event and wait until it is on disk.

        If it cannot be written, that is a JournalError, and what was written before is
        as it was.
        """
        number = self.n_events + 1
        before = self.checksum if self._version >= CHAINED else None
        line = _line(number, before, event)
        try:
            with self.path.open("r+b", buffering=0) as file:
                file.seek(self.n_bytes)
                try:
                    _write_all(file, line)
                    os.fsync(file.fileno())
                    self._end = _End(number, self.n_bytes + len(line), checksum(line))
                except BaseException:  # Ctrl-C as well
                    file.truncate(self.n_bytes)
                    raise
        except OSError as error:
            raise _unwritable(self.path, error) from error


def create(path: Path, header: Mapping[str, Any]) -> None:
    """Write a journal that has no events yet."""
    line = _line(0, None, {"journal": VERSION, **header})
    try:
        write_whole(path, [line], PRIVATE)
    except OSError as error:
        raise _unwritable(path, error) from error


def read(path: Path, *, header_only: bool = False) -> Recorded:
    """Return all that a journal holds, or its header, without a torn last line.

    A file that cannot be read, is damaged, or of another version is a JournalError.
    """
    try:
        with open_plain(path) as file:
            content = file.readline() if header_only else file.read()
    except OSError as error:
        raise _unreadable(path, error) from error
    end = content.find(b"\n") + 1
    header = decoded(content[:end])
    if header is None or header.pop("n", None) != 0:
        msg = (
            f"{path} is damaged in line 1, which begins at byte 0: its checksum does "
            "not fit; restore it from a backup, or begin anew in another run_dir"
        )
        raise JournalError(msg)
    version = header.pop("journal", None)
    if version not in range(1, VERSION + 1):
        msg = (
            f"{path} is a journal of version {version!r}, this release reads versions "
            f"up to {VERSION}: use the release that wrote it"
        )
        raise JournalError(msg)
    recorded = Recorded(header, [], version, end, [checksum(content[:end])])
    return _with_events(path, content[end:], recorded)


def read_on(path: Path, recorded: Recorded) -> Recorded:
    """Return what a journal holds by now, of which this was known before.

    A journal that does not go on from there is a JournalError, and so is all that
    ``read`` refuses. The lists of what was recorded grow.
    """
    try:
        with open_plain(path) as file:
            n_bytes = file.seek(0, os.SEEK_END)
            file.seek(recorded.n_bytes)
            rest = file.read()
    except OSError as error:
        raise _unreadable(path, error) from error
    if n_bytes < recorded.n_bytes:
        msg = f"{path} is shorter than it was: {recorded.n_bytes} bytes were known"
        raise JournalError(msg)
    return _with_events(path, rest, recorded)


def _with_events(path: Path, rest: bytes, recorded: Recorded) -> Recorded:
    """Return what is recorded with all events in the rest of the journal."""
    header, events, version, n_bytes, checksums = recorded
    begin = 0
    while end := rest.find(b"\n", begin) + 1:
        line = rest[begin:end]
        event = decoded(line)
        if event is None:
            raise _damaged(
                path, len(checksums), n_bytes + begin, "its checksum does not fit"
            )
        number = event.pop("n", None)
        follows = version < CHAINED or event.pop("after", None) == checksums[-1]
        if number != len(checksums) or not follows:
            how = "it is not the next one: lines are missing, doubled or exchanged"
            raise _damaged(path, len(checksums), n_bytes + begin, how)
        events.append(event)
        checksums.append(checksum(line))
        begin = end
    return Recorded(header, events, version, n_bytes + begin, checksums)


def _write_all(file: IO[bytes], line: bytes) -> None:
    written = 0
    while written < len(line):
        written += file.write(line[written:])


def _line(number: int, before: str | None, event: Mapping[str, Any]) -> bytes:
    """Return the line of an event, which names the checksum of the one before."""
    chain = {} if before is None else {"after": before}
    return encoded({"n": number, **chain, **event})


def _damaged(path: Path, number: int, begin: int, how: str) -> JournalError:
    return JournalError(
        f"{path} is damaged in line {number + 1}, which begins at byte {begin}: {how}; "
        f"restore it from a backup, or keep its first {begin} bytes and lose the rest"
    )


def _unreadable(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"{path} cannot be read ({error.strerror}): is this a run directory?"
    )


def _unwritable(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"{path} cannot be written ({error.strerror}); what it holds is safe: make "
        "room or change the permissions, and resume"
    )
