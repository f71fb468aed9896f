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
from typing import IO, Any, NamedTuple

from risingsearch.errors import ScriptError, missing

try:
    import psutil
except ModuleNotFoundError as error:
    raise missing("psutil", "cli") from error

POLL_EVERY = 0.05
"""Seconds to wait for a line before checking whether the script still runs."""
LINGER = 1.0
"""Seconds to wait for a script's last lines and for its child processes to end."""
LONGEST = 1 << 20  # characters of a line, before it is cut
SHOWN = 200  # characters of a line in a message


class ReportFile:
    """Lines that are added to a file while a script runs; it may appear later.

    What the file holds before the script starts is of its earlier epochs.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = path.stat().st_size if path.exists() else 0

    def new_lines(self, *, all_of_it: bool = False) -> list[str]:
        """Return the lines since the last call; ``all_of_it``: a partial one too."""
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._at:
                    msg = (
                        f"the script has begun {self._path.name} from scratch: it must "
                        "append its reports to the file in its checkpoint directory"
                    )
                    raise ScriptError(msg)
                file.seek(self._at)
                added = file.read()
        except FileNotFoundError:
            return []
        if not all_of_it:
            added = added[: added.rfind(b"\n") + 1]
        self._at += len(added)
        text = added.decode(errors="replace").removesuffix("\n")
        return text.split("\n") if added else []


def reports(
    process: subprocess.Popen[str],
    metric: str,
    *,
    timeout: float | None,
    log: IO[str],
    file: ReportFile | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the epochs that a process reports, from its output or from a file.

    All that it prints goes to the log. A process that ends with an error, reports what
    is no JSON, or reports no epoch for ``timeout`` seconds raises a ``ScriptError``.
    """
    output = _Output(process)
    reported = time.monotonic()
    last = {True: "", False: ""}
    is_over = False
    while not is_over:
        line = output.next_line()
        is_over = output.is_over
        if line is not None:
            log.write(line.text)
            log.flush()
            last[line.may_report] = line.text.strip() or last[line.may_report]
        if file is not None:
            told = file.new_lines(all_of_it=is_over)
        else:
            told = [line.text] if line is not None and line.may_report else []
        for text in told:
            if record := _report(text, metric):
                yield record
                reported = time.monotonic()
        running = process.returncode is None
        if running and timeout is not None and time.monotonic() > reported + timeout:
            msg = f"the script has reported no epoch for {timeout:g} seconds"
            raise ScriptError(msg)
    if process.returncode != 0:
        code = process.returncode
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        said = (last[False] or last[True])[:SHOWN]
        msg = f"the script ended with {how}; its last line: {said!r}"
        raise ScriptError(msg)


def kill(process: subprocess.Popen[str]) -> None:
    """Terminate a process and its child processes."""
    if process.returncode is None:
        end_tree(process.pid)
    with suppress(ProcessLookupError):  # child processes that outlive it
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def end_tree(pid: int) -> None:
    """Terminate a process and its descendants, in other sessions too."""
    with suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        others = top.children(recursive=True)
        for each in [top, *others]:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(others, timeout=LINGER)


class _Line(NamedTuple):
    text: str
    may_report: bool  # else it is a message on standard error


class _Output:
    """What a script prints, until it has ended and its last line has been read."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: queue.SimpleQueue[_Line | None] = queue.SimpleQueue()
        self._n_open = 0
        self._due = math.inf
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                self._n_open += 1
                may_report = stream is process.stdout
                threading.Thread(
                    target=self._read, args=(stream, may_report), daemon=True
                ).start()

    @property
    def is_over(self) -> bool:
        """Whether the script has ended and no line is outstanding."""
        if self._process.returncode is None:
            return False
        return self._n_open == 0 or time.monotonic() >= self._due

    def next_line(self) -> _Line | None:
        """Return the next line, None if there is none yet."""
        try:
            line = self._lines.get(timeout=POLL_EVERY)
        except queue.Empty:
            line = None
        else:
            self._n_open -= line is None
        if line is None and self._process.poll() is not None and self._due == math.inf:
            kill(self._process)  # child processes may keep its output open
            self._due = time.monotonic() + LINGER
        return line

    def _read(self, stream: IO[str], may_report: bool) -> None:
        with stream:
            while line := stream.readline(LONGEST):
                self._lines.put(_Line(line, may_report))
        self._lines.put(None)


def _report(line: str, metric: str) -> dict[str, Any] | None:
    """Return the report in a line, None if it holds none."""
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
