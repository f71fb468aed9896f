"""Folders by which a search and its Slurm jobs exchange slices."""
# Each has the unique name of its job, which is found again even if the number that
# Slurm gave it is lost. A file there says what the job trains; the job notes in it how
# far it is, and its outcome. A job that starts for a slice without its folder ends.

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from risingsearch.errors import SetupError
from risingsearch.json_values import Json
from risingsearch.storage import files

FOLDER = "slurm"  # in the run directory
LONGEST_NOTE = 300  # bytes
LONGEST_NAME = 40  # characters of the run's name in that of a job
NOTE = "note.txt"  # file in that folder: why Slurm keeps jobs waiting, while it does
_FILE = "slice.json"
_RANDOM = "[0-9a-f]" * 16


class SlurmSlice(NamedTuple):
    """Part of an arm's training that one job does."""

    arm: int
    number: int  # of the arm's earlier slices, failed ones too
    seed: int
    params: Json
    epoch: int  # after which it begins
    begin: int  # epoch of the checkpoint that it starts from; earlier if that is lost
    to_epoch: int
    slot: int = 0  # whose variables it gets

    def is_same(self, other: SlurmSlice) -> bool:
        """Whether both are the same part of the same training."""
        rest: Json = {"params": {}, "begin": 0, "slot": 0}
        return self._replace(**rest) == other._replace(**rest)


class SliceOutcome(NamedTuple):
    """Result of a job: the reports of its script, or why it has failed."""

    seconds: float  # of the allocation, until the script had ended
    results: list[Json]
    work: str = ""  # name of the folder with the checkpoint, in that of the arm
    error: str | None = None  # name of its type
    message: str = ""
    startup: float | None = None  # of the seconds, before the first epoch, if known
    n_reported: int | None = None  # epochs before the error, if known


class SubmittedSlice(NamedTuple):
    """Folder of a slice that is submitted, named after its job."""

    folder: Path

    @property
    def log(self) -> Path:
        """File of the job's output besides that of its script."""
        return self.folder / "log.txt"

    @property
    def is_open(self) -> bool:
        """Whether the search still waits for it."""
        return (self.folder / _FILE).exists()

    @property
    def spec(self) -> tuple[Json, SlurmSlice]:
        """Facts that its job needs, and the slice."""
        content = self._content()
        return content["facts"], SlurmSlice(**content["slice"])

    @property
    def noted(self) -> Json:
        """Notes of its job: nothing before that has begun, ``outcome`` at its end."""
        with suppress(FileNotFoundError):
            noted: Json = self._content()["noted"]
            return noted
        return {}

    @property
    def outcome(self) -> SliceOutcome | None:
        """Its outcome, None until it has one."""
        noted = self.noted.get("outcome")
        return None if noted is None else SliceOutcome(**noted)

    @property
    def has_trained(self) -> bool:
        """Whether its job has brought epochs back."""
        outcome = self.outcome
        return outcome is not None and outcome.error is None

    @property
    def stage(self) -> str:
        """How far it is: ``waiting``, ``training`` or ``back``."""
        noted = self.noted
        return "back" if "outcome" in noted else "training" if noted else "waiting"

    def note(self, **noted: Any) -> None:
        """Note that its job has begun, and more, if the search waits for it."""
        if self.is_open:
            noted["host"] = os.uname().nodename
            self._write(self._content() | {"noted": noted})

    def close(self) -> None:
        """Stop waiting for it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, content: Mapping[str, object]) -> None:
        files.write_digested(self.folder / _FILE, json.dumps(content).encode())

    def _content(self) -> Json:
        path = self.folder / _FILE
        try:
            content: Json = json.loads(files.read_digested(path))
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as error:
            msg = f"{path} is damaged ({error}): remove it, and resume"
            raise SetupError(msg) from error
        return content


def made_slice(
    home: Path,
    facts: Mapping[str, object],
    part: SlurmSlice,
) -> SubmittedSlice:
    """Make the folder of a slice, whole and on disk, before its job is submitted."""
    run = re.sub(r"[^\w.-]", "_", home.parent.name, flags=re.ASCII)[:LONGEST_NAME]
    submitted = SubmittedSlice(home / f"{run}-{part.arm:06d}-{secrets.token_hex(8)}")
    files.make_folder(home)
    files.make_folder(submitted.folder)
    submitted._write(
        {
            "facts": facts,
            "slice": part._asdict(),
            "noted": {},
        }
    )
    files.sync_folder(home)
    return submitted


def slices_in(home: Path, arm: int | None = None) -> list[SubmittedSlice]:
    """Return the submitted slices of a run, or of one arm."""
    of_arm = "[0-9]" * 6 if arm is None else f"{arm:06d}"
    submitted = [SubmittedSlice(path) for path in home.glob(f"*-{of_arm}-{_RANDOM}")]
    return sorted(each for each in submitted if each.is_open)


def claimed(home: Path, part: SlurmSlice) -> SubmittedSlice | None:
    """Return the slice as it was submitted before; drop others of its arm."""
    usable = None
    for submitted in slices_in(home, part.arm):
        facts, left = submitted.spec
        has_moved = Path(facts["folder"]).parent.resolve() != home.parent.resolve()
        is_usable = submitted.has_trained or not has_moved
        if usable is None and left.is_same(part) and is_usable:
            usable = submitted
        else:
            submitted.close()
    return usable


def note_of(home: Path) -> str:
    """Return why Slurm keeps jobs waiting; empty if it does not."""
    with suppress(OSError), files.open_regular_file(home / NOTE) as file:
        return file.read(LONGEST_NOTE).decode(errors="replace")
    return ""


def counted(home: Path) -> dict[str, int]:
    """Count the slices that wait to begin, train, or are back and not recorded."""
    return dict(Counter(submitted.stage for submitted in slices_in(home)))
