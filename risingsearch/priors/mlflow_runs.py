"""Earlier searches in the folders of MLflow: an experiment each, a folder per run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from risingsearch.errors import PriorError
from risingsearch.priors.earlier import EarlierSearch
from risingsearch.priors.folders import files, subfolders, text_of
from risingsearch.priors.runs import (
    Asked,
    Run,
    by_epoch,
    chosen,
    earlier_search,
    known_direction,
)
from risingsearch.priors.values import as_number, is_missing, value_of

META, METRICS, PARAMS = "meta.yaml", "metrics", "params"
FAILED = "4"  # RunStatus.FAILED
DELETED = "deleted"

_LINE = re.compile(r"^(\w+): *(.*?) *$", re.MULTILINE)


class _Recorded(NamedTuple):
    params: dict[str, Any]
    metrics: dict[str, Path]
    failed: bool


def is_experiment(folder: Path) -> bool:
    """Return whether this is the folder of an experiment: with runs, itself no run."""
    return "experiment_id" in (meta := _meta(folder)) and "run_id" not in meta


def of_experiment(folder: Path, asked: Asked) -> EarlierSearch | None:
    """Return the runs of an experiment; None where it has none, or is deleted."""
    meta = _meta(folder)
    inner = [_recorded(one) for one in subfolders(folder)]
    runs = [run for run in inner if run is not None]
    if not runs or meta.get("lifecycle_stage") == DELETED:
        return None
    where = str(folder)
    metrics = dict.fromkeys(name for run in runs for name in run.metrics)
    score = chosen(asked.score, list(metrics), where)
    direction = known_direction(asked, where, metric=score)
    name = meta.get("name", folder.name).strip("'\"")
    found = (_run(run, score) for run in runs)
    return earlier_search(name, found, asked, direction, metric=score)


def _meta(folder: Path) -> dict[str, str]:
    """Return the facts of an experiment or a run; they are plain lines of YAML."""
    return dict(_LINE.findall(text_of(folder / META) or ""))


def _recorded(folder: Path) -> _Recorded | None:
    meta = _meta(folder)
    if not ({"run_id", "run_uuid"} & meta.keys()):
        return None
    if meta.get("lifecycle_stage") == DELETED:
        return None
    params = {
        name: value
        for name, path in _named(folder / PARAMS)
        if not is_missing(value := value_of((text_of(path) or "").rstrip("\n")))
    }
    metrics = dict(_named(folder / METRICS))
    return _Recorded(params, metrics, meta.get("status") == FAILED)


def _named(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder and of those in it; a slash in a name makes one."""
    for inner, _, _ in os.walk(folder):
        for path in files(Path(inner)):
            yield path.relative_to(folder).as_posix(), path


def _run(run: _Recorded, score: str) -> Run:
    """Return a run; one that never had the metric, such as a parent, has no score."""
    if run.failed:
        return Run(run.params, [], failed=True)
    path = run.metrics.get(score)
    return Run(run.params, [] if path is None else _history(path))


def _history(path: Path) -> list[float]:
    """Return the scores of a metric by step; as they came where all are of one step.

    A line is a time, a value and a step, which old releases left out, and perhaps the
    data set. A last line without an end is what a killed process leaves.
    """
    told: list[tuple[float, float]] = []
    for number, line in enumerate((text_of(path) or "").split("\n")[:-1], start=1):
        parts = line.split()
        if not 2 <= len(parts) <= 5:
            msg = f"{path} is damaged: line {number} is no time, value and step"
            raise PriorError(msg)
        step = as_number(parts[2]) if len(parts) > 2 else 0.0
        told.append((step, as_number(parts[1])))
    if len({step for step, _ in told}) == 1:
        return [score for _, score in told]
    return by_epoch(told)
