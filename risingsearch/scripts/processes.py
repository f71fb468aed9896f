"""A running script, and all processes that it has started, wherever they have gone."""
# A job has a token, a random word in the environment of its script. Children inherit
# it, also those in other sessions and those whose parents have ended. A file in the
# folder of the arm, its marker, names it before the script starts: when a sweep is
# killed, the next one finds all that it has left.

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from risingsearch.errors import SetupError, needed
from risingsearch.storage.files import MAKE_ROOM, blaming_the_disk, open_regular_file

with needed("psutil", "cli"):
    import psutil

if os.name != "posix":
    raise SetupError(
        "searches over scripts need Linux or macOS, and this is Windows: run them in "
        "WSL, or search in Python with RisingSearch"
    )

TOKENS = "RISINGSEARCH_TOKENS"
"""Variable with the token of a job, after those of the sweeps that it runs inside."""
RUNNING = "running.json"
PATIENCE = 10.0  # seconds in which a process that was killed has to be gone
POLL_EVERY = 0.005
EXEC = 1.0  # seconds for which a process without an environment may be starting


class Marker:
    """The file that names the token of a job which is about to start."""

    def __init__(self, home: Path) -> None:
        self.path = home / RUNNING
        self.token = secrets.token_hex(16)
        with (
            blaming_the_disk(self.path, MAKE_ROOM),
            open(self.path, "x", opener=partial(os.open, mode=0o600)) as file,
        ):
            inode = os.fstat(file.fileno()).st_ino
            json.dump({"token": self.token, "inode": inode}, file)

    @property
    def variables(self) -> dict[str, str]:
        """Variables that make a process, and its children, carry the token."""
        return {TOKENS: " ".join([*os.environ.get(TOKENS, "").split(), self.token])}

    def remove(self) -> None:
        """Remove the file, once nothing of the job runs any more."""
        self.path.unlink(missing_ok=True)


def end_left_over(home: Path) -> None:
    """End processes of an arm that a killed sweep left running; remove its marker."""
    path = home / RUNNING
    try:
        with open_regular_file(path) as file:
            content = file.read()
            inode = os.fstat(file.fileno()).st_ino
        if content:  # else the sweep was killed before it had written it
            marked = json.loads(content)
            if marked["inode"] == inode:
                end_all(marked["token"])
        path.unlink()
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SetupError(
            f"{path} cannot be used ({error!r}): see that no script of this arm runs, "
            "remove the file, and resume"
        ) from error


def end_all(token: str) -> None:
    """Terminate all processes that carry a token, also new ones."""
    deadline = time.monotonic() + PATIENCE
    while carriers := list(_carriers(token)):
        end(carriers, deadline)


def end(processes: Iterable[psutil.Process], deadline: float | None = None) -> None:
    """Kill processes, none of them by its number alone, and wait for their end."""
    if deadline is None:
        deadline = time.monotonic() + PATIENCE
    left = list(processes)
    for process in left:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            process.kill()  # checks its start too
    while left := [process for process in left if is_alive(process)]:
        if time.monotonic() > deadline:
            raise not_ended([process.pid for process in left])
        time.sleep(POLL_EVERY)


def not_ended(pids: Iterable[int]) -> SetupError:
    """Return the error for processes that are there after they have been killed."""
    shown = ", ".join(map(str, pids))
    return SetupError(
        f"processes of a script cannot be ended ({shown}): end them, and resume"
    )


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process has not ended; a zombie has."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def family(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants, in other sessions too."""
    with suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    return []


def _carriers(token: str) -> Iterator[psutil.Process]:
    for pid in psutil.pids():
        if token in _tokens(pid):
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)  # from here on it is this one or none
                if token in _tokens(pid) and is_alive(process):
                    yield process


def _tokens(pid: int) -> list[str]:
    """Return the tokens of a process; none if its environment cannot be read."""
    if not sys.platform.startswith("linux"):
        with suppress(psutil.Error):
            return str(psutil.Process(pid).environ().get(TOKENS, "")).split()
        return []
    name = f"{TOKENS}=".encode()
    with suppress(OSError, psutil.NoSuchProcess):  # psutil takes five times as long
        variables = _environment(pid).split(b"\0")
        values = [
            each.removeprefix(name) for each in variables if each.startswith(name)
        ]
        return b" ".join(values).decode(errors="replace").split()
    return []


def _environment(pid: int) -> bytes:
    """Return the environment of a process, which exec leaves empty for a moment."""
    deadline = time.monotonic() + EXEC
    while not (environment := Path(f"/proc/{pid}/environ").read_bytes()):
        os.readlink(f"/proc/{pid}/exe")  # raises for what has ended or is the kernel's
        age = time.time() - psutil.Process(pid).create_time()
        if age > PATIENCE or time.monotonic() > deadline:
            break
        time.sleep(POLL_EVERY)
    return environment


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
        self.stdout = self._process.stdout
        self.stderr = self._process.stderr

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
        """Stop the command and its children, except those in other sessions."""
        self._signal_group(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the command and its children."""
        self._signal_group(signal.SIGCONT)

    @property
    def returncode(self) -> int:
        """How the command has ended, once ``end`` has returned."""
        return int(self._process.returncode)

    def end(self) -> None:
        """Terminate the processes, and remove the marker; else it is a SetupError."""
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
