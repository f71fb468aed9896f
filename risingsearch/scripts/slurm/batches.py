"""What is sent to jobs and what they bring back: files of the run directory.

A batch is what is submitted at once, as one job or as an array of jobs. Its folder has
the name of the job, which no other has, so that a job is found again whatever happened
to the number that Slurm gave it. For each slice there is a file, empty at first, in
which its job leaves what has come of it. A slice whose file is gone is over: a job
that still starts for it ends at once, and what one brings back is not looked at.
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

from risingsearch.checks import is_cost
from risingsearch.errors import ScriptError, SetupError
from risingsearch.scripts.plain_files import make_folder, open_plain
from risingsearch.scripts.trainable import unusable
from risingsearch.storage.files import PRIVATE, atomic_write, sync_folder

FOLDER = "slurm"
"""In the run directory."""
BELL = "bell"
"""In that folder: a file whose time changes whenever a job has brought something."""
SPEC = "slices.json"
SCRIPT = "job.sh"
CONTENT = b'#!/bin/sh\nexec "$@"\n'
"""Of the batch script: what runs are the arguments that sbatch passes on."""
LONGEST_NAME = 40  # characters of the run's name in that of a job
_WORK = re.compile(r"training-[\w.-]+", re.ASCII)
_BATCH = re.compile(r"[\w.-]+-[0-9a-f]{16}", re.ASCII)


class Slice(NamedTuple):
    """A part of an arm's training: what one job does."""

    arm: int
    number: int  # of the arm's slices before, whatever has come of them
    seed: int
    params: dict[str, Any]
    epoch: int  # after which it begins
    begin: int  # of the checkpoint that it goes on from; earlier where that is lost
    to_epoch: int
    slot: int = 0  # whose variables it gets

    def is_same(self, other: Slice) -> bool:
        """Return whether both are the same part of the same training."""
        return self._identity == other._identity

    @property
    def is_plausible(self) -> bool:
        """Whether a search may have written this, and nobody has changed it since."""
        numbers = (*self._identity, self.begin, self.slot)
        return (
            isinstance(self.params, dict)
            and all(type(number) is int and number >= 0 for number in numbers)
            and self.begin <= self.epoch < self.to_epoch
        )

    @property
    def _identity(self) -> tuple[int, ...]:
        return self.arm, self.number, self.seed, self.epoch, self.to_epoch


class Outcome(NamedTuple):
    """What a job has brought back."""

    seconds: float  # of the allocation, until the script was through
    results: list[dict[str, Any]]
    work: str = ""  # name of the folder with the checkpoint, in that of the arm
    error: str | None = None  # "ScriptError" or "SetupError"
    message: str = ""
    startup: float | None = None  # of the seconds, before the first epoch, where known

    @property
    def is_plausible(self) -> bool:
        """Whether a job may have written this, and nobody has changed it since."""
        seconds = (self.seconds, 0.0 if self.startup is None else self.startup)
        return (
            all(is_cost(each) for each in seconds)
            and self.error in (None, ScriptError.__name__, SetupError.__name__)
            and isinstance(self.message, str)
            and isinstance(self.work, str)
            and (self.error is not None or _WORK.fullmatch(self.work) is not None)
            and isinstance(self.results, list)
            and all(
                isinstance(each, dict) and type(each.get("score")) is float
                for each in self.results
            )
        )

    def is_of(self, part: Slice) -> bool:
        """Return whether these can be the epochs of a slice."""
        fewest = 0 if self.error is not None or part.begin else 1
        return fewest <= len(self.results) <= part.to_epoch - part.begin


