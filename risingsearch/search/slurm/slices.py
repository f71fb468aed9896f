"""Folders by which a search and its Slurm jobs exchange slices of training."""
# Each has the unique name of its job, which is found again even if the number that
# Slurm gave it is lost. A file there says what the job trains; the job notes in it how
# far it is, and its outcome. A job that starts for a slice without its folder ends.

from __future__ import annotations

import json
import os
import pickle
import re
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import Container
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from risingsearch.arms import Job
from risingsearch.errors import SetupError
from risingsearch.json_values import Json
from risingsearch.scheduling.events import Failed, Returned, event_of
from risingsearch.search.run import earlier_failure
from risingsearch.search.run_log import as_event, report_of
from risingsearch.search.training import Outcome, Task, savable
from risingsearch.storage import files

try:  # which takes functions and classes of the program itself along
    from cloudpickle import dumps
except ModuleNotFoundError:
    from pickle import dumps

FOLDER = "slurm"  # in the run directory
LONGEST_NOTE = 300  # bytes
LONGEST_NAME = 40  # characters of the run's name in that of a job
NOTE = "note.txt"  # file in that folder: why Slurm keeps jobs waiting, while it does
_FILE = "slice.json"
_PARCEL = "parcel"
_TRAINABLE = "trainable"
_STATE = "state"
_BEST = "best"
_RANDOM = "[0-9a-f]" * 16


class Parcel(NamedTuple):
    """All that a job needs: it is written, and read, by the same user just now."""

    trainable: Path  # its pickle, one for all jobs
    task: Task
    variables: dict[str, str]


