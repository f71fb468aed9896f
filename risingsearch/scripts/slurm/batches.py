"""Files of the run directory by which a search and its Slurm jobs exchange slices.

A batch is one submission, either of one job or of an array of jobs. Its folder has
the unique name of the job, so that a job is found again even if the number that Slurm
gave it is lost. Each slice has a file there, in which its job notes how far it is, and
leaves its outcome. A slice whose file is gone is over: a job that still starts for it
ends at once.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from risingsearch.errors import SetupError
from risingsearch.scripts.trainable import unusable
from risingsearch.storage.files import (
    atomic_write,
    make_folder,
    open_regular_file,
    read_digested,
    sync_folder,
    write_digested,
)

FOLDER = "slurm"
"""In the run directory."""
BELL = "bell"
"""In that folder: a file whose time changes when a job has left an outcome."""
SPEC = "slices.json"
SCRIPT = "job.sh"
CONTENT = b'#!/bin/sh\nexec "$@"\n'
"""Of the batch script, which runs the arguments that sbatch passes on."""
LONGEST_NAME = 40  # characters of the run's name in that of a job
_BATCH = re.compile(r"[\w.-]+-[0-9a-f]{16}", re.ASCII)


class SlurmSlice(NamedTuple):
    """Part of an arm's training that one job does."""

    arm: int
    number: int  # of the arm's earlier slices, failed ones too
    seed: int
    params: dict[str, Any]
    epoch: int  # after which it begins
    begin: int  # epoch of the checkpoint that it starts from; earlier if that is lost
    to_epoch: int
    slot: int = 0  # whose variables it gets

    def is_same(self, other: SlurmSlice) -> bool:
        """Whether both are the same part of the same training."""
        facts = [
            (each.arm, each.number, each.seed, each.epoch, each.to_epoch)
            for each in (self, other)
        ]
        return facts[0] == facts[1]


class SliceOutcome(NamedTuple):
    """Result of a job: what its script has reported, or why it has failed."""

    seconds: float  # of the allocation, until the script had ended
    results: list[dict[str, Any]]
    work: str = ""  # name of the folder with the checkpoint, in that of the arm
    error: str | None = None  # "ScriptError" or "SetupError"
    message: str = ""
    startup: float | None = None  # of the seconds, before the first epoch, if known


class SubmittedSlice(NamedTuple):
    """Files of a slice that is submitted: the folder of its batch, and its number."""

    folder: Path
    number: int

    @property
    def job_name(self) -> str:
        """Name of the job, or of the array of jobs."""
        return self.folder.name

    @property
    def path(self) -> Path:
        """File in which its job leaves the outcome."""
        return self.folder / f"{self.number}.json"

    @property
    def log(self) -> Path:
        """File of the job's output besides that of its script."""
        return self.folder / f"{self.number}.log"

    @property
    def is_open(self) -> bool:
        """Whether the search still waits for it."""
        return self.path.exists()

    def note_begin(self) -> None:
        """Record that its job has begun."""
        self._write({"host": os.uname().nodename})

    def note_told(self) -> None:
        """Record that its job was told to end."""
        if self.is_open:
            self._write({"host": os.uname().nodename, "told to end": True})

    @property
    def was_told(self) -> bool:
        """Whether its last job was told to end."""
        return "told to end" in self._content()

    @property
    def has_begun(self) -> bool:
        """Whether a job of it has ever begun."""
        return bool(self._content())

    def leave(self, outcome: SliceOutcome) -> None:
        """Write its outcome, unless the search has stopped waiting for it."""
        if self.is_open:
            self._write({"outcome": outcome._asdict()})
            ring(self.folder.parent)

    @property
    def outcome(self) -> SliceOutcome | None:
        """Its outcome, None until it has one."""
        found = self._content().get("outcome")
        return None if found is None else SliceOutcome(**found)

    @property
    def has_trained(self) -> bool:
        """Whether its job has brought epochs back."""
        outcome = self.outcome
        return outcome is not None and outcome.error is None

    @property
    def stage(self) -> str:
        """How far it is, in one word."""
        content = self._content()
        if not content:
            return "waiting"
        return "back" if "outcome" in content else "training"

    def close(self) -> None:
        """Stop waiting for it; the last one of a batch removes the whole folder."""
        self.path.unlink(missing_ok=True)
        with suppress(FileNotFoundError):  # another one was the last
            if not open_slices(self.folder):
                shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, content: Mapping[str, Any]) -> None:
        write_digested(self.path, json.dumps(content).encode())

    def _content(self) -> dict[str, Any]:
        try:
            return _read(self.path)
        except FileNotFoundError:
            return {}


