"""Which worker trains which arm: where its state is, unless sending it is cheaper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from risingsearch.search.trainable import Task


class Held(NamedTuple):
    """A state that stays on a worker."""

    address: str
    token: str
    epoch: int
    n_bytes: int


class Place(NamedTuple):
    """Where a part is trained."""

    address: str
    token: str | None  # of the state that is there


class Places:
    """The workers of a cluster, and how busy they are.

    An arm goes on where its state is while that worker has a free thread. Where it has
    none, the arm waits there if sending its checkpoint would take longer than a part
    takes on average; otherwise it goes to the worker with the most free threads.

    Parameters
    ----------
    bandwidth : float
        Bytes per second from one worker to another.
    """

    def __init__(self, bandwidth: float) -> None:
        self._bandwidth = bandwidth
        self._threads: dict[str, int] = {}
        self._busy: Counter[str] = Counter()
        self._n_parts = 0
        self._seconds = 0.0  # of all parts

    @property
    def n_threads(self) -> int:
        """How many parts can be trained at the same time."""
        return sum(self._threads.values())

    def see(self, threads: Mapping[str, int]) -> None:
        """Take in which workers there are now, with their threads."""
        self._threads = dict(threads)

    def begin(self, part: Task, held: Held | None) -> Place:
        """Choose where a part is trained, as there are workers.

        Parameters
        ----------
        part : Task
            What is trained.
        held : Held or None
            The last state of its arm that stayed somewhere.
        """
        if held is not None and self._is_good(held, part):
            place = Place(held.address, held.token)
        else:
            place = Place(max(self._threads, key=self._free), None)
        self._busy[place.address] += 1
        return place

    def end(self, place: Place) -> None:
        """Take in that a part is no longer trained."""
        self._busy[place.address] -= 1

    def took(self, seconds: float) -> None:
        """Take in how long a part took to be trained."""
        self._n_parts += 1
        self._seconds += seconds

    def _is_good(self, held: Held, part: Task) -> bool:
        """Return whether a part should go on from a state that stays on a worker."""
        if held.address not in self._threads:
            return False
        if held.epoch != part.job.from_epoch or part.behind:
            return False
        return self._free(held.address) > 0 or self._waits(held)

    def _waits(self, held: Held) -> bool:
        queued = -self._free(held.address)
        sending = held.n_bytes / self._bandwidth
        return sending > (1 + queued) * self._seconds / max(1, self._n_parts)

    def _free(self, address: str) -> int:
        return self._threads[address] - self._busy[address]