class Batch:
    """The files of what is submitted at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name

    @classmethod
    def made(
        cls, home: Path, facts: Mapping[str, Any], slices: Sequence[Slice]
    ) -> Batch:
        """Write a batch, whole and on disk, into the folder of all of a run."""
        run = re.sub(r"[^\w.-]", "_", home.parent.name, flags=re.ASCII)[:LONGEST_NAME]
        batch = cls(home / f"{run}-{secrets.token_hex(8)}")
        make_folder(batch.folder)
        spec = {"facts": facts, "slices": [each._asdict() for each in slices]}
        for number in range(len(slices)):
            atomic_write(batch.path(number), mode=PRIVATE)
        atomic_write(batch.folder / SCRIPT, CONTENT, mode=0o700)
        atomic_write(batch.folder / SPEC, json.dumps(spec).encode(), mode=PRIVATE)
        sync_folder(home)
        return batch

    def read(self) -> tuple[dict[str, Any], list[Slice]]:
        """Return what all jobs of the batch are told, and the slice of each."""
        spec = _read(self.folder / SPEC)
        try:
            slices = [Slice(**each) for each in spec["slices"]]
            facts = dict(spec["facts"])
            Path(facts["arms"]).resolve()
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(self.folder / SPEC, error) from error
        for part in slices:
            if not part.is_plausible:
                raise _damaged(self.folder / SPEC, f"no search writes {part}")
        return facts, slices

    def path(self, number: int) -> Path:
        """Return where the job of a slice leaves what has come of it."""
        return self.folder / f"{number}.json"

    def log(self, number: int | str) -> Path:
        """Return what a job prints that is none of its script's."""
        return self.folder / f"{number}.log"

    def is_open(self, number: int) -> bool:
        """Return whether a slice is still waited for."""
        return self.path(number).exists()

    def note_begin(self, number: int) -> None:
        """Write down that the job of a slice has begun."""
        self._write(number, {"host": os.uname().nodename})

    def note_told(self, number: int) -> None:
        """Write down that the job of a slice was told to end."""
        if self.is_open(number):
            self._write(number, {"host": os.uname().nodename, "told to end": True})

    def was_told(self, number: int) -> bool:
        """Return whether the last job of a slice was told to end."""
        return "told to end" in self._content(number)

    def has_begun(self, number: int) -> bool:
        """Return whether the job of a slice has ever begun."""
        return bool(self._content(number))

    def leave(self, number: int, outcome: Outcome) -> None:
        """Write what has come of a slice, unless nobody waits for it any more."""
        if self.is_open(number):
            self._write(number, {"outcome": outcome._asdict()})
            ring(self.folder.parent)

    def outcome(self, number: int) -> Outcome | None:
        """Return what a job has brought back; None where nothing has come yet."""
        found = self._content(number).get("outcome")
        if found is None:
            return None
        try:
            outcome = Outcome(**found)
        except TypeError as error:
            raise _damaged(self.path(number), error) from error
        if not outcome.is_plausible:
            raise _damaged(self.path(number), "no job writes that")
        return outcome

    def stage(self, number: int) -> str:
        """Return in a word how far a slice has come."""
        content = self._content(number)
        if not content:
            return "waiting"
        return "back" if "outcome" in content else "training"

    def close(self, number: int) -> None:
        """Wait for a slice no more; the last one of a batch takes its files along."""
        self.path(number).unlink(missing_ok=True)
        with suppress(FileNotFoundError):  # another one was the last
            if not list(self.open_numbers()):
                shutil.rmtree(self.folder, ignore_errors=True)

    def open_numbers(self) -> Iterator[int]:
        """Yield the numbers of the slices that are waited for.

        Each is asked for by its name: a list of the folder may lack a file that a job
        replaces at that moment.
        """
        _, slices = self.read()
        return (number for number in range(len(slices)) if self.is_open(number))

    def _write(self, number: int, content: Mapping[str, Any]) -> None:
        atomic_write(self.path(number), json.dumps(content).encode(), mode=PRIVATE)

    def _content(self, number: int) -> dict[str, Any]:
        try:
            return _read(self.path(number))
        except FileNotFoundError:
            return {}


