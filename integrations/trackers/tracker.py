"""The base of all trackers: each epoch is logged once, and failures stop no search."""

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, ClassVar

from risingsearch.arms import Configuration, EpochFacts, SearchFacts
from risingsearch.checks import is_number
from risingsearch.errors import missing
from risingsearch.json_values import plain
from risingsearch.search.callbacks import Callback

PAUSE = 60.0  # seconds after a failure in which no other attempt delays the search
Logged = dict[str, int | float | str]
"""Parameters as every tracker can log them."""
SEARCH_RUN = "search"
"""Name of the run of the whole search; those of arms are "arm-0" and so on."""


class SearchLog(ABC):
    """One search in the store of a tracker: a run for itself, and one for each arm."""

    def __init__(self, search: SearchFacts, tracker: Any) -> None:
        self.search = search
        self.tracker = tracker
        self.metric = search.metric
        self.params: dict[str, Logged] = {}  # by run that was opened
        self.failed: set[str] = set()  # runs of arms
        self._last: dict[str, int] = {}  # logged step, by run
        self._pending: list[EpochFacts] = []
        self._is_connected = False
        self._failed_at = -math.inf

    def connect(self) -> None:  # noqa: B027, not every store needs it
        """Open the store, for the first time or after a failure."""

    @abstractmethod
    def open_run(self, run: str) -> int:
        """Open a run, made with its ``params`` if need be.

        Parameters
        ----------
        run : str
            ``SEARCH_RUN``, or "arm-0" and so on.

        Returns
        -------
        int
            Its last step, 0 if it is new.
        """

    @abstractmethod
    def log(
        self,
        run: str,
        step: int,
        values: Mapping[str, float],
    ) -> None:
        """Log the values of a step of an open run.

        Parameters
        ----------
        run : str
            The run.
        step : int
            The epoch of the arm, or of the whole search.
        values : dict of str to float
            The score and other numbers.
        """

    def fail(self, run: str, failure: str) -> None:  # noqa: B027, as above
        """Log why an arm has failed."""

    def close(self, search: SearchFacts) -> None:  # noqa: B027, as above
        """Log how the search has ended, for now."""

    def settings(self) -> dict[str, object]:
        """Return the parameters of the whole search."""
        return {
            "policy": self.search.policy,
            "metric": self.metric,
            "direction": self.search.direction,
            f"budget_{self.search.unit}": self.search.budget,
            "max_epochs": self.search.max_epochs,
        }

    def write(
        self, epochs: Iterable[EpochFacts], end: SearchFacts | None = None
    ) -> None:
        """Log epochs that the store does not have, and the end if it is given.

        Parameters
        ----------
        epochs : iterable of EpochFacts
            Those that are new.
        end : SearchFacts, optional
            How the search has ended.
        """
        self._pending += epochs
        if end is None and time.monotonic() < self._failed_at + PAUSE:
            return
        try:
            if not self._is_connected:
                self.connect()
                self._is_connected = True
            for epoch in self._pending:
                self._add(epoch)
            self._pending.clear()
            if end is not None:
                self.close(end)
        except Exception as error:
            is_first = self._failed_at == -math.inf
            self._is_connected = False
            self._failed_at = time.monotonic()
            if is_first or end is not None:
                msg = (
                    f"{type(self.tracker).__name__} could not log {len(self._pending)} "
                    f"epochs ({type(error).__name__}: {error}); the search does not "
                    "stop, and they are logged with a later epoch, or when the search "
                    "is continued"
                )
                warnings.warn(msg, RuntimeWarning, stacklevel=3)

    def _add(self, epoch: EpochFacts) -> None:
        run = f"arm-{epoch.arm}"
        values: dict[str, float] = {}
        if not epoch.is_lost:
            values[self.metric] = epoch.score
            for name, metric in epoch.metrics.items():
                if is_number(metric):
                    values[name] = float(metric)
            if math.isfinite(epoch.seconds):
                values["seconds"] = epoch.seconds
        self._step(run, epoch.params, epoch.epoch, values)
        self.failed.discard(run)  # it may have been tried again
        if epoch.failure:
            self.failed.add(run)
            self.fail(run, epoch.failure)
        if epoch.is_best:
            best = {f"best_{self.metric}": epoch.best_score, "best_arm": epoch.arm}
            self._step(SEARCH_RUN, self.settings(), epoch.number, best)

    def _step(
        self,
        run: str,
        params: Configuration,
        step: int,
        values: Mapping[str, float],
    ) -> None:
        if run not in self._last:
            self.params[run] = shown(params)
            self._last[run] = self.open_run(run)
        if values and step > self._last[run]:
            self.log(run, step, values)
            self._last[run] = step


@dataclass(eq=False)
class Tracker(Callback):
    """A callback that logs each epoch while the search waits.

    A package that is not installed is an error when the search begins. If logging
    fails, the search continues: a warning says so, later epochs bring another attempt,
    and at the end a warning says how many epochs were not logged.

    Examples
    --------
    >>> class Printed(SearchLog):
    ...     def open_run(self, run):
    ...         return 0
    ...
    ...     def log(self, run, step, values):
    ...         print(run, step)
    >>> class Printer(Tracker):
    ...     package = "json"
    ...     runs = Printed
    >>> from risingsearch import Functions, RisingSearch
    >>> flat = Functions(lambda params, seed: params["top"], lambda state: state)
    >>> callbacks = [Printer()]
    >>> search = RisingSearch(flat, [{"top": 0.5}], budget=1, callbacks=callbacks)
    >>> result = search.run()
    arm-0 1
    search 1
    """

    package: ClassVar[str]
    """The package that is logged with; its extra has the same name."""
    runs: ClassVar[type[SearchLog]]
    """The log of a search."""
    _logs: dict[str, SearchLog] = field(
        default_factory=dict,
        init=False,
        repr=False,
    )

    def check(self) -> None:
        """Check that the package is installed.

        Raises
        ------
        MissingDependencyError
            If it is not.
        """
        if find_spec(self.package) is None:
            raise missing(self.package, extra=self.package)

    def on_start(self, search: SearchFacts) -> None:
        """Log the epochs so far that the store does not have."""
        self.check()
        self._logs[search.search] = self.runs(search, self)
        self._logs[search.search].write(search.earlier)

    def on_epoch(self, epoch: EpochFacts) -> None:
        """Log an epoch."""
        self._logs[epoch.search].write([epoch])

    def on_end(self, search: SearchFacts) -> None:
        """Log the rest, and the end."""
        self._logs.pop(search.search).write((), search)

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_logs": {}}  # they stay in their process


def shown(params: Configuration) -> Logged:
    """Return parameters as numbers, truth values and text.

    Parameters
    ----------
    params : dict
        A configuration.

    Returns
    -------
    dict
        What every tracker can log.

    Examples
    --------
    >>> shown({"rate": 0.1, "layers": (8, 8), "dropout": None})
    {'rate': 0.1, 'layers': '(8, 8)', 'dropout': 'None'}
    """
    logged: Logged = {}
    for name, value in params.items():
        value = plain(value)
        is_loggable = isinstance(value, int | float | str)
        logged[name] = value if is_loggable else str(value)
    return logged
