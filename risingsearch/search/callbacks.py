"""Callbacks of a search: each epoch once, with the same facts on every interface."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from risingsearch.arms import Configuration, EpochFacts, Report, SearchFacts
from risingsearch.errors import InvalidParameterError, PolicyError
from risingsearch.json_values import Json
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.results import measured


class Callback:
    """Follower of a search: subclass it, with the methods that you need.

    The same on every interface: ``RisingSearch``, ``RisingSearchCV``, ``RisingSampler``
    and ``RisingScheduler`` take ``callbacks=[...]``; a plain function among them is
    used as ``on_epoch``. All methods are called in the process and the thread that
    decide, so slow ones delay the search.

    Examples
    --------
    >>> from risingsearch import Functions, RisingSearch
    >>> class Show(Callback):
    ...     def on_epoch(self, epoch):
    ...         print(epoch.arm, epoch.epoch, epoch.score, epoch.budget_left)
    >>> def start(params, seed):
    ...     return params
    >>> def train(state):
    ...     return state["score"]
    >>> candidates = [{"score": 0.5}, {"score": 0.7}]
    >>> search = RisingSearch(
    ...     Functions(start, train),
    ...     candidates,
    ...     policy="round-robin",
    ...     budget=3,
    ...     callbacks=[Show()],
    ...     shuffle=False,
    ... )
    >>> search.run().best_score
    0 1 0.5 2
    1 1 0.7 1
    0 2 0.5 0
    0.7
    """

    def on_start(self, search: SearchFacts) -> object:
        """Begin or resume a search."""

    def on_epoch(self, epoch: EpochFacts) -> object:
        """Take the facts of an epoch, once it is recorded; called once for each.

        ``epoch.stop()`` ends the search.
        """

    def on_end(self, search: SearchFacts) -> object:
        """End a search, for any reason; it may be resumed later."""


class _Function(Callback):
    """A function as a callback."""

    def __init__(self, function: Callable[[EpochFacts], object]) -> None:
        self._function = function

    def on_epoch(self, epoch: EpochFacts) -> object:
        return self._function(epoch)


def checked_callbacks(callbacks: object) -> tuple[Callback, ...]:
    """Return the callbacks; raise an InvalidParameterError if one is invalid."""
    if isinstance(callbacks, Callback) or not isinstance(callbacks, Iterable):
        raise InvalidParameterError(
            f"callbacks must be a list of them; got {callbacks!r}"
        )
    return tuple(map(_checked_callback, callbacks))


def _checked_callback(given: object) -> Callback:
    if isinstance(given, Callback):
        return given
    if isinstance(given, type) or not callable(given):
        raise InvalidParameterError(
            f"callbacks are Callbacks or functions of an epoch; got {given!r}"
        )
    return _Function(given)


class CallbackList:
    """The callbacks of a search, called with the epochs that its scheduler records."""

    def __init__(
        self,
        callbacks: Iterable[object],
        scheduler: Callable[[], Scheduler],  # another one may continue with its history
        *,
        search: str,
        metric: str,
        params: Callable[[int], Configuration],
        reports: Mapping[int, Report],
        stop: Callable[[], object],
        name: Callable[[int], int] = int,  # of an arm of the scheduler
    ) -> None:
        self.callbacks = checked_callbacks(callbacks)
        self._scheduler = scheduler
        self._search = search
        self._metric = metric
        self._params = params
        self._name = name
        self._reports = reports
        self._stop = stop
        self._is_running = False
        self._has_ended = False
        self._begin()

    def _begin(self) -> None:
        self._followed: Scheduler | None = None
        self._n_rows = 0  # of its history, that were told
        self._n_reported = 0  # epochs
        self._charged: float = 0  # for them, where the budget is in epochs
        self._trained: Counter[int] = Counter()  # the last epoch told of each arm
        self._n_lost: Counter[tuple[int, int]] = Counter()  # told, by arm and epoch
        self._n_seen: Counter[tuple[int, int]] = Counter()  # in the history followed
        self._best: tuple[int | None, float, int] = None, math.nan, 0

    @contextmanager
    def running(
        self, save_best: Callable[[Path], object] | None = None
    ) -> Iterator[None]:
        """Tell that the search begins, and that it ends when a ``with`` block does."""
        if self._is_running:  # the end is that of the outer block
            yield
            self.epochs()
            return
        self.begins()
        self._is_running = True
        try:
            yield
        except BaseException:
            save_best = None
            raise
        finally:
            self._is_running = False
            try:
                self.epochs()
            finally:
                self.ends(save_best)

    def follow(self, *, done: bool) -> None:
        """Report new epochs if another library runs the search, and its end once."""
        if self._has_ended:
            return
        if not self._is_running:
            self._is_running = True
            self.begins()
        self._is_running = not done
        self.epochs()
        if done:
            self._has_ended = True
            self.ends()

    def begins(self) -> None:
        """Tell that the search begins or resumes, and all of its epochs so far."""
        if not self.callbacks:
            return
        self._begin()
        facts = self._facts(earlier=tuple(self._new_epochs(earlier=True)))
        for callback in self.callbacks:
            callback.on_start(facts)

    def epochs(self) -> None:
        """Tell of the epochs that were recorded since."""
        if not self.callbacks:
            return
        for epoch in self._new_epochs(earlier=False):
            for callback in self.callbacks:
                callback.on_epoch(epoch)

    def ends(self, save_best: Callable[[Path], object] | None = None) -> None:
        """Tell each of them that the search has ended, even if others raise."""
        if not self.callbacks:
            return
        reason = self._scheduler().stop_reason
        facts = self._facts(stop_reason=reason, save_best=save_best)
        with ExitStack() as calls:
            for callback in reversed(self.callbacks):
                calls.callback(callback.on_end, facts)

    def _facts(self, **more: Any) -> SearchFacts:
        scheduler = self._current()
        best = scheduler.best_arm
        return SearchFacts(
            search=self._search,
            policy=scheduler.policy_name,
            metric=self._metric,
            direction=scheduler.direction,
            budget=scheduler.budget,
            unit=scheduler.unit,
            max_epochs=scheduler.max_epochs,
            best_arm=None if best is None else self._name(best),
            best_score=scheduler.best_score,
            best_epoch=scheduler.best_epoch,
            best_params={} if best is None else dict(self._params(best)),
            **more,
        )

    def _current(self) -> Scheduler:
        """Return the scheduler; before and after a run, with the results it holds."""
        scheduler = self._scheduler()
        with suppress(PolicyError):  # ``ask`` raises it
            return scheduler if self._is_running else scheduler.with_all_results()
        return scheduler

    def _new_epochs(self, *, earlier: bool) -> list[EpochFacts]:
        scheduler = self._current()
        if scheduler is not self._followed:
            self._followed = scheduler
            self._n_rows = 0
            self._n_seen.clear()
        rows = scheduler.history[self._n_rows :]
        self._n_rows += len(rows)
        return [
            self._epoch(scheduler, row, earlier=earlier)
            for row in rows
            if self._is_new(row)
        ]

    def _is_new(self, row: Json) -> bool:
        arm = self._name(row["arm"])
        epoch = row["epoch"]
        if math.isnan(row["score"]) and "failure" in row:
            self._n_seen[arm, epoch] += 1
            is_new = self._n_seen[arm, epoch] > self._n_lost[arm, epoch]
            self._n_lost[arm, epoch] += is_new
            return is_new
        last = self._trained[arm]
        self._trained[arm] = max(epoch, last)
        return bool(epoch > last)

    def _epoch(self, scheduler: Scheduler, row: Json, *, earlier: bool) -> EpochFacts:
        """Return the facts of a row of the history."""
        self._n_reported += 1
        arm = self._name(row["arm"])
        epoch = row["epoch"]
        score = row["score"]
        sign = scheduler.sign
        if math.isfinite(score) and not sign * score <= sign * self._best[1]:
            self._best = arm, score, epoch
        best_arm, best_score, best_epoch = self._best
        costs = scheduler.epoch_costs
        self._charged += 1 if costs is None else costs[epoch - 1]
        left = scheduler.budget - self._charged
        if scheduler.unit != "epochs":
            left = math.nan
            if not earlier:
                left = scheduler.budget - scheduler.spent
        seconds = row["cost"]
        metrics: Configuration = {}
        if (report := self._reports.get(row["job"])) is not None:
            seconds, metrics = measured(report, epoch)
        return EpochFacts(
            search=self._search,
            number=self._n_reported,
            arm=arm,
            params=self._params(row["arm"]),
            epoch=epoch,
            score=score,
            metrics=metrics,
            seconds=seconds,
            reason=row["reason"],
            failure=row.get("failure"),
            best_arm=best_arm,
            best_score=best_score,
            best_epoch=best_epoch,
            budget_left=max(0, left),
            stop=self._stop,
        )
