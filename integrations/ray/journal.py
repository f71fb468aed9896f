"""The journal of an experiment, beside the files that Ray writes itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow.fs import LocalFileSystem
from ray.tune.experiment import Trial

from risingsearch.errors import RunDirError
from risingsearch.integrations.ray.checkpoints import checkpoint_of, last_stamp
from risingsearch.integrations.ray.reported import NAME, REMOTE_NAME
from risingsearch.storage.files import atomic_write
from risingsearch.storage.journal import Event, Journal, create, read


@dataclass
class _Line:
    """Event that is not on disk yet."""

    event: Event
    trial: Trial | None  # whose checkpoint it waits for; None if it is ready
    stamp: Any = None  # of the result that the checkpoint holds


class ExperimentJournal:
    """Writes the journal of an experiment: a slice once its checkpoint is safe."""

    def __init__(self, path: Path, staging: Path) -> None:
        self.path = path
        self._staging = staging  # where Ray writes its own files first
        self._journal: Journal | None = None
        self._lines: list[_Line] = []

    @classmethod
    def of(cls, trial: Trial) -> ExperimentJournal:
        """Return the record of the experiment that a trial belongs to."""
        # With remote storage it is in the folder whose files Ray uploads now and then.
        storage = trial.storage
        staging = Path(storage.experiment_driver_staging_path)
        if isinstance(storage.storage_filesystem, LocalFileSystem):
            return cls(Path(storage.experiment_fs_path, NAME), staging)
        return cls(staging / REMOTE_NAME, staging)

    def resume(self, key: str) -> tuple[Event, list[Event]] | None:
        """Return header and events if the experiment was begun before."""
        if not self.path.exists():
            return None
        recorded = read(self.path)
        if recorded.header["key"] != key:
            return None  # of another experiment, which had the folder before
        self._journal = Journal(self.path, recorded)
        return recorded.header, recorded.events

    def begin(self, header: Event) -> None:
        """Make the journal of a new experiment."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        create(self.path, header)
        self._journal = Journal(self.path, read(self.path))

    def note(self, event: Event, trial: Trial | None = None, stamp: Any = None) -> None:
        """Write an event, in order; with a trial, once it has saved that result."""
        self._lines.append(_Line(event, trial, stamp))
        self._write()

    def note_at_once(self, event: Event) -> None:
        """Write an event that decides nothing, before those that wait."""
        assert self._journal is not None
        self._journal.append(event)

    def save_trials(self, controller: Any) -> None:
        """Save Ray's own state of trials and searcher as it is now."""
        # Ray copies its files in place, so that a crash can leave parts of them; here
        # they are renamed into place, where storage can do that.
        if self.path.parent == self._staging:
            controller.checkpoint(force=True, wait=True)
            return
        controller.save_to_dir()
        for file in self._staging.iterdir():
            if file.suffix in (".json", ".pkl"):
                atomic_write(self.path.with_name(file.name), file.read_bytes())

    def write_ready(self) -> None:
        """Write the events whose checkpoints are there by now; a missing one raises."""
        for line in self._lines:
            trial = line.trial
            if trial is None:
                continue
            if last_stamp(trial) == line.stamp:
                line.event |= checkpoint_of(trial)
                line.trial = None
            elif trial.is_finished():
                line.trial = None
            elif not trial.is_saving:
                msg = (
                    f"trial {trial.trial_id} has no checkpoint of its last epoch, so "
                    "it would train it again: give tune.report a checkpoint each time "
                    "(a class needs save_checkpoint and load_checkpoint)"
                )
                raise RunDirError(msg)
        self._write()

    def stop_waiting(self, trial: Trial) -> None:
        """Wait no longer for checkpoints of a trial."""
        for line in self._lines:
            if line.trial is trial:
                line.trial = None
        self._write()

    def _write(self) -> None:
        assert self._journal is not None
        while self._lines and self._lines[0].trial is None:
            self._journal.append(self._lines[0].event)
            self._lines.pop(0)
