"""The checkpoints of trials: which result one holds, and which one is the newest."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from pyarrow.fs import FileSelector
from ray.train._internal.session import _TrainingResult
from ray.tune import Checkpoint
from ray.tune.experiment import Trial

from risingsearch.errors import RunDirError
from risingsearch.integrations.ray.arms import Stamp, stamp_of
from risingsearch.json_values import as_json, from_json
from risingsearch.json_values import plain as plain_value
from risingsearch.scheduling.replay import Event

NONE: Stamp = (None, None)


def plain(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics that a journal can hold: text, numbers and booleans."""
    values = {name: plain_value(value) for name, value in metrics.items()}
    return {k: v for k, v in values.items() if isinstance(v, str | bool | int | float)}


def last_stamp(trial: Trial) -> Stamp:
    """Return the stamp of the result that a trial's newest checkpoint holds."""
    newest = trial.latest_checkpoint_result
    return NONE if newest is None else stamp_of(newest.metrics)


def checkpoint_of(trial: Trial) -> Event:
    """Return a trial's newest checkpoint for the journal, if there is one."""
    newest = trial.latest_checkpoint_result
    if newest is None:
        return {}
    name = PurePosixPath(newest.checkpoint.path).name
    return {"checkpoint": {"name": name, "metrics": as_json(plain(newest.metrics))}}


def bring_up_to_date(trial: Trial, event: Mapping[str, Any] | None) -> None:
    """Let a restored trial resume from its newest checkpoint.

    Ray notes the state of its trials now and then, so what it restores may lag behind
    the journal; and behind what is stored, where it keeps only some of the checkpoints.
    ``event`` is the checkpoint that the journal has of the trial.
    """
    newest = trial.latest_checkpoint_result
    number, metrics = -1, {}
    if newest is not None:
        number, metrics = _number(newest.checkpoint.path), newest.metrics
    known = number
    if event is not None and _number(event["name"]) > number:
        number, metrics = _number(event["name"]), from_json(event["metrics"])
    stored = _stored(trial)
    if number not in stored:
        number = max(stored, default=number)
    if number <= known:
        return
    path = PurePosixPath(trial.path, f"checkpoint_{number:06d}").as_posix()
    checkpoint = Checkpoint(path, trial.storage.storage_filesystem)
    with suppress(FileNotFoundError):  # of an older one, which Ray is done with
        trial.on_checkpoint(_TrainingResult(checkpoint, metrics))
    trial.storage.current_checkpoint_index = number
    trial.invalidate_json_state()


def _stored(trial: Trial) -> set[int]:
    """Return the numbers of the checkpoints that a trial has in storage."""
    folder = FileSelector(trial.path, allow_not_found=True)
    files = trial.storage.storage_filesystem.get_file_info(folder)
    names = [file.base_name for file in files]
    return {_number(name) for name in names if name.startswith("checkpoint_")}


def _number(path: str) -> int:
    return int(path.rpartition("_")[2])


def check_goes_on(trial: Trial, result: Mapping[str, Any], time_attr: str) -> None:
    """Check by its own count that a trial trains no epoch of its checkpoint again."""
    newest = trial.latest_checkpoint_result
    before = None if newest is None else newest.metrics.get(time_attr)
    now = result.get(time_attr)
    if before is not None and now is not None and now <= before:
        msg = (
            f"trial {trial.trial_id} resumed after {time_attr} {before} and reports "
            f"{time_attr} {now}: it has not loaded its checkpoint, see "
            "tune.get_checkpoint or load_checkpoint"
        )
        raise RunDirError(msg)
