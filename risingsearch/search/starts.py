"""Advice on the length of jobs, from the time that they take to start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

N_JOBS = 5
"""Jobs whose start was measured before there is any advice."""
WORTH_SAYING = 1 / 3
"""Share of the time of jobs that their starts take."""


class Starts:
    """Measured starts of jobs: the share of the time they take, and what to set.

    Half as many epochs as a start takes as long as are enough for a job; if a start
    takes as long as half of an arm, pausing the arm saves too little.

    Examples
    --------
    >>> starts = Starts(max_epochs=81)
    >>> for _ in range(5):
    ...     starts.add(n_epochs=2, seconds=32.0, startup=30.0)
    >>> print(starts.advice(epochs_per_job=None))
    jobs take 94 % of their time to start (30 s a start, 1 s an epoch): to train more \
in the same time, set epochs_per_job to 15
    """

    def __init__(self, max_epochs: int) -> None:
        self._max_epochs = max_epochs
        self._startups: list[float] = []
        self._seconds = 0.0
        self._n_epochs = 0

    @classmethod
    def of_events(cls, events: Iterable[Mapping[str, Any]], max_epochs: int) -> Starts:
        """Return the starts in the events of a journal."""
        starts = cls(max_epochs)
        for event in events:
            if isinstance(event.get("startup"), float) and "failure" not in event:
                seconds, startup = event["elapsed"], event["startup"]
                starts.add(len(event["scores"]), seconds, startup)
        return starts

    def add(self, n_epochs: int, seconds: float, startup: float | None) -> None:
        """Add a job and the part of its seconds before its first epoch, if known."""
        if startup is None or math.isnan(startup) or not n_epochs:
            return
        self._startups.append(startup)
        self._seconds += seconds
        self._n_epochs += n_epochs

    @property
    def share(self) -> float:
        """Share of the time of jobs that their starts take; NaN while none is known."""
        return sum(self._startups) / self._seconds if self._seconds else math.nan

    def wanted(self) -> int | None:
        """Return how long jobs should be; None if starts are few, or short."""
        if len(self._startups) < N_JOBS or not self.share >= WORTH_SAYING:
            return None
        worth = median(self._startups) / max(self._epoch, 1e-9)
        if worth >= self._max_epochs / 2:
            return self._max_epochs
        return max(1, math.ceil(worth / 2))

    @property
    def _epoch(self) -> float:
        """Mean seconds of an epoch."""
        return (self._seconds - sum(self._startups)) / self._n_epochs

    def advice(self, epochs_per_job: int | None) -> str | None:
        """Return the setting to change, unless jobs are about as long already."""
        wanted = self.wanted()
        now = self._n_epochs / len(self._startups) if self._startups else 1.0
        if wanted is None or wanted <= (epochs_per_job or now):
            return None
        return (
            f"jobs take {self.share:.0%} of their time to start "
            f"({median(self._startups):.3g} s a start, {self._epoch:.3g} s an epoch): "
            f"to train more in the same time, set epochs_per_job to {wanted}"
        ).replace("%", " %")
