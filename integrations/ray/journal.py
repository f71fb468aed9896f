"""The journal of an experiment, and the checkpoints and reports of trials in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pyarrow.fs import FileSelector, LocalFileSystem
from ray.train._internal.session import _TrainingResult
from ray.train.constants import CHECKPOINT_DIR_NAME
from ray.tune import Checkpoint
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial
from ray.tune.result import CONFIG_PREFIX, EXPR_RESULT_FILE, TRIAL_ID
from ray.tune.utils import flatten_dict

from risingsearch.errors import RunDirError
from risingsearch.integrations.ray.arms import RESULTS, Stamp, stamp_of
from risingsearch.json_values import as_json, from_json
from risingsearch.json_values import plain as plain_value
from risingsearch.storage.files import atomic_write
from risingsearch.storage.journal import Event, Journal, create, read

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
    existing = next(filter(Path.exists, journals), None)
    if existing is None:
        raise RunDirError(
            f"{path} has no {NAME} and no {REMOTE_NAME}: give the folder of an "
            "experiment with a RisingScheduler"
        )
    opened: dict[int, Event] = {}
    rows: list[dict[str, Any]] = []
    for event in read(existing).events:
        if event["event"] == "opened":
            opened[event["arm"]] = event
        elif event["event"] in RESULTS:
            arm, from_epoch, *_ = event["job"]
            trial_id = opened[arm]["trial"]
            params = from_json(opened[arm]["params"])
            recorded = zip(*from_json([event["scores"], event["results"]]), strict=True)
            rows += [
                {
                    "trial_id": trial_id,
                    "params": params,
                    "epoch": epoch,
                }
                | {"score": score, "metrics": metrics}
                for epoch, (score, metrics) in enumerate(recorded, from_epoch + 1)
            ]
    return rows


def params_of(trial: Trial) -> Event:
    """Return a trial's config for the journal."""
    flat = flatten_dict(trial.config)
    return dict(as_json({n: v for n, v in flat.items() if v is None or plain({n: v})}))


def reported(result: Mapping[str, object]) -> Result:
    """Return a result for the journal: all but the config, which is known."""
    config = f"{CONFIG_PREFIX}/"
    return plain({k: v for k, v in result.items() if not k.startswith(config)})


def bring_results_up_to_date(trial: Trial, results: Sequence[Result]) -> None:
    """Let a restored trial have reported recorded results that Ray lacks."""
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
            {
                **result,
                TRIAL_ID: trial.trial_id,
                "config": trial.config,
            }
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
    stamp: Stamp | None = None  # of the result that the checkpoint holds


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

    def note(
        self,
        event: Event,
        trial: Trial | None = None,
        stamp: Stamp | None = None,
    ) -> None:
        """Write an event, in order; with a trial, once it has saved that result."""
        self._lines.append(_Line(event, trial, stamp))
        self._write()

    def note_at_once(self, event: Event) -> None:
        """Write an event that decides nothing, before those that wait."""
        assert self._journal is not None
        self._journal.append(event)

    def save_trials(self, controller: TuneController) -> None:
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
                raise RunDirError(
                    f"trial {trial.trial_id} has no checkpoint of its last epoch: "
                    "give tune.report a checkpoint (a class needs save_checkpoint)"
                )
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


NONE: Stamp = (None, None)


def plain(metrics: Mapping[str, object]) -> Result:
    """Return the metrics that a journal can hold: text, numbers and booleans.

    Parameters
    ----------
    metrics : dict
        Those of a result.

    Returns
    -------
    dict
        The others left out.

    Examples
    --------
    >>> plain({"loss": 0.5, "weights": [0.1, 0.2], "name": "a"})
    {'loss': 0.5, 'name': 'a'}
    """
    allowed: Result = {}
    for name, value in metrics.items():
        value = plain_value(value)
        if isinstance(value, str | bool | int | float):
            allowed[name] = value
    return allowed


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
    return {
        "checkpoint": {
            "name": name,
            "metrics": as_json(plain(newest.metrics)),
        }
    }


def number_of(trial: Trial, result: Mapping[str, Any]) -> int | None:
    """Return the number of the checkpoint that holds a result; None if none will."""
    # Functions report it; a class is saved after its result, under the next number.
    if CHECKPOINT_DIR_NAME not in result:
        return int(trial.storage.current_checkpoint_index) + 1
    name = result[CHECKPOINT_DIR_NAME]
    return None if name is None else _number(name)


def bring_up_to_date(
    trial: Trial,
    recorded: Mapping[str, Any] | None,
    ahead: list[Event],
) -> None:
    """Let a restored trial resume from the newest checkpoint whose epoch is known."""
    # Ray notes the state of its trials now and then: it lags behind the journal or is
    # ahead, and what is stored may be newer than both. `told` is the checkpoint of the
    # last result in the journal, `ahead` the reports since: the rest is trained again.
    stored = _stored(trial)
    numbers = [None if recorded is None else _number(recorded["name"])]
    numbers += [event["number"] for event in ahead]
    n_held = _n_held(numbers, [event["safe"] for event in ahead], stored)
    del ahead[n_held:]
    metrics = ahead[-1]["result"] if ahead else (recorded or {}).get("metrics")
    manager = trial.run_metadata.checkpoint_manager
    number = numbers[n_held]
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


def _n_held(
    numbers: list[int | None],
    safe: list[bool],
    stored: set[int],
) -> int:
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


def check_continues(
    trial: Trial,
    result: Mapping[str, object],
    time_attr: str,
    counts: Sequence[Any],
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
        raise RunDirError(
            f"trial {trial.trial_id} resumed after {time_attr} {before} and reports "
            f"{time_attr} {now}: load its checkpoint, see tune.get_checkpoint; if it "
            "counts otherwise, give time_attr a name that it does not report"
        )
