"""Scripts whose checkpoints are kept elsewhere: a state holds the whole directory."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from risingsearch.errors import ScriptError
from risingsearch.scripts.processes import unusable
from risingsearch.scripts.trainable import (
    CommandTrainable,
    ScriptRun,
    checkpoint_name,
)
from risingsearch.storage.files import sync_folder, sync_tree

PROGRESS, FILES = "progress.json", "files"
"""In a state, which is a tar file: the progress of the arm, and its directory."""


class ArchivedTrainable(CommandTrainable):
    """A command whose arms can be continued where their folders are missing."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._same: set[tuple[int, int]] = set()  # arm and epoch of such copies

    def save(self, run: ScriptRun, path: str) -> None:
        """Write an arm's progress and its checkpoint directory into one file."""
        folder = self.folder_of(run)
        try:
            _pack(Path(path), run, folder)
        except tarfile.FilterError as error:
            msg = f"a checkpoint cannot be taken to other machines: {error}"
            raise ScriptError(msg) from error
        except OSError as error:
            raise unusable(folder, error) from error
        self._same.add((run.arm, run.epoch))

    def load(self, path: str) -> ScriptRun:
        """Return the run that ``save`` wrote, and restore its directory on disk."""
        try:
            with tarfile.open(path) as archive:
                progress = archive.extractfile(PROGRESS)
                assert progress is not None
                run = ScriptRun(**json.load(progress))
                if FILES in archive.getnames():
                    self._unpack(archive, run)
        except OSError as error:
            raise unusable(self.folder, error) from error
        return run

    def at_hand(
        self, arm: int, params: Mapping[str, Any], seed: int, epoch: int
    ) -> bytes | None:
        """Return a state that leaves out the directory, if that is on disk already."""
        run = ScriptRun(arm, dict(params), seed, epoch)
        if (arm, epoch) not in self._same or not self.folder_of(run).is_dir():
            return None
        state = io.BytesIO()
        with tarfile.open(fileobj=state, mode="w") as archive:
            _add_progress(archive, run)
        return state.getvalue()

    def folder_of(self, run: ScriptRun) -> Path:
        """Return the checkpoint directory of an arm, by its epoch."""
        return self.home(run.arm) / checkpoint_name(run.epoch)

    def _unpack(self, archive: tarfile.TarFile, run: ScriptRun) -> None:
        home, after = self.home(run.arm), self.folder_of(run)
        self._make_home(home)
        beside = Path(tempfile.mkdtemp(prefix="training-", dir=home))
        archive.extractall(beside, filter="data")
        sync_tree(beside)
        shutil.rmtree(after, ignore_errors=True)
        os.replace(beside / FILES, after)
        beside.joinpath(PROGRESS).unlink()
        beside.rmdir()
        sync_folder(home)
        self._same.add((run.arm, run.epoch))


def _pack(path: Path, run: ScriptRun, folder: Path) -> None:
    """Write a state; what could not be taken out of it again is a FilterError."""

    def checked(member: tarfile.TarInfo) -> tarfile.TarInfo:
        tarfile.data_filter(member, str(folder.parent))
        return member

    with tarfile.open(path, "w") as archive:
        _add_progress(archive, run)
        archive.add(folder, FILES, filter=checked)


def _add_progress(archive: tarfile.TarFile, run: ScriptRun) -> None:
    content = json.dumps(vars(run)).encode()
    member = tarfile.TarInfo(PROGRESS)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
