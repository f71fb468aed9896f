"""What the sampler that proposes new arms sees of a study: one trial per arm."""

from __future__ import annotations

import copy
from collections.abc import Callable, Container

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState


class ArmView(Study):
    """A study in which each arm is one trial, and paused and passed-over ones are none.

    Optuna's samplers read trials through ``get_trials`` and ``_get_trials``; what they
    write goes to the study itself.

    Parameters
    ----------
    study : Study
        The study itself.
    trials : callable
        Returns the trials to be seen, by number.
    """

    def __init__(self, study: Study, trials: Callable[[], list[FrozenTrial]]) -> None:
        # Not by Study.__init__, which would read the storage anew.
        self.__dict__.update(study.__dict__)
        self._study = study
        self._trials = trials

    def get_trials(
        self, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """Return the arms as trials."""
        return self._get_trials(deepcopy, states)

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
        """Stop the study itself."""
        self._study.stop()
