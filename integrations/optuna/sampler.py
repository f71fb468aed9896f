"""The sampler that gives every trial its arm, and has new ones proposed."""

import secrets
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from os import PathLike
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, fail_stale_trials
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from risingsearch.arms import Configuration, EpochFacts, Params
from risingsearch.budget import epochs_of
from risingsearch.checks import checked_float, checked_int, shown
from risingsearch.errors import InvalidParameterError
from risingsearch.identity.comparison import described
from risingsearch.integrations.optuna import trials
from risingsearch.integrations.optuna.prior import PriorSuggestions
from risingsearch.integrations.optuna.proposals import ModelSampler
from risingsearch.integrations.optuna.pruner import RisingPruner
from risingsearch.integrations.optuna.storages import (
    check_taken_alone,
    checkpoints_in,
    claim,
)
from risingsearch.integrations.optuna.study_replica import StudyReplica
from risingsearch.json_values import plain
from risingsearch.priors import read_prior
from risingsearch.proposers.open_space import LARGE, SHARES
from risingsearch.scheduling.options import SearchOptions
from risingsearch.scheduling.policy_choice import checked_params, choose_policy
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.search.arguments import checked_enqueue
from risingsearch.search.callbacks import Callback, CallbackList, checked_callbacks

UNASKED = (
    "the objective did not ask for its arm (rising.arm(trial)), so its trials cannot "
    "resume later: they are stopped as by any pruner and never revived"
)
NOT_REPORTED = (
    "the objective returned a value that it has not reported, so it counts for nothing "
    "here, and study.best_trial compares it with scores: return a reported score"
)
SEARCH = "rising:search"  # attribute of a study: which search it is
COMPARED = (  # settings that a study keeps
    "policy_params",
    "max_epochs",
    "min_epochs",
    "epochs_per_job",
    "error_score",
    "max_failures",
)
FIRST = 10.0  # seconds that threads wait for the first trial to be chosen
UNCLAIMED = 0.2  # seconds after which the worker that queued a trial will not take it


Distributions = dict[str, BaseDistribution]


@dataclass
class _Here:
    """State of one process in the study that it searches."""

    begun: datetime = field(default_factory=datetime.now)  # before its first trial
    lock: AbstractContextManager[bool] = field(default_factory=threading.RLock)
    first: threading.Lock = field(default_factory=threading.Lock)  # held for good
    begins: threading.Event = field(default_factory=threading.Event)
    replica: StudyReplica | None = None
    followed: tuple[BaseStorage, int] | None = None  # storage and study
    mine: set[int] = field(default_factory=set)  # trials with epochs of this process
    teller: CallbackList | None = None
    # For open trials: the parameters, and what each may be.
    suggested: dict[int, tuple[Params, Distributions]] = field(default_factory=dict)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return _Here, ()  # another process has its own


