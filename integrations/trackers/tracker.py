"""The base of all trackers: each epoch is logged once, and failures stop no search."""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

from risingsearch.arms import EpochFacts, SearchFacts
from risingsearch.checks import is_number
from risingsearch.errors import missing
from risingsearch.json_values import plain
from risingsearch.search.callbacks import Callback

PAUSE = 60.0
"""Seconds after a failure in which no other attempt delays the search."""


class SearchLog(Protocol):
    """One search in the store of a tracker."""

    def write(self, epochs: list[EpochFacts]) -> None:
        """Log those of the epochs that the store does not have yet."""

    def close(self, search: SearchFacts) -> None:
        """Log how the search has ended, for now."""


@dataclass
class _Followed:
    """A search with the epochs that are not logged yet."""

    search: SearchFacts
    pending: list[EpochFacts]
    log: SearchLog | None = None
    error: str = ""
    failed_at: float = -math.inf


class Tracker(Callback, ABC):
    """A callback that logs each epoch while the search waits.

    If logging fails, the search continues: a warning says so, later epochs bring
    another attempt with a log that is opened anew, and at the end a warning says how
    many epochs were not logged.
    """

    package: ClassVar[str]
    """The package that is logged with; its extra has the same name."""

    def __init__(self) -> None:
        self._followed: dict[str, _Followed] = {}  # by search

    @abstractmethod
    def open(self, search: SearchFacts) -> SearchLog:
        """Open the log of a search; it knows what the store has already."""

    def check(self) -> None:
        """Raise a MissingDependencyError if the package is not installed."""
        if find_spec(self.package) is None:
            raise missing(self.package, extra=self.package)

    def on_start(self, search: SearchFacts) -> None:
        """Log the epochs so far that the store does not have."""
        self.check()
        followed = _Followed(search, list(search.earlier))
        self._followed[search.search] = followed
        self._log(followed)

    def on_epoch(self, epoch: EpochFacts) -> None:
        """Log an epoch."""
        followed = self._followed[epoch.search]
        followed.pending.append(epoch)
        if time.monotonic() > followed.failed_at + PAUSE:
            self._log(followed)

    def on_end(self, search: SearchFacts) -> None:
        """Log the rest, and the end."""
        self._log(self._followed.pop(search.search), search)

    def _log(self, followed: _Followed, end: SearchFacts | None = None) -> None:
        """Log what is pending, and the end if it is given."""
        try:
            followed.log = followed.log or self.open(followed.search)
            followed.log.write(followed.pending)
            followed.pending.clear()
            if end is not None:
                followed.log.close(end)
        except Exception as error:
            followed.log, followed.failed_at = None, time.monotonic()
            if followed.error and end is None:
                return
            followed.error = f"{type(error).__name__}: {error}"
            msg = (
                f"{type(self).__name__} could not log {len(followed.pending)} epochs "
                f"({followed.error}); the search does not stop, and they are logged "
                "with a later epoch, or when the search is continued"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=3)

    def __getstate__(self) -> dict[str, Any]:
        # Logs stay in their process.
        return self.__dict__ | {"_followed": {}}


def numbers(epoch: EpochFacts) -> dict[str, float]:
    """Return the metrics of an epoch that are numbers, and its seconds if known.

    Examples
    --------
    >>> from types import SimpleNamespace as Facts
    >>> numbers(Facts(metrics={"loss": 0.5, "note": "warm"}, seconds=2.0))
    {'loss': 0.5, 'seconds': 2.0}
    """
    found = {
        name: float(value) for name, value in epoch.metrics.items() if is_number(value)
    }
    if math.isfinite(epoch.seconds):
        found["seconds"] = epoch.seconds
    return found


def shown(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as numbers, truth values and text.

    Examples
    --------
    >>> shown({"rate": 0.1, "layers": (8, 8), "dropout": None})
    {'rate': 0.1, 'layers': '(8, 8)', 'dropout': 'None'}
    """
    values = {name: plain(value) for name, value in params.items()}
    return {
        name: value if isinstance(value, (bool, int, float, str)) else str(value)
        for name, value in values.items()
    }