def made_batch(
    home: Path, facts: Mapping[str, Any], slices: Sequence[SlurmSlice]
) -> list[SubmittedSlice]:
    """Write the files of a batch, whole and on disk, into the folder of all batches."""
    run = re.sub(r"[^\w.-]", "_", home.parent.name, flags=re.ASCII)[:LONGEST_NAME]
    folder = home / f"{run}-{secrets.token_hex(8)}"
    make_folder(folder)
    submitted = [SubmittedSlice(folder, number) for number in range(len(slices))]
    for each in submitted:
        each._write({})
    atomic_write(folder / SCRIPT, CONTENT, mode=0o700)
    spec = {"facts": facts, "slices": [each._asdict() for each in slices]}
    write_digested(folder / SPEC, json.dumps(spec).encode())
    sync_folder(home)
    return submitted


def read_batch(folder: Path) -> tuple[dict[str, Any], list[SlurmSlice]]:
    """Facts for all jobs of a batch, and its slices."""
    spec = _read(folder / SPEC)
    return spec["facts"], [SlurmSlice(**each) for each in spec["slices"]]


def open_slices(folder: Path) -> list[tuple[SlurmSlice, SubmittedSlice]]:
    """Slices of a batch that the search waits for.

    Each file is tested by its name: a listing of the folder may lack one that a job
    replaces at that moment.
    """
    _, slices = read_batch(folder)
    found = [(part, SubmittedSlice(folder, i)) for i, part in enumerate(slices)]
    return [each for each in found if each[1].is_open]


def batches(home: Path) -> list[Path]:
    """Folders of all batches of a run."""
    return [path for path in sorted(home.glob("*")) if _BATCH.fullmatch(path.name)]


class LeftOpen:
    """Slices that an earlier process of the search has waited for.

    They are read when they are first asked for: then no other process writes there. A
    batch that is incomplete was never submitted, and is removed.
    """

    def __init__(self, home: Path) -> None:
        self._home = home

    @cached_property
    def _left(self) -> list[tuple[SlurmSlice, SubmittedSlice]]:
        return list(_left_in(self._home))

    def drop_told(self, numbers: Mapping[int, int]) -> None:
        """Drop those that the search has recorded: so many of each arm."""
        self._drop(
            [each for each in self._left if each[0].number < numbers[each[0].arm]]
        )

    def claim(self, part: SlurmSlice) -> tuple[SlurmSlice, SubmittedSlice] | None:
        """Return the same slice as submitted before; drop the others of its arm."""
        of_arm = [each for each in self._left if each[0].arm == part.arm]
        same = [each for each in of_arm if each[0].is_same(part)][:1]
        self._drop([each for each in of_arm if each not in same])
        for each in same:
            self._left.remove(each)
            return each
        return None

    def _drop(self, dropped: list[tuple[SlurmSlice, SubmittedSlice]]) -> None:
        for each in dropped:
            self._left.remove(each)
            each[1].close()


def _left_in(home: Path) -> Iterator[tuple[SlurmSlice, SubmittedSlice]]:
    for folder in batches(home):
        try:
            facts, _ = read_batch(folder)
        except FileNotFoundError:
            shutil.rmtree(folder)
            continue
        has_moved = Path(facts["arms"]).parent.resolve() != home.parent.resolve()
        for part, submitted in open_slices(folder):
            if has_moved and not submitted.has_trained:  # its job writes elsewhere
                submitted.close()
            else:
                yield part, submitted


def counted(home: Path) -> dict[str, int]:
    """Count the slices that wait to begin, train, or are back and not recorded."""
    found: Counter[str] = Counter()
    for folder in batches(home):
        with suppress(FileNotFoundError):  # it has just been removed
            found.update(submitted.stage for _, submitted in open_slices(folder))
    return dict(found)


def make_home(run_dir: Path) -> Path:
    """Make the folder of all batches of a run, with its bell."""
    home = run_dir.absolute() / FOLDER
    try:
        make_folder(home)
        (home / BELL).touch(0o600)
    except OSError as error:
        raise unusable(home, error) from error
    return home


def ring(home: Path) -> None:
    """Tell the search that there is an outcome."""
    os.utime(home / BELL)


def rung_at(home: Path) -> int:
    """Time of the last outcome. NFS asks the server because the file is opened."""
    with open_regular_file(home / BELL) as file:
        return os.fstat(file.fileno()).st_mtime_ns


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(read_digested(path))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        msg = f"{path} is damaged ({error}): remove it, and resume"
        raise SetupError(msg) from error
    return found
