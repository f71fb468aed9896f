"""A search over folds under way: where it trains, and how it ends."""

import math
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.validation import _num_samples

from risingsearch.arms import Params, Report
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn import processes
from risingsearch.integrations.sklearn.callbacks import FitTasks
from risingsearch.integrations.sklearn.epoch_length import advice_on_steps
from risingsearch.integrations.sklearn.epoch_methods import trains_in_one_fit
from risingsearch.integrations.sklearn.folds import Folds, configured
from risingsearch.integrations.sklearn.results import best_half
from risingsearch.integrations.sklearn.scoring import RANGE, range_of
from risingsearch.policies import policy_info, registered_name
from risingsearch.scheduling.options import SearchOptions
from risingsearch.search.loop import Embedding
from risingsearch.search.progress import write_advice
from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch

NOISE = 2.0  # median falls from epoch to epoch, by which a score may end below its best


class SearchRun:
    """The search behind a fitted ``RisingSearchCV``, with its models and workers."""

    def __init__(
        self,
        folds: Folds,
        candidates: list[Params],
        options: SearchOptions,
        *,
        n_jobs: int | None,
        refits: bool,
        refit: Any,
        is_timed: bool,  # so that all trees are refitted, and passes averaged
        seconds_before: float,
        advises: bool,  # on the length of an epoch
    ) -> None:
        self.folds = folds
        trainable: Any = folds
        executor = options.executor
        count = effective_n_jobs(n_jobs)
        self._workers: processes.WorkerProcesses | None = None
        self._advises = advises and not executor
        one = configured(folds.estimator, candidates[0])
        self._in_full = refit == "full"
        self._all_trees = is_timed and trains_in_one_fit(one)
        self.averages = is_timed and not self._all_trees and refit != "best"
        if executor is None and count > 1 and not (executor := _threads(count)):
            trainable = processes.SentOnce(folds)
            self._workers = processes.WorkerProcesses(count, trainable)
        embedding = Embedding(
            apart=None if self._workers or executor else processes.ProcessApart(folds),
            seconds_before=seconds_before,
            seconds_besides=self._refit_seconds if refits else float,
        )
        options = replace(
            options,
            policy_params=_with_range(folds, options.policy, options.policy_params),
            executor=self._workers or executor,
            n_jobs=None if n_jobs is None else count,
        )
        self.search = RisingSearch._of(
            trainable, candidates, options, embedding=embedding
        )
        self._fit_seconds: dict[int, list[float]] = {}  # by arm, of each epoch
        self._scores: dict[int, list[float]] = {}  # the same
        self._halves: dict[int, tuple[float, list[int]]] = {}
        self._clock = self.search._loop.clock
        self._seconds = 0.0  # of a refit, as it was expected last
        for report in self.search.reports.values():  # of earlier processes
            self._note(report)

    def train(self, tasks: FitTasks) -> SearchResult:
        """Train until the budget is spent, and tell the callbacks of every epoch."""

        def tell(report: Report) -> None:
            self._note(report)
            if self._advises and report.metrics:
                self._advises = False
                self._advise(report)
            if isinstance(report.failure, InvalidParameterError):
                raise report.failure  # an argument's fault, not a configuration's
            for _ in report.scores:
                if tasks.epoch_done():
                    self.search.stop()

        try:
            result = self.search._run(tell)
        except BaseException as error:
            if self._workers is not None and not isinstance(error, Exception):
                self._workers.end_jobs()
            raise
        finally:
            if self._workers is not None:
                self._workers.release()
            self.folds.forget_rows()
        tasks.search_done()
        return result

    def _note(self, report: Report) -> None:
        """Note the times that a refit would take, and end with."""
        arm, begin = report.job.arm, report.job.from_epoch
        self._fit_seconds.setdefault(arm, [])[begin:] = [
            sum(v for name, v in details.items() if name.endswith("_fit_time"))
            for details in report.metrics
        ]
        if self.averages and any(map(math.isfinite, report.scores)):
            scores = self._scores.setdefault(arm, [])
            scores[begin:] = report.scores
            self._halves[arm] = best_half(scores)

    def epochs_to_refit(
        self, result: SearchResult, arm: int, best_epoch: int, *, in_full: bool
    ) -> int:
        """Return the epochs of a refit."""
        if in_full or (self._all_trees and not _overfits(result.curves, arm)):
            whole = self.folds.in_full(result.candidates[arm])
            left = self._clock.left + self._refit_seconds()
            if in_full or self._seconds <= max(left, self._clock.seconds()):
                return whole
            return max(int(whole * left / self._seconds), best_epoch)
        return best_epoch

    def _advise(self, report: Report) -> None:
        """Say once if the epochs of the search should be longer."""
        scheduler = self.search.scheduler
        of_each = scheduler.max_epochs or scheduler.budget
        most = int(min(scheduler.budget, scheduler.n_arms * of_each))
        params = self.search._log.candidates[report.job.arm]
        if advice := advice_on_steps(self.folds, params, most, report.metrics[0]):
            write_advice(advice)

    def _refit_seconds(self) -> float:
        """Seconds of a refit after the next epoch, or after the jobs in training."""
        best, folds = self.search.scheduler, self.folds
        arm, last = best.best_arm, best.best_epoch
        if self._halves:
            arm = max(self._halves, key=lambda arm: self._halves[arm][0])
            last = self._halves[arm][1][-1]
        if arm is None or not (seconds := self._fit_seconds.get(arm)):
            return 0.0
        ends = [job.from_epoch + job.n_epochs for job in best.in_flight]
        seconds = seconds[0 if folds.resource else -10 :]  # the pace may have changed
        trained = float(len(seconds))
        to_train = float(max([last + 1, *ends]))
        if self._in_full or self._all_trees:
            to_train = folds.in_full(self.search._log.candidates[arm])
        if folds.resource is not None:  # its last epoch is trained once more
            costs = folds.resource.costs
            trained, to_train = sum(costs[: len(seconds)]), costs[-1]
        rows_trained = sum(len(train) for train, _ in folds.splits)
        share = float(_num_samples(folds.X)) / rows_trained
        seconds_per_epoch = sum(seconds) / trained
        in_all = seconds_per_epoch * to_train
        if self._all_trees:  # a single fit does but once what is done in each epoch
            of_each_more = len(folds.splits) * folds.seconds_per_step
            more = (to_train - 1.0) * folds.steps_per_epoch
            in_all = min(in_all, seconds_per_epoch + more * of_each_more)
        self._seconds = in_all * share
        is_cut = self._all_trees and not self._in_full  # at half of the time
        return min(self._seconds, self._clock.seconds()) if is_cut else self._seconds


