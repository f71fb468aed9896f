"""Call sbatch, squeue and scancel, without a shell."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from risingsearch.errors import SetupError

LONGEST = 120.0
"""Seconds that a command may take, retries of the commands themselves included."""
LONGEST_MESSAGE = 500  # characters
UNREACHABLE = (
    "connect",
    "contact",
    "receive failure",
    "send failure",
    "standby",
    "temporarily",
    "timed out",
    "zero bytes",
)
"""Words in the messages of commands whose controller has not answered."""
_FORM = "%j|%K|%i|%T|%M|%r"
_SUBMITTED = re.compile(r"^(\d+)(?:;.*)?$", re.ASCII | re.MULTILINE)
_MISLEADING = re.compile("SQUEUE_|SCANCEL_|SBATCH_(ARRAY_INX|WAIT)$")
"""Variables that would have the commands list, cancel or start other jobs."""


class NoAnswerError(Exception):
    """The controller has not answered: the request may have been executed, or not."""


class Element(NamedTuple):
    """A job, or an element of an array of jobs."""

    job_id: str  # as scancel takes it
    state: str
    seconds: float  # that it has run, the last time
    reason: str


Listed = dict[tuple[str, int], Element]
"""By the name of the job and the number of the element."""


def submit(script: Path, arguments: Sequence[str], command: Sequence[str]) -> str:
    """Submit a batch script, which gets the command; return the number of the job."""
    answer = _called("sbatch", "--parsable", *arguments, str(script), *command)
    numbers = _SUBMITTED.findall(answer)  # a site may greet before that
    if not numbers:
        said = " ".join(answer.split())[:LONGEST_MESSAGE]
        msg = (
            f"sbatch answers {said!r} in place of the number of a job: leave out the "
            "option of launcher that makes it, and run the sweep again"
        )
        raise SetupError(msg)
    return str(numbers[-1])


def listed() -> Listed:
    """List all jobs of this user that Slurm knows, ended ones too, in one call."""
    user = f"--user={os.getuid()}"
    lines = _called(
        "squeue", "--noheader", "--array", "--states=all", user, f"--format={_FORM}"
    )
    found: Listed = {}
    for line in lines.split("\n"):
        if line.count("|") < _FORM.count("|"):
            continue  # a part of the name of another's job, which may be any text
        name, number, job_id, state, used, reason = line.split("|", 5)
        key = name, int(number) if number.isdigit() else 0
        found[key] = Element(job_id, state, seconds_of(used), reason)
    return found


def seconds_of(used: str) -> float:
    """Seconds in a duration as Slurm writes it: days, hours, minutes and seconds.

    >>> seconds_of("0:07"), seconds_of("1-02:00:00"), seconds_of("INVALID")
    (7.0, 93600.0, 0.0)
    """
    days, _, rest = used.rpartition("-")
    try:
        total = 0
        for part in rest.split(":"):
            total = 60 * total + int(part)
        return float(86_400 * int(days or 0) + total)
    except ValueError:
        return 0.0


def cancel(*arguments: str) -> None:
    """Cancel jobs of this user."""
    _called("scancel", "--quiet", f"--user={os.getuid()}", *arguments)


def _called(program: str, *arguments: str) -> str:
    """Run a command and return its output.

    Raises
    ------
    NoAnswerError
        If the controller has not answered.
    SetupError
        If it refuses, or there is no such program.
    """
    try:
        done = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            env={k: v for k, v in os.environ.items() if not _MISLEADING.match(k)},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST,
            check=False,
        )
    except FileNotFoundError:
        msg = (
            f"launcher is slurm, and there is no {program} here: run it where Slurm's "
            "commands are, or with launcher: local"
        )
        raise SetupError(msg) from None
    except OSError as error:
        msg = (
            f"{program} cannot be started ({error.strerror}): mend that, or take "
            "launcher: local, and run the sweep again"
        )
        raise SetupError(msg) from error
    except subprocess.TimeoutExpired as error:
        msg = f"{program} has not answered for {LONGEST:g} seconds"
        raise NoAnswerError(msg) from error
    if done.returncode == 0:
        return done.stdout
    said = " ".join(done.stderr.split())
    if _is_silence(said, arguments):
        raise NoAnswerError(said)
    reason = said[:LONGEST_MESSAGE] or f"exit code {done.returncode}"
    msg = (
        f"{program} refuses ({reason}): change what launcher asks for, "
        "or workers, or take launcher: local, and run the sweep again"
    )
    raise SetupError(msg)


def _is_silence(said: str, arguments: Sequence[str]) -> bool:
    """Whether a message says that the controller was not reached.

    >>> _is_silence("Unable to contact slurm controller", ["--partition=gpu"])
    True
    >>> _is_silence("invalid partition specified: standby", ["--partition=standby"])
    False
    """
    for argument in arguments:
        given = argument.rpartition("=")[2]
        said = re.sub(rf"(?<!\w){re.escape(given)}(?!\w)", "", said) if given else said
    return any(word in said.lower() for word in UNREACHABLE)
