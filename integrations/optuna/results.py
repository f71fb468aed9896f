"""Results of a study, arm by arm."""

import math
from collections import defaultdict
from dataclasses import dataclass, fields
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from risingsearch.arms import Params
from risingsearch.errors import SearchFailedError
from risingsearch.integrations.optuna.trials import (
    ARM,
    BY_PRIOR,
    FINAL,
    FROM_EPOCH,
    GIVEN_UP,
    N_EPOCHS,
    PREFIX,
    constraints_of,
    curve,
    n_charged,
    sign_of,
    violation,
)
from risingsearch.json_values import Json
from risingsearch.search.results import History


@dataclass(frozen=True)
class ArmResult:
    """An arm, over all its trials.

    Parameters
    ----------
    id : int
        Number of the trial that opened it.
    params : dict
        Its parameters.
    epochs : int
        Reports made.
    charged : int
        Epochs of the budget that it was charged: those, and those of failed slices.
    best_score : float
        The best of them, NaN if none was finite.
    best_epoch : int
        The report that was the best, from 1; 0 if none was finite.
    last_score : float
        The last of them, NaN if there was none.
    state : {"running", "paused", "complete", "failed"}
        Where its newest trial stands; failed if a score of it is not finite.
    n_trials : int
        Slices it was trained in.
    curve : dict of int to float
        All its reports, by step.
    opened_by_prior : bool
        Whether earlier searches suggested its parameters.
    feasible : bool
        Whether it violates no constraint. Not known, so False, while it is paused or
        trains without any where other arms have some.

    Examples
    --------
    >>> import optuna
    >>> import risingsearch.integrations.optuna as rising
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     rising.arm(trial)
    ...     return trial.suggest_float("x", 0.0, 1.0)  # a single epoch
    >>> study = optuna.create_study(
    ...     sampler=rising.RisingSampler(4, max_epochs=1, seed=0),
    ...     pruner=rising.RisingPruner(),
    ... )
    >>> study.optimize(objective)
    >>> first = rising.arm_results(study)[0]
    >>> first.id, first.epochs, first.state, first.best_score == first.last_score
    (0, 1, 'complete', True)
    """

    id: int
    params: Params
    epochs: int
    charged: int
    best_score: float
    best_epoch: int
    last_score: float
    state: str
    n_trials: int
    curve: dict[int, float]
    opened_by_prior: bool = False
    feasible: bool = True


STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "paused",
    TrialState.FAIL: "failed",
}


