"""The checkpoints of trials: which result one holds, and which one is the newest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pyarrow.fs import FileSelector
from ray.train._internal.session import _TrainingResult
from ray.train.constants import CHECKPOINT_DIR_NAME
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


def number_of(trial: Trial, result: Mapping[str, Any]) -> int | None:
    """Return the number of the checkpoint that holds a result; None if none will."""
    # Functions report it; a class is saved after its result, under the next number.
    if CHECKPOINT_DIR_NAME not in result:
        return int(trial.storage.current_checkpoint_index) + 1
    name = result[CHECKPOINT_DIR_NAME]
    return None if name is None else _number(name)


def bring_up_to_date(
    trial: Trial, told: Mapping[str, Any] | None, ahead: list[Event]
) -> None:
    """Let a restored trial resume from the newest checkpoint whose epoch is known."""
    # Ray notes the state of its trials now and then: it lags behind the journal or is
    # ahead, and what is stored may be newer than both. `told` is the checkpoint of the
    # last result in the journal, `ahead` the reports since: the rest is trained again.
    stored = _stored(trial)
    numbers = [None if told is None else _number(told["name"])]
    numbers += [event["number"] for event in ahead]
    n_held = _n_held(numbers, [event["safe"] for event in ahead], stored)
    del ahead[n_held:]
    metrics = ahead[-1]["result"] if ahead else (told or {}).get("metrics")
    manager, number = trial.run_metadata.checkpoint_manager, numbers[n_held]
    manager._checkpoint_results = [
        kept
        for kept in manager._checkpoint_results
        if _number(kept.checkpoint.path) in stored.intersection(range(number or 0))
    ]
    manager._latest_checkpoint_result = None
    if number is not None:
        path = PurePosixPath(trial.path, f"checkpoint_{number:06d}").as_posix()
        checkpoint = Checkpoint(path, trial.storage.storage_filesystem)
        trial.on_checkpoint(_TrainingResult(checkpoint, from_json(metrics)))
    # The process of a killed driver's trial may still write the one after the newest.
    newest = max(stored | {number if number is not None else -1})
    trial.storage.current_checkpoint_index = newest + (newest >= 0)
    trial.run_metadata.invalidate_cache()
    trial.invalidate_json_state()


def _n_held(numbers: list[int | None], safe: list[bool], stored: set[int]) -> int:
    """Return how many reports after the last one told the best checkpoint holds."""
    # A checkpoint is whole if the next report has another number; the last one if all
    # before it are deleted.
    later = [*numbers[1:], None]
    whole = [
        n_held
        for n_held, (number, after) in enumerate(zip(numbers, later, strict=True))
        if number is not None
        and (n_held == 0 or safe[n_held - 1] or (after or -1) > number)
    ]
    there = [n_held for n_held in whole if numbers[n_held] in stored]
    if whole and not there and numbers[-1] in stored:
        return len(numbers) - 1
    return max(there or whole, default=0)


def _stored(trial: Trial) -> set[int]:
    """Return the numbers of the checkpoints that a trial has in storage."""
    folder = FileSelector(trial.path, allow_not_found=True)
    files = trial.storage.storage_filesystem.get_file_info(folder)
    names = [file.base_name for file in files]
    return {_number(name) for name in names if name.startswith("checkpoint_")}


def _number(path: str) -> int:
    return int(path.rpartition("_")[2])


def check_goes_on(
    trial: Trial, result: Mapping[str, Any], time_attr: str, counts: Sequence[Any]
) -> None:
    """Check by its own counts that a resumed trial trains the epoch after the last."""
    newest = trial.latest_checkpoint_result
    before = None if newest is None else newest.metrics.get(time_attr)
    now = result.get(time_attr)
    if before is None or now is None:
        return
    first = counts[0] if counts else None
    one_by_one = first in (0, 1) and list(counts) == [
        first + n for n in range(len(counts))
    ]
    if now <= before or (one_by_one and counts[-1] == before and now != before + 1):
        msg = (
            f"trial {trial.trial_id} resumed after {time_attr} {before} and reports "
            f"{time_attr} {now}: it has not loaded its checkpoint, see "
            "tune.get_checkpoint or load_checkpoint; if it counts otherwise, give "
            "time_attr a name that it does not report"
        )
        raise RunDirError(msg)
