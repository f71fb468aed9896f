"""Arguments of ``fit``, checked and turned into a search before anything is trained."""

import math
import pickle
import time
from collections.abc import Mapping
from functools import wraps
from numbers import Integral
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state, get_tags, indexable
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_method_params, _num_samples, column_or_1d

from risingsearch.arms import Configuration, Params
from risingsearch.budget import WALL_CLOCK, Budget, budget_within, in_words
from risingsearch.checks import checked_int, checked_path, shown
from risingsearch.errors import InvalidParameterError
from risingsearch.identity.comparison import described_parts
from risingsearch.identity.fingerprint import digest
from risingsearch.integrations.sklearn import epoch_methods
from risingsearch.integrations.sklearn.candidates import (
    check_settable,
    check_trainable,
    draw_candidates,
    first_configurations,
)
from risingsearch.integrations.sklearn.epoch_length import prefixes_within, steps_within
from risingsearch.integrations.sklearn.families import chosen, searched
from risingsearch.integrations.sklearn.fewest_rows import with_enough_rows
from risingsearch.integrations.sklearn.folds import Folds, Models
from risingsearch.integrations.sklearn.prefixes import has_prefixes
from risingsearch.integrations.sklearn.resources import resource_of
from risingsearch.integrations.sklearn.scoring import RANGE, range_of
from risingsearch.integrations.sklearn.search_run import SearchRun
from risingsearch.integrations.sklearn.splits import Targets, frozen_splits
from risingsearch.json_values import Json, plain
from risingsearch.policies import policy_info, registered_name
from risingsearch.proposers.learning_rate import LearningRate, checked_learning_rate
from risingsearch.scheduling.options import SearchOptions
from risingsearch.scheduling.policy_choice import recommended_candidates
from risingsearch.search.arguments import arm_of, checked_enqueue, with_enqueued
from risingsearch.search.run import Run
from risingsearch.space import Configurations, Space
from risingsearch.space.by_name import AUTO, PACKAGE, space_of

T = TypeVar("T")

OWN_FIRST = "own_first"
"""How many configurations come first because they are the estimators' own."""

# arguments of other searches, and what RisingSearchCV has instead
INSTEAD = {
    "param_grid": "param_distributions, which takes the same dict, or a list",
    "search_spaces": "param_distributions",
    "n_iter": "n_candidates, and budget or timeout for how much is trained",
    "n_trials": "n_candidates, and budget or timeout for how much is trained",
    "max_resources": "max_epochs",
    "min_resources": "min_epochs, or policy='asha' with policy_params={'min_pulls': 3}",
    "factor": "policy='asha' with policy_params={'eta': 3}",
    "max_iter": "max_epochs",
    "seed": "random_state",
    "pre_dispatch": "n_jobs alone, jobs are sent as processes become free",
}


def explaining_names(search: type[T]) -> type[T]:
    """Make a class answer arguments of other searches with its own names."""
    init = vars(search)["__init__"]

    @wraps(init)
    def explaining(self: T, /, *args: object, **kwargs: object) -> None:
        for name in INSTEAD.keys() & kwargs.keys():
            raise InvalidParameterError(
                f"RisingSearchCV has no argument {name!r}: write {INSTEAD[name]}"
            )
        init(self, *args, **kwargs)

    search.__init__ = explaining  # type: ignore[method-assign, assignment]
    return search


