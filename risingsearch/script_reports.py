"""What a running script reports: lines of JSON, on standard output or in a file."""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from risingsearch.errors import ScriptError

LOOK_EVERY = 0.05
"""Seconds between two looks at a silent script."""
LINGER = 1.0
"""Seconds for the last lines, where something else holds the script's output open."""
SHOWN = 200  # characters of a line in a message


class ReportFile:
    """Lines that are added to a file while a script runs.

    What is there before the script starts is of its earlier epochs. A file that gets
    shorter has been begun anew.

    Parameters
    ----------
    path : Path
        It may appear later.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = path.stat().st_size if path.exists() else 0

    def new_lines(self, *, all_of_it: bool = False) -> list[str]:
        """Return the lines since the last time; ``all_of_it``: also an unended one."""
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._at:
                    self._at = 0
                file.seek(self._at)
                added = file.read()
        except FileNotFoundError:
            return []
        if not all_of_it:
            added = added[: added.rfind(b"\n") + 1]
        self._at += len(added)
        return added.decode(errors="replace").splitlines()


def reports(
    process: subprocess.Popen[str],
    metric: str,
    *,
    timeout: float | None,
    log: IO[str],
    file: ReportFile | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield what a process reports, from its lines or from those of a file.

    All that it prints goes to the log.

    Raises
    ------
    ScriptError
        If it ends with an error, reports what is no JSON, or no epoch for ``timeout``
        seconds.
    """
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    assert process.stdout is not None
    reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
    reader.start()
    patience = _Patience(timeout)
    output = _Output(process)
    last = ""
    ended = False
    while not ended:
        line = _next(lines)
        if line is None:
            patience.wait_for(process)
        elif line:
            log.write(line)
            log.flush()
        elif process.poll() is not None:
            output.end()
        ended = line is None or output.is_over
        told = [line or ""] if file is None else file.new_lines(all_of_it=ended)
        records = [record for text in told if (record := _report(text, metric))]
        for record in records:
            yield record
            patience.renew()
        if line and (file is not None or not records):
            last = line.strip() or last
        if process.returncode is None:
            patience.check()
    code = process.returncode
    if code != 0:
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        msg = f"the script ended with {how}; its last line: {last[:SHOWN]!r}"
        raise ScriptError(msg)


class _Patience:
    """How long a script may report nothing."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = timeout
        self.renew()

    def renew(self) -> None:
        self._since = time.monotonic()

    @property
    def left(self) -> float | None:
        if self._timeout is None:
            return None
        return max(0.0, self._since + self._timeout - time.monotonic())

    def check(self) -> None:
        if self.left == 0.0:
            msg = f"the script has reported no epoch for {self._timeout:g} seconds"
            raise ScriptError(msg)

    def wait_for(self, process: subprocess.Popen[str]) -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(self.left)


class _Output:
    """The output of a script, which may be held open by what it has left running."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._due = math.inf

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._due

    def end(self) -> None:
        """Expect no more of it, now that the script has ended."""
        if self._due == math.inf:
            kill(self._process)
            self._due = time.monotonic() + LINGER


def kill(process: subprocess.Popen[str]) -> None:
    """End a process and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _report(line: str, metric: str) -> dict[str, Any] | None:
    """Return the report in a line, None where it is none."""
    text = line.strip()
    if not text.startswith("{"):
        return None
    try:
        record = json.loads(text)
    except ValueError as error:
        if f'"{metric}"' in text:
            msg = f"the script reports what is no JSON: {text[:SHOWN]!r}"
            raise ScriptError(msg) from error
        return None
    return record if metric in record else None


def _read(stream: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def _next(lines: queue.SimpleQueue[str | None]) -> str | None:
    """Return the next line, "" where none comes now, None after the last."""
    try:
        return lines.get(timeout=LOOK_EVERY)
    except queue.Empty:
        return ""
