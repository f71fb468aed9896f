"""The checkpoints of trials: which result one holds, and which one is the newest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from ray.train._internal.session import _TrainingResult
from ray.tune import Checkpoint
from ray.tune.experiment import Trial
from ray.tune.result import TIME_TOTAL_S, TRAINING_ITERATION

from risingsearch.errors import CheckpointError
from risingsearch.integrations.ray.arms import Stamp
from risingsearch.json_values import as_json, from_json

NONE: Stamp = (None, None)


def stamp_of(metrics: Mapping[str, Any]) -> Stamp:
    """Return what tells a result of a trial from its others.

    The count of iterations alone does not: for functions it begins again where an
    experiment is restored.
    """
    return metrics.get(TRAINING_ITERATION), metrics.get(TIME_TOTAL_S)


def last_stamp(trial: Trial) -> Stamp:
    """Return the stamp of the result that a trial's newest checkpoint holds."""
    newest = trial.latest_checkpoint_result
    return NONE if newest is None else stamp_of(newest.metrics)


def as_event(trial: Trial) -> dict[str, Any]:
    """Return where a trial's newest checkpoint is, and its metrics, as JSON values."""
    newest = trial.latest_checkpoint_result
    folder = trial.storage.experiment_fs_path
    return {
        "path": PurePosixPath(newest.checkpoint.path).relative_to(folder).as_posix(),
        "metrics": as_json(
            {
                name: value
                for name, value in newest.metrics.items()
                if isinstance(value, str | bool | int | float)
            }
        ),
    }


def point_to(trial: Trial, event: Mapping[str, Any]) -> None:
    """Let a trial go on from a checkpoint, unless it knows of a newer one.

    Ray looks at the state of its trials now and then, so what it finds when it restores
    an experiment may lag behind.
    """
    path = PurePosixPath(trial.storage.experiment_fs_path, event["path"])
    newest = trial.latest_checkpoint_result
    if newest is not None and _number(newest.checkpoint.path) >= _number(path):
        return
    checkpoint = Checkpoint(path.as_posix(), trial.storage.storage_filesystem)
    trial.on_checkpoint(_TrainingResult(checkpoint, from_json(event["metrics"])))
    trial.storage.current_checkpoint_index = _number(path)


def _number(path: PurePosixPath | str) -> int:
    return int(PurePosixPath(path).name.rpartition("_")[2])


def without_checkpoint(trial: Trial) -> CheckpointError:
    """Return the error for a trial that would have to train again."""
    return CheckpointError(
        f"trial {trial.trial_id} has no checkpoint of its last epoch, so it would "
        "train it again: give tune.report a checkpoint each time (a class needs "
        "save_checkpoint and load_checkpoint)"
    )


def check_has_checkpoint(trial: Trial) -> None:
    """Check that a trial goes on, and does not begin again.

    Raises
    ------
    CheckpointError
        If it has no checkpoint.
    """
    if trial.latest_checkpoint_result is None:
        raise without_checkpoint(trial)


def check_goes_on(trial: Trial, result: Mapping[str, Any], time_attr: str) -> None:
    """Check by its own count that a trial has not begun again.

    Raises
    ------
    CheckpointError
        If it reports an epoch that is in its checkpoint.
    """
    newest = trial.latest_checkpoint_result
    before = None if newest is None else newest.metrics.get(time_attr)
    now = result.get(time_attr)
    if before is not None and now is not None and now <= before:
        msg = (
            f"trial {trial.trial_id} went on after {time_attr} {before} and reports "
            f"{time_attr} {now}: it has not loaded its checkpoint, see "
            "tune.get_checkpoint or load_checkpoint"
        )
        raise CheckpointError(msg)