def arm_results(study: Study) -> list[ArmResult]:
    """Return the results of the arms of a ``RisingSampler``, in their opening order.

    Parameters
    ----------
    study : Study
        A study that was optimized with a ``RisingSampler``.

    Returns
    -------
    list of ArmResult
        One for each arm that trains or has trained.

    Examples
    --------
    >>> import optuna
    >>> import risingsearch.integrations.optuna as rising
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0.0, 1.0)
    ...     rising.arm(trial)
    ...     return (x - 0.3) ** 2  # a single epoch
    >>> study = optuna.create_study(
    ...     sampler=rising.RisingSampler(12, max_epochs=1, seed=0),
    ...     pruner=rising.RisingPruner(),
    ... )
    >>> study.optimize(objective)
    >>> [result.epochs for result in rising.arm_results(study)]
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    return [result for result, _ in _results(study)]


def best_arm(study: Study) -> ArmResult:
    """Return the feasible arm with the best score at any of its epochs.

    Parameters
    ----------
    study : Study
        A study that was optimized with a ``RisingSampler``.

    Returns
    -------
    ArmResult
        Its parameters, scores and curve.

    Raises
    ------
    SearchFailedError
        If no feasible arm has reported a finite score.

    Examples
    --------
    >>> import optuna
    >>> import risingsearch.integrations.optuna as rising
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0.0, 1.0)
    ...     rising.arm(trial)
    ...     return (x - 0.3) ** 2  # a single epoch
    >>> study = optuna.create_study(
    ...     sampler=rising.RisingSampler(12, max_epochs=1, seed=0),
    ...     pruner=rising.RisingPruner(),
    ... )
    >>> study.optimize(objective)
    >>> abs(rising.best_arm(study).params["x"] - 0.3) < 0.1
    True
    """
    scored = [r for r in arm_results(study) if math.isfinite(r.best_score)]
    feasible = [result for result in scored if result.feasible]
    if not feasible:
        lacks = "satisfies all constraints" if scored else "has a finite score"
        raise SearchFailedError(
            f"no arm {lacks} yet, so none is the best: optimize the study further"
        )
    sign = sign_of(study)
    return max(feasible, key=lambda result: sign * result.best_score)


def arms(study: Study) -> Any:
    """Return a pandas DataFrame with one row per arm of a ``RisingSampler``.

    Parameters
    ----------
    study : Study
        A study that was optimized with a ``RisingSampler``.

    Returns
    -------
    DataFrame
        The fields of ``ArmResult`` but the curve, a column ``params_<name>`` for each
        parameter; indexed by the arm's id.

    Raises
    ------
    MissingDependencyError
        If pandas is not installed.

    Examples
    --------
    >>> import optuna
    >>> import risingsearch.integrations.optuna as rising
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0.0, 1.0)
    ...     rising.arm(trial)
    ...     return (x - 0.3) ** 2  # a single epoch
    >>> study = optuna.create_study(
    ...     sampler=rising.RisingSampler(12, max_epochs=1, seed=0),
    ...     pruner=rising.RisingPruner(),
    ... )
    >>> study.optimize(objective)
    >>> int(rising.arms(study).charged.sum())  # of the budget
    12
    """
    others = ("id", "params", "curve")
    columns = [each.name for each in fields(ArmResult) if each.name not in others]
    rows = [
        {"id": result.id}
        | {name: getattr(result, name) for name in columns}
        | {f"params_{name}": value for name, value in result.params.items()}
        for result in arm_results(study)
    ]
    frame = History(rows).to_frame()
    return (frame if rows else frame.reindex(columns=["id", *columns])).set_index("id")


def finalize(study: Study) -> None:
    """Add one complete trial per arm, so that ``best_trial`` and the plots show arms.

    Its value is the arm's best score, its reports are the whole curve; it has the user
    attributes and constraints that the arm was last given. An arm whose own last trial
    has completed with that score needs none, nor does one without a finite score, or
    whose constraints are not known yet. A further call adds the new arms.

    Parameters
    ----------
    study : Study
        A study that was optimized with a ``RisingSampler``.

    Examples
    --------
    >>> import optuna
    >>> import risingsearch.integrations.optuna as rising
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0.0, 1.0)
    ...     arm = rising.arm(trial)
    ...     for epoch in range(arm.from_epoch, 9):
    ...         trial.report(x + 1.0 / (epoch + 1), epoch)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned
    ...     return x + 1.0 / 9
    >>> study = optuna.create_study(
    ...     sampler=rising.RisingSampler(30, max_epochs=9, seed=0),
    ...     pruner=rising.RisingPruner(),
    ... )
    >>> study.optimize(objective)
    >>> rising.finalize(study)
    >>> study.best_params == rising.best_arm(study).params
    True
    """
    trials = study.get_trials(deepcopy=False)
    shown = {
        (trial.user_attrs[FINAL], len(trial.intermediate_values))
        for trial in trials
        if FINAL in trial.user_attrs
    }
    for result, slices in _results(study):
        last = slices[-1]
        constraints = constraints_of(slices)
        is_judged = result.feasible or constraints
        is_own = result.state == "complete" and last.value == result.best_score
        is_shown = is_own or (result.id, result.epochs) in shown
        if is_judged and not is_shown and math.isfinite(result.best_score):
            final = create_trial(
                value=result.best_score,
                params=result.params,
                distributions=_widened(last.distributions, result.params),
                intermediate_values=result.curve,
                user_attrs=_set_by_objective(slices) | {FINAL: result.id},
                system_attrs=constraints,
            )
            study.add_trial(final)


def _set_by_objective(slices: list[FrozenTrial]) -> Json:
    """Return the user attributes that the objective has set, the latest of each."""
    return {
        key: value
        for trial in slices
        for key, value in trial.user_attrs.items()
        if not key.startswith(PREFIX)
    }


def _widened(
    distributions: dict[str, BaseDistribution], params: Params
) -> dict[str, BaseDistribution]:
    """Return the distributions, with ranges that contain values enqueued outside."""
    widened = dict(distributions)
    for name, known in distributions.items():
        value = params[name]
        if not known._contains(known.to_internal_repr(value)):
            assert isinstance(known, FloatDistribution | IntDistribution)
            low, high = min(known.low, value), max(known.high, value)
            widened[name] = type(known)(low, high, log=known.log)
    return widened


def _results(study: Study) -> list[tuple[ArmResult, list[FrozenTrial]]]:
    """Return the results of all arms, each with the arm's trials."""
    slices = _by_arm(study)
    is_constrained = any(constraints_of(trials) for trials in slices.values())
    return [
        (_result(study, trials, is_constrained=is_constrained), trials)
        for trials in slices.values()
    ]


