"""What a proposer has opened, read from a journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Job
from risingsearch.scheduling.proposers import Opened
from risingsearch.scheduling.replay import Event


class RecordedOpenings:
    """Proposes what was opened then, for a search that is only shown.

    Directories of earlier releases do not say what a proposer knew of candidates that
    JSON cannot hold, so it cannot be asked again. An arm that was opened by a job that
    never came back is in no journal: another one stands for it.

    Parameters
    ----------
    events : iterable of events
        Of the journal.
    n_asked : callable
        Returns how many jobs the scheduler has been asked for.
    """

    def __init__(self, events: Iterable[Event], n_asked: Callable[[], int]) -> None:
        told = [Job.from_json(event["job"]) for event in events if "job" in event]
        self._arms = {job.id: job.arm for job in told}
        self._n_asked = n_asked

    def propose(
        self, opened: Opened, unopened: NDArray[np.int64], rng: np.random.Generator
    ) -> int:
        """Return the arm of the next job."""
        if self._n_asked() in self._arms:
            return self._arms[self._n_asked()]
        never_told = np.setdiff1d(unopened, list(self._arms.values()))
        return int([*never_told, *unopened][0])
