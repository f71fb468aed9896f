"""Lines of a script, however long: as they come, with bounded memory."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from risingsearch.errors import ScriptError
from risingsearch.scripts.plain_files import open_plain

AT_ONCE = 1 << 16
"""Bytes that are read at a time."""
LONGEST = 1 << 20
"""Characters of a line that are kept; what follows is passed on as another line."""


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
        """Yield what is left, where nothing will follow."""
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

    What the file holds before the script starts is of its earlier epochs.
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
        """Yield the file, None where there is none yet."""
        path = self._folder / self._name
        try:
            descriptor = open_plain(path, os.O_RDONLY, within=self._folder)
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            msg = f"the reports in {self._name} cannot be read ({error})"
            raise ScriptError(msg) from error
        with open(descriptor, "rb", buffering=0) as file:
            yield file
