"""Epochs that a running script reports, line by line, in its output or in a file."""

import codecs
import io
import math
import os
import selectors
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

from risingsearch.errors import ScriptError, SetupError
from risingsearch.json_values import Json
from risingsearch.scripts.processes import Script
from risingsearch.scripts.readers import SHOWN, Reader
from risingsearch.storage.files import open_regular_file

AT_ONCE = 1 << 16  # bytes that are read at a time
POLL_EVERY = 0.05
"""Seconds to wait for a line before checking whether the script still runs."""
LINGER = 1.0  # seconds to wait for the last lines of a script that has ended
LONGEST = 1 << 20  # characters that are kept of a line without an end
_Line = tuple[str, bool]  # and whether it is of standard output, not of errors


class Lines:
    r"""Bytes as lines of text, which end with ``\n``, ``\r\n`` or ``\r``."""

    def __init__(self) -> None:
        utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
        self._rest = ""

    def add(self, content: bytes) -> list[str]:
        """Return the lines that these bytes complete."""
        *whole, self._rest = (self._rest + self._decoder.decode(content)).split("\n")
        lines = [f"{line}\n" for line in whole]
        if len(self._rest) <= LONGEST:
            return lines
        return lines + self.end()

    def end(self) -> list[str]:
        """Return the rest: nothing follows."""
        rest = self._rest + self._decoder.decode(b"", final=True)
        self._rest = ""
        return [rest] if rest else []


class ReportFile:
    """Lines that are added to a file once a script has started; it may appear later."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / name
        self._name = name
        self._lines = Lines()
        with self._opened() as file:
            self._at = file.seek(0, os.SEEK_END)

    def new_lines(self, *, all_of_it: bool = False) -> Iterator[str]:
        """Yield the lines since the last call; ``all_of_it``: a partial one too."""
        with self._opened() as file:
            end = file.seek(0, os.SEEK_END)
            if end < self._at:
                raise ScriptError(
                    f"the script has begun {self._name} from scratch: it must append "
                    "its reports to the file in its checkpoint directory"
                )
            file.seek(self._at)
            while self._at < end and (added := file.read(AT_ONCE)):
                self._at += len(added)
                yield from self._lines.add(added)
        if all_of_it:
            yield from self._lines.end()

    def _opened(self) -> IO[bytes]:
        """Open the file; an empty one takes its place until it is there."""
        try:
            return open_regular_file(self._path)
        except FileNotFoundError:
            return io.BytesIO()
        except OSError as error:
            raise ScriptError(
                f"the reports in {self._name} cannot be read ({error.strerror})"
            ) from error


def reports(
    script: Script,
    reader: Reader,
    *,
    timeout: float | None,
    log: IO[str],
    file: ReportFile | None = None,
) -> Generator[Json]:
    """Yield the epochs that a reader finds in a script's output, or in a file."""
    reported = time.monotonic()
    with closing(_Output(script, reader, log, file)) as output:
        while not output.is_over:
            for record in output.new_records():
                yield record
                reported = time.monotonic()
            late = timeout is not None and time.monotonic() > reported + timeout
            if late and script.is_running:
                raise ScriptError(
                    f"the script has reported no epoch for {timeout:g} seconds"
                )
    if script.returncode != 0:
        how = _how_ended(script.returncode)
        raise ScriptError(
            f"the script ended with {how}; its last line: {output.last_line!r}"
        )
    yield from output.cut_records()


def _how_ended(code: int) -> str:
    """Return the end of a script that has failed, by its return code."""
    names = {-number.value: number.name for number in signal.Signals}
    if code > 0:
        return f"exit code {code}"
    return names.get(code, f"signal {-code}")