def _overfits(curves: Mapping[int, list[float]], arm: int) -> bool:
    """Return whether the arm's last score is below its best by more than noise."""
    falls = [-float(s) for c in curves.values() for s in np.diff(c) if s < 0.0]
    lost = np.nanmax(curves[arm]) - curves[arm][-1]
    return not lost <= NOISE * np.median(falls or [0.0])


def _threads(n: int) -> ThreadPoolExecutor | None:
    """Return threads if joblib's backend is that, and say which one is not followed."""
    backend = type(get_active_backend()[0]).__name__
    if backend == "ThreadingBackend":
        return ThreadPoolExecutor(n)
    if backend not in ("LokyBackend", "MultiprocessingBackend", "SequentialBackend"):
        warnings.warn(
            f"{backend} of joblib's parallel_config is not followed, {n} processes "
            "train here: give an executor, such as client.get_executor() of Dask",
            UserWarning,
            stacklevel=6,
        )
    return None


def _with_range(folds: Folds, policy: Any, params: Any) -> Any:
    """Return the policy's parameters, with the range of the scores if it is known."""
    if not isinstance(params, Mapping | None) or RANGE in (params or {}):
        return params  # is checked with all others
    score_range = range_of(folds.scorer, folds.metric, folds.estimator)
    name = registered_name(policy)
    if score_range and name and RANGE in policy_info(name).parameters:
        return {RANGE: score_range, **(params or {})}
    return params
