"""How long a script took to start, told by when its epochs came."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from risingsearch.scripts.output import POLL_EVERY


class Pace:
    """Notes when the epochs of a running script are reported.

    An epoch lasts as long as the reports are apart, and what is left of the script's
    time is its start. One report alone does not tell them apart, nor do reports that
    come together because the script has kept them back.

    Examples
    --------
    >>> times = iter([0.0, 31.0, 32.0, 33.0, 33.0])
    >>> pace = Pace(lambda: next(times))
    >>> for _ in range(3):
    ...     pace.reported()
    >>> pace.startup()
    30.0
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._first = self._last = math.nan
        self._n_reports = 0

    def reported(self) -> None:
        """Note that an epoch was reported now."""
        self._last = self._clock()
        self._n_reports += 1
        if self._n_reports == 1:
            self._first = self._last

    def startup(self) -> float:
        """Return the seconds until now that were none of an epoch's; NaN: unknown."""
        took = self._clock() - self._began
        if self._n_reports < 2:
            return math.nan
        epoch = (self._last - self._first) / (self._n_reports - 1)
        return (
            max(0.0, took - self._n_reports * epoch) if epoch > POLL_EVERY else math.nan
        )