class RisingSampler(BaseSampler):
    """Spends a budget of epochs on the arms of a study that deserve them.

    Each trial is a slice of an arm: some epochs of one configuration. When it ends, a
    policy decides which arm continues, and how long; that slice is queued as a trial
    with the arm's own parameters and its curve so far, or a new arm is proposed. Use it
    with ``RisingPruner``, which ends slices, and with an objective that asks for its
    arm (``risingsearch.integrations.optuna.arm``). ``optimize`` stops when the budget
    is spent, so leave ``n_trials`` out: it counts slices.

    Optuna's own are workers and wall-clock time (``study.optimize(n_jobs=...,
    timeout=...)``) and the study's direction. Threads share a sampler. Processes that
    share a study have one each, made with the same budget, ``max_epochs`` and policy;
    all storages but SQLite serve several, and SQLite does behind a proxy.

    Parameters
    ----------
    budget : int
        Epochs in all, over all workers, at least 1; an epoch is a report. Never
        exceeded by an objective that suggests a parameter or asks for its arm, and
        ends when ``should_prune`` says so.
    max_epochs : int
        Epochs that the objective trains when nothing stops it, at least 1.
    policy : str, default "auto"
        A name of ``risingsearch.list_policies``; "auto" is ``looks-then-slope``.
    policy_params : dict, optional
        Parameters of the policy.
    base : BaseSampler, optional
        Proposes new arms, by default a model of the scores of all epochs. It sees one
        trial per arm, with scores after equally many epochs, and the constraints.
    n_candidates : int, optional
        Arms at most, at least 1, but for workers that open one at the same moment. By
        default the policy decides over how many the budget is best spread.
    epochs_per_job : int, optional
        Epochs of a slice, at least 1. By default the policy decides.
    error_score : float, optional
        Score of a failed epoch; by default the worst score so far.
    max_failures : int, default 0
        Failures after which an arm is still retried.
    seed : int, optional
        Seed of all draws, at least 0. With one worker it decides the whole search.
    checkpoint_dir : path, optional
        Folder for checkpoints; all workers must see it.
    artifact_store : optional
        One of Optuna's artifact stores for checkpoints instead.
    give_up_after : float, default 60.0
        Seconds without a report, or the time of ten epochs if that is more, after which
        other workers give a trial up: its arm continues from its checkpoint. Those left
        in a SQLite database by a process of the past are given up at once.
    callbacks : sequence of Callback or callable
        They hear of every epoch of the study, once its slice has ended, and that the
        budget is spent, also from other processes: give them to one of these.
    prior : source or list of sources, optional
        Earlier searches to learn from; see ``risingsearch.priors.earlier_searches``.
        They suggest two of three of 24 arms from the third on while they are trusted
        (see ``trust_in_prior``), and ``base`` the others. Give all processes the same.
    min_epochs : int, default 1
        Epochs that an opened arm trains before the policy turns away from it.
    patience : int, optional
        Epochs of the whole study without a new best score after which it stops.
    target_score : float, optional
        It stops once the best score is as good; another sampler may continue it.
    enqueue : list of dict, optional
        Known configurations, opened first and in this order, unless the study has them
        already; as by ``study.enqueue_trial``.

    Raises
    ------
    InvalidParameterError
        If an argument is invalid, or an earlier search cannot be read or has too few
        runs; on the first trial, if the study has more than one objective; on the
        second arm, if nothing can be learnt for the parameters of the first.
    SetupError
        On the first trial, if another process searches in the same SQLite database.

    Examples
    --------
    >>> import optuna
    >>> import risingsearch.integrations.optuna as rising
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0.0, 1.0)
    ...     arm = rising.arm(trial)  # nothing to load: the score is a formula
    ...     for epoch in range(arm.from_epoch, 10):
    ...         trial.report((x - 0.3) ** 2 + 1.0 / (epoch + 1), epoch)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned
    ...     return (x - 0.3) ** 2 + 0.1
    >>> study = optuna.create_study(
    ...     sampler=rising.RisingSampler(budget=60, max_epochs=10, seed=0),
    ...     pruner=rising.RisingPruner(),
    ... )
    >>> study.optimize(objective)
    >>> sum(result.epochs for result in rising.arm_results(study))
    60
    >>> abs(rising.best_arm(study).params["x"] - 0.3) < 0.1
    True
    """

    def __init__(
        self,
        budget: int,
        max_epochs: int,
        *,
        policy: str = "auto",
        policy_params: Params | None = None,
        base: BaseSampler | None = None,
        n_candidates: int | None = None,
        epochs_per_job: int | None = None,
        error_score: float | None = None,
        max_failures: int = 0,
        seed: int | None = None,
        checkpoint_dir: str | PathLike[str] | None = None,
        artifact_store: Any = None,
        give_up_after: float = 60.0,
        callbacks: Sequence[Callback | Callable[[EpochFacts], object]] = (),
        prior: Any = None,
        min_epochs: int = 1,
        patience: int | None = None,
        target_score: float | None = None,
        enqueue: Sequence[Configuration] = (),
    ) -> None:
        self.budget = epochs_of(budget, instead="study.optimize(timeout=...)")
        self.max_epochs = checked_int("max_epochs", max_epochs, 1)
        options = SearchOptions(
            budget=budget,
            max_epochs=max_epochs,
            policy_params=policy_params,
            epochs_per_job=epochs_per_job,
            error_score=error_score,
            max_failures=max_failures,
            seed=seed,
            min_epochs=min_epochs,
        )
        self._stop_rules = patience, target_score
        self._options = options.non_defaults()
        self.give_up_after = checked_float(
            "give_up_after", give_up_after, 0.0, open_low=False
        )
        listed = checked_enqueue(enqueue, Mapping)
        self._enqueued = [{k: plain(v) for k, v in one.items()} for one in listed]
        self.callbacks = checked_callbacks(callbacks)
        earlier = read_prior(prior)
        if policy == "auto" and base is None and self.budget > LARGE * self.max_epochs:
            policy_params = SHARES | checked_params(policy_params)
        chosen = choose_policy(
            policy,
            self.budget,
            self.max_epochs,
            parameters=policy_params,
            min_epochs=options.min_epochs,
        )
        self._most_arms = SearchOptions(n_candidates=n_candidates).n_candidates
        self._n_arms = max(chosen.n_opened, len(self._enqueued))
        self._options |= {"policy": chosen.name, "policy_params": chosen.parameters}
        self._settings = {name: described(getattr(options, name)) for name in COMPARED}
        self._settings |= {"policy": chosen.name, "budget": self.budget}
        self.checkpoints = checkpoints_in(checkpoint_dir, artifact_store)
        self.base: BaseSampler = ModelSampler(seed) if base is None else base
        if not isinstance(self.base, BaseSampler):
            msg = "base must be a sampler of Optuna, made by a call like TPESampler()"
            raise InvalidParameterError(f"{msg}; got {shown(base)}")
        self._scheduler("maximize", self._n_arms)  # raises if an argument is invalid
        self._prior = PriorSuggestions(earlier, seed) if earlier else None
        self._here = _Here()

    def _scheduler(self, direction: str, n_arms: int) -> Scheduler:
        options = self._options | {"enqueue": range(min(n_arms, len(self._enqueued)))}
        made = Scheduler(n_arms=n_arms, direction=direction, **options)
        made.stop_when(*self._stop_rules)
        return made

    def reseed_rng(self) -> None:
        """Reseed the sampler that proposes new arms, at the beginning of a thread."""
        # The first alone takes a trial out of the queue before ``claim``: two threads
        # could get the same one of a SQLite database.
        if not self._here.first.acquire(blocking=False):
            self._here.begins.wait(FIRST)
        self.base.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Choose the trial's work: an arm's next slice, a new arm, or nothing."""
        try:
            check_taken_alone(study._storage, trial._trial_id)
            self._choose_work(study, trial)
        finally:
            self._here.begins.set()

    def _choose_work(self, study: Study, trial: FrozenTrial) -> None:
        try:
            with self._here.lock:  # or two threads would open the same one
                trials.fix_enqueued(study, trial, self._enqueued)
            if self._grant(study, trial) == 0:
                self._wait_for_work(study, trial)
            elif _opens(trial):
                self._suggest(study, trial)
                self.base.before_trial(self._view(study, trial), trial)
        except Exception:  # Optuna would leave the trial running
            trials.give_up(study, [trial])  # which returns its epochs
            with suppress(UpdateFinishedTrialError):
                study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            raise

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> Distributions:
        """Ask earlier searches and the model, and else the base."""
        if not _opens(trial):
            return {}
        if trial.number in self._here.suggested:
            return self._here.suggested[trial.number][1]
        return self.base.infer_relative_search_space(self._view(study, trial), trial)

    def sample_relative(
        self,
        study: Study,
        trial: FrozenTrial,
        search_space: Distributions,
    ) -> Params:
        """Return the suggestion of earlier searches or the model, or ask the base."""
        if not _opens(trial):
            return {}
        suggested = self._here.suggested.pop(trial.number, None)
        if suggested is not None:
            return suggested[0]
        return self.base.sample_relative(self._view(study, trial), trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Ask the sampler that proposes new arms."""
        return self.base.sample_independent(
            self._view(study, trial), trial, param_name, param_distribution
        )

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Queue the slice that is due next, or stop the study when nothing is."""
        if trial.user_attrs.get(trials.N_EPOCHS) == 0:
            trial.system_attrs.pop(trials.FIXED, None)  # in memory, it is the storage's
            return
        self._here.suggested.pop(trial.number, None)  # of one that asked for nothing
        if _opens(trial) or _has_constraints(self.base):
            self.base.after_trial(self._view(study, trial), trial, state, values)
        if _opens(trial) and state != TrialState.FAIL:
            trials.warn_of_unsuggested(trial)
        with self._following(study) as replica:
            _record_constraints(study, trial, state, replica)
            replica.finish(trial, state, values)
            self._give_up_stale(study, replica)
            if not replica.opens_next:
                self._prepare_next(study, replica)
        if state != TrialState.FAIL:
            if trials.ARM not in trial.user_attrs:
                warnings.warn(UNASKED, UserWarning, stacklevel=2)
            trials.check_length(trial)
        reports = trial.intermediate_values.values()
        if values and reports and values[0] not in reports:
            warnings.warn(NOT_REPORTED, UserWarning, stacklevel=2)

    def _grant(self, study: Study, trial: FrozenTrial) -> int:
        """Reserve the trial's epochs and return how many."""
        # Long before others could take this trial for one that died undecided.
        give_up_at = time.monotonic() + self.give_up_after / 4
        waits = trials.pauses()
        while True:
            with self._following(study) as replica:
                self._here.mine.add(trial.number)
                n_epochs = replica.grant(trial)
                late = time.monotonic() > give_up_at
                if n_epochs or late or not replica.undecided_before(trial.number):
                    n_epochs = trials.set_n_epochs(study, trial, n_epochs)
                    if n_epochs:
                        trials.complete_curve(study, trial, replica.curve_before(trial))
                    return n_epochs
            time.sleep(next(waits))

    def _wait_for_work(self, study: Study, trial: FrozenTrial) -> None:
        """Let a trial train nothing; in ``optimize``, wait until there is work."""
        # Otherwise the worker would ask for one trial after the other in vain.
        # Optuna looks here first for each parameter, also one with a single value.
        nothing = trials.NothingToTrain()
        trial.system_attrs = trial.system_attrs | {trials.FIXED: nothing}
        self._here.mine.discard(trial.number)
        for pause in trials.pauses():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ExperimentalWarning)
                fail_stale_trials(study)  # as Optuna does before each trial
            with self._following(study) as replica:
                self._give_up_stale(study, replica)
                if self._prepare_next(study, replica) or replica.queued(UNCLAIMED):
                    return
                if not study._thread_local.in_optimize_loop:
                    if replica.done:
                        nothing.reason = _spent(replica)
                        warnings.warn(nothing.reason, stacklevel=2)
                    return
            time.sleep(pause)

    def _give_up_stale(self, study: Study, replica: StudyReplica) -> None:
        """Give up the trials of processes that seem to be dead."""
        stale = replica.stale_trials(self.give_up_after, self._here.mine)
        if stale:
            trials.give_up(study, stale)
            replica.sync(trials.all_trials(study))

    def _prepare_next(self, study: Study, replica: StudyReplica) -> bool:
        """Queue the next job, or stop if none will follow; return if either."""
        due = replica.next_trial()
        if due is not None:
            study._storage.create_new_trial(study._study_id, template_trial=due)
            return True
        if not replica.done or not study._thread_local.in_optimize_loop:
            return False
        if not (self._here.mine or study._stop_flag):
            warnings.warn(_spent(replica), stacklevel=2)
        self._here.mine.clear()
        study.stop()
        return True

    def _suggest(self, study: Study, trial: FrozenTrial) -> None:
        """Have earlier searches or the model suggest an arm, unless it was enqueued."""
        if trials.FIXED in trial.system_attrs:
            return
        proposal = None
        with self._here.lock:  # as the study was when the trial was decided
            replica = self._replica_of(study)
            opened = replica.opened()
            if self._prior is not None:
                proposal = self._prior.suggest(trial.number, opened)
            if proposal is None and isinstance(self.base, ModelSampler):
                proposal = self.base.propose(trial.number, opened)
        if proposal is None:
            return
        set_attr = partial(study._storage.set_trial_user_attr, trial._trial_id)
        if proposal.by_prior:
            set_attr(trials.BY_PRIOR, True)
        elif proposal.like:
            set_attr(trials.LIKE, [replica.arm_of(arm) for arm in proposal.like])
        params = dict(proposal.params)
        space = {name: opened.distributions[name] for name in params}
        self._here.suggested[trial.number] = params, space

    def take_request(self, trial: optuna.Trial) -> None:
        """Record that the objective has asked for the arm that its trial opens."""
        with self._following(trial.study) as replica:
            n_epochs = replica.asked(trial.number)
        if n_epochs not in (None, trial.user_attrs[trials.N_EPOCHS]):
            trial.set_user_attr(trials.N_EPOCHS, n_epochs)
        trial.set_user_attr(trials.ARM, trial.number)

    def trust_in_prior(self, study: Study) -> dict[str, float]:
        """Return how far each earlier search is trusted in a study by now.

        Parameters
        ----------
        study : Study
            A study that this sampler searches.

        Returns
        -------
        dict
            By the name of the search, from 0 (no better than chance) to 1; together the
            correlation that is expected of them. Empty before an arm has trained.
        """
        with self._following(study) as replica:
            if self._prior is None:
                return {}
            return self._prior.trusted(replica.opened())

    def can_start(self, study: Study) -> bool:
        """Whether a trial asked for now has something to train; queue it if need be."""
        with self._following(study) as replica:
            return replica.queued() or self._prepare_next(study, replica)

    @contextmanager
    def _following(self, study: Study) -> Iterator[StudyReplica]:
        """Hold the replica of a study, up to date."""
        with self._here.lock:
            replica = self._replica_of(study)
            replica.sync(trials.all_trials(study))
            yield replica
            if self._here.teller is not None:
                self._here.teller.follow(done=replica.done)

    def _replica_of(self, study: Study) -> StudyReplica:
        followed = study._storage, study._study_id
        if self._here.replica is None or self._here.followed != followed:
            trials.check_objective(study)
            if not isinstance(study.pruner, RisingPruner):
                msg = (
                    "RisingSampler needs pruner=RisingPruner() to end slices; "
                    f"the study has a {type(study.pruner).__name__}"
                )
                warnings.warn(msg, RuntimeWarning, stacklevel=2)
            left_by_dead = claim(study._storage)
            trials.check_settings(study, self._settings)
            if left_by_dead:
                running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
                begun = self._here.begun
                dead = [t for t in running if (t.datetime_start or begun) < begun]
                trials.give_up(study, dead)
            replica = StudyReplica(
                partial(self._scheduler, study.direction.name.lower()),
                self._n_arms,
                self._most_arms,
                self.max_epochs,
            )
            self._here.replica = replica
            self._here.followed = followed
            self._here.mine = set()
            if self.callbacks:
                self._here.teller = self._callback_list(study, replica)
        return self._here.replica

    def _callback_list(self, study: Study, replica: StudyReplica) -> CallbackList:
        if SEARCH not in study.user_attrs:
            study.set_user_attr(SEARCH, secrets.token_hex(8))
        names = study.metric_names
        return CallbackList(
            self.callbacks,
            lambda: replica.scheduler,
            search=study.user_attrs[SEARCH],
            metric=names[0] if names else "value",
            params=replica.params_of,
            reports={},
            stop=study.stop,
            name=replica.arm_of,
        )

    def _view(self, study: Study, trial: FrozenTrial) -> trials.ArmView:
        trials.check_objective(study)
        note = partial(study._storage.set_trial_user_attr, trial._trial_id)
        seen = partial(self._seen, study)
        return trials.ArmView(study, seen, partial(note, trials.LAST, True))

    def _seen(self, study: Study) -> list[FrozenTrial]:
        with self._here.lock:  # as the study was when the trial was decided
            replica = self._replica_of(study)
            return replica.others + replica.seen()


