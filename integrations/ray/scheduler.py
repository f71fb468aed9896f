"""The trial scheduler: it translates between Ray Tune and the Scheduler."""

import uuid
from collections.abc import Callable, Sequence

from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial
from ray.tune.result import DEFAULT_METRIC
from ray.tune.schedulers import TrialScheduler

from risingsearch.arms import Arm, EpochFacts, Params
from risingsearch.budget import epochs_of
from risingsearch.checks import checked_choice
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.ray.experiment import Experiment
from risingsearch.json_values import Json
from risingsearch.policies import Policy
from risingsearch.scheduling.options import SearchOptions
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.callbacks import Callback, checked_callbacks

DIRECTIONS = {"max": "maximize", "min": "minimize"}


class RisingScheduler(TrialScheduler):  # type: ignore[misc]
    """Spends a budget of epochs on the trials that deserve them.

    Takes the place of ``ASHAScheduler``, for one experiment. Each trial is an arm: it
    trains for some epochs, each a report, and is paused with its checkpoint; a policy
    decides which one continues, or whether the searcher proposes another. Functions
    give a checkpoint to each ``tune.report``, classes have ``save_checkpoint`` and
    ``load_checkpoint``. ``Tuner.restore`` continues from a journal in the experiment's
    folder.

    Ray's own are known configurations and earlier searches (``points_to_evaluate`` of
    the searcher), retries (``tune.FailureConfig(max_failures=...)``), wall-clock time
    and the number of candidates (``time_budget_s`` and ``num_samples`` of
    ``tune.TuneConfig``).

    Parameters
    ----------
    budget : int
        Epochs in all, at least 1. Never exceeded.
    max_epochs : int, optional
        Epochs of a trial at most, at least 1. By default the whole budget.
    metric, mode : str, optional
        The reported score, and ``"max"`` or ``"min"``; here or in ``tune.TuneConfig``.
    time_attr : str, default "epoch"
        Where trials report the epoch: one that begins again is then found out.
    policy : str, callable or policy, default "auto"
        A registered name, see ``risingsearch.list_policies``; or as in ``Scheduler``.
    policy_params : dict, optional
        Parameters of the policy.
    epochs_per_job : int, optional
        Epochs until the next decision, at least 1. By default the policy decides.
    n_jobs : int, optional
        Trials that train at the same time at most, at least 1. By default as many as
        the cluster holds, or ``max_concurrent_trials`` if that is fewer.
    deterministic : bool, default False
        Whether any order of finishing gives the same run; see ``Scheduler``.
    error_score : float, optional
        Score of a failed epoch; by default the worst score so far.
    seed : int, optional
        Seed of all draws, at least 0.
    callbacks : sequence of Callback or callable
        They hear of every epoch, and that the budget is spent, in the driver's process.
    min_epochs : int, default 1
        Epochs that an opened trial trains before the policy turns away from it.
    patience : int, optional
        Epochs of the whole experiment without a new best score after which it ends.
    target_score : float, optional
        The experiment ends once the best score is as good, as ``mode`` says.

    Raises
    ------
    InvalidParameterError
        If an argument is outside its range, or there is no such policy or parameter;
        from ``fit``, if metric or mode are given nowhere.
    SearchFailedError
        From ``fit``, once ten trials have failed, and none has had a finite score.

    Examples
    --------
    >>> from ray import tune
    >>> scheduler = RisingScheduler(budget=270, max_epochs=27)
    >>> config = tune.TuneConfig(metric="loss", mode="min", scheduler=scheduler)
    >>> print(scheduler.debug_string())
    RisingScheduler: 0 of 270 epochs
    """

    _supports_buffered_results = False  # each result is decided on before the next

    def __init__(
        self,
        budget: int,
        max_epochs: int | None = None,
        *,
        metric: str | None = None,
        mode: str | None = None,
        time_attr: str = "epoch",
        policy: str | Callable[..., Policy] = "auto",
        policy_params: Params | None = None,
        epochs_per_job: int | None = None,
        n_jobs: int | None = None,
        deterministic: bool = False,
        error_score: float | None = None,
        seed: int | None = None,
        callbacks: Sequence[Callback | Callable[[EpochFacts], object]] = (),
        min_epochs: int = 1,
        patience: int | None = None,
        target_score: float | None = None,
    ) -> None:
        super().__init__()
        self.callbacks = checked_callbacks(callbacks)
        self.budget = epochs_of(budget, instead="TuneConfig(time_budget_s=...)")
        if mode is not None:
            checked_choice("mode", mode, tuple(DIRECTIONS))
        self._metric = metric
        self._mode = mode
        self.time_attr = time_attr
        self._options = SearchOptions(
            budget=budget,
            max_epochs=max_epochs,
            policy=policy,
            policy_params=policy_params,
            epochs_per_job=epochs_per_job,
            n_jobs=n_jobs,
            deterministic=deterministic,
            error_score=error_score,
            seed=seed,
            min_epochs=min_epochs,
        ).non_defaults()
        self._stop_rules = patience, target_score  # may be others after Tuner.restore
        self._key = uuid.uuid4().hex  # the same after Tuner.restore
        self._experiment: Experiment | None = None
        self._error: Exception | None = None  # of a trial that could not be added
        self._make(n_arms=1)  # raises if an argument is invalid

    def _make(self, n_arms: int) -> Scheduler:
        direction = DIRECTIONS[self._mode or "max"]
        scheduler = Scheduler(
            n_arms=n_arms,
            direction=direction,
            **self._options,
        )
        scheduler.stop_when(*self._stop_rules)
        return scheduler

    def __getstate__(self) -> Json:
        # As it was made: Tuner.restore begins with that.
        return self.__dict__ | {"_experiment": None, "_error": None}

    def set_search_properties(
        self, metric: str | None, mode: str | None, **spec: object
    ) -> bool:
        """Take metric and mode from ``tune.TuneConfig``.

        Parameters
        ----------
        metric, mode : str or None
            Those of the ``TuneConfig``.
        **spec : object
            Not used.

        Returns
        -------
        bool
            False if both have them.
        """
        if (self._metric and metric) or (self._mode and mode):
            return False
        self._metric = metric or self._metric
        self._mode = mode or self._mode
        if self._metric is None and self._mode:
            self._metric = DEFAULT_METRIC
        return True

    def on_trial_add(self, tune_controller: TuneController, trial: Trial) -> None:
        """Add a trial that is new, restored, or tried again after a failure.

        Parameters
        ----------
        tune_controller : TuneController
            Ray's loop of the experiment.
        trial : Trial
            The trial.

        Raises
        ------
        InvalidParameterError
            If the scheduler has served another experiment, or lacks metric or mode.
        """
        controller = getattr(tune_controller, "_tune_controller", tune_controller)
        try:
            if self._experiment is None:
                self._experiment = self._begin(controller, trial)
            if self._experiment.controller is not controller:
                raise InvalidParameterError(
                    "a RisingScheduler serves one experiment: make one for each Tuner"
                )
            self._experiment.add(trial)
        except Exception as error:
            self._error = error
            raise

    def _begin(self, controller: TuneController, trial: Trial) -> Experiment:
        if not self._metric or not self._mode:
            raise InvalidParameterError(
                "RisingScheduler needs a metric and a mode, here or in TuneConfig; "
                f"got metric={self._metric!r} and mode={self._mode!r}"
            )
        return Experiment(
            controller,
            trial,
            budget=self.budget,
            key=self._key,
            make_scheduler=self._make,
            metric=self._metric,
            time_attr=self.time_attr,
            callbacks=self.callbacks,
        )

    def on_trial_result(
        self,
        tune_controller: TuneController,
        trial: Trial,
        result: Json,
    ) -> str:
        """Record an epoch; decide whether the trial continues, pauses or is over."""
        return self._running.record_result(trial, result)

    def on_trial_error(self, tune_controller: TuneController, trial: Trial) -> None:
        """Charge the job of the trial, and retire it unless Ray tries it again."""
        self._running.fail(trial)

    def on_trial_complete(
        self,
        tune_controller: TuneController,
        trial: Trial,
        result: Json,
    ) -> None:
        """Record that the trial has ended, and a last result."""
        self._running.complete(trial, result)

    def on_trial_remove(self, tune_controller: TuneController, trial: Trial) -> None:
        """Record that the trial was stopped while it did not train."""
        self._running.complete(trial, {})

    def choose_trial_to_run(self, tune_controller: TuneController) -> Trial | None:
        """Return the trial that trains next, the same until it does.

        Parameters
        ----------
        tune_controller : TuneController
            Not used.

        Returns
        -------
        Trial or None
            None if no trial can train now.
        """
        if self._error is not None:
            raise self._error  # Ray begins anew when it cannot restore: not here
        if self._experiment is None:
            return None
        return self._experiment.choose()

    @property
    def _running(self) -> Experiment:
        assert self._experiment is not None
        return self._experiment

    @property
    def _scheduler(self) -> Scheduler:
        """Decides; before the first trial, one that has decided nothing."""
        if self._experiment is None:
            return self._make(n_arms=1)
        return self._experiment.scheduler.with_all_results()

    @property
    def _trials(self) -> dict[int, str]:
        """The ids of the trials that were opened, by arm."""
        if self._experiment is None:
            return {}
        return self._experiment.arms.trial

    def debug_string(self) -> str:
        """Return the policy, the epochs and the best trial, for Ray's status output."""
        name = type(self).__name__
        epochs = f"{self.n_epochs} of {self.budget} epochs"
        if self._experiment is None:
            return f"{name}: {epochs}"
        name = f"{name} ({self._scheduler.policy_name})"
        text = f"{name}: {epochs}, {len(self._trials)} trials opened"
        if self.best_trial_id is None:
            return text
        best = f"{self._metric} {self.best_score:.4g} by {self.best_trial_id}"
        text += f", best {best} at epoch {self.best_epoch}"
        if self.stop_reason is None:
            return text
        return f"{text}; {self.stop_reason}"

    @property
    def n_epochs(self) -> int:
        """Epochs charged so far, over all trials."""
        return self._scheduler.n_epochs

    @property
    def stop_reason(self) -> str | None:
        """Why the experiment ended; None while it continues."""
        return self._scheduler.stop_reason

    @property
    def best_trial_id(self) -> str | None:
        """The trial with the best score at any epoch; None before the first score."""
        arm = self._scheduler.best_arm
        if arm is None:
            return None
        return self._trials[arm]

    @property
    def best_score(self) -> float:
        """The best score so far; NaN before the first finite one."""
        return self._scheduler.best_score

    @property
    def best_epoch(self) -> int:
        """The best trial's epoch with the best score; 0 before the first finite one."""
        return self._scheduler.best_epoch

    @property
    def history(self) -> list[Json]:
        """One row per charged epoch, with its ``trial_id``; see ``Scheduler``."""
        rows = self._scheduler.history
        return [{"trial_id": self._trials[row["arm"]], **row} for row in rows]

    def explain(self) -> dict[str, Arm]:
        """Return where each opened trial stands, why, and the parts of its index.

        Returns
        -------
        dict of str to Arm
            By the id of the trial.

        Examples
        --------
        >>> RisingScheduler(budget=27).explain()
        {}
        """
        arms = self._scheduler.explain()
        return {trial_id: arms[arm] for arm, trial_id in self._trials.items()}
