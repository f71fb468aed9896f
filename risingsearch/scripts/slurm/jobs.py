"""Submit the slices of a sweep to Slurm, and wait for their jobs."""

import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from risingsearch.errors import ScriptError, SetupError
from risingsearch.scripts.slurm import clients
from risingsearch.scripts.slurm.clients import Element, Listed, NoAnswerError
from risingsearch.scripts.slurm.slices import (
    LONGEST_NOTE,
    NOTE,
    SliceOutcome,
    SlurmSlice,
    SubmittedSlice,
    claimed,
    made_slice,
)

ASK_EVERY = 5.0  # seconds from one question to Slurm to the next, at least
LOOK_EVERY = 0.2  # seconds from one look at the folder of a job to the next, at least
MOST_LOOKS = 200.0  # looks at folders in a second, of all workers together
OFTEN_UNKNOWN = 2  # answers in a row without a job, after which it counts as forgotten
LAGGING = 60.0
"""Seconds after the end of a successful job for which a slow file system may not show
its outcome yet."""
MOST_STARTS = 3  # jobs of one slice that may end before they begin, one after the other
HELD = "HELD"
FORGOTTEN = "FORGOTTEN"
"""States of a job that Slurm holds, or does not list."""
USUAL = {"None", "Priority", "Resources", "BeginTime", "Prolog", "Cleaning"}
"""Reasons of a job to wait that pass by themselves."""
OF_THE_MACHINE = {
    "BOOT_FAIL": "its node has not started",
    "CANCELLED": "it was cancelled",
    "DEADLINE": "its deadline was over",
    "NODE_FAIL": "its node has failed",
    "PREEMPTED": "it was preempted",
    "REVOKED": "another cluster has taken it",
    FORGOTTEN: "Slurm does not know it, and it has left no result",
}
OF_THE_SCRIPT = {
    "COMPLETED": "it has left no result",
    "FAILED": "it was killed",
    "OUT_OF_MEMORY": "it needed more memory than launcher asks for",
    "TIMEOUT": "it ran past its time limit: raise the time of launcher, or lower "
    "epochs_per_job",
    HELD: "its node has not started it",
}
WORDS = OF_THE_MACHINE | OF_THE_SCRIPT


class JobEnd(NamedTuple):
    """How a job has ended that has left no epochs."""

    state: str
    reason: str
    job_id: str
    seconds: float  # that it has run
    submitted: SubmittedSlice

    @property
    def is_of_the_machine(self) -> bool:
        """Whether the machine has ended it: the slice is submitted again."""
        if self.state == "FAILED":  # so Slurm may call a job that it starts again
            return "signalled_to_end" in self.submitted.noted
        return self.state in OF_THE_MACHINE

    @property
    def is_of_the_start(self) -> bool:
        """Whether the job has ended before its script began."""
        begun = self.state != HELD and self.submitted.stage != "waiting"
        return not self.is_of_the_machine and not begun

    @property
    def message(self) -> str:
        """One sentence that describes the end."""
        has_reason = self.reason not in ("", "None")
        how = f"{self.state} ({self.reason})" if has_reason else self.state
        return f"job {self.job_id} has ended as {how}: {WORDS[self.state]}"

    def failure(self, n_starts: int) -> ScriptError | SetupError | None:
        """Return the failure that the ``n_starts``-th end before a start means."""
        if self.is_of_the_machine:
            return None
        last_line = _last_line(self.submitted.log)
        message = self.message + (f"; it said {last_line!r}" if last_line else "")
        if not self.is_of_the_start:
            return ScriptError(message)
        if n_starts < MOST_STARTS:
            return None
        return SetupError(
            f"{message}; this was before it began, as with {n_starts - 1} others: see "
            "that its node has this Python and the run directory, and resume"
        )


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")


@dataclass
class _Awaited:
    """A submitted slice that a worker waits for."""

    submitted: SubmittedSlice
    job_id: str = ""  # unknown if the answer to the submission is lost
    n_unknown: int = 0  # of the last answers
    compared_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None


