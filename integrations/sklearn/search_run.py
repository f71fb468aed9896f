"""A search over folds under way: where it trains, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils.validation import _num_samples

from risingsearch.arms import Report
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.callbacks import FitTasks
from risingsearch.integrations.sklearn.folds import Folds
from risingsearch.integrations.sklearn.processes import SentOnce, WorkerProcesses
from risingsearch.integrations.sklearn.score_ranges import RANGE, range_of, suits
from risingsearch.json_values import from_json
from risingsearch.scheduling.view import SchedulerView
from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch
from risingsearch.storage.run_directory import holds_search, saved_header


class SearchRun:
    """The search behind a fitted ``RisingSearchCV``, with its models and its workers.

    Without an executor it starts ``n_jobs`` processes. All other options are those of
    ``RisingSearch``. ``seconds_before`` are taken off a wall-clock budget, and if it
    ``refits`` the time that training the best configuration once more will take.
    """

    def __init__(
        self,
        folds: Folds,
        candidates: list[dict[str, Any]],
        *,
        n_jobs: int | None,
        executor: Any,
        refits: bool,
        seconds_before: float,
        policy: Any,
        policy_params: Any,
        **options: Any,
    ) -> None:
        self.folds = folds
        trainable: Any = folds
        count = effective_n_jobs(n_jobs)
        self._workers: WorkerProcesses | None = None
        if executor is None and count > 1:
            trainable = SentOnce(folds)
            self._workers = WorkerProcesses(count, trainable)
        self.search = RisingSearch(
            trainable,
            candidates,
            policy_params=_with_range(folds, policy, policy_params, options["run_dir"]),
            policy=policy,
            executor=self._workers or executor,
            n_jobs=None if n_jobs is None else count,
            **options,
        )
        self._refit_time = RefitTime(folds, options["epoch_costs"])
        scheduler = self.search.scheduler
        self.search.seconds_besides = lambda: (
            seconds_before + (self._refit_time.expected(scheduler) if refits else 0.0)
        )

    def train(self, tasks: FitTasks) -> SearchResult:
        """Train until the budget is spent, and tell the callbacks of every epoch.

        The worker processes end at once, but where the search has failed: then they
        finish what they train.
        """

        def tell(report: Report) -> None:
            self._refit_time.learn(report)
            if isinstance(report.failure, InvalidParameterError):
                raise report.failure  # an argument's fault, not a configuration's
            for _ in report.scores:
                if tasks.epoch_done():
                    self.search.stop()

        self.search._loop.on_report = tell
        at_once = True
        try:
            result = self.search.run()
        except Exception:
            at_once = False
            raise
        finally:
            if self._workers is not None:
                self._workers.shutdown(cancel_futures=at_once)
            self.folds.forget_rows()
        tasks.search_done()
        return result


def _with_range(folds: Folds, policy: Any, params: Any, run_dir: Any) -> Any:
    """Return the policy's parameters, with the range of the scores if it is known."""
    if not isinstance(params, Mapping | None) or RANGE in (params or {}):
        return params  # is checked with all others
    if run_dir is not None and holds_search(Path(run_dir)):
        saved = from_json(saved_header(Path(run_dir))["settings"]["policy_params"])
        known = (saved or {}).get(RANGE)
    else:
        known = range_of(folds.scorer, folds.metric, folds.estimator)
        known = known if known is not None and suits(policy, known) else None
    return params if known is None else {RANGE: known, **(params or {})}


class RefitTime:
    """How long it takes to train the best configuration once more, on all rows.

    Where epochs have ``costs``, their times are in proportion, and the last one is
    trained once more.
    """

    def __init__(self, folds: Folds, costs: Sequence[float] | None) -> None:
        self._costs = costs
        rows_trained = sum(len(train) for train, _ in folds.splits)
        self._n_splits = len(folds.splits)
        self._share: float = _num_samples(folds.X) / rows_trained
        self._seconds: dict[int, list[float]] = {}  # of all folds, by arm and epoch

    def learn(self, report: Report) -> None:
        """Take in how long the training of some epochs took."""
        of_arm = self._seconds.setdefault(report.job.arm, [])
        for details in report.metrics:
            folds = range(self._n_splits)
            of_arm.append(sum(details[f"split{i}_fit_time"] for i in folds))

    def expected(self, scheduler: SchedulerView) -> float:
        """Return the seconds that it would take now."""
        arm = scheduler.best_arm
        seconds = None if arm is None else self._seconds.get(arm)
        if not seconds:  # known to an earlier process at most
            return 0.0
        if self._costs is None:
            trained, to_train = float(len(seconds)), float(scheduler.best_epoch)
        else:
            trained, to_train = sum(self._costs[: len(seconds)]), self._costs[-1]
        return sum(seconds) / trained * self._share * to_train