def _by_arm(study: Study) -> dict[int, list[FrozenTrial]]:
    """Return the trials that have trained, or do now, by the arm."""
    slices: defaultdict[int, list[FrozenTrial]] = defaultdict(list)
    for trial in study.get_trials(deepcopy=False):
        attrs = trial.user_attrs
        has_begun = trial.state != TrialState.WAITING and attrs.get(N_EPOCHS)
        if has_begun and (ARM in attrs or GIVEN_UP not in attrs):
            slices[attrs.get(ARM, trial.number)].append(trial)
    return dict(sorted(slices.items()))


def _result(
    study: Study, trials: list[FrozenTrial], *, is_constrained: bool
) -> ArmResult:
    last = trials[-1]
    reports = _reports(trials)
    state = _state(last)
    constraints = constraints_of(trials)
    is_judged = bool(constraints) or state == "complete" or not is_constrained
    scores = list(reports.values())
    finite = filter(math.isfinite, scores)
    best = max(finite, key=sign_of(study).__mul__, default=math.nan)
    return ArmResult(
        id=last.user_attrs.get(ARM, last.number),
        params=dict(last.params),
        epochs=len(scores),
        charged=len(scores) + sum(map(_n_lost, trials)),
        best_score=best,
        best_epoch=scores.index(best) + 1 if math.isfinite(best) else 0,
        last_score=scores[-1] if scores else math.nan,
        state=state,
        n_trials=len(trials),
        curve=reports,
        opened_by_prior=BY_PRIOR in last.user_attrs,
        feasible=is_judged and violation(constraints) == 0.0,
    )


def _reports(trials: list[FrozenTrial]) -> dict[int, float]:
    """Return all reports of an arm, by step; its value, if there is no report."""
    reports: dict[int, float] = {}
    for trial in trials:
        if trial.state != TrialState.FAIL:
            reports |= curve(trial)
    last = trials[-1]
    if not reports and last.state == TrialState.COMPLETE:
        assert last.value is not None
        return {0: last.value}
    return dict(sorted(reports.items()))


def _state(last: FrozenTrial) -> str:
    """Return where an arm stands after its last trial."""
    if GIVEN_UP in last.user_attrs:
        return "paused"
    scores = _own_scores(last)
    has_failed = not scores or not math.isfinite(sum(scores))
    if last.state == TrialState.PRUNED and has_failed:
        return "failed"
    return STATES.get(last.state, "running")


def _own_scores(trial: FrozenTrial) -> list[float]:
    return list(curve(trial).values())[trial.user_attrs.get(FROM_EPOCH, 0) :]


def _n_lost(trial: FrozenTrial) -> int:
    """Return the epochs that a trial without a result was charged."""
    attrs = trial.user_attrs
    n_scores = len(_own_scores(trial))
    is_empty = not n_scores and trial.state == TrialState.PRUNED
    has_failed = is_empty or trial.state == TrialState.FAIL
    if GIVEN_UP in attrs or not has_failed:
        return 0
    return n_charged(n_scores, int(attrs[N_EPOCHS]))
