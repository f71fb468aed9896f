"""Whether scripts go on from their checkpoints: if none does, that is soon said."""

from __future__ import annotations

import math

from risingsearch.arms import Report
from risingsearch.errors import SearchFailedError
from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch

ENOUGH = 3
"""So many that fail to go on, where none has succeeded, speak for all."""


class ResumeCheck:
    """A callback that ends a search in which no script goes on."""

    def __init__(self) -> None:
        self._n_failed = 0
        self._has_resumed = False

    def __call__(self, search: RisingSearch, report: Report) -> None:
        """Raise a SearchFailedError once it is clear."""
        if report.job.from_epoch == 0:
            return
        if report.failure is None:
            self._has_resumed = True
            return
        self._n_failed += 1
        if self._n_failed >= ENOUGH and not self._has_resumed:
            check_resumed(search.result())


def check_resumed(result: SearchResult) -> None:
    """Raise a SearchFailedError where scripts were to go on, and none has."""
    failed = [
        report
        for report in result.failures
        if report.job.from_epoch > 0 and not report.scores
    ]
    if not failed or any(
        math.isfinite(row["score"])
        for row in result.history
        if not row["reason"].startswith("opened")
    ):
        return
    msg = (
        f"no script has gone on from its checkpoint, of {len(failed)} that were to: "
        f"{failed[0].failure}; where a script cannot load what it has saved, "
        "resume: false in the sweep keeps its process alive, with another --run-dir"
    )
    raise SearchFailedError(msg) from failed[0].failure
