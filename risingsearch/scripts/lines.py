"""The lines of a script, with bounded memory, and the epochs reported in them."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from risingsearch.errors import ScriptError
from risingsearch.storage.files import open_regular_file

AT_ONCE = 1 << 16
"""Bytes that are read at a time."""
LONGEST = 1 << 20
"""Characters of a line that are kept; what follows is passed on as another line."""
SHOWN = 200  # characters of a line in a message
MOST_KEYS = 20  # in a message
SEARCHED = 2_000  # characters of a line: some patterns take their square in time
SCORE, EPOCH = "score", "epoch"


class Line(NamedTuple):
    """A line, or a piece of one that is too long."""

    text: str  # with its end
    begins: bool = True
    ends: bool = True


class Lines:
    r"""Bytes as lines of text, which end with ``\n``, ``\r\n`` or ``\r``.

    >>> lines = Lines()
    >>> [line.text for line in lines.add(b"50%\r{'epoch': 1}\r\nwhat")]
    ['50%\n', "{'epoch': 1}\n"]
    >>> [line.text for line in lines.end()]
    ['what']
    """

    def __init__(self) -> None:
        utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
        self._pieces: list[str] = []  # of the line that has no end yet
        self._n_kept = 0  # characters of them
        self._begins = True

    def add(self, content: bytes) -> Iterator[Line]:
        """Yield the lines that these bytes complete."""
        *whole, rest = self._decoder.decode(content).split("\n")
        for text in whole:
            yield self._line(f"{text}\n", ends=True)
        self._pieces.append(rest)
        self._n_kept += len(rest)
        if self._n_kept > LONGEST:
            yield self._line("", ends=False)

    def end(self) -> Iterator[Line]:
        """Yield the rest: nothing follows."""
        yield from self.add(b"")
        rest = self._line(self._decoder.decode(b"", final=True), ends=True)
        if rest.text:
            yield rest

    def _line(self, last: str, *, ends: bool) -> Line:
        line = Line("".join([*self._pieces, last]), self._begins, ends)
        self._pieces, self._n_kept, self._begins = [], 0, ends
        return line


class ReportFile:
    """Lines that are added to a file while a script runs; it may appear later.

    Lines in the file before the script starts are of its earlier epochs.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._lines = Lines()
        with self._opened() as file:
            self._at = 0 if file is None else os.fstat(file.fileno()).st_size

    def new_lines(self, *, all_of_it: bool = False) -> Iterator[Line]:
        """Yield the lines since the last call; ``all_of_it``: a partial one too."""
        with self._opened() as file:
            end = 0 if file is None else os.fstat(file.fileno()).st_size
            if end < self._at:
                msg = (
                    f"the script has begun {self._name} from scratch: it must append "
                    "its reports to the file in its checkpoint directory"
                )
                raise ScriptError(msg)
            while file is not None and self._at < end:
                added = os.pread(file.fileno(), AT_ONCE, self._at)
                if not added:
                    break
                self._at += len(added)
                yield from self._lines.add(added)
        if all_of_it:
            yield from self._lines.end()

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes] | None]:
        """Yield the file; None if it does not exist yet."""
        try:
            file = open_regular_file(self._folder / self._name)
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            msg = f"the reports in {self._name} cannot be read ({error.strerror})"
            raise ScriptError(msg) from error
        with file:
            yield file


class JsonLines:
    """Reads lines of JSON that have the metric; it recalls the keys of the others.

    >>> reader = JsonLines("accuracy")
    >>> reader.read(Line('{"epoch": 1, "accuracy": 0.5}'))
    {'epoch': 1, 'accuracy': 0.5}
    >>> reader.read(Line('{"epoch": 2, "acc": 0.6}'))
    >>> reader.missed
    "no line of JSON with an epoch and 'accuracy'; the keys seen were epoch, acc"
    """

    reads_errors = False

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self._seen: dict[str, None] = {}

    def read(self, line: Line) -> dict[str, Any] | None:
        """Return the report in a line, None if it holds none."""
        record = _json_report(line, self.metric)
        if record is not None and self.metric not in record:
            for key in record:
                if len(self._seen) < MOST_KEYS:
                    self._seen[key[:SHOWN]] = None
            return None
        return record

    @property
    def missed(self) -> str:
        """The kind of line that was expected, for a script without a report."""
        msg = f"no line of JSON with an epoch and {self.metric!r}"
        seen = ", ".join(self._seen)
        return f"{msg}; the keys seen were {seen}" if seen else msg


class PlainLines:
    """Reads the number that a pattern finds in a line, wherever it is printed.

    Every match is an epoch, the one after the last, unless the group ``epoch`` says
    which.

    >>> reader = PlainLines(re.compile("accuracy: ([0-9.]+)"))
    >>> reader.read(Line("validation accuracy: 0.75 (best)"))
    {'epoch': 1, 'score': 0.75}
    >>> reader.read(Line("accuracy is better"))
    """

    reads_errors = True  # where logging goes
    metric = SCORE

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._group = SCORE if SCORE in pattern.groupindex else 1
        self._n_matches = 0

    def read(self, line: Line) -> dict[str, Any] | None:
        """Return the report in a line, None if it holds none."""
        found = self._pattern.search(line.text[-SEARCHED:])
        if found is None:
            return None
        self._n_matches += 1
        epoch: Any = self._n_matches
        if EPOCH in self._pattern.groupindex:
            epoch = _number(found[EPOCH], line)
            epoch = int(epoch) if epoch.is_integer() else epoch
        return {EPOCH: epoch, SCORE: _number(found[self._group], line)}

    @property
    def missed(self) -> str:
        """The kind of line that was expected, for a script without a report."""
        return f"no line in which {self._pattern.pattern!r} finds a number"


Reader = JsonLines | PlainLines


def reader_of(metric: str | re.Pattern[str]) -> Reader:
    """Return the reader of one script's lines."""
    return JsonLines(metric) if isinstance(metric, str) else PlainLines(metric)


def _number(text: str | None, line: Line) -> float:
    try:
        return float(text or "")
    except ValueError:
        msg = (
            f"the metric's pattern finds {(text or '')[:SHOWN]!r}, which is no number, "
            f"in {line.text.strip()[:SHOWN]!r}"
        )
        raise ScriptError(msg) from None


def _json_report(line: Line, metric: str) -> dict[str, Any] | None:
    """Return the JSON object in a line, None if it cannot be a report."""
    text = line.text.strip()
    if not text.startswith("{") or not line.begins:
        return None
    if not line.ends or len(text) > LONGEST:
        msg = (
            f"the script reports a line of more than {LONGEST:,} characters: "
            f"{text[:SHOWN]!r}"
        )
        raise ScriptError(msg)
    try:
        record: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        if f'"{metric}"' not in text:
            return None
        msg = f"the script reports invalid JSON: {text[:SHOWN]!r}"
        raise ScriptError(msg) from error
    return record