class Slice(NamedTuple):
    """Folder of a slice that is submitted, named after its job."""

    folder: Path

    @property
    def log(self) -> Path:
        """File of the job's output besides that of a script."""
        return self.folder / "log.txt"

    @property
    def is_open(self) -> bool:
        """Whether the search still waits for it."""
        return (self.folder / _FILE).exists()

    @property
    def noted(self) -> Json:
        """Notes of its job: nothing before that has begun, ``outcome`` at its end."""
        with suppress(FileNotFoundError):
            noted: Json = self.content()["noted"]
            return noted
        return {}

    @property
    def outcome(self) -> Outcome | Exception | None:
        """The outcome of its job, or the error that ends the search; None: not yet."""
        noted = self.noted
        if "error" in noted:
            return earlier_failure(**noted["error"])
        if "outcome" not in noted:
            return None
        event = event_of(noted["outcome"])
        assert isinstance(event, Returned)
        outcome = _outcome_of(event)
        if event.best is not None:
            outcome = outcome._replace(snapshot=(event.best, self._read(_BEST)))
        if noted["resumes"]:
            outcome = outcome._replace(resume_from=self._read(_STATE))
        return outcome

    @property
    def trained(self) -> Outcome | None:
        """Its outcome, if its job has brought epochs back."""
        outcome = self.outcome
        if isinstance(outcome, Outcome) and outcome.report.failure is None:
            return outcome
        return None

    @property
    def stage(self) -> str:
        """How far it is: ``waiting``, ``training`` or ``back``."""
        noted = self.noted.keys()
        is_back = noted & {"outcome", "error"}
        return "back" if is_back else "training" if noted else "waiting"

    @property
    def parcel(self) -> Parcel:
        """All that its job needs."""
        sys.path[:] = self.content()["path"]  # before modules of the user are needed
        parcel: Parcel = pickle.loads(self._read(_PARCEL))
        return parcel

    def note(self, **noted: object) -> None:
        """Note that its job has begun, and more, if the search waits for it."""
        if self.is_open:
            host = os.uname().nodename
            self._write({**self.content(), "noted": {**noted, "host": host}})

    def note_end(self, outcome: Outcome | Exception, left: Json | None) -> None:
        """Note an outcome once its states are on disk, or an error."""
        if not self.is_open:
            return
        if isinstance(outcome, Exception):
            kind = type(outcome)
            named = {"type_name": kind.__name__, "module": kind.__module__}
            self.note(error={"text": str(outcome), **named})
            return
        resumes = outcome.resume_from is not None
        if resumes:
            files.write_digested(self.folder / _STATE, outcome.resume_from)
        if outcome.snapshot is not None:
            files.write_digested(self.folder / _BEST, outcome.snapshot[1])
        event = as_event(outcome)
        event = replace(event, metrics=tuple(map(savable, event.metrics)))
        self.note(outcome=event.to_json(), resumes=resumes, left=left)

    def close(self) -> None:
        """Stop waiting for it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def content(self) -> Json:
        """Return the content of its file: job and seed, path, and notes."""
        content: Json = json.loads(self._read(_FILE))
        return content

    def _write(self, content: Json) -> None:
        files.write_digested(self.folder / _FILE, json.dumps(content).encode())

    def _read(self, name: str) -> bytes:
        path = self.folder / name
        try:
            return files.read_digested(path)
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            raise SetupError(
                f"{path} is damaged ({error}): remove it, and resume"
            ) from error


def made_slice(home: Path, parcel: Parcel) -> Slice:
    """Make the folder of a slice, whole and on disk, before its job is submitted."""
    task = parcel.task
    run = re.sub(r"[^\w.-]", "_", home.parent.name, flags=re.ASCII)[:LONGEST_NAME]
    made = Slice(home / f"{run}-{task.job.arm:06d}-{secrets.token_hex(8)}")
    files.make_folder(home)
    files.make_folder(made.folder)
    files.write_digested(made.folder / _PARCEL, dumps(parcel))
    made._write(
        {
            "job": task.job.to_json(),
            "seed": task.seed,
            "home": str(home.resolve()),
            "path": sys.path,
            "noted": {},
        }
    )
    files.sync_folder(home)
    return made


def slices_in(home: Path, arm: int | None = None) -> list[Slice]:
    """Return the submitted slices of a run, or of one arm."""
    of_arm = "[0-9]" * 6 if arm is None else f"{arm:06d}"
    slices = [Slice(path) for path in home.glob(f"*-{of_arm}-{_RANDOM}")]
    return sorted(each for each in slices if each.is_open)


def claimed(home: Path, task: Task) -> Slice | None:
    """Return the slice of a task if it was submitted before; drop others of its arm."""
    usable = None
    for submitted in slices_in(home, task.job.arm):
        content = submitted.content()
        is_same = content.get("job") == task.job.to_json()
        if is_same and content["seed"] == task.seed and usable is None:
            is_here = content["home"] == str(home.resolve())
            usable = None
            if is_here or submitted.trained:
                usable = submitted
        if submitted != usable:
            submitted.close()
    return usable


def received(
    trainable: Any, task: Task, submitted: Slice, outcome: Outcome
) -> Outcome | None:
    """Return an outcome with its checkpoint; None if files of it are missing."""
    left = submitted.noted.get("left")
    if left is not None and not trainable.keep(**left):
        return None
    saves = task.wants_checkpoint and outcome.report.scores
    return outcome._replace(checkpoint=outcome.resume_from if saves else None)


def written(home: Path, trainable: object) -> Path:
    """Write a trainable for all jobs; return the file."""
    files.make_folder(home)
    path = home / f"{_TRAINABLE}.{secrets.token_hex(8)}"
    files.write_digested(path, dumps(trainable))
    return path


def drop_written(home: Path) -> None:
    """Drop the trainables that no slice needs any more."""
    if not slices_in(home):
        for path in home.glob(f"{_TRAINABLE}.*"):
            path.unlink()


def drop_job(home: Path, job: Job) -> None:
    """Drop the slice of a job that the search has just recorded."""
    for submitted in slices_in(home, job.arm):
        submitted.close()


def drop_recorded(home: Path, jobs: Container[int]) -> None:
    """Drop the slices of jobs that are recorded, and those of an earlier release."""
    for submitted in slices_in(home):
        job = submitted.content().get("job")
        if job is None or Job.from_json(job).id in jobs:
            submitted.close()


def note_of(home: Path) -> str:
    """Return why Slurm keeps jobs waiting; empty if it does not."""
    with suppress(OSError), files.open_regular_file(home / NOTE) as file:
        return file.read(LONGEST_NOTE).decode(errors="replace")
    return ""


def counted(home: Path) -> dict[str, int]:
    """Count the slices that wait to begin, train, or are back and not recorded."""
    return dict(Counter(submitted.stage for submitted in slices_in(home)))


def _outcome_of(event: Returned) -> Outcome:
    """Return the outcome that was noted as an event, without its states."""
    outcome = Outcome(
        report_of(event),
        ended=event.ended,
        n_calls=event.calls,
        elapsed=event.elapsed or 0.0,
        cost=event.cost,
        startup=event.startup,
        now=event.now,
        clock=event.clock,
    )
    if isinstance(event, Failed):
        return outcome._replace(attempts=event.attempts, charged=event.charged)
    return outcome
