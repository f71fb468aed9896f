"""Submit the jobs of a search to Slurm, and wait for them."""

import math
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from risingsearch.arms import Job, Report
from risingsearch.checks import checked_int, kept_path, shown
from risingsearch.errors import (
    InvalidParameterError,
    RunDirError,
    ScriptError,
    SetupError,
    WorkerError,
)
from risingsearch.search.processes import Slots
from risingsearch.search.slurm import clients
from risingsearch.search.slurm.clients import Listed, NoAnswerError
from risingsearch.search.slurm.slices import (
    LONGEST_NOTE,
    NOTE,
    Parcel,
    Slice,
    claimed,
    drop_job,
    drop_written,
    made_slice,
    received,
    written,
)
from risingsearch.search.training import Outcome, Task, Workers
from risingsearch.storage import files

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
    submitted: Slice

    @property
    def is_of_the_machine(self) -> bool:
        """Whether the machine has ended it: the slice is submitted again."""
        if self.state == "FAILED":  # so Slurm may call a job that it starts again
            return "signalled_to_end" in self.submitted.noted
        return self.state in OF_THE_MACHINE

    @property
    def is_of_the_start(self) -> bool:
        """Whether the job has ended before its script began."""
        has_begun = self.state != HELD and self.submitted.stage != "waiting"
        return not self.is_of_the_machine and not has_begun

    @property
    def message(self) -> str:
        """One sentence that describes the end."""
        has_reason = self.reason not in ("", "None")
        how = self.state
        if has_reason:
            how = f"{self.state} ({self.reason})"
        return f"job {self.job_id} has ended as {how}: {WORDS[self.state]}"

    def failure(self, n_starts: int) -> str | None:
        """Return the failure that the ``n_starts``-th end before a start means."""
        is_of_the_start = self.is_of_the_start
        is_tried_again = is_of_the_start and n_starts < MOST_STARTS
        if self.is_of_the_machine or is_tried_again:
            return None
        last_line = _last_line(self.submitted.log)
        message = self.message + (f"; it said {last_line!r}" if last_line else "")
        if not is_of_the_start:
            return message
        return (
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

    submitted: Slice
    job_id: str = ""  # unknown if the answer to the submission is lost
    n_unknown: int = 0  # of the last answers
    compared_at: float = field(default_factory=time.monotonic)
    ended_at: float = math.inf


class SlurmExecutor(Workers):
    """Slurm as the executor of a search: each of its jobs is a job of the cluster.

    A job begins from the last checkpoint of its arm, trains the epochs from one pause
    to the next, and ends. One that a machine has ended is submitted again, which costs
    no epoch. If the search is killed, its jobs run on: the same program, begun again
    with the same ``run_dir``, records their results.

    Parameters
    ----------
    folder : path
        Where the search and its jobs exchange files, such as ``slurm`` in its
        ``run_dir``: on a file system that the nodes share, and of this search alone.
    n_jobs : int
        Jobs in Slurm at a time, waiting ones included.
    options : sequence of str, optional
        Options of ``sbatch`` for every job, such as ``"--mem=8G"``.
    variables : sequence of dict, optional
        Environment variables of each of the ``n_jobs``.

    Raises
    ------
    InvalidParameterError
        If an argument is not as described.
    SetupError
        If Slurm's commands cannot be called here.

    Examples
    --------
    >>> from risingsearch import RisingSearch, SlurmExecutor
    >>> def search(trainable, candidates):
    ...     options = ["--time=00:30:00", "--gpus=1"]
    ...     with SlurmExecutor("runs/a/slurm", 8, options) as executor:
    ...         return RisingSearch(
    ...             trainable,
    ...             candidates,
    ...             budget=500,
    ...             executor=executor,
    ...             run_dir="runs/a",
    ...         ).run()
    """

    def __init__(
        self,
        folder: Path | str,
        n_jobs: int,
        options: Sequence[str] = (),
        *,
        variables: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__()
        self.home = kept_path("folder", folder)
        self._n_workers = checked_int("n_jobs", n_jobs, 1)
        is_list = isinstance(options, Sequence) and not isinstance(options, str)
        if not is_list or not all(isinstance(each, str) for each in options):
            raise InvalidParameterError(
                "options must be a list of those of sbatch, each as text such as "
                f"'--mem=8G'; got {shown(options)}"
            )
        if len(variables) not in (0, n_jobs):
            raise InvalidParameterError(
                f"variables must have a dict for each of the n_jobs={n_jobs}, or be "
                f"left out; got {len(variables)}"
            )
        clients.check_commands()
        self._options = options
        self._slots = Slots(variables or [{}] * n_jobs)
        self._threads = ThreadPoolExecutor(n_jobs)  # each waits for a job
        self._sent: tuple[object, Path] | None = None  # trainable, and its pickle
        self._out: dict[Slice, _Awaited] = {}
        self._submitting = threading.Lock()
        self._closed = threading.Event()
        self._asking = threading.Lock()
        self._asked_at = -ASK_EVERY
        self._listed: tuple[float, Listed] = (0.0, {})  # when it was asked
        self._silent = False
        self._warned_of: set[str] = set()  # reasons that were warned of
        self._note = ""  # why Slurm keeps jobs waiting

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()

    @property
    def n_workers(self) -> int:
        """Number of jobs in Slurm at a time."""
        return self._n_workers

    def train(self, trainable: object, task: Task) -> Future[Outcome]:
        """Have a job of Slurm train a job, or take in the result that it has left.

        Parameters
        ----------
        trainable : Trainable
            Written for the nodes once.
        task : Task
            The job.

        Returns
        -------
        concurrent.futures.Future
            Of the outcome.
        """
        if self._sent is None or self._sent[0] is not trainable:
            self._sent = trainable, written(self.home, trainable)
        return self._threads.submit(self._train, trainable, self._sent[1], task)

    def recorded(self, job: Job) -> None:
        """Drop the files of a job that the search has recorded.

        Parameters
        ----------
        job : Job
            The job.
        """
        drop_job(self.home, job)

    def progress_note(self) -> str:
        """Return why Slurm keeps jobs waiting.

        Returns
        -------
        str
            Empty if it does not.
        """
        return self._note

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel waiting jobs; the results of the others are for the next process.

        Parameters
        ----------
        wait : bool, default True
            Whether to wait for the threads, which end at once.
        cancel_futures : bool, default False
            As every executor has it; here they end in any case.
        """
        with self._submitting:
            is_first = not self._closed.is_set()
            self._closed.set()
        if is_first:
            out = list(self._out.values())
            self._set_note("")
            _cancel_waiting([awaited.job_id for awaited in out if awaited.job_id])
            _leave_running(out)
            drop_written(self.home)
        self._threads.shutdown(wait, cancel_futures=True)

    def _train(self, trainable: object, sent: Path, task: Task) -> Outcome:
        """Return the outcome of the first job that no machine has ended."""
        job = task.job
        n_starts = 0
        with self._slots.taken() as slot:
            parcel = Parcel(sent, task, self._slots.variables[slot])
            while True:
                submitted, end = self._end_of_job(parcel)
                if isinstance(end, Outcome):
                    outcome = received(trainable, task, submitted, end)
                    if outcome is not None:
                        return outcome
                elif not submitted.is_open:  # a later run has recorded it
                    raise CancelledError
                else:
                    n_starts += end.is_of_the_start
                    failure = end.failure(n_starts)
                    if failure is not None:
                        return self._failed(trainable, task, end, failure)
                    last = job.from_epoch + job.n_epochs
                    msg = (
                        f"{end.message}; arm {job.arm} trains epochs "
                        f"{job.from_epoch + 1} to {last} again, which is not charged"
                    )
                    warnings.warn(msg, RuntimeWarning, stacklevel=2)
                submitted.close()

    def _failed(
        self, trainable: object, task: Task, end: JobEnd, failure: str
    ) -> Outcome:
        """Return the failure of a job as its outcome, unless the disk is full, say."""
        try:
            if end.is_of_the_start:
                raise SetupError(failure)
            is_script = hasattr(trainable, "starts_processes")
            kind = ScriptError if is_script else WorkerError
            with files.blaming_the_disk(self.home, files.MAKE_ROOM, self.home):
                raise kind(failure)
        except (RunDirError, SetupError):
            end.submitted.close()
            raise
        except (ScriptError, WorkerError) as error:
            return Outcome(
                Report(task.job, failure=error),
                resume_from=task.state if task.may_retry else None,
                elapsed=end.seconds,
                charged=task.job.n_epochs,
            )

    def _end_of_job(self, parcel: Parcel) -> tuple[Slice, Outcome | JobEnd]:
        """Submit a slice, unless that was done before; return how it has ended."""
        with self._submitting:
            self._wait(0.0)
            left = claimed(self.home, parcel.task)
            awaited = self._submit(parcel) if left is None else _Awaited(left)
            self._out[awaited.submitted] = awaited
        while (end := self._end_of(awaited)) is None:
            self._wait(max(LOOK_EVERY, len(self._out) / MOST_LOOKS))
        self._out.pop(awaited.submitted, None)
        if isinstance(end, Exception):
            awaited.submitted.close()
            raise end
        return awaited.submitted, end

    def _wait(self, seconds: float) -> None:
        """Wait, and raise a SetupError if the search has ended."""
        if self._closed.wait(seconds):
            raise SetupError("the search has ended while a job of Slurm was waited for")

    def _submit(self, parcel: Parcel) -> _Awaited:
        """Submit a slice; even if the answer is lost, Slurm has the name of its job."""
        submitted = made_slice(self.home, parcel)
        awaited = _Awaited(submitted)
        log = str(submitted.log).replace("%", "%%")  # as sbatch reads it
        arguments = [
            f"--job-name={submitted.folder.name}",
            f"--output={log}",
            "--open-mode=append",
            *self._options,
        ]
        program = [sys.executable, "-P", "-m", "risingsearch.search.slurm.job"]
        command = [*program, str(submitted.folder)]
        try:
            awaited.job_id = clients.submit(arguments, command)
        except NoAnswerError as error:
            self._note_silence(error)
        except SetupError:
            submitted.close()  # Slurm has not taken it
            raise
        return awaited

    def _end_of(self, awaited: _Awaited) -> Outcome | Exception | JobEnd | None:
        """Return the outcome of a slice, or how its job has ended; None: not yet."""
        outcome = awaited.submitted.outcome
        if isinstance(outcome, Outcome) and outcome.report.failure is None:
            return outcome
        asked_at, listed = self._ask()
        if asked_at <= awaited.compared_at:
            return None
        awaited.compared_at = asked_at
        # A script that is killed along with its job looks like a failure.
        end = _end_in(listed, awaited)
        if end is None:
            return None
        if outcome is not None and end.state in ("COMPLETED", "FAILED", FORGOTTEN):
            return outcome
        awaited.ended_at = min(awaited.ended_at, asked_at)
        is_late = asked_at > awaited.ended_at + LAGGING
        if end.state != "COMPLETED" or is_late:
            return end
        return None

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
        names = [submitted.folder.name for submitted in list(self._out)]
        elements = [listed[name] for name in names if name in listed]
        waiting = [element for element in elements if element.is_waiting]
        for element in waiting:
            reason = element.reason
            if reason in USUAL | self._warned_of:
                continue
            self._warned_of.add(reason)
            msg = (
                f"Slurm keeps job {element.job_id} waiting ({reason}), maybe for ever: "
                f"see scontrol show job {element.job_id}, and change what launcher "
                "asks for"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
        counts = Counter(element.reason for element in waiting)
        parts = [f"{n} waiting in Slurm ({reason})" for reason, n in counts.items()]
        self._set_note(", ".join(parts))

    def _set_note(self, note: str) -> None:
        """Keep a note for the progress line, and in a file for other processes."""
        if note == self._note:
            return
        self._note = note[:LONGEST_NOTE]
        with suppress(OSError):  # it only informs
            if note:
                (self.home / NOTE).write_text(self._note)
            else:
                (self.home / NOTE).unlink()

    def _note_silence(self, error: NoAnswerError) -> None:
        self._set_note(f"Slurm does not answer ({error})")
        if not self._silent:
            msg = f"Slurm's controller does not answer ({error}): the search waits"
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
        self._silent = True


def _end_in(listed: Listed, awaited: _Awaited) -> JobEnd | None:
    """Return how a job has ended; None if it may still run."""
    submitted = awaited.submitted
    element = listed.get(submitted.folder.name)
    if element is None:
        awaited.n_unknown += 1
        is_forgotten = awaited.n_unknown >= OFTEN_UNKNOWN
        end = JobEnd(FORGOTTEN, "", awaited.job_id, 0.0, submitted)
        return end if is_forgotten else None
    awaited.n_unknown = 0
    awaited.job_id, state, seconds, reason = element
    if element.is_held:
        state = HELD
        clients.cancel(awaited.job_id)
    if state not in WORDS:
        return None
    return JobEnd(state, reason, awaited.job_id, seconds, submitted)


def _cancel_waiting(jobs: Sequence[str]) -> None:
    try:
        if jobs:
            clients.cancel("--state=PENDING", *jobs)
    except (NoAnswerError, SetupError) as error:
        msg = f"waiting jobs are not cancelled, and will end as they start: {error}"
        warnings.warn(msg, stacklevel=2)


def _leave_running(out: Sequence[_Awaited]) -> None:
    """Name the jobs that still run, and close the slices that have not begun."""
    running = []
    for awaited in out:
        try:
            stage = awaited.submitted.stage
        except SetupError:  # its file is damaged, which is why the search ends
            stage = "training"
        if stage == "waiting":
            awaited.submitted.close()
        elif stage == "training" and awaited.job_id:
            running.append(awaited.job_id)
    if running:
        print(
            "risingsearch: jobs of Slurm that have begun are recorded by the next run; "
            f"to end them as well: scancel {' '.join(sorted(running))}",
            file=sys.stderr,
        )
