"""Checkpoints of trials: where a restored or paused trial resumes."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pyarrow.fs import FileSelector
from ray.train._internal.session import _TrainingResult
from ray.train.constants import CHECKPOINT_DIR_NAME
from ray.tune import Checkpoint
from ray.tune.experiment import Trial
from ray.tune.result import EXPR_RESULT_FILE, TRIAL_ID

from risingsearch.arms import Configuration
from risingsearch.errors import RunDirError
from risingsearch.integrations.ray.results import stamp_of
from risingsearch.scheduling.events import TrialReported


def bring_results_up_to_date(trial: Trial, results: Sequence[Configuration]) -> None:
    """Let a restored trial have reported recorded results that Ray lacks."""
    # What an unfinished trial has reported beyond the journal is trained again.
    metadata = trial.run_metadata
    stamps = [stamp_of(result) for result in results]
    known = stamp_of(metadata.last_result)
    is_ahead = known != (None, None) and known not in stamps
    if known == stamps[-1] or (trial.is_finished() and is_ahead):
        return
    for name in set().union(*results):
        metadata.metric_analysis.pop(name, None)
    for result in results:
        named = {**result, TRIAL_ID: trial.trial_id, "config": trial.config}
        trial.update_last_result(named)


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


def number_of(trial: Trial, result: Configuration) -> int | None:
    """Return the number of the checkpoint that holds a result; None if none will."""
    # Functions report it; a class is saved after its result, under the next number.
    if CHECKPOINT_DIR_NAME not in result:
        return int(trial.storage.current_checkpoint_index) + 1
    name = result[CHECKPOINT_DIR_NAME]
    return None if name is None else _number(name)


def bring_up_to_date(
    trial: Trial,
    told: tuple[str, Configuration] | None,
    reports: list[TrialReported],
) -> None:
    """Let a restored trial resume from the newest checkpoint whose epoch is known.

    That may be the checkpoint after the last result told, given with its metrics, or
    one of the reports since; those that it does not hold are dropped.
    """
    # Ray notes the state of its trials now and then: it lags behind the journal or is
    # ahead, and what is stored may be newer than both.
    stored = _stored(trial)
    numbers = [_number(told[0]) if told else None]
    numbers += [report.number for report in reports]
    n_held = _n_held(numbers, [report.safe for report in reports], stored)
    del reports[n_held:]
    number = numbers[n_held]
    manager = trial.run_metadata.checkpoint_manager
    manager._checkpoint_results = [
        kept
        for kept in manager._checkpoint_results
        if _number(kept.checkpoint.path) in stored.intersection(range(number or 0))
    ]
    manager._latest_checkpoint_result = None
    if number is not None:
        path = PurePosixPath(trial.path, f"checkpoint_{number:06d}").as_posix()
        checkpoint = Checkpoint(path, trial.storage.storage_filesystem)
        metrics = reports[-1].result if reports else told and told[1]
        trial.on_checkpoint(_TrainingResult(checkpoint, metrics))
        stored.add(number)
    # The process of a killed driver's trial may still write the one after the newest.
    trial.storage.current_checkpoint_index = max(stored) + 1 if stored else -1
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


def check_continues(
    trial: Trial,
    result: Configuration,
    time_attr: str,
    earlier: Sequence[Configuration],
) -> None:
    """Check by its own counts that a resumed trial trains the epoch after the last."""
    newest = trial.latest_checkpoint_result
    before = None
    if newest is not None:
        before = newest.metrics.get(time_attr)
    now = result.get(time_attr)
    if before is None or now is None:
        return
    counts = [metrics.get(time_attr) for metrics in earlier]
    n = len(counts)
    one_by_one = counts in (list(range(n)), list(range(1, n + 1)))
    left_out = one_by_one and before in counts[-1:] and now != before + 1
    if now <= before or left_out:
        raise RunDirError(
            f"trial {trial.trial_id} resumed after {time_attr} {before} and reports "
            f"{time_attr} {now}: load its checkpoint, see tune.get_checkpoint; if it "
            "counts otherwise, give time_attr a name that it does not report"
        )
