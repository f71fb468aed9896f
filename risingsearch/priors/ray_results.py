"""Earlier searches of Ray Tune: a folder per trial, its parameters and results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from risingsearch.checks import is_number
from risingsearch.errors import PriorError
from risingsearch.priors.earlier import EarlierSearch
from risingsearch.priors.folders import has_entry, subfolders, text_of
from risingsearch.priors.runs import (
    Asked,
    Run,
    by_epoch,
    chosen,
    earlier_search,
    known_direction,
    mean,
)
from risingsearch.priors.values import as_number

PARAMS, RESULTS, ERROR = "params.json", "result.json", "error.txt"
EPOCH, SECONDS, CONFIG, DONE = (
    "training_iteration",
    "time_this_iter_s",
    "config",
    "done",
)
NO_METRICS = {
    EPOCH,
    SECONDS,
    CONFIG,
    DONE,
    "checkpoint_dir_name",
    "date",
    "episodes_total",
    "experiment_id",
    "experiment_tag",
    "hostname",
    "iterations_since_restore",
    "logdir",
    "node_ip",
    "pid",
    "should_checkpoint",
    "time_since_restore",
    "time_total_s",
    "timestamp",
    "timesteps_since_restore",
    "timesteps_total",
    "trial_id",
    "warmup_time",
}
"""What Ray adds to every result by itself."""

Values = Mapping[str, Any]


class _Trial(NamedTuple):
    params: Values
    results: list[dict[str, Any]]  # flat
    failed: bool


def is_experiment(folder: Path) -> bool:
    """Return whether there are trials of Ray Tune in a folder."""
    return any(_is_trial(inner) for inner in subfolders(folder))


def of_experiment(folder: Path, asked: Asked) -> EarlierSearch:
    """Return the trials in the folder of an experiment."""
    trials = [_trial(inner) for inner in subfolders(folder) if _is_trial(inner)]
    where = str(folder)
    metrics = dict.fromkeys(name for trial in trials for name in _metrics(trial))
    score = chosen(asked.score, list(metrics), where)
    direction = known_direction(asked, where, metric=score)
    runs = (_run(trial, score) for trial in trials)
    return earlier_search(folder.name, runs, asked, direction, metric=score)


def _is_trial(folder: Path) -> bool:
    return any(has_entry(folder, name) for name in (PARAMS, RESULTS))


def _trial(folder: Path) -> _Trial:
    lines = list(_results(folder / RESULTS))
    params = _object(text_of(folder / PARAMS) or "")
    if params is None:  # torn, or missing
        params = lines[-1].get(CONFIG, {}) if lines else {}
    has_ended = any(line.get(DONE) is True for line in lines)
    failed = has_entry(folder, ERROR) and not has_ended
    results = [_flat(line) for line in lines]
    return _Trial(params if isinstance(params, dict) else {}, results, failed)


def _results(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the results in a file; a torn last line is what a killed run leaves."""
    lines = (text_of(path) or "").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        result = _object(line)
        if result is not None:
            yield result
        elif number < len(lines):
            msg = f"{path} is damaged: line {number} holds no result as JSON"
            raise PriorError(msg)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _flat(result: Values, above: str = "") -> dict[str, Any]:
    """Return the metrics of a result, those in others as Ray joins their names."""
    flat: dict[str, Any] = {}
    for name, value in result.items():
        if not above and name == CONFIG:
            continue
        if isinstance(value, dict):
            flat |= _flat(value, f"{above}{name}/")
        else:
            flat[f"{above}{name}"] = value
    return flat


def _metrics(trial: _Trial) -> Iterator[str]:
    for result in (*trial.results[:1], *trial.results[-1:]):
        for name, value in result.items():
            if name not in NO_METRICS and is_number(value):
                yield name


def _run(trial: _Trial, score: str) -> Run:
    if trial.failed:
        return Run(trial.params, [], failed=True)
    told = [result for result in trial.results if score in result]
    scores = by_epoch(
        (as_number(result.get(EPOCH, k)), as_number(result[score]))
        for k, result in enumerate(told)
    )
    seconds = mean(as_number(result.get(SECONDS)) for result in told)
    return Run(trial.params, scores, seconds)
