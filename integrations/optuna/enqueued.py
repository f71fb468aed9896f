"""Known configurations that a study opens first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.optuna.trial_attributes import ARM, FIXED
from risingsearch.integrations.optuna.trial_storage import all_trials
from risingsearch.search.enqueued import checked_enqueue


class EnqueuedArms:
    """Gives trials that open arms the parameters of what was enqueued, in order."""

    def __init__(self, enqueue: Sequence[Mapping[str, Any]]) -> None:
        self._params = [dict(params) for params in checked_enqueue(enqueue)]

    def __len__(self) -> int:
        return len(self._params)

    def check_fits(self, n_arms: int) -> None:
        """Raise where there are more than a study has arms."""
        if len(self) > n_arms:
            msg = (
                f"enqueue has {len(self)} configurations, and n_arms is {n_arms}: "
                "raise n_arms, or enqueue fewer"
            )
            raise InvalidParameterError(msg)

    def fix(self, study: Study, trial: FrozenTrial) -> None:
        """Fix the parameters of a new trial, if some are enqueued that none has."""
        is_given = FIXED in trial.system_attrs or ARM in trial.user_attrs
        if is_given or not self._params:
            return
        known = [other.system_attrs.get(FIXED) for other in all_trials(study)]
        due = next((params for params in self._params if params not in known), None)
        if due is not None:
            study._storage.set_trial_system_attr(trial._trial_id, FIXED, due)
            trial.system_attrs = trial.system_attrs | {FIXED: due}
