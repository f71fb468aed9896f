"""``RisingSearchCV``: the scikit-learn interface of the search."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from pathlib import Path
from typing import ClassVar

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import GroupKFold
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import Tags, get_tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from risingsearch.arms import ArmList, Configuration, Params
from risingsearch.budget import Budget
from risingsearch.errors import InvalidParameterError, SearchFailedError, unknown_name
from risingsearch.integrations.sklearn import preparation, results
from risingsearch.integrations.sklearn.callbacks import FitTasks
from risingsearch.integrations.sklearn.families import chosen, searched
from risingsearch.integrations.sklearn.folds import N_TREES, Folds
from risingsearch.integrations.sklearn.prefixes import shortened
from risingsearch.integrations.sklearn.scoring import (
    FIRST,
    Scorer,
    metric_name,
    range_of,
    scheduling_metric,
)
from risingsearch.integrations.sklearn.splits import Targets
from risingsearch.json_values import Json
from risingsearch.plotting.fragment import search_html
from risingsearch.search.corrected import Evidence, Verdict
from risingsearch.search.results import SearchResult


@preparation.explaining_names
@dataclass(repr=False, eq=False, match_args=False)
class RisingSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search hyperparameters by giving every epoch to the model that uses it best.

    ``RandomizedSearchCV`` trains every configuration in full, and the halving searches
    drop most of them for good. This search trains all of them a little, pauses them,
    and spends the rest of the budget on the most promising learning curves. A paused
    model keeps its weights: no epoch is trained twice.

    Parameters
    ----------
    estimator : estimator, or list of estimators or (name, estimator) pairs
        Anything that can be trained further: with ``partial_fit``, with ``warm_start``
        and ``n_estimators`` or ``max_iter``, from xgboost or lightgbm, or a
        ``Pipeline`` whose last step is one of these. With a ``resource``, anything.
        Several are searched under one budget.
    param_distributions : "auto", dict, ConfigurationSpace, list of dict
        "auto" is the curated space of a known estimator, ``space_of(estimator)``. Or a
        space as ``RandomizedSearchCV`` takes it, also with Optuna's distributions, or
        a ``ConfigurationSpace``; or a list of such spaces and of configurations. What
        the estimator has itself, if it lies in the space, is the first arm.
    policy : str or callable, default="auto"
        Decides which configuration trains next; see ``Scheduler``.
    budget : int, str or Budget, optional
        Epochs over all configurations, at least one per candidate unless there is a
        ``prior``; or a time, "8h" of training or "8wall-h" of wall-clock time. An epoch
        trains and scores every fold once. Optional if there is a ``timeout``.
    timeout : float, optional
        Wall-clock seconds for the whole ``fit``, with the refit, for any ``n_jobs``.
        With a ``budget`` too, the one that is used up first ends the search.
    n_candidates : int or "auto", default="auto"
        Configurations of the space that are tried at most, beside those in a list;
        ``"auto"`` follows the policy's rule (with ``policy="auto"`` one per epoch of
        the budget; 500 if it is time, and more in a space with distributions).
    max_epochs : int, optional
        Epochs one configuration can use at most; by default the whole budget. Under a
        budget in time passes, trees or rounds, if ``steps_per_epoch`` is not set; by
        default 100 passes, or all trees or rounds. With a ``resource`` 5.
    scoring : str, callable, list, tuple or dict, optional
        As in ``GridSearchCV``. With several metrics ``refit`` names the one that
        schedules and decides; if it is False or a callable, the first one schedules.
    cv : int, float, splitter or iterable, optional
        As in ``GridSearchCV``, split once for all epochs; a float between 0 and 1 holds
        out that share of the rows once, of each class in proportion if possible.
        ``groups`` of ``fit`` are never parted by a float or an int.
    refit : bool, "full", "best", str or callable, default=True
        ``True`` trains the best configuration afresh on all rows for ``best_epoch_``
        epochs; under a budget in time boosted trees for the number with the best score,
        all trees of other ensembles, unless they overfit; ``"full"`` for
        ``max_epochs``, or those of a full training. ``"best"`` hands over the model
        with the best score, trained on the training rows of a single split. Another
        text names one of several metrics. A callable maps ``cv_results_`` to the index
        to train afresh. ``False`` trains nothing.
    n_jobs : int, optional
        Processes that train at the same time, or threads under
        ``joblib.parallel_config("threading")``; -1 for all processors. With an
        ``executor``, how many of its workers to use.
    executor : concurrent.futures.Executor, optional
        As in ``RisingSearch``. The data travel with every job, but once to each worker
        of a Dask cluster.
    error_score : "raise" or float, default=nan
        Score of an epoch that fails or is not finite, which retires the configuration,
        and of one without a score in ``cv_results_``. NaN stands for the worst score so
        far; "raise" stops the search.
    random_state : int, RandomState or None
        Seed of the candidates, of the search, and of every ``random_state`` parameter
        of the estimator that is None.
    verbose : int, default=0
        From 1 on, the ``progress`` of ``RisingSearch`` (needs tqdm), and advice on
        ``steps_per_epoch`` where another would save much time.
    return_train_score : bool, default=False
        Score the training rows too, which takes time.
    steps_per_epoch : int or "auto", default="auto"
        Passes over the training rows, trees or boosting rounds in an epoch. ``"auto"``
        is 1; if the budget is a time, so many passes that all but training takes at
        most a fifth of an epoch, as measured on the estimator as it is given, or a
        quarter of all trees, or fewer if the time would not last for 40 epochs.
    resource : "n_samples" or str, optional
        Amount that grows from epoch to epoch, for estimators that cannot resume
        training: training rows, or the value of an integer parameter, such as
        "clf__max_iter". Each epoch trains anew on half of the amount of the next one,
        the last on all; there are fewer than ``max_epochs`` if rows are few or the
        estimator needs many. An epoch is charged in proportion, the last as
        ``max_epochs``: so a budget of ``10 * max_epochs`` pays for ten full trainings.
    tie_break : {"cheapest", "fastest"}, optional
        Hand over, of the best candidate and those in ``tied_``, the one that was
        trained, or has predicted, in the least measured time; it is then the best one
        in all attributes. By default that of the highest score.
    run_dir : path, optional
        Directory that keeps the search: the same call of ``fit`` resumes it, one with
        other arguments or data is an error. ``random_state`` must be an int.
        ``RisingSearch`` says which of its files are unpickled.
    enqueue : list of dict, default=()
        As in ``RisingSearch``; they join the candidates. Their values may lie outside
        the space, and parameters that they lack keep the estimator's value.
    policy_params, deterministic, epoch_timeout, epochs_per_job, max_failures
        As in ``RisingSearch``; ``epoch_timeout`` is for ``n_jobs`` processes.
    prior, checkpoints, callbacks, min_epochs, patience, target_score
        As in ``RisingSearch``. The ``prior`` "package" opens good starts that were
        learnt on other tables. ``prior`` is read in ``fit``; a fitted search, this
        one's or scikit-learn's, can be one. Clones share the callbacks.
    learning_rate : str, dict or False, default=None
        As in ``RisingSearch``; the estimator's own value counts as one that is good.

    Attributes
    ----------
    cv_results_ : dict of ndarrays
        As in ``GridSearchCV``, a row per candidate: scores at its best epoch (of passes
        under a budget in time, means over the half of its epochs in a row with the
        highest mean), fit and score times in all, and ``epochs``, ``best_epoch`` and
        ``status``. Under a budget in time boosted trees have ``n_trees``, the number
        with the best score. With a ``resource`` the last epoch of each counts for its
        best, and there are ``n_resources`` (of that epoch, on average over the splits)
        and ``n_resources_fitted`` (of all its epochs and splits).
    best_estimator_, best_params_, best_score_, best_index_ : object
        As in ``GridSearchCV``.
    corrected_score_, corrected_interval_ : float, tuple of float
        ``best_score_``, corrected for having been chosen among many, and its 95 %
        interval, by a bootstrap of the test rows, from their predictions.
    tied_ : list of int
        The candidates that 95 % cannot tell from the best one, after correction for
        having chosen among all; the best first.
    corrected_source_ : str
        What the correction is made from, in words: with a ``scoring`` that gives no
        predictions, the noise of the learning curves.
    best_epoch_ : int
        Epochs of the best configuration until its best score, or its best half ends.
    n_resources_ : list of float
        With a ``resource``, how much of it each epoch has, on average over the splits.
    history_, curves_, trust_in_prior_, opened_by_prior_, stop_reason_
        As in ``SearchResult``; an arm is the row of ``cv_results_``.
    n_epochs_, n_calls_ : int
        Epochs charged to the budget, without the refit, and those that were trained:
        fewer if a failure cost epochs that never began.
    n_candidates_, n_splits_ : int
        Number of candidates and of splits.
    steps_per_epoch_ : int
        Passes, trees or rounds in an epoch, as chosen if ``steps_per_epoch="auto"``.
    scheduler_ : Scheduler
        The scheduler at the end; ``explain()`` says why each arm waits.
    scorer_, multimetric_, refit_time_, n_features_in_, feature_names_in_, classes_
        As in ``GridSearchCV``.

    See Also
    --------
    risingsearch.RisingSearch : The same search over anything trainable.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import SGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> search = RisingSearchCV(
    ...     SGDClassifier(),
    ...     {"alpha": loguniform(1e-6, 1e-1), "penalty": ["l2", "l1"]},
    ...     budget=60,
    ...     max_epochs=15,
    ...     cv=0.25,
    ...     random_state=0,
    ... )
    >>> search.fit(X / 16, y).n_epochs_
    60
    >>> bool(search.best_score_ > 0.9)
    True
    """

    _parameter_constraints: ClassVar[Json] = {
        name: allowed
        for name, allowed in BaseSearchCV._parameter_constraints.items()
        if name in ("scoring", "n_jobs", "refit", "verbose", "error_score")
    } | {
        "return_train_score": ["boolean"],
        "tie_break": [StrOptions({"cheapest", "fastest"}), None],
    }

    estimator: BaseEstimator | Sequence[object]
    param_distributions: object
    _: KW_ONLY
    policy: object = "auto"
    budget: int | str | Budget | None = None
    timeout: float | None = None
    epoch_timeout: float | None = None
    n_candidates: int | str = "auto"
    max_epochs: int | None = None
    policy_params: Configuration | None = None
    scoring: object = None
    cv: object = None
    refit: object = True
    n_jobs: int | None = None
    deterministic: bool = False
    executor: Executor | None = None
    error_score: float | str = np.nan
    random_state: object = None
    verbose: int = 0
    return_train_score: bool = False
    steps_per_epoch: int | str = "auto"
    resource: str | None = None
    tie_break: str | None = None
    run_dir: object = None
    checkpoints: str | None = None
    prior: object = None
    learning_rate: object = None
    callbacks: object = ()
    min_epochs: int = 1
    epochs_per_job: int | None = None
    patience: int | None = None
    target_score: float | None = None
    enqueue: Iterable[Configuration] = ()
    max_failures: int = 0

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: ArrayLike,
        y: Targets = None,
        **params: object,
    ) -> RisingSearchCV:
        """Search, then train the best configuration as ``refit`` says; return itself.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows: numpy, pandas, a list or sparse.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets.
        **params : dict of str to object
            Metadata for the estimator, the scorer and the splitter: ``groups``,
            ``sample_weight``, ... Those with an entry per row are sliced by fold.

        Returns
        -------
        RisingSearchCV
            Itself, with the results in its attributes.

        Raises
        ------
        InvalidParameterError
            If an argument is outside its range, ``y`` is missing, or nothing can be
            learnt from an earlier search.
        NotTrainableError
            If a configuration cannot be trained by epochs; the message says why.
        SearchFailedError, RunDirError, KeyboardInterrupt
            As in ``RisingSearch.run``. After an interrupt the results so far are there,
            without a refit, and ``continue_search`` resumes.
        """
        try:
            self._run = preparation.begin(self, X, y, params)
        finally:  # not before: an earlier fit of this search may be its prior
            self._forget_results()
        self._search = self._run.search
        self._train()
        return self

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def continue_search(
        self,
        extra_budget: int | str | Budget | None = None,
        *,
        retry_failed: bool = False,
        timeout: float | None = None,
    ) -> RisingSearchCV:
        """Add to the budget, continue, return itself; only the refit is trained again.

        ``patience`` is counted anew. It and ``target_score`` may be set before.

        Parameters
        ----------
        extra_budget : int, str or Budget, optional
            Added to the budget, in its unit. Optional with ``retry_failed``.
        retry_failed : bool, default=False
            First try every failed configuration once more; its failures stay charged.
        timeout : float, optional
            Wall-clock seconds to add instead, to a budget of such.

        Raises
        ------
        NotFittedError
            If there is no search in memory: before ``fit``, and in a pickled copy.
        InvalidParameterError
            If the addition is in another unit than the budget.
        """
        if not hasattr(self, "_search"):
            raise NotFittedError(
                "continue_search needs the models, which copies lack: call fit first"
            )
        self._search.stop_when(self.patience, self.target_score)
        if extra_budget is not None or timeout is not None or not retry_failed:
            unit = self._search.scheduler.unit
            self._search.extend(preparation.added(unit, extra_budget, timeout))
        if retry_failed:
            self._search.retry_failed()
        self._train()
        return self

    def explain(self) -> ArmList:
        """Return where every arm stands, and why; see ``Scheduler.explain``.

        Printed, its last line says how many are level with the best one.
        """
        check_is_fitted(self)
        return self.scheduler_.explain().with_standing(self._standing)

    def _standing(self) -> str:
        return self._verdict.text if hasattr(self, "_evidence_") else ""

    @property
    def _verdict(self) -> Verdict:
        check_is_fitted(self, "_evidence_")
        verdict: Verdict = self._evidence_.verdict
        return verdict

    @property
    def corrected_score_(self) -> float:
        """The best score, corrected for having been chosen among many."""
        return self._verdict.score

    @property
    def corrected_interval_(self) -> tuple[float, float]:
        """The 95 % interval of the corrected score."""
        return self._verdict.interval

    @property
    def corrected_source_(self) -> str:
        """The source of the correction, in words."""
        return self._verdict.source

    @property
    def tied_(self) -> list[int]:
        """The candidates that 95 % cannot tell from the best one, the best first."""
        return self._verdict.tied

    def result(self) -> SearchResult:
        """Return the result as ``RisingSearch`` has it, for reports and importances."""
        if not hasattr(self, "_search"):
            raise NotFittedError(
                "result needs the search, which copies lack: call fit first"
            )
        return self._search.result()

    def _validate_params(self) -> None:
        if isinstance(self.scoring, str) and self.scoring not in get_scorer_names():
            raise unknown_name("scoring", self.scoring, get_scorer_names())
        try:
            super()._validate_params()
        except ValueError as error:
            raise InvalidParameterError(str(error)) from None

    @property
    def _model(self) -> BaseEstimator:
        """The estimator, or the first of several."""
        return chosen(searched(self.estimator))

    def _get_scorers(self) -> tuple[Scorer, str | None]:
        """Scorer, and the metric that schedules if it has several."""
        scorer = self.scoring
        if not callable(scorer):
            raises = isinstance(self.error_score, str)
            scorer = check_scoring(self._model, scorer, raise_exc=raises)
        return scorer, scheduling_metric(scorer, self.scoring, self.refit)

    def _metric_name(self) -> str:
        metric = self._get_scorers()[1]
        if metric is None or metric == FIRST:
            return metric_name(self.scoring)
        return metric

    def __sklearn_tags__(self) -> Tags:
        bare = copy(self)
        bare.estimator = self._model
        tags = super(RisingSearchCV, bare).__sklearn_tags__()
        inner = get_tags(self._model)
        tags.target_tags = deepcopy(inner.target_tags)
        tags.transformer_tags = deepcopy(inner.transformer_tags)
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata go where; ``partial_fit`` asks, or else ``fit``."""
        router: MetadataRouter = super().get_metadata_routing()
        if isinstance(self.cv, Real | None):  # whose splits keep groups together
            split = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=GroupKFold(), method_mapping=split)
        trained = MethodMapping().add(caller="fit", callee=preparation.trained_by(self))
        return router.add(estimator=self._model, method_mapping=trained)

    def _train(self) -> None:
        folds = self._run.folds
        tasks = FitTasks(self, folds.X, folds.y)
        save_best = None if self.refit is False else self._save_best
        with self._search._callbacks.running(save_best):
            result = self._trained(tasks)
            self._keep(result)
            if self.refit is not False:
                self._refit(result, tasks)
        tasks.done()

    def _trained(self, tasks: FitTasks) -> SearchResult:
        """Return the result; after an interrupt, keep the results until then."""
        try:
            return self._run.train(tasks)
        except SearchFailedError as error:
            if error.__cause__ is not None:
                raise
            raise SearchFailedError(
                f"{error}: scoring={self.scoring!r} gave no finite number"
            ) from None
        except BaseException as error:
            interrupted = not isinstance(error, Exception)
            if interrupted and self._search.scheduler.best_arm is not None:
                self._keep(self._search.result())
            raise

    def _refit(self, result: SearchResult, tasks: FitTasks) -> None:
        begin = time.perf_counter()
        self.best_estimator_ = tasks.refit(lambda: self._best_estimator(result))
        self.refit_time_ = time.perf_counter() - begin
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def _save_best(self, folder: Path) -> None:
        joblib.dump(self.best_estimator_, folder / "model.joblib")

    def _forget_results(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _keep(self, result: SearchResult) -> None:
        self._forget_results()
        folds = self._run.folds
        self.n_splits_ = len(folds.splits)
        self.scorer_ = getattr(folds.scorer, "_scorers", folds.scorer)
        self.multimetric_ = folds.metric is not None and not any(
            "split0_test_score" in row for row in result.history
        )
        self.history_ = result.history
        if folds.resource is not None:
            self.n_resources_ = [n / self.n_splits_ for n in folds.resource.totals]
        averaged: set[int] = set()
        if self.refit != "best":
            averaged = set(filter(self._run.is_averaged, result.curves))
        if averaged:
            result = results.on_average(result, averaged)
        self.curves_ = {arm: np.array(curve) for arm, curve in result.curves.items()}
        self.n_epochs_ = result.n_epochs
        self.n_calls_ = result.n_calls
        self.n_candidates_ = len(result.candidates)
        self.steps_per_epoch_ = folds.steps_per_epoch
        self.scheduler_ = self._search.scheduler
        self.stop_reason_ = result.stop_reason
        self.trust_in_prior_ = result.trust_in_prior
        self.opened_by_prior_ = result.opened_by_prior
        self.cv_results_ = results.cv_results(self, result, averaged)
        results.warn_of_failures(result)
        if self.refit is False and self.multimetric_:
            return  # as in GridSearchCV: no metric was named to choose by
        if callable(self.refit):
            self.best_index_ = self._select_best_index(self.refit, "", self.cv_results_)
            if not result.arms[self.best_index_].best_epoch:
                raise InvalidParameterError(
                    f"refit chose candidate {self.best_index_}, which has no score"
                )
        else:
            self.best_index_ = int(result.best_arm or 0)
        if result.evidence is not None:
            self._judge(result, result.evidence)
        if not callable(self.refit):
            scores = f"mean_test_{folds.metric if self.multimetric_ else 'score'}"
            self.best_score_ = float(self.cv_results_[scores][self.best_index_])
        self.best_params_ = result.candidates[self.best_index_]
        self.best_epoch_ = result.arms[self.best_index_].best_epoch

    def _judge(self, result: SearchResult, evidence: Evidence) -> None:
        """Note how far the best score can be trusted, and break ties as asked."""
        folds = self._run.folds
        bounds = range_of(folds.scorer, folds.metric, folds.estimator)
        evidence = replace(
            evidence,
            winner=self.best_index_,
            scores_of=folds.scores_of,
            missing="" if folds.recomputes else "scoring gives no predictions: ",
            bounds=bounds or (-np.inf, np.inf),
        )
        if self.tie_break is not None:
            level = [self.best_index_, *evidence.verdict.tied]
            self.best_index_ = results.cheapest(result, level, self.tie_break)
            evidence = replace(evidence, winner=self.best_index_)
        self._evidence_ = evidence

    def _refits(self, folds: Folds) -> bool:
        """Return whether the best configuration is trained afresh."""
        hands_over = self.refit == "best" and folds.metric is None
        return self.refit is not False and not hands_over

    def _best_estimator(self, result: SearchResult) -> BaseEstimator:
        folds = self._run.folds
        params = self.best_params_
        seed = self._search.seed_of(self.best_index_)
        if self._refits(folds):
            n_steps = self._run.steps_to_refit(
                result,
                self.best_index_,
                self.best_epoch_,
                in_full=self.refit == "full",  # as it is by now
            )
            return folds.refit(params, seed, n_steps)
        if folds.trains_anew:
            return folds.trained_in_epoch(params, seed, self.best_epoch_)
        [trainer] = result.best_state()
        n_trees = results.best_row(result, self.best_index_).get(N_TREES)
        if n_trees is None:
            return trainer.estimator
        return shortened(trainer.estimator, n_trees)

    def plot_allocation(self, ax: object = None, **options: object) -> object:
        """Draw which configuration trained when; see ``risingsearch.plotting``."""
        return self._plotted("plot_allocation", ax, options)

    def plot_curves(self, ax: object = None, **options: object) -> object:
        """Draw all learning curves; see ``risingsearch.plotting``."""
        return self._plotted("plot_curves", ax, options)

    def _plotted(
        self,
        name: str,
        ax: object,
        options: Params,
    ) -> object:
        from risingsearch import plotting

        check_is_fitted(self, "history_")
        options = {"metric": self._metric_name(), **options}
        return getattr(plotting, name)(self.history_, ax=ax, **options)

    def get_params(self, deep: bool = True) -> Params:
        """Return the arguments by name, if ``deep`` with those of the estimator."""
        bare = copy(self)
        bare.prior = None
        params: Params = super(RisingSearchCV, bare).get_params(deep)
        return params | {"executor": self.executor, "prior": self.prior}

    def _repr_html_inner(self) -> str:
        diagram = str(super()._repr_html_inner())
        if not hasattr(self, "history_"):
            return diagram
        return diagram + search_html(
            self.history_,
            self.cv_results_["params"],
            direction="maximize",
            metric=self._metric_name(),
            spent=f"{self.n_epochs_:,} epochs used",
            standing=self._standing(),
        )

    def _repr_mimebundle_(self, **kwargs: object) -> Json:
        bundle: Json = dict(super()._repr_mimebundle_(**kwargs))
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def __sklearn_is_fitted__(self) -> bool:
        done = "best_estimator_" if self.refit is not False else "cv_results_"
        if hasattr(self, "cv_results_") and not hasattr(self, done):
            raise NotFittedError(
                "this RisingSearchCV ended before its refit: call "
                "continue_search(extra_budget), which also spends the rest of the "
                "budget, or train clone(estimator).set_params(**best_params_)"
            )
        return hasattr(self, done)

    def __getstate__(self) -> Json:
        state: Json = super().__getstate__() | {"executor": None}
        for name in ("_search", "_run"):  # the live models, the data and the workers
            state.pop(name, None)
        if "_evidence_" in state:
            state["_evidence_"] = self._evidence_.without_data()
        return state

    def __sklearn_clone__(self) -> RisingSearchCV:
        # An executor cannot be copied, nor an earlier search without its results, and
        # events of a copied callback would not reach the user; clones share them.
        bare = copy(self)
        bare.prior = bare.callbacks = None
        twin: RisingSearchCV = super(RisingSearchCV, bare).__sklearn_clone__()
        twin.executor, twin.prior = self.executor, self.prior
        twin.callbacks = self.callbacks
        return twin
