"""Reports of trials, as far as the journal of their experiment has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pyarrow.fs import FileSystem, FileType
from ray.tune.experiment import Trial
from ray.tune.logger import JsonLoggerCallback
from ray.tune.result import (
    CONFIG_PREFIX,
    EXPR_RESULT_FILE,
    TRIAL_ID,
)
from ray.tune.utils import flatten_dict
from ray.tune.utils.util import SafeFallbackEncoder

from risingsearch.errors import RunDirError
from risingsearch.integrations.ray.checkpoints import NONE, plain, stamp_of
from risingsearch.json_values import as_json, from_json
from risingsearch.scheduling.replay import RESULTS, Event
from risingsearch.storage.files import atomic_write
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
    opened: dict[int, Event] = {}
    rows: list[dict[str, Any]] = []
    for event in read(_journal_in(Path(path))).events:
        if event["event"] == "opened":
            opened[event["arm"]] = event
        elif event["event"] in RESULTS:
            arm, from_epoch, *_ = event["job"]
            trial = {
                "trial_id": opened[arm]["trial"],
                "params": from_json(opened[arm]["params"]),
            }
            scores = from_json(event["scores"])
            metrics = from_json(event["results"])
            rows += [
                {**trial, "epoch": epoch, "score": score, "metrics": reported_then}
                for epoch, (score, reported_then) in enumerate(
                    zip(scores, metrics, strict=True), from_epoch + 1
                )
            ]
    return rows


def _journal_in(folder: Path) -> Path:
    for name in (NAME, REMOTE_NAME):
        if (folder / name).exists():
            return folder / name
    msg = (
        f"{folder} has no {NAME} and no {REMOTE_NAME}: give the folder of an "
        "experiment with a RisingScheduler"
    )
    raise RunDirError(msg)


def params_of(trial: Trial) -> Event:
    """Return a trial's config for the journal."""
    flat = flatten_dict(trial.config)
    params = {n: v for n, v in flat.items() if v is None or plain({n: v})}
    return dict(as_json(params))


def reported(result: Mapping[str, Any]) -> Result:
    """Return a result for the journal: all but the config, which is known."""
    own = {
        name: value
        for name, value in result.items()
        if not name.startswith(f"{CONFIG_PREFIX}/")
    }
    return plain(own)


def results_by_trial(events: Iterable[Event]) -> dict[str, list[Result]]:
    """Return the results of all told epochs, by the ids of their trials."""
    trials: dict[int, str] = {}
    told: dict[str, list[Result]] = {}
    for event in events:
        if event["event"] == "opened":
            trials[event["arm"]] = event["trial"]
            told[event["trial"]] = []
        elif event["event"] in RESULTS:
            told[trials[event["job"][0]]] += from_json(event["results"])
    return told


def bring_results_up_to_date(
    trial: Trial, results: Sequence[Result], controller: Any
) -> None:
    """Give a restored trial the results that Ray has lost.

    Ray notes the state of its trials now and then, and uploads what its loggers write
    now and then, so both may lag behind the journal, or be ahead of it: what an
    unfinished trial has reported beyond what was told is trained and reported again.
    """
    whole = [{**r, TRIAL_ID: trial.trial_id, "config": trial.config} for r in results]
    if _logs(controller):
        _mend_file(trial, whole)
    if whole:
        _mend_state(trial, whole)


def store_log(trial: Trial, controller: Any) -> None:
    """Store the log of a paused trial that is about to resume.

    Its logger begins with the stored file then, which Ray uploads now and then: without
    this, an epoch that was logged since would be lost.
    """
    local = _log(trial)
    if _logs(controller) and local.exists():
        _store_log(trial, local.read_bytes())


def _logs(controller: Any) -> bool:
    loggers = controller._callbacks._callbacks
    return any(isinstance(logger, JsonLoggerCallback) for logger in loggers)


def _log(trial: Trial) -> Path:
    return Path(trial.local_path, EXPR_RESULT_FILE)


def _stored_log(trial: Trial) -> str:
    return PurePosixPath(trial.path, EXPR_RESULT_FILE).as_posix()


def _store_log(trial: Trial, content: bytes) -> None:
    storage = trial.storage.storage_filesystem
    storage.create_dir(trial.path)
    with storage.open_output_stream(_stored_log(trial)) as file:
        file.write(content)


def _mend_state(trial: Trial, results: Sequence[Result]) -> None:
    """Let a trial have reported what was told, unless Ray knows that, or its end."""
    metadata = trial.run_metadata
    stamps = [stamp_of(result) for result in results]
    known = stamp_of(metadata.last_result)
    if known == stamps[-1] or (trial.is_finished() and known not in [NONE, *stamps]):
        return
    for name in set().union(*results):
        metadata.metric_analysis.pop(name, None)
    for result in results:
        trial.update_last_result(dict(result))


def _mend_file(trial: Trial, results: Sequence[Result]) -> None:
    """Bring the file up to date that Ray reads the data frames of results from.

    The driver's own copy is the newer one, where it is left. A trial that resumes
    begins with the one in storage, and one that does not leaves its own to be uploaded.
    """
    local = _log(trial)
    storage = trial.storage.storage_filesystem
    before = (
        local.read_bytes() if local.exists() else _content(storage, _stored_log(trial))
    )
    told = {
        stamp_of(result): json.dumps(result, cls=SafeFallbackEncoder).encode()
        for result in results
    }
    known = [
        (stamp_of(result), line)
        for line in before.splitlines()
        if (result := _whole(line)) is not None
    ]
    while known and known[-1][0] not in told and not trial.is_finished():
        known.pop()  # it is trained again
    content = b"".join(line + b"\n" for line in (told | dict(known)).values())
    if content == before:
        return
    trial.init_local_path()
    atomic_write(local, content)
    _store_log(trial, content)


def _whole(line: bytes) -> Result | None:
    """Return the result of a line; None if a crash has torn it."""
    try:
        return dict(json.loads(line))
    except ValueError:
        return None


def _content(storage: FileSystem, path: str) -> bytes:
    if storage.get_file_info(path).type == FileType.NotFound:
        return b""
    with storage.open_input_stream(path) as file:
        return bytes(file.read())
