"""What the sampler reads from a study and its storage, and writes to them."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Iterator, Mapping

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.study import Study
from optuna.trial import FrozenTrial

from risingsearch.arms import sign_of as direction_sign
from risingsearch.errors import InvalidParameterError, StorageError
from risingsearch.integrations.optuna.trial_attributes import GIVEN_UP, N_EPOCHS

SHORTEST, LONGEST = 0.01, 0.5  # seconds between two readings of the storage
READS = 100


def check_objective(study: Study) -> None:
    """Raise if a study has more than one objective."""
    if len(study.directions) > 1:
        msg = (
            f"RisingSampler has one objective; got a study with "
            f"{len(study.directions)}: give create_study one direction"
        )
        raise InvalidParameterError(msg)


def sign_of(study: Study) -> float:
    """Return what scores are multiplied with, so that higher is better."""
    return direction_sign(study.direction.name.lower())


def fail_stale_trials(study: Study) -> None:
    """Do what Optuna does before each trial, where the storage has heartbeats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        optuna.storages.fail_stale_trials(study)


def all_trials(study: Study) -> list[FrozenTrial]:
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


def set_n_epochs(study: Study, trial: FrozenTrial, n_epochs: int) -> int:
    """Let all know what a trial trains; return 0 if they have given it up before."""
    before = trial.user_attrs.get(N_EPOCHS)
    if n_epochs == before:
        return n_epochs
    study._storage.set_trial_user_attr(trial._trial_id, N_EPOCHS, n_epochs)
    trial.user_attrs[N_EPOCHS] = n_epochs  # what the objective's trial reads
    if before is None and n_epochs:
        # Read after it was written: so either they have seen it, or it is seen here.
        stored = study._storage.get_trial(trial._trial_id)
        if GIVEN_UP in stored.user_attrs:
            return set_n_epochs(study, trial, 0)
    return n_epochs


def complete_curve(
    study: Study, trial: FrozenTrial, curve: Mapping[int, float]
) -> None:
    """Add what a slice that was retried lacks of its arm's reports."""
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
