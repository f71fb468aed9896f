"""Earlier searches in their run directories: the journal as data, nothing replayed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from risingsearch.arms import Job
from risingsearch.checks import LARGEST_INT
from risingsearch.errors import PriorError, RunDirError
from risingsearch.json_values import from_json
from risingsearch.priors.earlier import EarlierSearch
from risingsearch.priors.runs import (
    Asked,
    Run,
    chosen,
    earlier_search,
    known_direction,
    mean,
)
from risingsearch.priors.values import as_number
from risingsearch.storage.journal import read
from risingsearch.storage.run_directory import (
    JOURNAL,
    holds_search,
    no_collection,
    saved_metric,
    understood,
)

_SHOWN = "$shown"  # a candidate that JSON cannot hold, as text
SCORE = "score"


def is_run_directory(path: Path) -> bool:
    """Return whether a folder is the ``run_dir`` of a search."""
    try:
        return holds_search(path)
    except RunDirError as error:
        raise PriorError(str(error)) from error


def of_run_directory(path: Path, asked: Asked) -> EarlierSearch:
    """Return the search in a directory, also while another process goes on with it.

    Candidates that JSON cannot hold are left out: only unpickling would tell them.
    """
    try:
        with no_collection(), understood(path):
            header, events = read(path / JOURNAL)[:2]
            settings = header["settings"]
            metric = asked.score or SCORE
            arms = _Arms(settings["candidates"], metric, str(path))
            for event in events:
                if event["event"] == "told":
                    arms.take(event)
            said = settings["direction"] if metric == SCORE else None
            direction = known_direction(asked, str(path), metric=metric, said=said)
            return earlier_search(
                path.resolve().name,
                arms.runs(),
                asked,
                direction,
                _epochs(settings["max_epochs"]),
                (saved_metric(header) or SCORE) if metric == SCORE else metric,
            )
    except RunDirError as error:
        msg = f"the earlier search in {path} cannot be read: {error}"
        raise PriorError(msg) from error


def _epochs(max_epochs: Any) -> int:
    return max_epochs if type(max_epochs) is int and max_epochs <= LARGEST_INT else 0


class _Arms:
    """The curves of all arms, put together from what their jobs brought back."""

    def __init__(self, candidates: Sequence[Any], score: str, where: str):
        self._candidates = candidates
        self._score = score
        self._where = where
        self._scores: dict[int, list[float]] = {}  # by arm
        self._seconds: dict[int, list[float]] = {}  # by arm

    def take(self, event: Mapping[str, Any]) -> None:
        """Take over an event that tells of a job."""
        job = Job.from_json(event["job"])
        if not job.arm < len(self._candidates):
            msg = f"it tells of arm {job.arm} and has {len(self._candidates)}"
            raise ValueError(msg)
        scores = self._told(event)
        lost = "failure" in event and len(scores) < job.n_epochs
        before = self._scores.setdefault(job.arm, [])
        before[job.from_epoch :] = [*scores, math.nan] if lost else scores
        seconds = [as_number(one) for one in event.get("seconds", ())]
        self._seconds.setdefault(job.arm, [])[job.from_epoch :] = seconds

    def _told(self, event: Mapping[str, Any]) -> list[float]:
        if self._score == SCORE:
            return [as_number(score) for score in from_json(event["scores"])]
        told = from_json(event["metrics"])
        for metrics in told:
            chosen(self._score, [SCORE, *metrics], self._where)
        return [as_number(metrics[self._score]) for metrics in told]

    def runs(self) -> Iterator[Run]:
        """Yield the arms that were trained, in their order."""
        for arm, scores in sorted(self._scores.items()):
            shown = self._candidates[arm]
            params = {} if _SHOWN in shown else from_json(shown)
            failed = not any(map(math.isfinite, scores))
            yield Run(params, scores, mean(self._seconds[arm]), failed)