def begin(
    search: BaseSearchCV,
    X: ArrayLike,
    y: Targets,
    params: Params,
) -> SearchRun:
    """Search of a ``RisingSearchCV`` over its folds, with everything checked."""
    started = time.monotonic()
    _check_steps(search.steps_per_epoch, search.resource)
    if search.max_epochs is not None:
        checked_int("max_epochs", search.max_epochs, 1)
    random = check_random_state(search.random_state)
    folds = _folds(search, X, y, params, random)
    budget = budget_within(search.budget, search.timeout)
    _check_unit(budget)
    candidates, first, begins_with = _candidates(search, random, folds, budget)
    seed = int(random.randint(2**31 - 1))
    folds.transformer_seed = seed
    if folds.resource is None:
        kinds = check_trainable(folds.estimator, candidates)
        _set_lengths(search, folds, budget, kinds)
    else:
        check_settable(folds.estimator, candidates, folds.resource)
        saved = _saved_costs(search.run_dir)
        if saved is None:
            folds.resource = with_enough_rows(folds, folds.resource, candidates)
        else:
            folds.resource = folds.resource.last(len(saved))
        folds.max_epochs = folds.resource.max_epochs
    pickle.dumps(Models([folds.estimator]))  # or raise before any training
    fingerprint = None
    if search.run_dir is not None:
        fingerprint = _fingerprint(folds, search) | begins_with
    options = SearchOptions(
        policy=search.policy,
        budget=search.budget,
        max_epochs=folds.max_epochs,
        executor=search.executor,
        n_jobs=search.n_jobs and joblib.effective_n_jobs(search.n_jobs),
        deterministic=search.deterministic,
        callbacks=search.callbacks,
        policy_params=_with_range(folds, search.policy, search.policy_params),
        epochs_per_job=search.epochs_per_job,
        error_score=_error_score(search.error_score),
        max_failures=search.max_failures,
        seed=seed,
        timeout=search.timeout,
        epoch_timeout=search.epoch_timeout,
        progress=search.verbose > 0,
        run_dir=search.run_dir,
        checkpoints=search.checkpoints,
        metric=search._metric_name(),
        fingerprint=fingerprint,
        prior=None if _asks_package(search) else search.prior,
        learning_rate=_learning_rate(search, folds, candidates.space),
        epoch_costs=None if folds.resource is None else folds.resource.costs,
        min_epochs=search.min_epochs,
        patience=search.patience,
        target_score=search.target_score,
        enqueue=first,
    )
    return SearchRun(
        search,
        folds,
        candidates,
        options,
        is_timed=budget.epochs is None and folds.resource is None,
        seconds_before=time.monotonic() - started,
    )


def _with_range(
    folds: Folds,
    policy: object,
    params: Configuration | None,
) -> Configuration | None:
    """Return the policy's parameters, with the range of the scores if it is known."""
    if not isinstance(params, Mapping | None) or RANGE in (params or {}):
        return params  # is checked with all others
    score_range = range_of(folds.scorer, folds.metric, folds.estimator)
    name = registered_name(policy)
    if score_range and name and RANGE in policy_info(name).parameters:
        return {RANGE: score_range, **(params or {})}
    return params


def _set_lengths(
    search: BaseSearchCV,
    folds: Folds,
    budget: Budget,
    kinds: list[BaseEstimator],
) -> None:
    """Set how long an epoch is, and how many of them a configuration has at most."""
    if search.max_epochs is not None:
        epoch_methods.warn_of_idle_epochs(kinds, search.max_epochs)
    if budget.epochs is not None:
        if search.max_epochs is not None:
            n_steps = search.max_epochs * folds.steps_per_epoch
            epoch_methods.warn_of_fewer(kinds, n_steps)
        elif all(map(epoch_methods.makes_one_pass, kinds)):
            folds.max_epochs = 1
        return
    if search.steps_per_epoch == "auto":
        steps = steps_within(folds, budget, search.run_dir, search.min_epochs)
        folds.max_epochs = folds.max_epochs and folds.max_epochs // steps
        folds.steps_per_epoch = steps
    if any(map(has_prefixes, kinds)):
        folds.n_prefixes = prefixes_within(folds, search.run_dir)
    if folds.max_epochs is None:
        steps = folds.steps_per_epoch
        in_full = [epoch_methods.epochs_in_full(kind, steps) for kind in kinds]
        folds.max_epochs = max(in_full)


def _learning_rate(search: BaseSearchCV, folds: Folds, space: Space | None) -> Any:
    """Return the option, with the estimator's own value as one that is good."""
    rate = checked_learning_rate(search.learning_rate)
    if space is None or isinstance(rate, Mapping):
        return rate
    parameter = LearningRate.of(space, rate)
    if parameter is None:
        return rate
    value = folds.estimator.get_params().get(parameter.name)
    good = {parameter.name: plain(value)}
    try:
        LearningRate.of(space, checked_learning_rate(good))
    except InvalidParameterError:  # no number, or outside the space
        return rate
    return good


def trained_by(search: BaseSearchCV) -> str:
    """Name the method of the estimator that gets the rows and the metadata."""
    if search.resource:
        return "fit"
    return epoch_methods.routing_callee(search._model)


