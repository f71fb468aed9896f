"""Which worker trains which arm: where its state is, unless sending it is cheaper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from risingsearch.search.trainable import Task


class HeldState(NamedTuple):
    """A state that stays on a worker."""

    address: str
    token: str
    epoch: int
    n_bytes: int


class Assignment(NamedTuple):
    """The worker that trains a chunk."""

    address: str
    token: str | None  # of the state that it holds


class Placement:
    """The workers of a cluster, and how busy they are.

    An arm goes on where its state is while that worker has a free thread. Where it has
    none, the arm waits for it if sending its checkpoint would take longer than a chunk
    takes on average, by the bandwidth in bytes per second; otherwise it goes to the
    worker with the most free threads.
    """

    def __init__(self, bandwidth: float) -> None:
        self._bandwidth = bandwidth
        self._threads: dict[str, int] = {}
        self._busy: Counter[str] = Counter()
        self._n_chunks = 0
        self._seconds = 0.0  # of all chunks

    @property
    def n_threads(self) -> int:
        """How many chunks can be trained at the same time."""
        return sum(self._threads.values())

    def set_workers(self, threads: Mapping[str, int]) -> None:
        """Set which workers there are now, with their threads."""
        self._threads = dict(threads)

    def assign(self, chunk: Task, held: HeldState | None) -> Assignment:
        """Choose a worker; ``held`` is the arm's last state that stayed on one."""
        if held is not None and self._goes_on_from(held, chunk):
            assignment = Assignment(held.address, held.token)
        else:
            assignment = Assignment(max(self._threads, key=self._free), None)
        self._busy[assignment.address] += 1
        return assignment

    def release(self, assignment: Assignment) -> None:
        """Record that a chunk is no longer trained."""
        self._busy[assignment.address] -= 1

    def record_duration(self, seconds: float) -> None:
        """Record how long a chunk took to be trained."""
        self._n_chunks += 1
        self._seconds += seconds

    def _goes_on_from(self, held: HeldState, chunk: Task) -> bool:
        """Return whether a chunk should go on from a state that stays on a worker."""
        if held.address not in self._threads:
            return False
        if held.epoch != chunk.job.from_epoch or chunk.epochs_missing:
            return False
        return self._free(held.address) > 0 or self._waits(held)

    def _waits(self, held: HeldState) -> bool:
        queued = -self._free(held.address)
        sending = held.n_bytes / self._bandwidth
        return sending > (1 + queued) * self._seconds / max(1, self._n_chunks)

    def _free(self, address: str) -> int:
        return self._threads[address] - self._busy[address]
