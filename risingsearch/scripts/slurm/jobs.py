"""Submit the slices of a sweep to Slurm together, and watch all of them.

One thread does that for any number of workers. It looks at one file of the run
directory to see that some job has left an outcome, and asks Slurm itself at most every
five seconds, for all jobs at once.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from risingsearch.errors import SetupError
from risingsearch.scripts.slurm import clients
from risingsearch.scripts.slurm.batches import (
    SCRIPT,
    LeftOpen,
    SliceOutcome,
    SlurmSlice,
    SubmittedSlice,
    made_batch,
    rung_at,
)
from risingsearch.scripts.slurm.clients import Element, Listed, NoAnswerError
from risingsearch.scripts.slurm.ends import FORGOTTEN, HELD, NOT_STARTED, JobEnd

ASK_EVERY = 5.0
"""Seconds from one question to Slurm to the next, at least."""
LOOK_EVERY = 0.2
"""Seconds from one look at the run directory to the next."""
GATHERING = 0.05
"""Seconds in which slices come together that are submitted at once."""
MOST_AT_ONCE = 1000
"""Elements of an array of jobs: the default limit of Slurm."""
OFTEN_UNKNOWN = 2
"""Answers in a row without a job, after which it counts as forgotten."""
LAGGING = 60.0
"""Seconds after the end of a successful job for which a slow file system may not show
its outcome yet."""


@dataclass
class _Awaited:
    """A slice that a worker waits for."""

    part: SlurmSlice
    submitted: SubmittedSlice | None = None  # once its files are written
    job_id: str = ""  # until Slurm has taken it
    n_unknown: int = 0  # of the last answers
    ended_at: float | None = None
    has_ended: threading.Event = field(default_factory=threading.Event)
    end: SliceOutcome | JobEnd | BaseException | None = None

    def over(self, end: SliceOutcome | JobEnd | BaseException) -> None:
        """Wake the worker that waits."""
        self.end = end
        self.has_ended.set()


class SlurmJobs:
    """The submitted slices, and those that an earlier process has left."""

    def __init__(
        self, home: Path, facts: Mapping[str, Any], arguments: Sequence[str]
    ) -> None:
        if "\\" in str(home):
            msg = (
                f"{home} has a backslash, which sbatch reads as a mark of its own: "
                "choose another run directory"
            )
            raise SetupError(msg)
        self._home = home
        self._facts = facts
        self._arguments = list(arguments)
        self.left = LeftOpen(home)
        self._awaited: list[_Awaited] = []
        self._lock = threading.Condition()
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._is_watching = False
        self._rung_at = 0
        self._asked_at = -ASK_EVERY
        self._silent = False

    def run(
        self, part: SlurmSlice
    ) -> tuple[SlurmSlice, SubmittedSlice, SliceOutcome | JobEnd]:
        """Wait for the job of a slice, and return its outcome or its end.

        It is submitted, unless an earlier process has done so; then the slice returned
        is the one that was submitted.
        """
        with self._lock:
            if self._is_closed:
                raise _closed()
            left = self.left.claim(part)
            awaited = _Awaited(part) if left is None else _Awaited(*left)
            self._awaited.append(awaited)
            if not self._is_watching:
                self._thread = threading.Thread(target=self._watch, daemon=True)
                self._thread.start()
                self._is_watching = True
            self._lock.notify_all()
        awaited.has_ended.wait()
        assert awaited.end is not None
        if isinstance(awaited.end, BaseException):
            raise awaited.end
        assert awaited.submitted is not None
        return awaited.part, awaited.submitted, awaited.end

    def close(self) -> None:
        """Stop waiting: cancel the jobs that are pending, and let the others run.

        Their outcomes are there for the next process.
        """
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join()
        self._let_go(_closed())

    def _let_go(self, error: BaseException) -> None:
        """Raise an error in all workers that wait, and leave running jobs alone."""
        with self._lock:
            awaited, self._awaited = self._awaited, []
            self._is_watching = False
        for each in awaited:
            each.over(error)
        if out := [each for each in awaited if each.submitted is not None]:
            _cancel_waiting(each.submitted.job_name for each in out if each.submitted)
            _leave_running(out)

    def _watch(self) -> None:
        try:
            while self._has_work():
                try:
                    self._look()
                except NoAnswerError as error:
                    self._note_silence(error)
        except (OSError, SetupError) as error:
            self._let_go(error)
        except BaseException as error:  # no configuration is to blame
            why = f"{type(error).__name__}: {error}"
            unwatched = SetupError(f"the jobs of Slurm cannot be watched ({why})")
            unwatched.__cause__ = error
            self._let_go(unwatched)

    def _look(self) -> None:
        self._submit_new()
        listed = self._ask()
        if listed is not None or self._has_rung():
            self._take_in()
        if listed is not None:
            self._silent = False
            self._compare(listed)

    def _has_work(self) -> bool:
        """Wait for the next look; return False when this is closed."""
        with self._lock:
            if not self._awaited:
                self._lock.wait_for(lambda: self._is_closed or self._awaited)
            else:
                self._lock.wait_for(lambda: self._is_closed or self._new(), LOOK_EVERY)
            if self._new():
                self._lock.wait_for(lambda: self._is_closed, GATHERING)
            return not self._is_closed

    def _new(self) -> list[_Awaited]:
        return [each for each in self._awaited if each.submitted is None]

    def _submit_new(self) -> None:
        with self._lock:
            new = self._new()
        for first in range(0, len(new), MOST_AT_ONCE):
            self._submit(new[first : first + MOST_AT_ONCE])

    def _submit(self, together: Sequence[_Awaited]) -> None:
        """Submit slices as one job, or as an array of jobs.

        Their files come first: even if the answer is lost, the name of their folder
        tells whether Slurm has the job.
        """
        parts = [each.part for each in together]
        submitted = made_batch(self._home, self._facts, parts)
        for each, files in zip(together, submitted, strict=True):
            each.submitted = files
        folder = submitted[0].folder
        command = [sys.executable, "-P", "-m", "risingsearch.scripts.slurm.job"]
        command.append(str(folder))
        several = ["--array", f"0-{len(parts) - 1}"]
        if len(parts) == 1:
            several = []
            command.append("0")
        try:
            job_id = clients.submit(
                folder / SCRIPT,
                [
                    f"--job-name={folder.name}",
                    f"--chdir={self._facts['cwd']}",
                    f"--output={_pattern(folder, '%a' if several else '0')}",
                    "--open-mode=append",
                    *several,
                    *self._arguments,
                ],
                command,
            )
        except NoAnswerError as error:
            self._note_silence(error)
            return
        except SetupError:
            for each in together:
                assert each.submitted is not None
                each.submitted.close()
                each.submitted = None  # Slurm has not taken it
            raise
        for number, each in enumerate(together):
            each.job_id = f"{job_id}_{number}" if several else job_id

    def _ask(self) -> Listed | None:
        """List all jobs of Slurm; None if it is not asked now, or does not answer."""
        if time.monotonic() < self._asked_at + ASK_EVERY:
            return None
        try:
            return clients.listed()
        except NoAnswerError as error:
            self._note_silence(error)  # results are looked for all the same
            return None
        finally:
            self._asked_at = time.monotonic()

    def _note_silence(self, error: NoAnswerError) -> None:
        if not self._silent:
            msg = f"Slurm's controller does not answer ({error}): the search waits"
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
        self._silent = True

    def _has_rung(self) -> bool:
        rung_at_now = rung_at(self._home)
        has_rung = rung_at_now != self._rung_at
        self._rung_at = rung_at_now
        return has_rung

    def _take_in(self) -> None:
        """End the slices that have trained well; about failures Slurm is asked."""

        def outcome_of(
            submitted: SubmittedSlice, each: _Awaited
        ) -> SliceOutcome | None:
            outcome = submitted.outcome
            return outcome if outcome and outcome.error is None else None

        self._end_those(outcome_of)

    def _compare(self, listed: Listed) -> None:
        """End the slices whose jobs are over without epochs.

        A script that is killed along with its job looks like a failure: the end of the
        job decides.
        """

        def end_of(
            submitted: SubmittedSlice, each: _Awaited
        ) -> SliceOutcome | JobEnd | None:
            outcome = submitted.outcome
            if outcome is not None and outcome.error is None:
                return outcome
            element = listed.get((submitted.job_name, submitted.number))
            end = self._end_of(submitted, each, element)
            if end is not None and outcome is not None and end.is_of_its_own:
                return outcome
            is_late = time.monotonic() - (each.ended_at or 0.0) > LAGGING
            return end if end is None or end.state != "COMPLETED" or is_late else None

        self._end_those(end_of)

    def _end_of(
        self, submitted: SubmittedSlice, each: _Awaited, element: Element | None
    ) -> JobEnd | None:
        """Return how a job has ended; None if it may still run."""
        has_begun = submitted.has_begun
        log = submitted.log
        if element is None:
            each.n_unknown += 1
            if each.n_unknown < OFTEN_UNKNOWN:
                return None
            return JobEnd(FORGOTTEN, "", each.job_id, 0.0, has_begun, log)
        each.n_unknown = 0
        job_id, state, seconds, reason = element
        each.job_id = job_id
        if reason.replace("_", " ") == NOT_STARTED:
            state = HELD
            clients.cancel(f"--jobname={submitted.job_name}", job_id)
        was_told = submitted.was_told
        end = JobEnd(state, reason, job_id, seconds, has_begun, log, was_told)
        if not end.is_over:
            return None
        each.ended_at = each.ended_at or time.monotonic()
        return end

    def _end_those(
        self, end_of: Callable[[SubmittedSlice, _Awaited], SliceOutcome | JobEnd | None]
    ) -> None:
        """Wake the workers whose slices have ended."""
        with self._lock:
            out = [each for each in self._awaited if each.submitted is not None]
        for each in out:
            assert each.submitted is not None
            end = end_of(each.submitted, each)
            if end is not None:
                with self._lock:
                    self._awaited.remove(each)
                each.over(end)


def _pattern(folder: Path, number: str) -> str:
    """Path of a job's log, as sbatch reads it: a % in a path is doubled."""
    return f"{str(folder).replace('%', '%%')}/{number}.log"


def _cancel_waiting(names: Iterable[str]) -> None:
    try:
        for name in sorted(set(names)):
            clients.cancel("--state=PENDING", f"--jobname={name}")
    except (NoAnswerError, SetupError) as error:
        msg = (
            f"jobs that wait to run are not cancelled, and will end as they start: "
            f"{error}"
        )
        warnings.warn(msg, stacklevel=2)


def _leave_running(out: Iterable[_Awaited]) -> None:
    """Name the jobs that still run, and close the slices that have not begun."""
    running = []
    for each in out:
        assert each.submitted is not None
        if not _may_have_begun(each.submitted):
            each.submitted.close()
        elif each.job_id:
            running.append(each.job_id)
    if not running:
        return
    msg = (
        f"jobs of Slurm that have begun train their slices to the end, and the next "
        f"run records them; to end them as well: scancel {' '.join(sorted(running))}"
    )
    print(f"risingsearch: {msg}", file=sys.stderr)


def _may_have_begun(submitted: SubmittedSlice) -> bool:
    try:
        return submitted.has_begun
    except SetupError:  # its file is damaged, which is why the search ends
        return True


def _closed() -> SetupError:
    return SetupError("the sweep has ended while a job of Slurm was waited for")
