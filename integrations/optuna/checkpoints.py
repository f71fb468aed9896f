"""Where the checkpoints of arms are kept: a folder all workers see, or artifacts."""

from __future__ import annotations

import contextlib
import os
import shutil
import weakref
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any
from urllib.parse import quote

import optuna
from optuna.artifacts import download_artifact, upload_artifact
from optuna.artifacts.exceptions import ArtifactNotFound

from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.storage.files import sync_folder


class FolderCheckpoints:
    """Keeps checkpoints in a folder; each appears there whole or not at all."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).absolute()

    def folder(self) -> TemporaryDirectory[str]:
        """Return a new folder to be filled, beside the others."""
        self.root.mkdir(parents=True, exist_ok=True)
        return TemporaryDirectory(
            dir=self.root, prefix=".new-", ignore_cleanup_errors=True
        )

    def publish(self, folder: Path, trial: optuna.Trial, name: str) -> str:
        """Rename a complete folder into place, and return its key."""
        key = f"{quote(trial.study.study_name, safe='')}/{name}"
        to = self.root / key
        to.parent.mkdir(exist_ok=True)
        shutil.rmtree(to, ignore_errors=True)
        os.replace(folder, to)
        sync_folder(to.parent)
        return key

    def find(self, key: str, reader: object) -> Path:
        """Return the folder itself, or raise ``RunDirError`` if it is gone."""
        path = self.root / key
        if not path.is_dir():
            msg = f"there is no checkpoint {path}"
            raise RunDirError(msg)
        return path

    def remove(self, key: str) -> None:
        """Delete the folder; it may be gone."""
        shutil.rmtree(self.root / key, ignore_errors=True)


class ArtifactCheckpoints:
    """Keeps checkpoints as artifacts of the trials that saved them."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def folder(self) -> TemporaryDirectory[str]:
        """Return a new temporary folder to be filled."""
        return TemporaryDirectory(ignore_cleanup_errors=True)

    def publish(self, folder: Path, trial: optuna.Trial, name: str) -> str:
        """Upload a folder as one archive, and return its artifact's id."""
        with TemporaryDirectory() as beside:
            archive = shutil.make_archive(f"{beside}/{name}", "zip", folder)
            return upload_artifact(
                artifact_store=self.store, file_path=archive, study_or_trial=trial
            )

    def find(self, key: str, reader: object) -> Path:
        """Unpack the archive; the folder exists for as long as ``reader`` does."""
        into = Path(mkdtemp())
        weakref.finalize(reader, shutil.rmtree, into, ignore_errors=True)
        archive = into / "checkpoint.zip"
        try:
            download_artifact(
                artifact_store=self.store, file_path=str(archive), artifact_id=key
            )
            shutil.unpack_archive(archive, into / "checkpoint")
        except (ArtifactNotFound, zipfile.BadZipFile, shutil.ReadError) as error:
            msg = f"there is no artifact {key} to be read: {error}"
            raise RunDirError(msg) from error
        return into / "checkpoint"

    def remove(self, key: str) -> None:
        """Remove the archive; Optuna keeps its description."""
        with contextlib.suppress(ArtifactNotFound):
            self.store.remove(key)


Checkpoints = FolderCheckpoints | ArtifactCheckpoints


def checkpoints_in(
    checkpoint_dir: str | os.PathLike[str] | None, artifact_store: Any
) -> Checkpoints | None:
    """Return where arms are saved, None where nowhere; raise where there are two."""
    if checkpoint_dir is not None and artifact_store is not None:
        msg = (
            "checkpoints are kept in one place: give checkpoint_dir or artifact_store, "
            "not both"
        )
        raise InvalidParameterError(msg)
    if checkpoint_dir is not None:
        return FolderCheckpoints(checkpoint_dir)
    return None if artifact_store is None else ArtifactCheckpoints(artifact_store)
