"""A search over folds under way: where it trains, and how it ends."""

from __future__ import annotations

from typing import Any

from joblib import effective_n_jobs

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.callbacks import FitTasks
from risingsearch.integrations.sklearn.folds import Folds
from risingsearch.integrations.sklearn.processes import SentOnce, WorkerProcesses
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch


class SearchRun:
    """The search behind a fitted ``RisingSearchCV``, with its models and its workers.

    Parameters
    ----------
    folds : Folds
        What is trained.
    candidates : list of dict
        The configurations.
    n_jobs : int or None
        Processes that train at the same time, or workers of the executor to use.
    executor : concurrent.futures.Executor or None
        Where to train instead of in processes of its own.
    **options
        Arguments of ``RisingSearch``.
    """

    def __init__(
        self,
        folds: Folds,
        candidates: list[dict[str, Any]],
        *,
        n_jobs: int | None,
        executor: Any,
        **options: Any,
    ) -> None:
        self.folds = folds
        trainable: Any = folds
        count = effective_n_jobs(n_jobs)
        self._workers: WorkerProcesses | None = None
        if executor is None and count > 1:
            trainable = SentOnce(folds)
            self._workers = WorkerProcesses(count, trainable)
        self._search = RisingSearch(
            trainable,
            candidates,
            executor=self._workers or executor,
            n_jobs=None if n_jobs is None else count,
            order="ask" if executor is None else "completion",
            **options,
        )

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler of the search."""
        return self._search.scheduler

    def train(self, tasks: FitTasks) -> SearchResult:
        """Train until the budget is spent, and tell the callbacks of every epoch.

        An interrupt ends the worker processes at once; nothing else does.
        """

        def tell(search: RisingSearch, report: Any) -> None:
            if isinstance(report.failure, InvalidParameterError):
                raise report.failure  # an argument's fault, not a configuration's
            for _ in report.scores:
                if tasks.epoch_done():
                    search.stop()

        self._search.callbacks = (tell,)
        interrupted = True
        try:
            result = self._search.run()
            interrupted = False
        except Exception:
            interrupted = False
            raise
        finally:
            if self._workers is not None:
                self._workers.shutdown(cancel_futures=interrupted)
        tasks.search_done()
        return result

    def extend(self, budget: Any) -> None:
        """Add to the budget."""
        self._search.extend(budget)

    def result(self) -> SearchResult:
        """Return what was found so far."""
        return self._search.result()

    def seed_of(self, arm: int) -> int:
        """Return the seed of an arm."""
        return self._search.seed_of(arm)
