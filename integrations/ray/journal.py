"""The journal of an experiment, and the reports of trials that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pyarrow.fs import LocalFileSystem
from ray.tune.experiment import Trial
from ray.tune.result import CONFIG_PREFIX, EXPR_RESULT_FILE, TRIAL_ID
from ray.tune.utils import flatten_dict

from risingsearch.errors import RunDirError
from risingsearch.integrations.ray.arms import stamp_of
from risingsearch.integrations.ray.checkpoints import (
    NONE,
    checkpoint_of,
    last_stamp,
    plain,
)
from risingsearch.json_values import as_json, from_json
from risingsearch.scheduling.replay import RESULTS, Event
from risingsearch.storage.files import atomic_write
from risingsearch.storage.journal import Journal, create, read

NAME = "risingsearch-journal.jsonl"
# Ray brings files of this kind back from remote storage, and only there they may be:
# what it brings back from a folder of this machine, it would write over the file again.
REMOTE_NAME = "risingsearch-journal.json"

Result = dict[str, Any]


def results(path: str | Path) -> list[dict[str, Any]]:
    """Return one row per epoch that trials were told of, in the order of the telling.

    It reads the journal of ``RisingScheduler``, also while the experiment runs. Epochs
    whose checkpoint was not safe yet, or that a failure was charged, are not in it.

    Parameters
    ----------
    path : str or Path
        Folder of the experiment, ``results.experiment_path``; with remote storage, a
        copy of it on this machine.

    Returns
    -------
    list of dict
        ``trial_id``; ``params``, the plain values of its config, with nested ones as
        ``"a/b"``; ``epoch``, from 1; ``score``; ``metrics``, all plain values reported.

    Raises
    ------
    RunDirError
        If there is no journal in the folder, or it is damaged.

    Examples
    --------
    >>> results("digits")
    Traceback (most recent call last):
    risingsearch.errors.RunDirError: digits has no risingsearch-journal.jsonl and no \
risingsearch-journal.json: give the folder of an experiment with a RisingScheduler
    """
    journals = [Path(path, name) for name in (NAME, REMOTE_NAME)]
    found = next((journal for journal in journals if journal.exists()), None)
    if found is None:
        msg = (
            f"{path} has no {NAME} and no {REMOTE_NAME}: give the folder of an "
            "experiment with a RisingScheduler"
        )
        raise RunDirError(msg)
    opened: dict[int, Event] = {}
    rows: list[dict[str, Any]] = []
    for event in read(found).events:
        if event["event"] == "opened":
            opened[event["arm"]] = event
        elif event["event"] in RESULTS:
            arm, from_epoch, *_ = event["job"]
            trial_id, params = opened[arm]["trial"], from_json(opened[arm]["params"])
            told = zip(*from_json([event["scores"], event["results"]]), strict=True)
            rows += [
                {"trial_id": trial_id, "params": params, "epoch": epoch}
                | {"score": score, "metrics": metrics}
                for epoch, (score, metrics) in enumerate(told, from_epoch + 1)
            ]
    return rows


def params_of(trial: Trial) -> Event:
    """Return a trial's config for the journal."""
    flat = flatten_dict(trial.config)
    params = {n: v for n, v in flat.items() if v is None or plain({n: v})}
    return dict(as_json(params))


def reported(result: Mapping[str, Any]) -> Result:
    """Return a result for the journal: all but the config, which is known."""
    config = f"{CONFIG_PREFIX}/"
    return plain({k: v for k, v in result.items() if not k.startswith(config)})


def bring_results_up_to_date(trial: Trial, results: Sequence[Result]) -> None:
    """Let a restored trial have reported what was told, if Ray does not know it."""
    # What an unfinished trial has reported beyond the journal is trained again.
    metadata = trial.run_metadata
    stamps = [stamp_of(result) for result in results]
    known = stamp_of(metadata.last_result)
    if known == stamps[-1] or (trial.is_finished() and known not in [NONE, *stamps]):
        return
    for name in set().union(*results):
        metadata.metric_analysis.pop(name, None)
    for result in results:
        trial.update_last_result(
            {**result, TRIAL_ID: trial.trial_id, "config": trial.config}
        )


def store_log(trial: Trial) -> None:
    """Store the log of a paused trial, with which its logger begins again."""
    # Ray uploads it now and then: an epoch that was logged since would be lost.
    local = Path(trial.local_path, EXPR_RESULT_FILE)
    if local.exists():
        storage = trial.storage.storage_filesystem
        storage.create_dir(trial.path)
        stored = PurePosixPath(trial.path, EXPR_RESULT_FILE).as_posix()
        with storage.open_output_stream(stored) as file:
            file.write(local.read_bytes())


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
