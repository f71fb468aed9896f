"""A search over folds under way: where it trains, and how it ends."""

import math
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils.validation import _num_samples

from risingsearch.arms import Params, Report
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.callbacks import FitTasks
from risingsearch.integrations.sklearn.epoch_length import advice_on_steps
from risingsearch.integrations.sklearn.epoch_methods import trains_in_one_fit
from risingsearch.integrations.sklearn.families import Families
from risingsearch.integrations.sklearn.fitted_transformers import (
    TRANSFORM_TIME,
    FittedTransformers,
    SharingProposer,
    of_transformers,
    total,
)
from risingsearch.integrations.sklearn.folds import N_TREES, Folds, configured
from risingsearch.integrations.sklearn.prefixes import has_prefixes
from risingsearch.integrations.sklearn.processes import (
    ProcessApart,
    SentOnce,
    WorkerProcesses,
)
from risingsearch.integrations.sklearn.results import best_half, best_row
from risingsearch.proposers.base import Proposer
from risingsearch.scheduling.options import SearchOptions
from risingsearch.search.loop import Embedding
from risingsearch.search.progress import write_advice
from risingsearch.search.results import SearchResult
from risingsearch.search.search import RisingSearch
from risingsearch.space import Configurations
from risingsearch.space.by_name import FAMILY

NOISE = 2.0  # median falls from epoch to epoch, by which a score may end below its best
PACE = 10  # last epochs that tell how long the next ones take