class _Output:
    """Output of a script to its last line, which is logged, and the reports in it.

    It is read no faster than the reports are used.
    """

    def __init__(
        self, script: Script, reader: Reader, log: IO[str], file: ReportFile | None
    ) -> None:
        self._script = script
        self._reader = reader
        self._log = log
        self._file = file
        self._open = selectors.DefaultSelector()
        self._open.register(script.stdout, selectors.EVENT_READ, (Lines(), True))
        self._open.register(script.stderr, selectors.EVENT_READ, (Lines(), False))
        self._due = math.inf
        self._last = {True: "", False: ""}  # of standard output, and of errors
        self._cut: list[_Line] = []  # without an end, as a script leaves when killed
        self._reports_in: bool | None = None  # standard output, or errors

    @property
    def is_over(self) -> bool:
        """Whether the script has ended and no line is outstanding."""
        return self._due < math.inf and not self._open.get_map()

    @property
    def last_line(self) -> str:
        """The last line that is not blank: of standard error, if there is one."""
        return self._last[False] or self._last[True]

    def new_records(self) -> Iterator[Json]:
        """Yield the reports in the lines that have come."""
        lines = []
        for line, is_output in self._new_lines():
            self._log.write(line)
            self._last[is_output] = line.strip()[:SHOWN] or self._last[is_output]
            if is_output or self._reader.reads_errors:
                lines.append((line, is_output))
        self._log.flush()
        if self._file is not None:
            added = self._file.new_lines(all_of_it=self.is_over)
            lines = [(line, True) for line in added]
        cut = [line for line in lines if not line[0].endswith("\n")]
        self._cut = [*self._cut, *cut][-2:]
        yield from self._records_in(line for line in lines if line[0].endswith("\n"))

    def cut_records(self) -> Iterator[Json]:
        """Yield the reports in lines without an end, once the script has succeeded."""
        yield from self._records_in(self._cut)

    def close(self) -> None:
        """Close both streams."""
        self._open.close()
        self._script.stdout.close()
        self._script.stderr.close()

    def _new_lines(self) -> Iterator[_Line]:
        """Yield lines that have come, each with whether it is of standard output."""
        if self._open.get_map():
            for key, _ in self._open.select(POLL_EVERY):
                yield from self._split(key, os.read(key.fd, AT_ONCE))
        else:
            self._script.wait(POLL_EVERY)
        if self._due == math.inf and not self._script.is_running:
            self._script.end()  # child processes may keep its output open
            self._due = time.monotonic() + LINGER
        if time.monotonic() >= self._due:
            for key in list(self._open.get_map().values()):
                yield from self._split(key, b"")

    def _split(self, key: selectors.SelectorKey, content: bytes) -> Iterator[_Line]:
        lines, is_output = key.data
        for line in lines.add(content) if content else lines.end():
            yield line, is_output
        if not content:
            self._open.unregister(key.fileobj)

    def _records_in(self, lines: Iterable[_Line]) -> Iterator[Json]:
        for line, is_output in lines:
            record = self._reader.read(line)
            if record is None:
                continue
            if self._reports_in not in (None, is_output):
                raise SetupError(
                    "the metric's pattern finds numbers in standard output and in "
                    f"standard error, last in {line.strip()[:SHOWN]!r}, and a print "
                    "beside a logger would count each epoch twice: name in the pattern "
                    "what stands in the lines of one of them alone"
                )
            self._reports_in = is_output
            yield record


class Pace:
    """Notes when epochs are reported, and tells the start of a script from them."""

    # An epoch lasts as long as the reports are apart. One report alone does not say
    # that, nor do reports that come together because the script has kept them back.

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._first = self._last = math.nan
        self._n_reports = 0

    def reported(self) -> None:
        """Note that an epoch was reported now."""
        self._last = self._clock()
        self._n_reports += 1
        if self._n_reports == 1:
            self._first = self._last

    def startup(self) -> float:
        """Return the seconds until now that were none of an epoch's; NaN: unknown."""
        took = self._clock() - self._began
        if self._n_reports < 2:
            return math.nan
        epoch = (self._last - self._first) / (self._n_reports - 1)
        rest = max(0.0, took - self._n_reports * epoch)
        if epoch > POLL_EVERY:
            return rest
        return math.nan
