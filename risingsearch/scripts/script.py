"""A running script: started so that nothing of it outlives its job."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from risingsearch.errors import missing
from risingsearch.scripts.processes import (
    PATIENCE,
    POLL_EVERY,
    Marker,
    end,
    end_all,
    family,
    not_ended,
)

try:
    import psutil
except ModuleNotFoundError as error:
    raise missing("psutil", "cli") from error


class Script:
    """A command that runs, without a shell, and all that it starts."""

    def __init__(
        self,
        command: Sequence[str],
        home: Path,
        variables: Mapping[str, str],
        cwd: Path | str | None = None,
    ) -> None:
        self._marker = Marker(home)
        self._lock = threading.Lock()
        self._has_ended = False
        try:
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | variables | self._marker.variables,
                cwd=cwd,
                start_new_session=True,
            )
        except BaseException:
            self._marker.remove()
            raise
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.stdout, self.stderr = self._process.stdout, self._process.stderr

    @property
    def is_running(self) -> bool:
        """Whether the command itself has not ended."""
        with self._lock:
            return self._process.returncode is None and self._is_alive()

    def wait(self, timeout: float) -> None:
        """Wait so many seconds at most while the command runs."""
        deadline = time.monotonic() + timeout
        while self.is_running and time.monotonic() < deadline:
            time.sleep(POLL_EVERY)

    def pause(self) -> None:
        """Stop the command and its children, except those in sessions of their own."""
        self._signal_group(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the command and its children."""
        self._signal_group(signal.SIGCONT)

    @property
    def returncode(self) -> int:
        """How the command has ended, once ``end`` has returned."""
        return int(self._process.returncode)

    def end(self) -> None:
        """Terminate what still runs, and remove the marker; else it is a SetupError."""
        with self._lock:
            if self._has_ended:
                return
            if self._process.returncode is None and self._is_alive():
                end(family(self._process.pid))
            end_all(self._marker.token)
            if self._process.returncode is None:
                self._end_group()
            self._marker.remove()
            self._has_ended = True

    def _is_alive(self) -> bool:
        # It is not polled, which would give its number, and its group's, to others.
        return self._status() not in ("", psutil.STATUS_ZOMBIE)

    def _status(self) -> str:
        """Return the status of the command, "" if there is no such process any more."""
        with suppress(psutil.NoSuchProcess):
            return str(psutil.Process(self._process.pid).status())
        return ""

    def _signal_group(self, number: signal.Signals) -> None:
        with self._lock:
            if self._process.returncode is None and self._is_alive():
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)

    def _end_group(self) -> None:
        """Kill processes in the command's group without its token, and reap it."""
        if self._status():  # the number is still its own
            with suppress(ProcessLookupError, PermissionError):  # all are zombies
                os.killpg(self._process.pid, signal.SIGKILL)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise not_ended([self._process.pid]) from None
