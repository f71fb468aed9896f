"""Ask and tell: for programs that hold many trials open in one process."""

from __future__ import annotations

import optuna
from optuna.trial import TrialState

from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.optuna.sampler import RisingSampler
from risingsearch.integrations.optuna.trials import N_EPOCHS


class RisingStudy:
    """Asks a study for trials that have something to train, as many as can start now.

    ``study.optimize`` waits for others where nothing can start; this returns None
    instead, so one process can hold many trials open.

    Parameters
    ----------
    study : optuna.Study
        With a ``RisingSampler`` and a ``RisingPruner``.

    Raises
    ------
    InvalidParameterError
        If the study has another sampler, or more than one objective.

    Examples
    --------
    >>> import optuna
    >>> import risingsearch.integrations.optuna as rising
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(
    ...     sampler=rising.RisingSampler(40, 8, seed=0), pruner=rising.RisingPruner()
    ... )
    >>> rising_study = rising.RisingStudy(study)
    >>> n_open = []
    >>> while not rising_study.done:
    ...     trials = []
    ...     while len(trials) < 4 and (trial := rising_study.ask()) is not None:
    ...         trials.append((trial, trial.suggest_float("rate", 0.1, 1.0)))
    ...     n_open.append(len(trials))
    ...     for trial, rate in trials:
    ...         arm = rising.arm(trial)
    ...         for epoch in range(arm.from_epoch, arm.from_epoch + arm.n_epochs):
    ...             trial.report((1.0 - rate) + 1.0 / (epoch + 1), epoch)
    ...         rising_study.tell(trial)
    >>> max(n_open)
    4
    >>> sum(result.epochs for result in rising.arm_results(study))
    40
    """

    def __init__(self, study: optuna.Study) -> None:
        if not isinstance(study.sampler, RisingSampler):
            msg = (
                "RisingStudy takes a study with sampler=RisingSampler(...); got "
                f"{type(study.sampler).__name__}"
            )
            raise InvalidParameterError(msg)
        self.study = study
        self._sampler = study.sampler
        self._sampler.follow(study)

    @property
    def done(self) -> bool:
        """Whether nothing will ever start again."""
        return self._sampler.is_done(self.study)

    def ask(self) -> optuna.Trial | None:
        """Return a trial with epochs to train; None where nothing can start now."""
        while self._sampler.can_ask(self.study):
            trial = self.study.ask()
            if trial.user_attrs[N_EPOCHS]:
                return trial
            self.study.tell(trial, state=TrialState.PRUNED)
        return None

    def tell(
        self,
        trial: optuna.Trial,
        value: float | None = None,
        state: TrialState | None = None,
    ) -> None:
        """Tell the end of a trial.

        Parameters
        ----------
        trial : optuna.Trial
            From ``ask``.
        value : float, optional
            What an arm is worth that has ended. Without it the arm pauses.
        state : TrialState, optional
            As ``Study.tell``; for a trial that has failed.
        """
        if value is None and state is None:
            state = TrialState.PRUNED
        self.study.tell(trial, value, state=state)
