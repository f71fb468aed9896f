"""What trackers share: they log in a thread of their own, and never stop a search."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from risingsearch.arms import EpochFacts, SearchFacts
from risingsearch.checks import is_number
from risingsearch.errors import missing
from risingsearch.integrations.trackers.background import PATIENCE, Background, Log
from risingsearch.json_values import plain
from risingsearch.search.callbacks import Callback


class Tracker(Callback, ABC):
    """A callback that logs searches, each in a thread of its own.

    Whatever fails there, the search goes on: that is said in a warning, the next epochs
    bring another try, and at the end there is a warning with the number of epochs that
    were not logged.
    """

    def __init__(self) -> None:
        self._background: dict[str, Background] = {}  # by search

    @abstractmethod
    def open(self, search: SearchFacts) -> Log:
        """Open the log of a search that begins, or goes on after whatever end."""

    @abstractmethod
    def check(self) -> None:
        """Raise a MissingDependencyError where the package to log with is missing."""

    def search_begins(self, search: SearchFacts) -> None:
        """Begin to log, first what the store may have lost of the epochs so far."""
        self.check()
        self._background[search.search] = Background(self.open, search)

    def epoch_ends(self, epoch: EpochFacts) -> None:
        """Have an epoch logged, soon."""
        background = self._background[epoch.search]
        background.put(epoch)
        error = background.new_error()
        if error is not None:
            msg = (
                f"{type(self).__name__} could not log "
                f"({type(error).__name__}: {error}); the search goes on without, and "
                "with the next epochs it tries again"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=2)

    def search_ends(self, search: SearchFacts) -> None:
        """Wait a while until all is logged, and say what is not."""
        background = self._background.pop(search.search)
        background.end(search, PATIENCE)
        error, n_missing = background.error, background.n_missing
        if n_missing or background.is_open:
            because = f": {type(error).__name__}: {error}" if error else ""
            msg = (
                f"{type(self).__name__} has not logged {n_missing} epochs, nor the end "
                f"of the search{because}; where the search goes on, or a search made "
                "with the same run_dir, they are logged"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=2)

    def __getstate__(self) -> dict[str, Any]:
        # Threads stay in their process.
        return self.__dict__ | {"_background": {}}


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


def require(package: str) -> None:
    """Raise a MissingDependencyError where a package is not installed.

    Its extra is named alike.
    """
    if find_spec(package) is None:
        raise missing(package, extra=package)
