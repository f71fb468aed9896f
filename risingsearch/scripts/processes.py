"""All processes that a job has started, wherever they have gone.

A job has a token, a random word that stands in the environment of its script. Its
children inherit it, also those in other sessions and those whose parents have ended.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from risingsearch.errors import SetupError, missing

try:
    import psutil
except ModuleNotFoundError as error:
    raise missing("psutil", "cli") from error

TOKENS = "RISINGSEARCH_TOKENS"
"""Variable with the token of a job, after those of the sweeps that it runs inside."""
PATIENCE = 10.0
"""Seconds in which a process that was killed has to be gone."""
UNSURE = 1.0
"""Seconds for which a process may show no environment because it starts a program."""
POLL_EVERY = 0.005
ENV_START = 47
"""Where its environment starts, and in the next field ends, in /proc/PID/stat."""


def new_token() -> str:
    """Return a token that no other job has."""
    return secrets.token_hex(16)


def own_tokens() -> list[str]:
    """Return the tokens that this process carries: it may be part of a job itself."""
    return os.environ.get(TOKENS, "").split()


def variables_with(token: str) -> dict[str, str]:
    """Return the variables that make a process, and its children, carry a token."""
    return {TOKENS: " ".join([*own_tokens(), token])}


def end_all(token: str) -> None:
    """Terminate all processes that carry a token.

    They are looked for until none is found, because one may start another meanwhile. A
    ``SetupError`` says which ones are still there after ``PATIENCE`` seconds.
    """
    deadline = time.monotonic() + PATIENCE
    while found := list(_carriers(token)):
        end(found, deadline)


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
        running = process.is_running()
        return bool(running and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def family(pid: int) -> list[psutil.Process]:
    """Return a process and its descendants, in other sessions too."""
    with suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    return []


def variable_of(process: psutil.Process, name: str) -> str:
    """Return a variable of a process's environment; "" where it cannot be read."""
    try:
        return str(process.environ().get(name, ""))
    except psutil.Error:
        return ""


def _carriers(token: str) -> Iterator[psutil.Process]:
    """Yield the processes that carry a token."""
    deadline = time.monotonic() + UNSURE
    for pid in psutil.pids():
        if token in _tokens(pid, deadline):
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)  # from here on it is this one or none
                if token in _tokens(pid, deadline) and is_alive(process):
                    yield process


def _tokens(pid: int, deadline: float) -> list[str]:
    """Return the tokens of a process, once it shows them or that it has none."""
    while (environment := _environment(pid)) is None:
        if time.monotonic() > deadline:
            return []
        time.sleep(POLL_EVERY)
    name = f"{TOKENS}=".encode()
    for variable in environment.split(b"\0"):
        if variable.startswith(name):
            return variable.removeprefix(name).decode(errors="replace").split()
    return []


def _environment(pid: int) -> bytes | None:
    """Return the environment of a process; b"" if it cannot be read.

    None stands for one that shows none yet: it is about to run a program. A chain of
    programs may show none at several looks in a row.
    """
    if not sys.platform.startswith("linux"):
        with suppress(psutil.Error):
            return f"{TOKENS}={variable_of(psutil.Process(pid), TOKENS)}".encode()
        return b""
    try:  # psutil takes five times as long
        if environment := _content(f"/proc/{pid}/environ"):
            return environment
        fields = _content(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        start, end = map(int, fields[ENV_START : ENV_START + 2])
        if start == end > 0 and fields[0] not in b"RD":
            return b""  # it has none, and is not about to be given one
        os.readlink(f"/proc/{pid}/exe")  # zombies and the system's threads have none
    except OSError:
        return b""
    return None


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