class SlurmJobs:
    """The jobs of a sweep in Slurm; ``home`` is the folder of their slices."""

    def __init__(
        self, home: Path, facts: Mapping[str, object], arguments: Sequence[str]
    ) -> None:
        self.home = home
        self._facts = facts
        self._arguments = list(arguments)
        self._out: dict[SubmittedSlice, _Awaited] = {}
        self._submitting = threading.Lock()
        self._closed = threading.Event()
        self._asking = threading.Lock()
        self._asked_at = -ASK_EVERY
        self._listed: tuple[float, Listed] = (0.0, {})  # when it was asked
        self._silent = False
        self._warned_of: set[str] = set()  # reasons that were warned of
        self.note = ""  # why Slurm keeps jobs waiting

    def run(self, part: SlurmSlice) -> tuple[SubmittedSlice, SliceOutcome | JobEnd]:
        """Submit a slice, unless that was done before; return how it has ended."""
        with self._submitting:
            if self._closed.is_set():
                raise _closed()
            left = claimed(self.home, part)
            awaited = self._submit(part) if left is None else _Awaited(left)
            self._out[awaited.submitted] = awaited
        while (end := self._end_of(awaited)) is None:
            if self._closed.wait(max(LOOK_EVERY, len(self._out) / MOST_LOOKS)):
                raise _closed()
        self._out.pop(awaited.submitted, None)
        return awaited.submitted, end

    def close(self) -> None:
        """Stop waiting: cancel pending jobs; the others are for the next process."""
        with self._submitting:
            self._closed.set()
        out = list(self._out.values())
        self._out.clear()
        self._set_note("")
        _cancel_waiting([each.job_id for each in out if each.job_id])
        _leave_running(out)

    def _submit(self, part: SlurmSlice) -> _Awaited:
        """Submit a slice; even if the answer is lost, Slurm has the name of its job."""
        submitted = made_slice(self.home, self._facts, part)
        command = [sys.executable, "-P", "-m", "risingsearch.scripts.slurm.job"]
        log = str(submitted.log).replace("%", "%%")  # as sbatch reads it
        job_id = ""
        try:
            job_id = clients.submit(
                [
                    f"--job-name={submitted.folder.name}",
                    f"--chdir={self._facts['cwd']}",
                    f"--output={log}",
                    "--open-mode=append",
                    *self._arguments,
                ],
                [*command, str(submitted.folder)],
            )
        except NoAnswerError as error:
            self._note_silence(error)
        except SetupError:
            submitted.close()  # Slurm has not taken it
            raise
        return _Awaited(submitted, job_id)

    def _end_of(self, awaited: _Awaited) -> SliceOutcome | JobEnd | None:
        """Return the outcome of a slice, or how its job has ended; None: not yet."""
        outcome = awaited.submitted.outcome
        if outcome is not None and outcome.error is None:
            return outcome
        asked_at, listed = self._ask()
        if asked_at <= awaited.compared_at:
            return None
        awaited.compared_at = asked_at
        # A script that is killed along with its job looks like a failure.
        end = self._end_in(listed, awaited)
        own_ends = ("COMPLETED", "FAILED", FORGOTTEN)
        if end is not None and outcome is not None and end.state in own_ends:
            return outcome
        is_late = time.monotonic() - (awaited.ended_at or 0.0) > LAGGING
        return end if end is None or end.state != "COMPLETED" or is_late else None

    def _end_in(self, listed: Listed, awaited: _Awaited) -> JobEnd | None:
        """Return how a job has ended; None if it may still run."""
        submitted = awaited.submitted
        element: Element | None = listed.get(submitted.folder.name)
        if element is None:
            awaited.n_unknown += 1
            if awaited.n_unknown < OFTEN_UNKNOWN:
                return None
            return JobEnd(FORGOTTEN, "", awaited.job_id, 0.0, submitted)
        awaited.n_unknown = 0
        awaited.job_id, state, seconds, reason = element
        if element.is_held:
            state = HELD
            clients.cancel(awaited.job_id)
        if state not in WORDS:
            return None
        awaited.ended_at = awaited.ended_at or time.monotonic()
        return JobEnd(state, reason, awaited.job_id, seconds, submitted)

    def _ask(self) -> tuple[float, Listed]:
        """Return the last list of all jobs of Slurm, and when it was asked for."""
        if self._asking.acquire(blocking=False):
            try:
                now = time.monotonic()
                if now >= self._asked_at + ASK_EVERY:
                    self._asked_at = now
                    self._listed = (now, clients.listed())
                    self._silent = False
                    self._warn_of_reasons(self._listed[1])
            except NoAnswerError as error:
                self._note_silence(error)  # results are looked for all the same
            finally:
                self._asking.release()
        return self._listed

    def _warn_of_reasons(self, listed: Listed) -> None:
        elements = (listed.get(each.folder.name) for each in list(self._out))
        pending = [
            element
            for element in elements
            if element is not None and element.is_waiting
        ]
        counts = Counter(element.reason for element in pending)
        parts = [f"{n} waiting in Slurm ({reason})" for reason, n in counts.items()]
        for reason in {*counts} - USUAL - self._warned_of:
            job = next(each.job_id for each in pending if each.reason == reason)
            msg = (
                f"Slurm keeps job {job} waiting ({reason}), maybe for ever: see "
                f"scontrol show job {job}, and change what launcher asks for"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
        self._warned_of |= {*counts}
        self._set_note(", ".join(parts))

    def _set_note(self, note: str) -> None:
        """Keep a note for the progress line, and in a file for other processes."""
        if note == self.note:
            return
        self.note = note[:LONGEST_NOTE]
        with suppress(OSError):  # it only informs
            if note:
                (self.home / NOTE).write_text(self.note)
            else:
                (self.home / NOTE).unlink()

    def _note_silence(self, error: NoAnswerError) -> None:
        self._set_note(f"Slurm does not answer ({error})")
        if not self._silent:
            msg = f"Slurm's controller does not answer ({error}): the search waits"
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
        self._silent = True


def _cancel_waiting(jobs: Sequence[str]) -> None:
    try:
        if jobs:
            clients.cancel("--state=PENDING", *jobs)
    except (NoAnswerError, SetupError) as error:
        msg = f"waiting jobs are not cancelled, and will end as they start: {error}"
        warnings.warn(msg, stacklevel=2)


def _leave_running(out: Iterable[_Awaited]) -> None:
    """Name the jobs that still run, and close the slices that have not begun."""
    running = []
    for each in out:
        try:
            stage = each.submitted.stage
        except SetupError:  # its file is damaged, which is why the search ends
            stage = "training"
        if stage == "waiting":
            each.submitted.close()
        elif stage == "training" and each.job_id:
            running.append(each.job_id)
    if running:
        print(
            "risingsearch: jobs of Slurm that have begun are recorded by the next run; "
            f"to end them as well: scancel {' '.join(sorted(running))}",
            file=sys.stderr,
        )


def _closed() -> SetupError:
    return SetupError("the sweep has ended while a job of Slurm was waited for")
