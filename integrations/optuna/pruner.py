"""The pruner that ends slices, and alone stops trials that can no longer win."""

import math
from collections.abc import Hashable

from optuna.pruners import BasePruner
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from risingsearch.checks import checked_int
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.optuna import trials
from risingsearch.json_values import Json
from risingsearch.policies.shared.rewards import highest_end


class RisingPruner(BasePruner):
    """Ends the slice of a trial; alone, stops a trial that cannot win any more.

    With ``RisingSampler`` a trial ends when it has had the epochs it was given, and its
    arm pauses. With any other sampler, or where the objective never asks for its arm,
    a trial is stopped when neither its best score nor the straight line of its slope
    to its last epoch reaches the best of the finished trials: curves that flatten end
    below that line, so a late bloomer continues for as long as it could still win.

    Parameters
    ----------
    max_epochs : int, optional
        Reports that a trial makes when it is not stopped, at least 1. By default the
        sampler's, or those of the longest trial that has completed.
    n_startup_trials : int, default 5
        Trials that complete before any is stopped, at least 0.
    n_warmup_steps : int, default 0
        Steps before a trial may be stopped, at least 0; never before its fourth report.

    Raises
    ------
    InvalidParameterError
        If an argument is outside its range.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     top = trial.suggest_float("top", 0, 1)
    ...     for epoch in range(20):
    ...         trial.report(top * (1 - 1 / (epoch + 2)), epoch)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned
    ...     return top
    >>> sampler = optuna.samplers.RandomSampler(seed=0)
    >>> pruner = RisingPruner(n_startup_trials=2)
    >>> study = optuna.create_study(
    ...     direction="maximize", sampler=sampler, pruner=pruner
    ... )
    >>> study.optimize(objective, n_trials=8)
    >>> [len(trial.intermediate_values) for trial in study.trials]
    [20, 20, 7, 6, 4, 9, 5, 20]
    """

    def __init__(
        self,
        max_epochs: int | None = None,
        *,
        n_startup_trials: int = 5,
        n_warmup_steps: int = 0,
    ) -> None:
        if max_epochs is not None:
            max_epochs = checked_int("max_epochs", max_epochs, 1)
        self.max_epochs = max_epochs
        self.n_startup_trials = checked_int("n_startup_trials", n_startup_trials, 0)
        self.n_warmup_steps = checked_int("n_warmup_steps", n_warmup_steps, 0)
        # By trial: reports of which it was asked, and the best of one that has ended.
        self._asked: dict[Hashable, int] = {}
        self._best: dict[Hashable, float] = {}

    def __getstate__(self) -> Json:
        return vars(self) | {"_asked": {}, "_best": {}}  # those are the process's

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether the trial should end here, with all its reports.

        Parameters
        ----------
        study : Study
            The study of the trial.
        trial : FrozenTrial
            The trial, with its reports.

        Returns
        -------
        bool
            True if its slice is over or, alone, if it cannot win any more.

        Raises
        ------
        InvalidParameterError
            If nothing was reported since the last question, or more than
            ``max_epochs`` times.
        """
        slice_ = trials.TrialSlice.of(trial)
        if slice_ is None or slice_.n_epochs is None:
            return self._is_hopeless(study, trial, self.max_epochs)
        n_reports = len(trial.intermediate_values)
        if slice_.asked:
            self._check_report(trial, slice_, n_reports)
            if trials.is_given_up(study, trial._trial_id):
                return True
        limit = getattr(study.sampler, "max_epochs", self.max_epochs)
        if limit is not None and n_reports > limit:
            raise InvalidParameterError(
                f"the objective reports more than max_epochs={limit} times: raise it"
            )
        if n_reports >= slice_.from_epoch + slice_.n_epochs:
            return n_reports != limit  # then the objective returns
        return not slice_.asked and self._is_hopeless(study, trial, limit)

    def _check_report(
        self, trial: FrozenTrial, slice_: trials.TrialSlice, n_reports: int
    ) -> None:
        """Raise if nothing was reported since the last question."""
        # Optuna ignores a report at a step that an earlier slice has had; what was
        # trained for it would count for nothing.
        key = trial._trial_id, trial.datetime_start  # ids are a storage's own
        before = self._asked.get(key, slice_.from_epoch)
        self._asked[key] = n_reports
        if n_reports > before:
            return
        last = max(trial.intermediate_values, default=-1)
        raise InvalidParameterError(
            f"trial {trial.number} has reported no new step before should_prune: its "
            f"arm resumes after {slice_.from_epoch} epochs, so report every epoch "
            f"once, from step {last + 1} on, as in range(arm.from_epoch, ...); to a "
            "callback that counts from 0, give arm.trial"
        )

    def _is_hopeless(
        self, study: Study, trial: FrozenTrial, max_epochs: int | None
    ) -> bool:
        if max(trial.intermediate_values, default=-1) < self.n_warmup_steps:
            return False
        states = (TrialState.COMPLETE, TrialState.PRUNED)
        ended = study.get_trials(deepcopy=False, states=states)
        complete = [each for each in ended if each.state == TrialState.COMPLETE]
        if len(complete) < self.n_startup_trials:
            return False
        if not math.isfinite([*trials.curve(trial).values()][-1]):
            return True
        sign = trials.sign_of(study)
        rewards = _rewards(trial, sign)
        lengths = [len(each.intermediate_values) for each in complete]
        limit = max_epochs or max(lengths, default=0)
        if len(rewards) < FEWEST or not limit:
            return False
        best = max((self._best_of(each, sign) for each in ended), default=-math.inf)
        return max(*rewards, highest_end(rewards, limit)) < best

    def _best_of(self, ended: FrozenTrial, sign: float) -> float:
        key = ended._trial_id, ended.datetime_start
        if key not in self._best:
            self._best[key] = max(_rewards(ended, sign), default=-math.inf)
        return self._best[key]


FEWEST = 4  # reports


def _rewards(trial: FrozenTrial, sign: float) -> list[float]:
    """Return the finite scores of a trial, as higher is better."""
    return [
        sign * score for score in trials.curve(trial).values() if math.isfinite(score)
    ]