def _spent(replica: StudyReplica) -> str:
    """Return why nothing trains any more, and the way to continue."""
    reason = replica.scheduler.stop_reason
    return (
        f"{reason}, so nothing was left to train: to continue, allow RisingSampler more"
    )


def _has_constraints(base: BaseSampler) -> bool:
    """Whether a sampler has constraints, which each slice of an arm may change."""
    judge = getattr(base, "_base_sampler", base)  # inside a PartialFixedSampler
    return getattr(judge, "_constraints_func", None) is not None


def _record_constraints(
    study: Study, trial: FrozenTrial, state: TrialState, replica: StudyReplica
) -> None:
    """Give a trial that ends the earlier constraints of its arm, which may retire."""
    arm = trial.user_attrs.get(trials.ARM, trial.number)
    for key, value in replica.constraints[arm].items():
        if key not in trial.system_attrs:
            study._storage.set_trial_system_attr(trial._trial_id, key, value)
    if state == TrialState.PRUNED and replica.stays_infeasible(trial):
        # Recorded, so that it stands in a release that would not decide so.
        trials.set_attr(study, trial, trials.RETIRED, True)


def _opens(trial: FrozenTrial) -> bool:
    """Whether the trial opens an arm: it is to be proposed."""
    slice_ = trials.TrialSlice.of(trial)
    return slice_ is not None and slice_.n_epochs != 0 and slice_.arm == trial.number
