"""Trials of a study: their attributes, reading and writing, and one for each arm."""

from __future__ import annotations

import copy
import random
import time
import warnings
from collections.abc import (
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from optuna.exceptions import TrialPruned, UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from risingsearch import errors
from risingsearch.arms import Configuration
from risingsearch.arms import sign_of as direction_sign
from risingsearch.identity.comparison import adopted, first_difference
from risingsearch.json_values import Json
from risingsearch.space import key_of_all

# User attributes, so that they are seen on the dashboard, and copied when a
# trial is retried. A trial that opens an arm gets ARM when the objective asks for it.
PREFIX = "rising:"
ARM = "rising:arm"
FROM_EPOCH = "rising:from_epoch"
N_EPOCHS = "rising:n_epochs"
CHECKPOINT = "rising:checkpoint"
FINAL = "rising:final"
LAST = "rising:last"  # the sampler that proposes arms has said that there are no more
BY_PRIOR = "rising:by_prior"  # opened for what earlier searches say
LIKE = "rising:like"  # the arms that one opened for the model resembles
FIXED = "fixed_params"  # Optuna's system attribute for what was enqueued
AGAIN = "rising:again"  # system attribute: the dead trial whose FIXED it has
CONSTRAINTS = "constraints"  # Optuna's system attribute for them, or its beginning
SETTINGS = "rising:settings"  # attribute of a study: how it was begun
GIVEN_UP = "rising:given_up"  # epochs of its arm that it leaves; others gave it up
RETIRED = "rising:retired"  # its arm stays infeasible: it does not continue

SHORTEST = 0.01  # seconds between two readings of the storage, at first
LONGEST = 0.5  # and later
READS = 100


class TrialSlice(NamedTuple):
    """The epochs of an arm that a trial was given."""

    arm: int  # number of the trial that opened it
    from_epoch: int
    n_epochs: int | None  # None before it was decided; 0: nothing to train
    asked: bool  # whether the objective can resume the arm

    @classmethod
    def of(cls, trial: FrozenTrial) -> TrialSlice | None:
        """Return the trial's slice, or None for one that is no part of the search."""
        attrs = trial.user_attrs
        if N_EPOCHS not in attrs and trial.state.is_finished():
            return None
        return cls(
            attrs.get(ARM, trial.number),
            attrs.get(FROM_EPOCH, 0),
            attrs.get(N_EPOCHS, 0 if GIVEN_UP in attrs else None),
            asked=ARM in attrs,
        )


def n_charged(n_scores: int, n_epochs: int) -> int:
    """Return the epochs that a failed slice has trained, the last without a score."""
    return min(n_scores + 1, n_epochs)


def constraints_of(slices: Iterable[FrozenTrial]) -> Json:
    """Return the system attributes with an arm's constraints, the latest of each."""
    return {
        key: value
        for trial in slices
        for key, value in trial.system_attrs.items()
        if key.partition(":")[0] == CONSTRAINTS and value is not None
    }


def violation(constraints: Configuration) -> float:
    """Return by how much constraints are violated: to Optuna, one is above zero."""
    return sum(float(np.sum(np.maximum(v, 0.0))) for v in constraints.values())


def curve(trial: FrozenTrial) -> dict[int, float]:
    """Return the reports of the trial and of the slices before it, by step."""
    # Those after the last checkpoint of one that was given up are trained again.
    reports = sorted(trial.intermediate_values.items())
    return dict(reports[: trial.user_attrs.get(GIVEN_UP)])


def n_kept(trial: FrozenTrial) -> int:
    """Return how many epochs of its arm a trial leaves if its process is dead."""
    attrs = trial.user_attrs
    saved = [epoch for epoch, _ in attrs.get(CHECKPOINT, [])]
    reported = [epoch for epoch in saved if epoch <= len(trial.intermediate_values)]
    return int(max([attrs.get(FROM_EPOCH, 0), *reported]))


def give_up(study: Study, trials: Iterable[FrozenTrial]) -> None:
    """Let arms continue elsewhere, and enqueued ones be opened, unless they ended."""
    for trial in trials:
        with suppress(UpdateFinishedTrialError):
            # Not ended: should it be alive, Optuna would raise when it is told.
            study._storage.set_trial_user_attr(trial._trial_id, GIVEN_UP, n_kept(trial))
            if FIXED in trial.system_attrs and ARM not in trial.user_attrs:
                attrs = {FIXED: trial.system_attrs[FIXED], AGAIN: trial.number}
                again = create_trial(state=TrialState.WAITING, system_attrs=attrs)
                study.add_trial(again)


def is_given_up(study: Study, trial_id: int) -> bool:
    """Return whether another process has given up a trial of this one by now."""
    return GIVEN_UP in study._storage.get_trial(trial_id).user_attrs


def check_objective(study: Study) -> None:
    """Raise if a study has more than one objective."""
    if len(study.directions) > 1:
        raise errors.InvalidParameterError(
            f"RisingSampler searches by one objective; got {len(study.directions)}: "
            "create the study with direction=, and keep the others as user attributes"
        )


def check_settings(study: Study, settings: Json) -> None:
    """Raise if a study was begun with other settings, but for a smaller budget."""
    begun = adopted(study.user_attrs.get(SETTINGS, settings), settings)
    budget = max(begun["budget"], settings["budget"])
    if differs := first_difference(begun | {"budget": budget}, settings):
        name, was, now, also = differs
        raise errors.RunDirError(
            f"study {study.study_name!r} was begun with {name}={was}, and this sampler "
            f"has {name}={now}: give the same arguments to continue (the budget may be "
            f"larger), or another study{also}"
        )
    study.set_user_attr(SETTINGS, settings)


def warn_of_unsuggested(trial: FrozenTrial) -> None:
    """Warn of enqueued parameters that the objective of a trial did not suggest."""
    for name in trial.system_attrs.get(FIXED, {}).keys() - trial.params.keys():
        error = errors.unknown_name("enqueued parameter", name, trial.params)
        msg = f"trial {trial.number} ignores an {error}"
        warnings.warn(msg, UserWarning, stacklevel=2)


def check_length(trial: FrozenTrial) -> None:
    """Raise if a trial has trained more epochs than its slice has."""
    slice_ = TrialSlice.of(trial)
    if slice_ is None or not slice_.n_epochs:
        return
    n_epochs = len(trial.intermediate_values) - slice_.from_epoch
    if n_epochs <= slice_.n_epochs:
        return
    raise errors.InvalidParameterError(
        f"trial {trial.number} has reported {n_epochs} epochs, and its slice of the "
        f"budget has {slice_.n_epochs}: the objective must ask trial.should_prune() "
        "after each report, and raise optuna.TrialPruned if it returns True"
    )


def sign_of(study: Study) -> float:
    """Return the factor of scores by which higher is better."""
    return direction_sign(study.direction.name.lower())


def all_trials(study: Study) -> list[FrozenTrial]:
    """Return the trials by number, none left out."""
    # Optuna's cache of a database knows a trial of this process at once, and for a
    # moment none of those that others have created just before.
    for _ in range(READS):
        trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
        if not trials or trials[-1].number + 1 == len(trials):
            return trials
        time.sleep(SHORTEST)
    raise errors.SetupError(
        f"the storage of study {study.study_name!r} has lost some of its trials"
    )


def set_attr(study: Study, trial: FrozenTrial, key: str, value: object) -> None:
    """Set a user attribute of a trial, also of the one that the objective reads."""
    study._storage.set_trial_user_attr(trial._trial_id, key, value)
    trial.user_attrs[key] = value


def set_n_epochs(study: Study, trial: FrozenTrial, n_epochs: int) -> int:
    """Publish the epochs of a trial; return 0 if others gave it up before."""
    before = trial.user_attrs.get(N_EPOCHS)
    if n_epochs == before:
        return n_epochs
    set_attr(study, trial, N_EPOCHS, n_epochs)
    # Read after it was written: so either they have seen it, or it is seen here.
    if before is None and n_epochs and is_given_up(study, trial._trial_id):
        return set_n_epochs(study, trial, 0)
    return n_epochs


def complete_curve(
    study: Study, trial: FrozenTrial, curve: Mapping[int, float]
) -> None:
    """Add those reports of its arm that a retried slice lacks."""
    for step, value in curve.items():
        if step not in trial.intermediate_values:
            study._storage.set_trial_intermediate_value(trial._trial_id, step, value)
            trial.intermediate_values[step] = value


def pauses() -> Iterator[float]:
    """Return how long to wait before each next reading of the storage."""
    pause = SHORTEST
    while True:
        yield pause * random.uniform(0.5, 1.5)  # so that not all read at once
        pause = min(1.5 * pause, LONGEST)


def fix_enqueued(
    study: Study, trial: FrozenTrial, enqueued: Sequence[Configuration]
) -> None:
    """Fix the parameters of a new trial, if some are enqueued that none has."""
    if not enqueued or FIXED in trial.system_attrs or ARM in trial.user_attrs:
        return
    attrs = (other.system_attrs for other in all_trials(study))
    opened = {key_of_all(known[FIXED]) for known in attrs if FIXED in known}
    for params in enqueued:
        if key_of_all(params) not in opened:
            study._storage.set_trial_system_attr(trial._trial_id, FIXED, dict(params))
            trial.system_attrs = trial.system_attrs | {FIXED: params}
            return


def arm_trial(
    opening: FrozenTrial,
    last: FrozenTrial,
    value: float | None,
    constraints: Json,
    *,
    is_comparable: bool,
) -> FrozenTrial:
    """Return an arm, from first to last slice, as a trial: failed if not comparable."""
    is_complete = is_comparable and value is not None
    return FrozenTrial(
        number=opening.number,
        state=TrialState.COMPLETE if is_complete else TrialState.FAIL,
        value=value,  # genetic samplers read the values of earlier parents
        datetime_start=opening.datetime_start,
        datetime_complete=opening.datetime_complete,
        params=last.params,
        distributions=last.distributions,
        user_attrs=last.user_attrs,
        system_attrs={**opening.system_attrs, **constraints},
        intermediate_values=curve(last),
        trial_id=opening._trial_id,
    )


class NothingToTrain(dict[str, Any]):
    """Fixed parameters of a trial without epochs: it ends when it suggests one."""

    reason = "nothing to train: the epochs of this trial went to others"

    def __contains__(self, name: object) -> bool:
        raise TrialPruned(self.reason)


class _WithoutEmptyTrials:
    """A storage without the trials that had nothing to train: they lack parameters."""

    # Some samplers read it directly, and expect parameters in each ended trial.

    def __init__(self, storage: BaseStorage) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def get_all_trials(self, *args: Any, **options: Any) -> list[FrozenTrial]:
        trials = self._storage.get_all_trials(*args, **options)
        return [trial for trial in trials if trial.user_attrs.get(N_EPOCHS) != 0]


class ArmView(Study):
    """A study in which each arm is one trial, and slices and empty trials are none."""

    # Optuna's samplers read trials through `get_trials` and `_get_trials`; what they
    # write goes to the study itself. One that has nothing left to propose stops it.

    def __init__(
        self,
        study: Study,
        trials: Callable[[], list[FrozenTrial]],
        no_more: Callable[[], None],
    ) -> None:
        # Not by Study.__init__, which would read the storage anew.
        self.__dict__.update(study.__dict__)
        self._storage = _WithoutEmptyTrials(study._storage)  # type: ignore[assignment]
        self._trials = trials
        self._no_more = no_more

    def _get_trials(
        self,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
        use_cache: bool = False,
    ) -> list[FrozenTrial]:
        trials = self._trials()
        if states is not None:
            trials = [trial for trial in trials if trial.state in states]
        return copy.deepcopy(trials) if deepcopy else trials

    def stop(self) -> None:
        """Open no more arms; those that are open continue."""
        self._no_more()
