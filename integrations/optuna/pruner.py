"""The pruner that ends slices, and alone stops what can no longer win."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Sequence
from typing import Any

from optuna.pruners import BasePruner
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from risingsearch.checks import checked_int
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.optuna.trials import (
    TrialSlice,
    curve,
    is_given_up,
    sign_of,
)
from risingsearch.policies.tuning.slopes import highest_end


class RisingPruner(BasePruner):
    """Ends the slice of a trial; alone, stops a trial that cannot win any more.

    With ``RisingSampler`` a trial ends when it has had the epochs it was given, and its
    arm pauses. With any other sampler, or where the objective never asks for its arm,
    a trial is stopped when neither what it has reached nor where its slope leads in a
    straight line, over its remaining epochs, is as good as the best of the finished
    trials. Curves that flatten end below that line, so a late bloomer continues for as
    long as it could still win.

    Parameters
    ----------
    max_epochs : int, optional
        Reports that a trial makes when it is not stopped, at least 1. By default the
        sampler's, or those of the longest trial that has completed.
    n_startup_trials : int, default 5
        Trials that complete before any is stopped, at least 0.
    n_warmup_steps : int, default 0
        Steps of a trial before it may be stopped, at least 0; it is never stopped
        before its fourth report, when it begins to have a slope.
    interval_steps : int, default 1
        Steps between two decisions on a trial, at least 1.

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
        interval_steps: int = 1,
    ) -> None:
        if max_epochs is not None:
            max_epochs = checked_int("max_epochs", max_epochs, 1)
        self.max_epochs = max_epochs
        self.n_startup_trials = checked_int("n_startup_trials", n_startup_trials, 0)
        self.n_warmup_steps = checked_int("n_warmup_steps", n_warmup_steps, 0)
        self.interval_steps = checked_int("interval_steps", interval_steps, 1)
        self._goes_beyond = False  # whether the objective reports after max_epochs
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._finished = _Finished(1.0)
        self._asked: dict[Any, tuple[int, int]] = {}  # reports, and those to come again
        self._followed: tuple[Any, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        own = {"_lock", "_asked", "_finished", "_followed"}  # the process's
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether the trial should end here.

        Parameters
        ----------
        study : Study
            Its study.
        trial : FrozenTrial
            The trial, with all its reports.
        """
        slice_ = TrialSlice.of(trial)
        if slice_ is None or slice_.n_epochs is None:
            return self._is_hopeless(study, trial, self.max_epochs)
        n_reports = len(trial.intermediate_values)
        if slice_.asked:
            self._check_report(trial, slice_, n_reports)
            if is_given_up(study, trial._trial_id):
                return True
        if n_reports < slice_.from_epoch + slice_.n_epochs:
            limit = getattr(study.sampler, "max_epochs", self.max_epochs)
            return not slice_.asked and self._is_hopeless(study, trial, limit)
        return self._is_full(study, n_reports)

    def _check_report(
        self, trial: FrozenTrial, slice_: TrialSlice, n_reports: int
    ) -> None:
        """Raise where nothing was reported since the last question.

        Optuna ignores a report at a step that an earlier slice has had; what was
        trained for it would count for nothing.
        """
        key = trial._trial_id, trial.datetime_start  # ids are a storage's own
        known = slice_.from_epoch, slice_.n_again
        with self._lock:
            before, n_again = self._asked.pop(key, known)
            is_new = n_reports > before
            self._asked[key] = n_reports, n_again if is_new else n_again - 1
        if is_new or n_again > 0:
            return
        last = max(trial.intermediate_values, default=-1)
        msg = (
            f"trial {trial.number} has reported no new step before should_prune: its "
            f"arm resumes after {slice_.from_epoch} epochs, so report every epoch "
            f"once, from step {last + 1} on, as in range(arm.from_epoch, ...); to a "
            "callback that counts from 0, give arm.trial"
        )
        raise InvalidParameterError(msg)

    def _is_full(self, study: Study, n_reports: int) -> bool:
        """Whether a slice that has had its epochs pauses: it does not at the very end.

        Then the objective returns, and the trial completes.
        """
        limit = getattr(study.sampler, "max_epochs", n_reports + 1)
        if n_reports > limit and not self._goes_beyond:
            self._goes_beyond = True
            msg = (
                f"the objective reports more than max_epochs={limit} times; it is "
                f"stopped there from now on: give RisingSampler the epochs it trains"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
        return n_reports != limit or self._goes_beyond

    def _is_hopeless(
        self, study: Study, trial: FrozenTrial, max_epochs: int | None
    ) -> bool:
        steps = sorted(trial.intermediate_values)
        if not steps or not self._is_due(steps):
            return False
        finished = self._follow(study)
        if finished.n_complete < self.n_startup_trials:
            return False
        if not math.isfinite([*curve(trial).values()][-1]):
            return True
        rewards = _rewards(trial, sign_of(study))
        limit = max_epochs or finished.longest
        if len(rewards) < FEWEST or not limit:
            return False
        return max(*rewards, highest_end(rewards, limit)) < finished.best

    def _is_due(self, steps: list[int]) -> bool:
        since = steps[-1] - self.n_warmup_steps
        if since < 0:
            return False
        due = self.n_warmup_steps + since // self.interval_steps * self.interval_steps
        return len(steps) == 1 or steps[-2] < due

    def _follow(self, study: Study) -> _Finished:
        with self._lock:
            if self._followed != (study._storage, study._study_id):
                self._followed = (study._storage, study._study_id)
                self._finished = _Finished(sign_of(study))
            self._finished.sync(
                study._storage.get_all_trials(study._study_id, deepcopy=False)
            )
            return self._finished


FEWEST = 4  # reports


class _Finished:
    """Best scores of the finished trials of a study."""

    def __init__(self, sign: float) -> None:
        self.n_complete = 0
        self.longest = 0
        self.best = -math.inf
        self._sign = sign
        self._open: list[int] = []
        self._n_seen = 0

    def sync(self, trials: Sequence[FrozenTrial]) -> None:
        numbers = [*self._open, *range(self._n_seen, len(trials))]
        self._n_seen = len(trials)
        self._open = [i for i in numbers if not trials[i].state.is_finished()]
        for i in numbers:
            if trials[i].state in (TrialState.COMPLETE, TrialState.PRUNED):
                self._record(trials[i])

    def _record(self, trial: FrozenTrial) -> None:
        rewards = _rewards(trial, self._sign)
        if trial.state == TrialState.COMPLETE:
            self.n_complete += 1
            self.longest = max(self.longest, len(rewards))
        self.best = max([self.best, *rewards])


def _rewards(trial: FrozenTrial, sign: float) -> list[float]:
    """Return the finite scores of a trial, as higher is better."""
    return [sign * score for score in curve(trial).values() if math.isfinite(score)]