class Placed(NamedTuple):
    """Where the files of a slice are."""

    batch: Batch
    number: int

    @property
    def outcome(self) -> Outcome | None:
        """What its job has brought back."""
        return self.batch.outcome(self.number)

    @property
    def has_begun(self) -> bool:
        """Whether its job has ever begun."""
        return self.batch.has_begun(self.number)

    @property
    def has_trained(self) -> bool:
        """Whether its job has brought epochs back."""
        outcome = self.outcome
        return outcome is not None and outcome.error is None

    def check(self, part: Slice, outcome: Outcome) -> None:
        """Raise a ``SetupError`` where these cannot be the epochs of its slice."""
        if not outcome.is_of(part):
            n_results = len(outcome.results)
            msg = f"{n_results} epochs came of {part.begin + 1} to {part.to_epoch}"
            raise _damaged(self.batch.path(self.number), msg)

    def close(self) -> None:
        """Wait for it no more."""
        self.batch.close(self.number)


class LeftOpen:
    """The slices that an earlier process has waited for.

    They are looked for once they are asked for, when no other process writes there. A
    batch that is not whole was never submitted, and is removed.
    """

    def __init__(self, home: Path) -> None:
        self._home = home

    @cached_property
    def _left(self) -> list[tuple[Slice, Placed]]:
        return list(_found(self._home))

    def drop_told(self, numbers: Mapping[int, int]) -> None:
        """Drop those that the search knows, by how many it knows of each arm."""
        self._drop(
            [each for each in self._left if each[0].number < numbers[each[0].arm]]
        )

    def claim(self, part: Slice) -> tuple[Slice, Placed] | None:
        """Return what there is of a slice, and drop what else there is of its arm."""
        of_arm = [each for each in self._left if each[0].arm == part.arm]
        same = [each for each in of_arm if each[0].is_same(part)][:1]
        self._drop([each for each in of_arm if each not in same])
        for each in same:
            self._left.remove(each)
            return each
        return None

    def _drop(self, dropped: list[tuple[Slice, Placed]]) -> None:
        for each in dropped:
            self._left.remove(each)
            each[1].close()


def _found(home: Path) -> Iterator[tuple[Slice, Placed]]:
    for folder in sorted(home.glob("*")):
        if not _BATCH.fullmatch(folder.name) or folder.is_symlink():
            continue
        batch = Batch(folder)
        try:
            facts, slices = batch.read()
        except FileNotFoundError:
            shutil.rmtree(folder)
            continue
        has_moved = Path(facts["arms"]).parent.resolve() != home.parent.resolve()
        for number in batch.open_numbers():
            placed = Placed(batch, number)
            if has_moved and not placed.has_trained:  # nor will it: it is sent there
                placed.close()
            else:
                yield slices[number], placed


def counted(home: Path) -> dict[str, int]:
    """Return how many slices wait to begin, train, or are back and not recorded."""
    found: Counter[str] = Counter()
    for folder in home.glob("*"):
        if not _BATCH.fullmatch(folder.name) or folder.is_symlink():
            continue
        batch = Batch(folder)
        with suppress(FileNotFoundError):  # it has just been removed
            found.update(map(batch.stage, batch.open_numbers()))
    return dict(found)


def make_home(run_dir: Path) -> Path:
    """Return the folder of all batches of a run, with its bell."""
    home = run_dir.absolute() / FOLDER
    try:
        make_folder(home)
        if not (home / BELL).exists():
            atomic_write(home / BELL, mode=PRIVATE)
    except OSError as error:
        raise unusable(home, error) from error
    return home


def ring(home: Path) -> None:
    """Say that there is something to look at."""
    os.utime(home / BELL)


def rung_at(home: Path) -> int:
    """Return when there last was something to look at.

    The file is opened, because on NFS that alone asks the server.
    """
    descriptor = open_plain(home / BELL, os.O_RDONLY)
    try:
        return os.fstat(descriptor).st_mtime_ns
    finally:
        os.close(descriptor)


def _read(path: Path) -> dict[str, Any]:
    """Return what is in a file; an empty one holds nothing."""
    try:
        with open(open_plain(path, os.O_RDONLY), "rb") as file:
            content = file.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _damaged(path, error) from error
    try:
        found = json.loads(content or b"{}")
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from error
    if not isinstance(found, dict):
        raise _damaged(path, "it is no mapping")
    return found


def _damaged(path: Path, why: object) -> SetupError:
    """Return what stops a search, and is no configuration's failure."""
    return SetupError(f"{path} is damaged ({why}): remove it, and resume")
