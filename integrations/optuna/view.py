"""View of a study with one trial per arm, for the sampler that proposes new arms."""

from __future__ import annotations

import copy
from collections.abc import Callable, Container
from typing import Any

from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from risingsearch.integrations.optuna.trials import N_EPOCHS, curve


def arm_trial(
    opening: FrozenTrial, last: FrozenTrial, end: float | None
) -> FrozenTrial:
    """Return an arm, from first to last slice, as one trial: it runs without an end."""
    return FrozenTrial(
        number=opening.number,
        state=TrialState.RUNNING if end is None else TrialState.COMPLETE,
        value=end,
        datetime_start=opening.datetime_start,
        datetime_complete=None if end is None else opening.datetime_complete,
        params=last.params,
        distributions=last.distributions,
        user_attrs=last.user_attrs,
        system_attrs=opening.system_attrs,
        intermediate_values=curve(last),
        trial_id=opening._trial_id,
    )


class _WithoutEmptyTrials:
    """A storage without the trials that had nothing to train: they lack parameters."""

    # Some samplers read it directly, and expect parameters in each ended trial.

    def __init__(self, storage: BaseStorage) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def get_all_trials(self, *args: Any, **kwargs: Any) -> list[FrozenTrial]:
        trials = self._storage.get_all_trials(*args, **kwargs)
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
