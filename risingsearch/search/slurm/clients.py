"""Call sbatch, squeue and scancel, without a shell."""

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from risingsearch.errors import SetupError

LONGEST = 120.0
"""Seconds that a command may take, retries of the commands themselves included."""
LONGEST_MESSAGE = 500  # characters
UNREACHABLE = re.compile(
    "connect|contact|receive failure|send failure|standby|temporarily|timed out|"
    "zero bytes",
    re.IGNORECASE,
)
"""Words in the messages of commands whose controller has not answered."""
_FORM = "%j|%i|%T|%M|%r"
_UNITS = (1, 60, 3_600, 86_400)  # seconds of each
_SUBMITTED = re.compile(r"^(\d+)(?:;.*)?$", re.ASCII | re.MULTILINE)
_MISLEADING = re.compile("SQUEUE_|SCANCEL_|SBATCH_(ARRAY_INX|WAIT)$")
"""Variables that would have the commands list, cancel or start other jobs."""


class NoAnswerError(Exception):
    """The controller has not answered: the request may have been executed, or not."""


class Element(NamedTuple):
    """A job in the list of Slurm."""

    job_id: str
    state: str
    seconds: float  # that it has run, the last time
    reason: str

    @property
    def is_held(self) -> bool:
        """Whether Slurm holds a job that would never run."""
        return self.reason.replace("_", " ") == "launch failed requeued held"

    @property
    def is_waiting(self) -> bool:
        """Whether the job waits to begin."""
        return self.state == "PENDING" and not self.is_held


Listed = dict[str, Element]  # by the name of the job


def check_commands() -> None:
    """Raise a SetupError if Slurm's commands are missing here, or not configured."""
    with suppress(NoAnswerError):  # the search waits for the controller
        _called("sbatch", "--version")
        listed()


def submit(arguments: Sequence[str], command: Sequence[str]) -> str:
    """Submit a job that runs a command; return the number of the job."""
    wrap = f"--wrap=exec {shlex.join(command)}"
    answer = _called("sbatch", "--parsable", *arguments, wrap)
    numbers = _SUBMITTED.findall(answer)  # a site may greet before that
    if not numbers:
        text = " ".join(answer.split())[:LONGEST_MESSAGE]
        raise SetupError(
            f"sbatch answers {text!r} in place of the number of a job: leave out the "
            "option of launcher that makes it, and run the sweep again"
        )
    return numbers[-1]  # type: ignore[no-any-return]


def listed() -> Listed:
    """List all jobs of this user that Slurm knows, ended ones too, in one call."""
    user = f"--user={os.getuid()}"
    lines = _called("squeue", "--noheader", "--states=all", user, f"--format={_FORM}")
    elements: Listed = {}
    for line in lines.split("\n"):
        fields = line.split("|", _FORM.count("|"))
        if len(fields) > _FORM.count("|"):  # names of other jobs may be any text
            name, job_id, state, used, reason = fields
            elements[name] = Element(job_id, state, seconds_of(used), reason)
    return elements


def seconds_of(used: str) -> float:
    """Seconds in a duration as Slurm writes it, such as ``1-02:00:00``."""
    numbers = reversed(re.findall(r"\d+", used))
    return sum(float(n) * unit for n, unit in zip(numbers, _UNITS, strict=False))


def cancel(*arguments: str) -> None:
    """Cancel jobs of this user."""
    _called("scancel", "--quiet", f"--user={os.getuid()}", *arguments)


def _called(program: str, *arguments: str) -> str:
    """Output of a command; a NoAnswerError if the controller has not answered."""
    try:
        process = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONGEST,
            env={k: v for k, v in os.environ.items() if not _MISLEADING.match(k)},
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise NoAnswerError(
            f"{program} has not answered for {LONGEST:g} seconds"
        ) from error
    except OSError as error:
        raise SetupError(
            f"{program} cannot be started here ({error.strerror}): run the sweep where "
            "Slurm's commands are, or with launcher: local"
        ) from error
    if process.returncode == 0:
        return process.stdout
    text = " ".join(process.stderr.split())
    if _is_silence(text, arguments):
        raise NoAnswerError(text)
    reason = text[:LONGEST_MESSAGE] or f"exit code {process.returncode}"
    raise SetupError(
        f"{program} refuses ({reason}): change what launcher asks for, "
        "or workers, or take launcher: local, and run the sweep again"
    )


def _is_silence(text: str, arguments: Sequence[str]) -> bool:
    """Whether a message, apart from the request, says that it was not reached."""
    for argument in arguments:
        value = argument.rpartition("=")[2]
        if value:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "", text)
    return UNREACHABLE.search(text) is not None