def _folds(
    search: BaseSearchCV,
    X: ArrayLike,
    y: Targets,
    params: Params,
    random: np.random.RandomState,
) -> Folds:
    estimator = searched(search.estimator)
    scorer, metric = search._get_scorers()
    if y is None:
        _check_learns_without(chosen(estimator))
    X, y = indexable(X, _without_column(search, y))
    _check_rows(X, params)
    routed = search._get_routed_params_for_fit(_check_method_params(X, params=params))
    routes = get_config()["enable_metadata_routing"]
    splits = frozen_splits(search.cv, estimator, X, y, routed.splitter["split"], random)
    if search.refit == "best" and metric is None and len(splits) > 1:
        raise InvalidParameterError(
            f"refit='best' needs a single split, as by cv=0.25; cv has {len(splits)}"
        )
    if search.tie_break is not None and (
        search.refit == "best" or callable(search.refit)
    ):
        raise InvalidParameterError(
            f"tie_break={search.tie_break!r} chooses what is refitted: set refit to "
            f"True, 'full', False or the name of a metric; got {search.refit!r}"
        )
    score_params = dict(routed.scorer["score"])
    if not routes and _weighs_classes(y, score_params.get("sample_weight")):
        del score_params["sample_weight"]
    groups = routed.splitter["split"].get("groups")
    if groups is not None:
        _, groups = np.unique(np.asarray(groups), return_inverse=True)
    steps = search.steps_per_epoch
    if search.steps_per_epoch == "auto":
        steps = 1
    fit_params = dict(routed.estimator[trained_by(search) if routes else "fit"])
    folds = Folds(
        estimator=clone(estimator),
        X=X,
        y=y,
        splits=splits,
        scorer=scorer,
        metric=metric,
        steps_per_epoch=steps,
        seeded=search.random_state is not None,
        train_scores=search.return_train_score,
        score_of_failed=None if search.error_score == "raise" else search.error_score,
        fit_params=fit_params,
        score_params=score_params,
        max_epochs=search.max_epochs,
        groups=groups,
    )
    if search.resource is None:
        epoch_methods.check_arguments(estimator, fit_params)
        return folds
    folds.resource = resource_of(
        search.resource,
        search.max_epochs,
        int(random.randint(2**31 - 1)),
        estimator,
        X,
        y,
        splits,
        _saved_costs(search.run_dir),
    )
    return folds


def _check_learns_without(estimator: BaseEstimator) -> None:
    """Raise if an estimator learns from targets."""
    # The tag alone is not enough: a Pipeline does not take it from its last step.
    learns = is_classifier(estimator) or is_regressor(estimator)
    if learns or get_tags(estimator).target_tags.required:
        raise InvalidParameterError(
            "RisingSearchCV requires y to be passed, but the target y is None: "
            f"{type(estimator).__name__} learns from targets"
        )


def _saved_settings(run_dir: object) -> Json | None:
    """Return the settings of a saved search; None where there is none."""
    if run_dir is None:
        return None
    saved = Run.at(checked_path("run_dir", run_dir))
    return saved and saved.header["settings"]


def _saved_costs(run_dir: object) -> list[float] | None:
    """Return the costs of the epochs of a saved search; None where there is none."""
    settings = _saved_settings(run_dir) or {}
    costs: list[float] | None = settings.get("epoch_costs")
    return costs


def _asks_package(search: BaseSearchCV) -> bool:
    return isinstance(search.prior, str) and search.prior == PACKAGE


def _candidates(
    search: BaseSearchCV,
    random: np.random.RandomState,
    folds: Folds,
    budget: Budget,
) -> tuple[Configurations, list[int], Json]:
    """All candidates, the numbers of those that come first, and a mark of these.

    What the estimators have themselves is the first of those that are drawn, but not in
    a search that was begun before this rule and so has no mark. Opened first is what is
    enqueued, then this, then the starts of the package.
    """
    enqueue = checked_enqueue(search.enqueue)
    min_epochs = checked_int("min_epochs", search.min_epochs, 1)
    max_epochs = search.max_epochs
    n_epochs = budget.epochs
    if folds.resource is not None:  # the first epoch of a candidate costs less than one
        max_epochs = folds.resource.max_epochs
        n_epochs = None
    recommended = recommended_candidates(
        search.policy,
        budget,
        max_epochs,
        search.policy_params,
        min_epochs,
    )
    space = search.param_distributions
    is_auto = isinstance(space, str) and space == AUTO
    if is_auto:
        space = space_of(search.estimator)
    own, starts = first_configurations(
        folds.estimator,
        space,
        is_auto=is_auto,
        portfolio=_asks_package(search),
    )
    if n_epochs is not None:
        n_paid = n_epochs // min_epochs - len(own) - len(enqueue)
        starts = starts[: max(0, n_paid)]
    settings = _saved_settings(search.run_dir)
    if settings is not None and OWN_FIRST not in settings["fingerprint"]:
        own = []
    drawn = draw_candidates(
        space,
        search.n_candidates,
        random,
        recommended,
        n_epochs,
        prior=search.prior is not None,
        n_enqueued=len(enqueue) + len(starts),
        own=own,
    )
    before = [arm_of(params, drawn) for params in own]
    candidates, given = with_enqueued(drawn, enqueue, drawn.space)
    candidates, after = with_enqueued(candidates, starts, drawn.space)
    n = None if search.n_candidates == "auto" else len(candidates)
    first = list(dict.fromkeys([*given, *before, *after]))
    begins_with = {OWN_FIRST: len(own)} if own else {}
    return Configurations(candidates, drawn.space, n), first, begins_with


