"""What is done again and again, at a small share of a core."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Pace:
    """Says when something is due that was done before, by what that took.

    Parameters
    ----------
    share : float
        Of a core, at most, that is spent on it.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._due = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it can be done again."""
        return time.monotonic() >= self._due

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure what is done in a ``with`` block."""
        begun = time.process_time()
        try:
            yield
        finally:
            took = time.process_time() - begun
            self._due = max(self._due, time.monotonic()) + took / self._share
