"""A thread that logs what comes in, in batches, until it is told of the end."""

from __future__ import annotations

import atexit
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from queue import SimpleQueue

from risingsearch.arms import EpochFacts, SearchFacts

EVERY = 1.0
"""Seconds for which epochs are collected: a batch costs little more than an epoch."""
BATCH = 200
"""Epochs that are written at once."""
PATIENCE = 60.0
"""Seconds without progress after which the end of a search waits no longer."""


class Log(ABC):
    """One search in the store of a tracker; all its methods run in one thread.

    An exception means that the store is out of reach: another log is opened then, which
    looks up what the store has.
    """

    @abstractmethod
    def write(self, epochs: list[EpochFacts]) -> None:
        """Log those of the epochs that the store does not have yet."""

    @abstractmethod
    def close(self, search: SearchFacts) -> None:
        """Log how the search has ended, for now."""


class Background:
    """Opens the log of a search in a thread, and writes to it.

    Where that fails, what was to be written is kept for a log that is opened anew.

    Attributes
    ----------
    error : Exception or None
        The last failure.
    is_open : bool
        Whether the end of the search is not logged.
    """

    def __init__(
        self, open_log: Callable[[SearchFacts], Log], search: SearchFacts
    ) -> None:
        self.error: Exception | None = None
        self.is_open = True
        self._open_log, self._search = open_log, search
        self._log: Log | None = None
        self._is_new = False  # whether nobody has asked for the error yet
        self._n_put = len(search.earlier)
        self._n_written = 0
        self._pending = list(search.earlier)
        self._queue: SimpleQueue[EpochFacts] = SimpleQueue()
        self._end: SearchFacts | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="risingsearch-tracker", daemon=True
        )
        self._thread.start()
        atexit.register(self._at_exit)

    def put(self, epoch: EpochFacts) -> None:
        """Have an epoch written with the next batch."""
        self._n_put += 1
        self._queue.put(epoch)

    def new_error(self) -> Exception | None:
        """Return the first failure, once."""
        if not self._is_new:
            return None
        self._is_new = False
        return self.error

    @property
    def n_missing(self) -> int:
        """Epochs not written so far."""
        return self._n_put - self._n_written

    def end(self, search: SearchFacts | None, patience: float) -> None:
        """Have the rest written, and the end; wait as long as that makes progress.

        After ``patience`` seconds without any, it goes on alone.
        """
        atexit.unregister(self._at_exit)
        self._end = search
        self._ending.set()
        missing = -1
        while self._thread.is_alive() and missing != self.n_missing:
            missing = self.n_missing
            self._thread.join(patience)

    def _at_exit(self) -> None:
        self.end(None, PATIENCE)

    def _run(self) -> None:
        is_last = False
        while True:
            self._attempt()
            if is_last:
                return
            is_last = self._ending.wait(EVERY)

    def _attempt(self) -> None:
        """Write what has come in, and the end where it is there."""
        end = self._end
        while not self._queue.empty():
            self._pending.append(self._queue.get())
        try:
            if self._log is None:
                self._log = self._open_log(self._search)
            while self._pending:
                some = self._pending[:BATCH]
                self._log.write(some)
                self._n_written += len(some)
                del self._pending[:BATCH]
            if end is not None:
                self._log.close(end)
                self.is_open = False
        except Exception as error:
            self._is_new |= self.error is None
            self.error, self._log = error, None
