"""All slices of a sweep that are out in Slurm: submitted together, watched together.

One thread does all of it, whatever the number of workers. It looks at one file of the
run directory to see that some job has brought something back, and asks Slurm itself at
most every five seconds, for all jobs at once.
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
    Batch,
    LeftOpen,
    Outcome,
    Placed,
    Slice,
    rung_at,
)
from risingsearch.scripts.slurm.clients import Element, Listed, NoAnswerError
from risingsearch.scripts.slurm.ends import FORGOTTEN, HELD, NOT_STARTED, End

ASK_EVERY = 5.0
"""Seconds from one question to Slurm to the next, at least."""
LOOK_EVERY = 0.2
"""Seconds from one look at the run directory to the next."""
GATHERING = 0.05
"""Seconds in which slices come together that are submitted at once."""
MOST_AT_ONCE = 1000
"""Elements of an array of jobs; Slurm allows as many unless it is told otherwise."""
OFTEN_UNKNOWN = 2
"""Answers in a row that do not know a job, after which it is taken for forgotten."""
LAGGING = 60.0
"""Seconds for which a result may still not be seen, on a slow file system, of a job
that has ended well."""


@dataclass
class _Awaited:
    """A slice that somebody waits for."""

    part: Slice
    placed: Placed | None = None  # once its files are written
    job_id: str = ""  # until Slurm has taken it
    n_unknown: int = 0  # of the last answers
    ended_at: float | None = None
    has_ended: threading.Event = field(default_factory=threading.Event)
    end: Outcome | End | BaseException | None = None

    def over(self, end: Outcome | End | BaseException) -> None:
        """Let whoever waits go on."""
        self.end = end
        self.has_ended.set()


class Jobs:
    """The slices that are out, and those that an earlier process has left there."""

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

    def run(self, part: Slice) -> tuple[Slice, Placed, Outcome | End]:
        """Return what has come of a slice, once its job is over.

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
        assert awaited.placed is not None
        return awaited.part, awaited.placed, awaited.end

    def close(self) -> None:
        """Wait no more. Jobs that wait to run are cancelled, those that run go on.

        What these bring back is there for the next process.
        """
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join()
        self._let_go(_closed())

    def _let_go(self, error: BaseException) -> None:
        """Let all that wait go on with an error, and leave the jobs to themselves."""
        with self._lock:
            awaited, self._awaited = self._awaited, []
            self._is_watching = False
        for each in awaited:
            each.over(error)
        if out := [each for each in awaited if each.placed is not None]:
            _cancel_waiting(each.placed.batch.name for each in out if each.placed)
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
        except BaseException as error:  # whatever it is, no configuration is to blame
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
        """Wait for the next look; return False once nobody waits any more."""
        with self._lock:
            if not self._awaited:
                self._lock.wait_for(lambda: self._is_closed or self._awaited)
            else:
                self._lock.wait_for(lambda: self._is_closed or self._new(), LOOK_EVERY)
            if self._new():
                self._lock.wait_for(lambda: self._is_closed, GATHERING)
            return not self._is_closed

    def _new(self) -> list[_Awaited]:
        return [each for each in self._awaited if each.placed is None]

    def _submit_new(self) -> None:
        with self._lock:
            new = self._new()
        for first in range(0, len(new), MOST_AT_ONCE):
            self._submit(new[first : first + MOST_AT_ONCE])

    def _submit(self, together: Sequence[_Awaited]) -> None:
        """Submit slices as one job, or as an array of jobs.

        Their files come first: whatever happens to the answer, the name of their folder
        tells whether Slurm has the job.
        """
        parts = [each.part for each in together]
        batch = Batch.made(self._home, self._facts, parts)
        for number, each in enumerate(together):
            each.placed = Placed(batch, number)
        command = [sys.executable, "-P", "-m", "risingsearch.scripts.slurm.job"]
        command.append(str(batch.folder))
        several = ["--array", f"0-{len(parts) - 1}"]
        if len(parts) == 1:
            several = []
            command.append("0")
        try:
            job_id = clients.submit(
                batch.folder / SCRIPT,
                [
                    f"--job-name={batch.name}",
                    f"--chdir={self._facts['cwd']}",
                    f"--output={_pattern(batch, '%a' if several else '0')}",
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
            for number, each in enumerate(together):
                batch.close(number)
                each.placed = None  # Slurm has not taken it
            raise
        for number, each in enumerate(together):
            each.job_id = f"{job_id}_{number}" if several else job_id

    def _ask(self) -> Listed | None:
        """Return what Slurm says of all jobs; None where it is not asked or silent."""
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
        """Take in what has trained well; of a failure Slurm is asked first."""

        def outcome_of(placed: Placed, each: _Awaited) -> Outcome | None:
            outcome = placed.outcome
            return outcome if outcome and outcome.error is None else None

        self._end_those(outcome_of)

    def _compare(self, listed: Listed) -> None:
        """See which jobs are over that have brought no epochs back.

        A script that is killed along with its job has failed for whoever looks at it
        alone: what counts is how the job has ended.
        """

        def end_of(placed: Placed, each: _Awaited) -> Outcome | End | None:
            outcome = placed.outcome
            if outcome is not None and outcome.error is None:
                return outcome
            element = listed.get((placed.batch.name, placed.number))
            end = self._end_of(placed, each, element)
            if end is not None and outcome is not None and end.is_of_its_own:
                return outcome
            is_late = time.monotonic() - (each.ended_at or 0.0) > LAGGING
            return end if end is None or end.state != "COMPLETED" or is_late else None

        self._end_those(end_of)

    def _end_of(
        self, placed: Placed, each: _Awaited, element: Element | None
    ) -> End | None:
        """Return how a job has ended; None where it may not have."""
        has_begun = placed.batch.has_begun(placed.number)
        log = placed.batch.log(placed.number)
        if element is None:
            each.n_unknown += 1
            if each.n_unknown < OFTEN_UNKNOWN:
                return None
            return End(FORGOTTEN, "", each.job_id, 0.0, has_begun, log)
        each.n_unknown = 0
        job_id, state, seconds, reason = element
        each.job_id = job_id
        if reason.replace("_", " ") == NOT_STARTED:
            state = HELD
            clients.cancel(f"--jobname={placed.batch.name}", job_id)
        was_told = placed.batch.was_told(placed.number)
        end = End(state, reason, job_id, seconds, has_begun, log, was_told)
        if not end.is_over:
            return None
        each.ended_at = each.ended_at or time.monotonic()
        return end

    def _end_those(
        self, end_of: Callable[[Placed, _Awaited], Outcome | End | None]
    ) -> None:
        """Let those go on whose slices have ended."""
        with self._lock:
            out = [each for each in self._awaited if each.placed is not None]
        for each in out:
            assert each.placed is not None
            end = end_of(each.placed, each)
            if end is not None:
                with self._lock:
                    self._awaited.remove(each)
                each.over(end)


def _pattern(batch: Batch, number: str) -> str:
    """Return where a job's log is, as sbatch reads it: a % in a path stands twice."""
    folder = str(batch.folder).replace("%", "%%")
    return f"{folder}/{batch.log(number).name}"


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
    """Say which jobs go on; one that has not begun has nothing to do any more."""
    running = []
    for each in out:
        assert each.placed is not None
        if not _may_have_begun(each.placed):
            each.placed.close()
        elif each.job_id:
            running.append(each.job_id)
    if not running:
        return
    msg = (
        f"jobs of Slurm that have begun go on to the end of their slices, and the next "
        f"run takes them in; to end them as well: scancel {' '.join(sorted(running))}"
    )
    print(f"risingsearch: {msg}", file=sys.stderr)


def _may_have_begun(placed: Placed) -> bool:
    try:
        return placed.has_begun
    except SetupError:  # its file is damaged, which is why the search ends
        return True


def _closed() -> SetupError:
    return SetupError("the sweep has ended while a job of Slurm was waited for")