class SearchRun:
    """The search behind a fitted ``RisingSearchCV``, with its models and workers."""

    def __init__(
        self,
        interface: BaseSearchCV,  # the RisingSearchCV
        folds: Folds,
        candidates: Configurations,
        options: SearchOptions,
        *,
        is_timed: bool,  # so that all trees are refitted, and passes averaged
        seconds_before: float,
    ) -> None:
        self.folds = folds
        firsts: dict[object, Params] = {None: candidates[0]}
        if isinstance(folds.estimator, Families):
            firsts = {params.get(FAMILY): params for params in candidates}
        self._is_timed = is_timed
        self._space = candidates.space
        self._in_one_fit: set[object] = set()  # families whose refit is a single fit
        self._all_trees: set[object] = set()  # those of them that it gives all trees
        for family, params in firsts.items():
            model = configured(folds.estimator, params)
            if is_timed and trains_in_one_fit(model):
                self._in_one_fit.add(family)
                if not (folds.n_prefixes and has_prefixes(model)):
                    self._all_trees.add(family)
        self._in_full = interface.refit == "full"
        self._advises = (  # on the length of an epoch
            interface.steps_per_epoch == "auto"
            and interface.verbose > 0
            and folds.resource is None
            and options.executor is None
            and not is_timed
        )
        self._fit_seconds: dict[int, list[float]] = {}  # by arm, of each epoch
        self._scores: dict[int, list[float]] = {}  # the same
        self._halves: dict[int, tuple[float, list[int]]] = {}
        self._workers: WorkerProcesses | None = None
        trainable: Folds | SentOnce = folds
        executor = options.executor
        n_jobs = effective_n_jobs(interface.n_jobs)
        if executor is None and n_jobs > 1:
            executor = _threads(n_jobs)
            if executor is None:
                trainable = SentOnce(folds)
                self._workers = executor = WorkerProcesses(n_jobs, trainable)
        refits = interface._refits(folds)
        embedding = Embedding(
            apart=ProcessApart(folds) if executor is None else None,
            seconds_before=seconds_before,
            seconds_besides=self._seconds_kept if refits else float,
            around=self._sharing,
        )
        self.search = RisingSearch._of(
            trainable,
            candidates,
            replace(options, executor=executor),
            embedding=embedding,
        )
        self._clock = self.search._loop.clock
        everyone = self.search._log.candidates
        self._transformers = FittedTransformers(folds.estimator, everyone)
        for report in self.search.reports.values():  # of earlier processes
            self._note(report)

    def _sharing(self, proposer: Proposer) -> Proposer:
        """Return a proposer that shares transformers where their parameters vary."""
        space = self._space
        if not (self._is_timed and space and proposer.candidates):
            return proposer
        names = dict.fromkeys(filter(None, space.names))
        estimator = self.folds.estimator
        if not of_transformers(estimator, names):
            return proposer
        return SharingProposer(
            proposer,
            estimator,
            space,
            lambda: self._transformers.may_fit_more(),
        )

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

    def steps_to_refit(
        self,
        result: SearchResult,
        arm: int,
        best_epoch: int,
        *,
        in_full: bool,
    ) -> int:
        """Return the passes or trees of a refit."""
        steps = self.folds.steps_per_epoch
        if not in_full:
            n_trees = best_row(result, arm).get(N_TREES)
            if n_trees is not None:
                return int(n_trees)
            has_all_trees = self._family(arm) in self._all_trees
            if not has_all_trees or _overfits(result.curves, arm):
                return best_epoch * steps
        whole = self.folds.in_full(result.candidates[arm])
        if in_full:
            return whole * steps
        seconds = self._refit_seconds()
        left = self._clock.left + self._seconds_kept()
        if seconds > max(left, self._clock.seconds()):
            whole = max(int(whole * left / seconds), best_epoch)
        return whole * steps

    def is_averaged(self, arm: int) -> bool:
        """Return whether an arm counts by its best half: of passes, under a time."""
        return self._is_timed and self._family(arm) not in self._in_one_fit

    def _family(self, arm: int) -> object:
        """Return the name of an arm's estimator, None if there is only one."""
        if not isinstance(self.folds.estimator, Families):
            return None
        return self.search._log.candidates[arm].get(FAMILY)

    def _note(self, report: Report) -> None:
        """Note the times that a refit would take, and end with."""
        arm = report.job.arm
        begin = report.job.from_epoch
        self._fit_seconds.setdefault(arm, [])[begin:] = [
            total(details, "fit_time") - total(details, TRANSFORM_TIME)
            for details in report.metrics
        ]
        self._transformers.note(report)
        if self.is_averaged(arm) and any(map(math.isfinite, report.scores)):
            scores = self._scores.setdefault(arm, [])
            scores[begin:] = report.scores
            self._halves[arm] = best_half(scores)

    def _advise(self, report: Report) -> None:
        """Say once if the epochs of the search should be longer."""
        scheduler = self.search.scheduler
        of_each = scheduler.max_epochs or scheduler.budget
        n_epochs = int(min(scheduler.budget, scheduler.n_arms * of_each))
        params = self.search._log.candidates[report.job.arm]
        advice = advice_on_steps(self.folds, params, n_epochs, report.metrics[0])
        if advice:
            write_advice(advice)

    def _seconds_kept(self) -> float:
        """Seconds that are kept for a refit; trees have half of the time at most."""
        seconds = self._refit_seconds()
        arm = self.search.scheduler.best_arm
        if arm is None or self._in_full or self._family(arm) not in self._all_trees:
            return seconds
        return min(seconds, self._clock.seconds())

    def _refit_seconds(self) -> float:
        """Seconds of a refit after the next epoch, or after the jobs in training."""
        scheduler = self.search.scheduler
        arm = scheduler.best_arm
        last = scheduler.best_epoch
        if self._halves and arm is not None and self.is_averaged(arm):
            arm = max(self._halves, key=lambda arm: self._halves[arm][0])
            last = self._halves[arm][1][-1]
        if arm is None or not self._fit_seconds.get(arm):
            return 0.0
        seconds = self._fit_seconds[arm]
        folds = self.folds
        rows_trained = sum(len(train) for train, _ in folds.splits)
        share = float(_num_samples(folds.X)) / rows_trained
        if folds.resource is not None:  # its last epoch is trained once more
            costs = folds.resource.costs
            return share * costs[-1] * sum(seconds) / sum(costs[: len(seconds)])
        pace = float(np.mean(seconds[-PACE:]))
        family = self._family(arm)
        if self._in_full or family in self._all_trees:
            n_epochs = folds.in_full(self.search._log.candidates[arm])
        else:
            ends = [job.from_epoch + job.n_epochs for job in scheduler.in_flight]
            n_epochs = max([last + 1, *ends])
        in_all = pace * n_epochs
        if family in self._in_one_fit:  # its fit does but once what each epoch does
            steps = (n_epochs - 1) * folds.steps_per_epoch
            of_step = len(folds.splits) * folds.seconds_per_step
            in_all = min(in_all, pace + steps * of_step)
        return share * (in_all + self._transformers.seconds(arm))


def _overfits(curves: Mapping[int, list[float]], arm: int) -> bool:
    """Return whether the arm's last score is below its best by more than noise."""
    steps = np.concatenate([np.diff(curve) for curve in curves.values()])
    falls = -steps[steps < 0.0]
    lost = np.nanmax(curves[arm]) - curves[arm][-1]
    return not lost <= NOISE * (np.median(falls) if len(falls) else 0.0)


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
