"""Reports of a running script, line by line, from its output or from a file."""

from __future__ import annotations

import math
import os
import selectors
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import IO, Any

from risingsearch.errors import ScriptError
from risingsearch.scripts.lines import AT_ONCE, SHOWN, Line, Lines, Reader, ReportFile
from risingsearch.scripts.script import Script

POLL_EVERY = 0.05
"""Seconds to wait for a line before checking whether the script still runs."""
LINGER = 1.0
"""Seconds to wait for the last lines of a script that has ended."""


def reports(
    script: Script,
    reader: Reader,
    *,
    timeout: float | None,
    log: IO[str],
    file: ReportFile | None = None,
) -> Generator[dict[str, Any]]:
    """Yield the epochs that a reader finds in a script's output, or in a file.

    All that it prints goes to the log. A script that ends with an error, reports what
    is no JSON, or reports no epoch for ``timeout`` seconds raises a ``ScriptError``.
    """
    reported = time.monotonic()
    last = {True: "", False: ""}
    with closing(_Output(script)) as output:
        while not output.is_over:
            for line, may_report in output.new_lines():
                log.write(line.text)
                last[may_report] = line.text.strip()[:SHOWN] or last[may_report]
                may_report = file is None and (may_report or reader.reads_errors)
                if may_report and (record := reader.read(line)):
                    yield record
                    reported = time.monotonic()
            log.flush()
            for line in file.new_lines(all_of_it=output.is_over) if file else ():
                if record := reader.read(line):
                    yield record
                    reported = time.monotonic()
            late = timeout is not None and time.monotonic() > reported + timeout
            if late and script.is_running:
                msg = f"the script has reported no epoch for {timeout:g} seconds"
                raise ScriptError(msg)
    if script.returncode != 0:
        said = last[False] or last[True]
        how = _ending(script.returncode)
        msg = f"the script ended with {how}; its last line: {said!r}"
        raise ScriptError(msg)


class _Output:
    """Output of a script, until it has ended and its last line has been read.

    It is read no faster than it is used: a script that prints more waits meanwhile.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._open = selectors.DefaultSelector()
        self._open.register(script.stdout, selectors.EVENT_READ, (Lines(), True))
        self._open.register(script.stderr, selectors.EVENT_READ, (Lines(), False))
        self._due = math.inf

    @property
    def is_over(self) -> bool:
        """Whether the script has ended and no line is outstanding."""
        return self._due < math.inf and not self._open.get_map()

    def new_lines(self) -> Iterator[tuple[Line, bool]]:
        """Yield lines that have come, each with whether it may be a report."""
        for key, _ in self._ready():
            content = os.read(key.fd, AT_ONCE)
            yield from self._split(key, content)
        if self._due == math.inf and not self._script.is_running:
            self._script.end()  # child processes may keep its output open
            self._due = time.monotonic() + LINGER
        if time.monotonic() >= self._due:
            for key in list(self._open.get_map().values()):
                yield from self._split(key, b"")

    def close(self) -> None:
        """Close both streams."""
        self._open.close()
        self._script.stdout.close()
        self._script.stderr.close()

    def _ready(self) -> list[tuple[selectors.SelectorKey, int]]:
        if self._open.get_map():
            return self._open.select(POLL_EVERY)
        self._script.wait(POLL_EVERY)
        return []

    def _split(
        self, key: selectors.SelectorKey, content: bytes
    ) -> Iterator[tuple[Line, bool]]:
        lines, may_report = key.data
        for line in lines.add(content) if content else lines.end():
            yield line, may_report
        if not content:
            self._open.unregister(key.fileobj)


def _ending(returncode: int) -> str:
    if returncode >= 0:
        return f"exit code {returncode}"
    known = {number.value: number.name for number in signal.Signals}
    return known.get(-returncode, f"signal {-returncode}")


class Pace:
    """Notes when the epochs of a running script are reported.

    An epoch lasts as long as the reports are apart, and the rest of the script's
    time is its start. One report alone does not tell them apart, nor do reports that
    come together because the script has kept them back.

    Examples
    --------
    >>> times = iter([0.0, 31.0, 32.0, 33.0, 33.0])
    >>> pace = Pace(lambda: next(times))
    >>> for _ in range(3):
    ...     pace.reported()
    >>> pace.startup()
    30.0
    """

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
        return (
            max(0.0, took - self._n_reports * epoch) if epoch > POLL_EVERY else math.nan
        )
