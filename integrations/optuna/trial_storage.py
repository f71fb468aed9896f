"""The sampler that gives every trial its arm, and proposes new ones by another."""

from __future__ import annotations

import random
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from risingsearch.checks import checked_float, checked_int
from risingsearch.errors import InvalidParameterError, StorageError
from risingsearch.integrations.optuna.checkpoints import (
    ArtifactCheckpoints,
    Checkpoints,
    FolderCheckpoints,
)
from risingsearch.integrations.optuna.pruner import RisingPruner
from risingsearch.integrations.optuna.sqlite_lock import claim
from risingsearch.integrations.optuna.study_replica import Mirror
from risingsearch.integrations.optuna.trial_attributes import (
    ARM,
    GIVEN_UP,
    LAST,
    N_EPOCHS,
    Slice,
)
from risingsearch.integrations.optuna.view import ArmView
from risingsearch.policies import PROPOSED, recommended_arms
from risingsearch.scheduling.scheduler import Scheduler

PASSED_OVER = "nothing to train: the epochs of this trial went to others"
SHORTEST, LONGEST = 0.01, 0.5  # seconds between two looks at the storage
UNCLAIMED = 0.2  # seconds after which whoever has queued a trial does not come for it
READS = 100


class RisingSampler(BaseSampler):
    """Spends a budget of epochs on the arms of a study that deserve them.

    Each trial is a slice of an arm: some epochs of one configuration. When it ends, a
    policy decides which arm goes on, and for how long; that slice is queued as a trial
    with the arm's own parameters and its curve so far, or another sampler is asked for
    a new arm. Use it with ``RisingPruner``, which ends slices, and with an objective
    that asks for its arm (``risingsearch.integrations.optuna.arm``). ``optimize`` stops
    when the budget is spent, so leave ``n_trials`` out: it counts slices.

    Threads share a sampler. Processes that share a study have one each, made with the
    same budget, ``max_epochs`` and policy; all storages but SQLite serve several.

    Parameters
    ----------
    budget : int
        Epochs in all, over all workers, at least 1; an epoch is a report. Never
        exceeded by an objective that ends when ``should_prune`` says so.
    max_epochs : int
        Epochs of an arm at most, at least 1: those that the objective trains when
        nothing stops it.
    policy : str, default "auto"
        A registered name, see ``risingsearch.list_policies``; ``"auto"`` is
        ``gated-damped-slope``, with arms kept for when more is known.
    policy_params : dict, optional
        Parameters of the policy.
    base : BaseSampler, optional
        Proposes new arms; by default ``TPESampler``. It sees one trial per arm.
    n_arms : int, optional
        Arms at most, at least 1: as many as there are configurations, or as you have
        room for checkpoints. Workers that open one at the same moment can exceed it.
        By default, and by policy, there are as many as the budget is best spread over.
    slice : int, optional
        Epochs of a slice, at least 1. By default the policy decides.
    error_score : float, optional
        What a failed epoch counts as; by default the worst score so far.
    max_failures : int, default 0
        Failures after which an arm is still retried.
    score_range : (float, float), optional
        Lowest and highest score possible. Where given, no projection exceeds it.
    seed : int, optional
        Seed of all draws, at least 0. With one worker it decides the whole search.
    checkpoint_dir : path, optional
        Folder for checkpoints; all workers must see it.
    artifact_store : optional
        One of Optuna's artifact stores for checkpoints instead.
    patience : float, default 60.0
        Seconds without a report after which a worker that has nothing else to do gives
        a running trial up, at least 0; ten times an epoch if that is more.

    Raises
    ------
    InvalidParameterError
        If an argument is outside its range; on the first trial, if the study has more
        than one objective.
    UnknownNameError
        If there is no such policy or parameter.
    StorageError
        On the first trial, if another process searches in the same SQLite database.

    Examples
    --------
    >>> import optuna
    >>> import risingsearch.integrations.optuna as rising
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0.0, 1.0)
    ...     arm = rising.arm(trial)  # nothing to load: the score is a formula
    ...     for epoch in range(arm.from_epoch, 10):
    ...         trial.report((x - 0.3) ** 2 + 1.0 / (epoch + 1), epoch)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned
    ...     return (x - 0.3) ** 2 + 0.1
    >>> study = optuna.create_study(
    ...     sampler=rising.RisingSampler(budget=60, max_epochs=10, seed=0),
    ...     pruner=rising.RisingPruner(),
    ... )
    >>> study.optimize(objective)
    >>> sum(result.epochs for result in rising.arm_results(study))
    60
    >>> abs(rising.best_arm(study).params["x"] - 0.3) < 0.1
    True
    """

    def __init__(
        self,
        budget: int,
        max_epochs: int,
        *,
        policy: str = "auto",
        policy_params: dict[str, Any] | None = None,
        base: BaseSampler | None = None,
        n_arms: int | None = None,
        slice: int | None = None,
        error_score: float | None = None,
        max_failures: int = 0,
        score_range: tuple[float, float] | None = None,
        seed: int | None = None,
        checkpoint_dir: str | PathLike[str] | None = None,
        artifact_store: Any = None,
        patience: float = 60.0,
    ) -> None:
        self.budget = checked_int("budget", budget, 1)
        self.max_epochs = checked_int("max_epochs", max_epochs, 1)
        self.patience = checked_float("patience", patience, 0.0, open_low=False)
        recommended = recommended_arms(
            PROPOSED if policy == "auto" else policy,
            self.budget,
            self.max_epochs,
            **(policy_params or {}),
        )
        self._most_arms = None if n_arms is None else checked_int("n_arms", n_arms, 1)
        self._n_arms = min(recommended, self._most_arms or recommended)
        if policy == "auto" and not policy_params:
            policy, policy_params = PROPOSED, {"late_arms": True}
        self._options: dict[str, Any] = {
            "policy": policy,
            "policy_params": policy_params,
            "slice": slice,
            "error_score": error_score,
            "max_failures": max_failures,
            "score_range": score_range,
            "seed": seed,
        }
        self.checkpoints = _checkpoints(checkpoint_dir, artifact_store)
        self.base = TPESampler(seed=seed) if base is None else base
        self._scheduler("maximize", self._n_arms)  # raises what is wrong
        self._forget()

    def _scheduler(self, direction: str, n_arms: int) -> Scheduler:
        return Scheduler(
            n_arms=n_arms,
            budget=self.budget,
            max_epochs=self.max_epochs,
            direction=direction,
            **self._options,
        )

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._mirror: Mirror | None = None
        self._followed: tuple[Any, int] | None = None
        self._mine: set[int] = set()  # trials that run in this process
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for name in ("_lock", "_mirror", "_followed", "_mine", "_warned"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    # --------------------------------------------------------------- Optuna's own hooks

    def reseed_rng(self) -> None:
        """Reseed the sampler that proposes new arms."""
        self.base.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Decide what the trial trains: an arm's next slice, a new arm, or nothing."""
        if self._granted(study, trial) == 0:
            self._pass_over(study, trial)
        elif _opens(trial):
            self.base.before_trial(self._view(study, trial), trial)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Ask the sampler that proposes new arms."""
        if not _opens(trial):
            return {}
        return self.base.infer_relative_search_space(self._view(study, trial), trial)

    def sample_relative(
        self,
        study: Study,
        trial: FrozenTrial,
        search_space: dict[str, BaseDistribution],
    ) -> dict[str, Any]:
        """Ask the sampler that proposes new arms."""
        if not _opens(trial):
            return {}
        return self.base.sample_relative(self._view(study, trial), trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Ask the sampler that proposes new arms; a trial passed over ends here."""
        if trial.user_attrs.get(N_EPOCHS) == 0:
            raise optuna.TrialPruned(PASSED_OVER)
        return self.base.sample_independent(
            self._view(study, trial), trial, param_name, param_distribution
        )

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Queue the slice that is due next, or stop the study when nothing is."""
        if trial.user_attrs.get(N_EPOCHS) == 0:
            return
        if _opens(trial):
            self.base.after_trial(self._view(study, trial), trial, state, values)
        with self._following(study) as mirror:
            mirror.finish(trial, state, values)
            self._mine.discard(trial.number)
            if mirror.unasked and not self._warned:
                self._warn_unasked()
            if not mirror.opens_next:
                self._prepare_next(study, mirror)

    # ------------------------------------------------------------------------ decisions

    def _granted(self, study: Study, trial: FrozenTrial) -> int:
        """Reserve the trial's epochs and return how many."""
        # Long before others could take this trial for one that died undecided.
        give_up_at = time.monotonic() + self.patience / 4
        enqueued = "fixed_params" in trial.system_attrs
        pauses = _pauses()
        while True:
            with self._following(study) as mirror:
                self._mine.add(trial.number)
                n_epochs = mirror.grant(trial, enqueued=enqueued)
                late = time.monotonic() > give_up_at
                if n_epochs or late or not mirror.undecided_before(trial.number):
                    n_epochs = _set_n_epochs(study, trial, n_epochs)
                    if n_epochs:
                        _complete_curve(study, trial, mirror)
                    return n_epochs
            time.sleep(next(pauses))

    def _pass_over(self, study: Study, trial: FrozenTrial) -> None:
        """Let a trial train nothing; in ``optimize``, until there is something to do.

        So no worker asks again and again in vain.
        """
        trial.system_attrs = {
            key: value
            for key, value in trial.system_attrs.items()
            if key != "fixed_params"
        }
        self._mine.discard(trial.number)
        for pause in _pauses():
            _fail_stale_trials(study)
            with self._following(study) as mirror:
                self._give_up(study, mirror)
                if self._prepare_next(study, mirror) or mirror.queued(UNCLAIMED):
                    return
            if not study._thread_local.in_optimize_loop:
                return
            time.sleep(pause)

    def _give_up(self, study: Study, mirror: Mirror) -> None:
        for silent in mirror.give_up(self.patience, self._mine):
            with suppress(UpdateFinishedTrialError):
                # Not ended: should it be alive, Optuna would raise where it is told.
                study._storage.set_trial_user_attr(silent._trial_id, GIVEN_UP, True)

    def _prepare_next(self, study: Study, mirror: Mirror) -> bool:
        """Queue what is due, or stop where nothing ever will be; return if either."""
        ticket = mirror.ticket()
        if ticket is not None:
            study.add_trial(ticket)
        elif mirror.done and study._thread_local.in_optimize_loop:
            study.stop()
        else:
            return False
        return True

    def take_request(self, trial: optuna.Trial) -> None:
        """Take in that the objective has asked for the arm that its trial opens."""
        with self._following(trial.study) as mirror:
            n_epochs = mirror.asked(trial.number)
        if n_epochs not in (None, trial.user_attrs[N_EPOCHS]):
            trial.set_user_attr(N_EPOCHS, n_epochs)
        trial.set_user_attr(ARM, trial.number)

    # -------------------------------------------------------------------- the study

    def follow(self, study: Study) -> None:
        """Take in where a study stands, or raise why it cannot be searched."""
        with self._following(study):
            pass

    def is_done(self, study: Study) -> bool:
        """Whether nothing will ever start again in the study."""
        with self._following(study) as mirror:
            return mirror.done

    def can_ask(self, study: Study) -> bool:
        """Whether a trial asked for now has something to train; queue it if need be."""
        with self._following(study) as mirror:
            return mirror.queued() or self._prepare_next(study, mirror)

    @contextmanager
    def _following(self, study: Study) -> Iterator[Mirror]:
        """Hold the mirror of a study, up to date."""
        with self._lock:
            mirror = self._mirror_of(study)
            mirror.sync(_all_trials(study))
            yield mirror

    def _mirror_of(self, study: Study) -> Mirror:
        if self._mirror is None or self._followed != (study._storage, study._study_id):
            _check_objective(study)
            direction = self._checked(study)
            claim(study._storage)
            self._mirror = Mirror(
                lambda n_arms: self._scheduler(direction, n_arms),
                self._n_arms,
                self._most_arms,
                self.max_epochs,
            )
            self._followed = (study._storage, study._study_id)
            self._mine = set()
        return self._mirror

    def _checked(self, study: Study) -> str:
        if not isinstance(study.pruner, RisingPruner):
            msg = (
                f"RisingSampler needs pruner=RisingPruner() to end slices; the study "
                f"has a {type(study.pruner).__name__}"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
        return study.direction.name.lower()

    def _view(self, study: Study, trial: FrozenTrial) -> ArmView:
        _check_objective(study)
        return ArmView(
            study,
            lambda: self._seen(study),
            lambda: study._storage.set_trial_user_attr(trial._trial_id, LAST, True),
        )

    def _seen(self, study: Study) -> list[FrozenTrial]:
        with self._lock:  # as the study was when the trial was decided, as in Optuna
            mirror = self._mirror_of(study)
            return mirror.others + mirror.expected()

    def _warn_unasked(self) -> None:
        self._warned = True
        msg = (
            "the objective did not ask for its arm (rising.arm(trial)), so its trials "
            "cannot go on later: they are stopped as by any pruner and never revived"
        )
        warnings.warn(msg, UserWarning, stacklevel=2)


def _checkpoints(
    checkpoint_dir: str | PathLike[str] | None, artifact_store: Any
) -> Checkpoints | None:
    if checkpoint_dir is not None and artifact_store is not None:
        msg = (
            "checkpoints are kept in one place: give checkpoint_dir or artifact_store, "
            "not both"
        )
        raise InvalidParameterError(msg)
    if checkpoint_dir is not None:
        return FolderCheckpoints(checkpoint_dir)
    return None if artifact_store is None else ArtifactCheckpoints(artifact_store)


def _check_objective(study: Study) -> None:
    if len(study.directions) > 1:
        msg = (
            f"RisingSampler has one objective; got a study with "
            f"{len(study.directions)}: give create_study one direction"
        )
        raise InvalidParameterError(msg)


def _opens(trial: FrozenTrial) -> bool:
    """Whether the trial opens an arm: it is to be proposed."""
    slice_ = Slice.of(trial)
    return slice_ is not None and slice_.n_epochs != 0 and slice_.arm == trial.number


def _fail_stale_trials(study: Study) -> None:
    """Do what Optuna does before each trial, where the storage has heartbeats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)


def _all_trials(study: Study) -> list[FrozenTrial]:
    """Return the trials by number, none left out.

    Optuna's cache of a database knows a trial of this process at once, and for a moment
    none of those that others have created just before.
    """
    for _ in range(READS):
        trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
        if not trials or trials[-1].number + 1 == len(trials):
            return trials
        time.sleep(SHORTEST)
    msg = f"the storage of study {study.study_name!r} has lost some of its trials"
    raise StorageError(msg)


def _set_n_epochs(study: Study, trial: FrozenTrial, n_epochs: int) -> int:
    """Let all know what a trial trains; return 0 if they have given it up before."""
    before = trial.user_attrs.get(N_EPOCHS)
    if n_epochs == before:
        return n_epochs
    study._storage.set_trial_user_attr(trial._trial_id, N_EPOCHS, n_epochs)
    trial.user_attrs[N_EPOCHS] = n_epochs  # what the objective's trial reads
    # Looked at after it was written: so either they have seen it, or it is seen here.
    if before is None and n_epochs and _is_given_up(study, trial):
        return _set_n_epochs(study, trial, 0)
    return n_epochs


def _is_given_up(study: Study, trial: FrozenTrial) -> bool:
    return GIVEN_UP in study._storage.get_trial(trial._trial_id).user_attrs


def _complete_curve(study: Study, trial: FrozenTrial, mirror: Mirror) -> None:
    """Give a slice that was retried without it the curve of its arm."""
    for step, value in mirror.curve_before(trial).items():
        if step not in trial.intermediate_values:
            study._storage.set_trial_intermediate_value(trial._trial_id, step, value)
            trial.intermediate_values[step] = value


def _pauses() -> Iterator[float]:
    pause = SHORTEST
    while True:
        yield pause * random.uniform(0.5, 1.5)  # so that not all look at once
        pause = min(1.5 * pause, LONGEST)
