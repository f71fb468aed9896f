"""The journal of an experiment: an event is written once its checkpoint is safe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from pyarrow.fs import LocalFileSystem
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial

from risingsearch.errors import RunDirError
from risingsearch.integrations.ray.results import (
    NAME,
    REMOTE_NAME,
    last_stamp,
    recorded_event,
    stamp_of,
)
from risingsearch.json_values import Json
from risingsearch.scheduling.events import Event, Failed, Returned, TrialReported
from risingsearch.storage.files import atomic_write
from risingsearch.storage.journal import Journal, create, read


@dataclass
class _Unwritten:
    """Event that is not on disk yet."""

    event: Event
    trial: Trial | None  # whose checkpoint it waits for; None if it is ready


class ExperimentJournal:
    """Writes the events of an experiment, in order.

    The header and the events of an experiment that was begun before are read first.
    """

    def __init__(self, trial: Trial, header: Json) -> None:
        storage = trial.storage
        self._staging = Path(storage.experiment_driver_staging_path)
        # With remote storage it is in the folder whose files Ray uploads now and then.
        self._is_local = isinstance(storage.storage_filesystem, LocalFileSystem)
        self.path = self._staging / REMOTE_NAME
        if self._is_local:
            self.path = Path(storage.experiment_fs_path, NAME)
        recorded = None
        if self.path.exists():
            recorded = read(self.path)
        if recorded is None or recorded.header["key"] != header["key"]:
            # Of another experiment, which had the folder before.
            if trial.has_reported_at_least_once:
                raise RunDirError(
                    f"{self.path} is missing, which holds the earlier decisions: "
                    "put it back, or begin a new experiment"
                )
            self.path.parent.mkdir(parents=True, exist_ok=True)
            create(self.path, header)
            recorded = read(self.path)
        self.header = recorded.header
        self.events = [recorded_event(line) for line in recorded.events]
        self._journal = Journal(self.path, recorded)
        self._unwritten: list[_Unwritten] = []

    def write(self, event: Event, trial: Trial | None = None) -> None:
        """Write an event after those before; a result once its trial has saved it."""
        if isinstance(event, TrialReported):  # decides nothing
            self._journal.append(event.to_json())
            return
        waits_for = None
        if isinstance(event, Failed) and event.metrics:
            event = replace(event, checkpoint=_newest_checkpoint(trial))
        elif isinstance(event, Returned) and event.metrics:
            waits_for = trial
        self._unwritten.append(_Unwritten(event, waits_for))
        self._write()

    def write_saved(self) -> None:
        """Write the events whose checkpoints are there by now; a missing one raises."""
        for entry in self._unwritten:
            trial = entry.trial
            if trial is None:
                continue
            assert isinstance(entry.event, Returned)
            if last_stamp(trial) == stamp_of(entry.event.metrics[-1]):
                checkpoint = _newest_checkpoint(trial)
                entry.event = replace(entry.event, checkpoint=checkpoint)
                entry.trial = None
            elif trial.is_finished():
                entry.trial = None
            elif not trial.is_saving:
                raise RunDirError(
                    f"trial {trial.trial_id} has no checkpoint of its last epoch: "
                    "give tune.report a checkpoint (a class needs save_checkpoint)"
                )
        self._write()

    def stop_waiting(self, trial: Trial) -> None:
        """Wait no longer for checkpoints of a trial."""
        for entry in self._unwritten:
            if entry.trial is trial:
                entry.trial = None
        self._write()

    def _write(self) -> None:
        while self._unwritten and self._unwritten[0].trial is None:
            self._journal.append(self._unwritten[0].event.to_json())
            self._unwritten.pop(0)

    def save_trials(self, controller: TuneController) -> None:
        """Save Ray's own state of trials and searcher as it is now."""
        # Ray copies its files in place, so that a crash can leave parts of them; here
        # they are renamed into place, where storage can do that.
        if not self._is_local:
            controller.checkpoint(force=True, wait=True)
            return
        controller.save_to_dir()
        for file in self._staging.iterdir():
            if file.suffix in (".json", ".pkl"):
                atomic_write(self.path.with_name(file.name), file.read_bytes())


def _newest_checkpoint(trial: Trial) -> str:
    """Return the name of a trial's newest checkpoint."""
    return PurePosixPath(trial.latest_checkpoint_result.checkpoint.path).name
