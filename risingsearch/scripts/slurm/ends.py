"""Classify Slurm job states: machine failure (submit again) or script failure (charge).

A job that ends before it begins is a failure of the setup: after a few, the search
stops.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from risingsearch.errors import ScriptError, SetupError

OF_THE_MACHINE = {
    "BOOT_FAIL": "its node has not started",
    "CANCELLED": "it was cancelled",
    "DEADLINE": "its deadline was over",
    "NODE_FAIL": "its node has failed",
    "PREEMPTED": "it was preempted",
    "REVOKED": "another cluster has taken it",
}
OF_THE_SCRIPT = {
    "COMPLETED": "it has left no result",
    "FAILED": "it was killed",
    "OUT_OF_MEMORY": "it needed more memory than launcher asks for",
    "TIMEOUT": "it ran past its time limit: raise the time of launcher, or lower slice",
}
HELD = "HELD"
"""State of a job that Slurm holds because its node has not started it."""
NOT_STARTED = "launch failed requeued held"
"""The reason that Slurm gives for that; such a job would never run."""
FORGOTTEN = "FORGOTTEN"
"""State of a job that Slurm does not list."""
MOST_STARTS = 3
"""Jobs of one slice that may end before they begin, one after the other."""


class JobEnd(NamedTuple):
    """How a job has ended that has left no epochs."""

    state: str
    reason: str
    job_id: str
    seconds: float  # that it has run
    has_begun: bool
    log: Path
    was_told: bool = False  # to end, by a signal

    @property
    def is_over(self) -> bool:
        """Whether a job in this state is neither running nor pending."""
        over = OF_THE_MACHINE.keys() | OF_THE_SCRIPT.keys() | {HELD}
        return self.state in over

    @property
    def is_of_the_machine(self) -> bool:
        """Whether the machine has ended it: the slice is submitted again."""
        if self.state == "FAILED":  # so Slurm may call a job that it starts again
            return self.was_told
        return self.state == FORGOTTEN or self.state in OF_THE_MACHINE

    @property
    def is_of_the_start(self) -> bool:
        """Whether the job has ended before its script began."""
        return not self.is_of_the_machine and (self.state == HELD or not self.has_begun)

    @property
    def is_of_its_own(self) -> bool:
        """Whether its script alone has ended the job, as far as Slurm knows."""
        return self.state in ("COMPLETED", "FAILED", FORGOTTEN)

    @property
    def message(self) -> str:
        """One sentence that describes the end."""
        if self.state == FORGOTTEN:
            return "Slurm knows no job of it, and it has left no result"
        if self.state == HELD:
            return f"job {self.job_id} is held, because its node has not started it"
        words = OF_THE_MACHINE.get(self.state) or OF_THE_SCRIPT[self.state]
        return f"job {self.job_id} has ended as {self._how}: {words}"

    @property
    def _how(self) -> str:
        """The state, with Slurm's reason if there is one."""
        told = self.reason not in ("", "None")
        return f"{self.state} ({self.reason})" if told else self.state

    def failure(self, n_starts: int) -> ScriptError | SetupError | None:
        """Return the failure that this end means; None if the slice runs again.

        ``n_starts`` is how many jobs of the slice have now ended before they began.
        """
        if self.is_of_the_machine:
            return None
        if not self.is_of_the_start:
            said = _last_line(self.log)
            return ScriptError(self.message + (f"; it said {said!r}" if said else ""))
        if n_starts < MOST_STARTS:
            return None
        said = _last_line(self.log)
        return SetupError(
            f"job {self.job_id} has ended as {self._how} before it "
            f"began, as {n_starts - 1} others did; it said {said!r}: see that its node "
            "has this Python and the run directory, and resume"
        )


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")
