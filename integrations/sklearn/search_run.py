"""A search over folds under way: where it trains, and how it ends."""

from __future__ import annotations

from typing import Any

from joblib import effective_n_jobs

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.callbacks import FitTasks
from risingsearch.integrations.sklearn.folds import Folds
from risingsearch.integrations.sklearn.processes import SentOnce, WorkerProcesses
from risingsearch.scheduling.arguments import default_order
from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch


class SearchRun:
    """The search behind a fitted ``RisingSearchCV``, with its models and its workers.

    Without an executor, ``n_jobs`` processes of its own train at the same time. All
    other options are those of ``RisingSearch``.
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
        order = "completion"
        if executor is None:
            order = default_order(options["budget"], count)
        self.search = RisingSearch(
            trainable,
            candidates,
            executor=self._workers or executor,
            n_jobs=None if n_jobs is None else count,
            order=order,
            **options,
        )

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

        self.search.callbacks = (tell,)
        interrupted = True
        try:
            result = self.search.run()
            interrupted = False
        except Exception:
            interrupted = False
            raise
        finally:
            if self._workers is not None:
                self._workers.shutdown(cancel_futures=interrupted)
            self.folds.forget_rows()
        tasks.search_done()
        return result
