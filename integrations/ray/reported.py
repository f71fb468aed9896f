"""Reports of trials, as far as the journal of their experiment has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.result import CONFIG_PREFIX, EXPR_RESULT_FILE, TRIAL_ID
from ray.tune.utils import flatten_dict

from risingsearch.errors import RunDirError
from risingsearch.integrations.ray.arms import stamp_of
from risingsearch.integrations.ray.checkpoints import NONE, plain
from risingsearch.json_values import as_json, from_json
from risingsearch.scheduling.replay import RESULTS, Event
from risingsearch.storage.journal import read

NAME = "risingsearch-journal.jsonl"
# Ray brings files of this kind back from remote storage, and only there they may be:
# what it brings back from a folder of this machine, it would write over the file again.
REMOTE_NAME = "risingsearch-journal.json"

Result = dict[str, Any]


def results(path: str | Path) -> list[dict[str, Any]]:
    """Return one row per epoch that trials were told of, in the order of the telling.

    It reads the journal of ``RisingScheduler`` and nothing else, while the experiment
    runs as well as after it was killed. Epochs whose checkpoint was not safe yet are
    not in it, and neither are those that were charged to a failure.

    Parameters
    ----------
    path : str or Path
        Folder of the experiment, ``results.experiment_path``; with remote storage, a
        copy of it on this machine.

    Returns
    -------
    list of dict
        ``trial_id``; ``params``, those of its config that are text, numbers, booleans
        or None, with nested ones as ``"a/b"``; ``epoch``, from 1; ``score``;
        ``metrics``, what else was reported, and by Ray, that is text, number or
        boolean.

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
