"""Arm of a trial, which an objective asks for to resume it where it was paused."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import optuna

from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.integrations.optuna.sampler import RisingSampler
from risingsearch.integrations.optuna.storages import Checkpoints
from risingsearch.integrations.optuna.trials import (
    ARM,
    CHECKPOINT,
    FIXED,
    N_EPOCHS,
    NothingToTrain,
    TrialSlice,
    is_given_up,
)


class TrialArm:
    """The arm that a trial trains, and where it resumes; see ``arm``.

    Attributes
    ----------
    id : int
        Number of the trial that opened it: the same in all its trials.
    from_epoch : int
        Epochs that it has behind it; train from there.
    n_epochs : int or None
        Epochs that it gets now; None in a study without a ``RisingSampler``.
    checkpoint : Path or None
        The folder saved after ``from_epoch`` epochs, to be read only; None without one.
    trial : optuna.Trial
        The trial, for callbacks that count from 0 where a model resumes, as XGBoost's.

    Parameters
    ----------
    trial : optuna.Trial
        The trial that was asked for.
    slice_ : TrialSlice
        Which arm it trains, from which epoch on, and for how many.
    checkpoints : Checkpoints or None
        Where the arm's checkpoints are.

    Examples
    --------
    >>> import optuna
    >>> from risingsearch.integrations.optuna import arm
    >>> this = arm(optuna.create_study().ask())
    >>> type(this).__name__, this.id, this.from_epoch, this.n_epochs
    ('TrialArm', 0, 0, None)
    """

    def __init__(
        self, trial: optuna.Trial, slice_: TrialSlice, checkpoints: Checkpoints | None
    ) -> None:
        self.id = slice_.arm
        self.from_epoch = slice_.from_epoch
        self.n_epochs = slice_.n_epochs
        self.checkpoint: Path | None = None
        self.trial: optuna.Trial = _FromZero(trial, self)
        self._trial = trial
        self._checkpoints = checkpoints
        saved = trial._cached_frozen_trial.user_attrs.get(CHECKPOINT, [])
        self._saved: list[tuple[int, str]] = [(epoch, key) for epoch, key in saved]
        if checkpoints is not None and self._saved:
            key = dict(self._saved).get(self.from_epoch)
            if key is None:
                raise RunDirError(
                    f"arm {self.id} has no checkpoint of its {self.from_epoch} epochs, "
                    "so it would train some again: save one before each TrialPruned"
                )
            self.checkpoint = checkpoints.find(key, self)

    def __repr__(self) -> str:
        return (
            f"TrialArm(id={self.id}, from_epoch={self.from_epoch}, "
            f"n_epochs={self.n_epochs}, checkpoint={self.checkpoint})"
        )

    @contextmanager
    def save(self) -> Iterator[Path]:
        """Save a checkpoint of the epochs reported so far.

        Use it before the trial ends: a trial that has ended cannot be added to. The
        last two checkpoints and the one that the trial resumed from are kept.

        Yields
        ------
        Path
            An empty folder, kept whole at the end unless an exception leaves the block.

        Raises
        ------
        InvalidParameterError
            If the sampler was given neither ``checkpoint_dir`` nor ``artifact_store``.

        Examples
        --------
        >>> import tempfile
        >>> import optuna
        >>> import risingsearch.integrations.optuna as rising
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> def objective(trial):
        ...     rate = trial.suggest_float("rate", 0.1, 1.0)
        ...     arm = rising.arm(trial)
        ...     error = 1.0
        ...     if arm.checkpoint:
        ...         error = float((arm.checkpoint / "error").read_text())
        ...     for epoch in range(arm.from_epoch, 8):
        ...         error *= 1.0 - 0.3 * rate
        ...         trial.report(error, epoch)
        ...         if trial.should_prune():
        ...             with arm.save() as folder:
        ...                 (folder / "error").write_text(str(error))
        ...             raise optuna.TrialPruned
        ...     return error
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     study = optuna.create_study(
        ...         sampler=rising.RisingSampler(40, 8, checkpoint_dir=folder, seed=0),
        ...         pruner=rising.RisingPruner(),
        ...     )
        ...     study.optimize(objective)
        >>> sum(result.epochs for result in rising.arm_results(study))
        40
        """
        if self._checkpoints is None:
            raise InvalidParameterError(
                "give RisingSampler a checkpoint_dir or an artifact_store to save to"
            )
        if is_given_up(self._trial.study, self._trial._trial_id):
            raise optuna.TrialPruned(
                "other processes gave this trial up: its arm continues elsewhere"
            )
        epoch = len(self._trial._cached_frozen_trial.intermediate_values)
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            yield Path(folder)
            key = self._checkpoints.save(Path(folder))
        saved = self._saved
        earlier = [entry for entry in saved if entry[0] != epoch]
        resumed = [entry for entry in earlier if entry[0] <= self.from_epoch]
        # A process that takes this one for dead may not have seen the newest.
        kept = [entry for entry in earlier if entry in (earlier[0], *resumed[:1])]
        self._saved = [(epoch, key), *kept]
        self._trial.set_user_attr(CHECKPOINT, self._saved)
        for entry in saved:
            if entry not in kept:
                self._checkpoints.remove(entry[1])


class _FromZero(optuna.Trial):
    """A trial whose steps are counted from where its arm resumes."""

    def __init__(self, trial: optuna.Trial, arm: TrialArm) -> None:
        # Not by Trial.__init__, which would begin the trial anew.
        self.__dict__.update(trial.__dict__)
        self._arm = arm

    def report(self, value: float, step: int) -> None:
        super().report(value, self._arm.from_epoch + step)


def arm(trial: optuna.Trial) -> TrialArm:
    """Return the arm that a trial trains, so that it can resume where it was paused.

    Ask after the parameters were suggested and before anything is trained. An objective
    that never asks cannot resume an arm: its trials are stopped, and never revived.

    Parameters
    ----------
    trial : optuna.Trial
        The trial, as given to the objective.

    Returns
    -------
    TrialArm
        In a study without a ``RisingSampler`` every trial is a separate arm.

    Raises
    ------
    optuna.TrialPruned
        If there is nothing to train: others have had the epochs.
    RunDirError
        If the checkpoint that the arm resumes from was not saved, or is lost.

    Examples
    --------
    >>> import optuna
    >>> import risingsearch.integrations.optuna as rising
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     arm = rising.arm(trial)  # alone, each trial is an arm from its start
    ...     return float(arm.from_epoch)
    >>> study = optuna.create_study()
    >>> study.optimize(objective, n_trials=1)
    >>> study.best_value
    0.0
    """
    attrs = trial._cached_frozen_trial.user_attrs  # not a deep copy of them
    sampler = trial.study.sampler
    if N_EPOCHS not in attrs:
        return TrialArm(trial, TrialSlice(trial.number, 0, None, asked=True), None)
    if attrs[N_EPOCHS] == 0:
        fixed = trial._cached_frozen_trial.system_attrs.get(FIXED)
        raise optuna.TrialPruned(getattr(fixed, "reason", NothingToTrain.reason))
    checkpoints = None
    if isinstance(sampler, RisingSampler):
        checkpoints = sampler.checkpoints
        if ARM not in attrs:
            sampler.take_request(trial)
    slice_ = TrialSlice.of(trial._cached_frozen_trial)
    assert slice_ is not None
    return TrialArm(trial, slice_, checkpoints)


def ask(study: optuna.Study) -> optuna.Trial | None:
    """Return a trial with epochs to train; None if nothing can start now.

    For programs that hold many trials open in one process: ``study.optimize`` waits
    for others. If no trial is open and this returns None, the search is over.

    Parameters
    ----------
    study : Study
        With a ``RisingSampler`` and a ``RisingPruner``.

    Returns
    -------
    optuna.Trial or None
        To be told: with ``state=TrialState.PRUNED`` its arm pauses, else it has ended.

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
    ...     sampler=rising.RisingSampler(9, max_epochs=3, seed=0),
    ...     pruner=rising.RisingPruner(),
    ... )
    >>> while (trial := rising.ask(study)) is not None:
    ...     x = trial.suggest_float("x", 0.0, 1.0)
    ...     arm = rising.arm(trial)
    ...     for epoch in range(arm.from_epoch, arm.from_epoch + arm.n_epochs):
    ...         trial.report(x + 1.0 / (epoch + 1), epoch)
    ...     paused = study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    >>> sum(result.epochs for result in rising.arm_results(study))
    9
    """
    sampler = study.sampler
    if not isinstance(sampler, RisingSampler):
        raise InvalidParameterError(
            f"rising.ask needs a RisingSampler; got {type(sampler).__name__}"
        )
    while sampler.can_start(study):
        trial = study.ask()
        if trial.user_attrs[N_EPOCHS]:
            return trial
        study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    return None