def added(
    unit: str,
    extra_budget: int | str | Budget | None,
    timeout: float | None,
) -> Budget:
    """Return the addition of ``continue_search`` to a budget in some unit."""
    if timeout is None and not isinstance(extra_budget, Budget | str):
        checked_int("extra_budget", extra_budget, 1)
    extra = budget_within(extra_budget, timeout)
    if extra.in_unit(unit) is None or None not in (extra_budget, timeout):
        more = {"epochs": "10", **dict.fromkeys(WALL_CLOCK, "timeout=10")}
        raise InvalidParameterError(
            f"the budget is in {in_words(unit)}, so write continue_search("
            f"{more.get(unit, f'Budget({unit}=10)')}); got "
            f"extra_budget={shown(extra_budget)}, timeout={timeout}"
        )
    return extra


def _check_unit(budget: Budget) -> None:
    for unit in ("cost", "gpu_hours"):
        if getattr(budget, unit) is not None:
            raise InvalidParameterError(
                f"an estimator measures no {unit}: give epochs or time; got {budget}"
            )


def _error_score(score: Any) -> float | str | None:
    if score == "raise":
        return "raise"
    if math.isfinite(score):
        return float(score)
    if math.isnan(score):
        return None
    raise InvalidParameterError(
        f"error_score must be 'raise', a finite number or nan; got {score!r}"
    )


def _check_steps(value: object, resource: object) -> None:
    if value == "auto":
        return
    if checked_int("steps_per_epoch, if not 'auto',", value, 1) > 1 and resource:
        raise InvalidParameterError(
            f"steps_per_epoch must be 1 with resource={resource!r}; got {value}"
        )


def _check_rows(X: ArrayLike, params: Params) -> None:
    for name, value in params.items():
        per_row = name.rpartition("__")[2] in ("sample_weight", "groups")
        if per_row and np.ndim(value) and _num_samples(value) != _num_samples(X):
            raise InvalidParameterError(
                f"{name} must have one entry per row of X, {_num_samples(X)} in all"
            )


def _weighs_classes(y: Targets, weights: ArrayLike | None) -> bool:
    """Return whether weights differ by the class alone, as balanced ones.

    They are to change the training, not what is measured.
    """
    if weights is None or type_of_target(y) not in ("binary", "multiclass"):
        return False
    labels = np.ravel(y).tolist()
    values = np.asarray(weights).tolist()
    of_classes = set(zip(labels, values, strict=True))
    return len(of_classes) == len(set(labels)) and len(set(values)) > 1


def _without_column(search: BaseSearchCV, y: Targets) -> Targets:
    """Targets as most estimators take them, who would warn in each epoch and split."""
    shape = np.shape(y) if isinstance(y, list) else getattr(y, "shape", ())
    tags = get_tags(epoch_methods.last_step(search._model)).target_tags
    takes_columns = search.resource is not None and not is_classifier(search._model)
    if shape[1:] != (1,) or takes_columns or not tags.single_output:
        return y
    return column_or_1d(y, warn=True)


def _fingerprint(folds: Folds, search: BaseSearchCV) -> Json:
    """Everything that must be the same to continue in a run directory, as JSON."""
    seed = search.random_state
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise InvalidParameterError(
            f"with a run_dir random_state must be an int, to continue; got {seed!r}"
        )
    given: Json = {} if folds.resource is None else {"resource": folds.resource.name}
    if folds.n_prefixes:
        given["prefixes_per_epoch"] = folds.n_prefixes
    return given | {
        "estimator": described_parts(folds.estimator),
        "X": joblib.hash(_without_numbers(folds.X)),
        "y": joblib.hash(_without_numbers(folds.y)),
        "random_state": int(seed),
        "metadata": digest((folds.fit_params, folds.score_params)),
        "scoring": described_parts(folds.scorer),
        "refit": folds.metric,
        "steps_per_epoch": folds.steps_per_epoch,
        "return_train_score": folds.train_scores,
        "cv": joblib.hash(folds.splits),
    }


def _without_numbers(data: Targets) -> Targets:
    """Return data of pandas without an index that only numbers the rows."""
    index = getattr(data, "index", None)
    is_number = getattr(getattr(index, "dtype", None), "kind", "") in ("i", "u")
    return data.reset_index(drop=True) if is_number else data
