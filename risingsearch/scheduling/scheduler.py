"""A budget, spent one epoch at a time: who trains next, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

from risingsearch.arms import Job
from risingsearch.budget import Budget
from risingsearch.checks import (
    LARGEST_SCORE,
    checked_float,
    checked_int,
)
from risingsearch.errors import (
    InvalidParameterError,
    PolicyError,
    RunDirError,
)
from risingsearch.policies import Policy
from risingsearch.scheduling.arguments import Arguments
from risingsearch.scheduling.arm_records import ArmRecords
from risingsearch.scheduling.decisions import Choice, Decider, Draws
from risingsearch.scheduling.jobs import Decision, Jobs, Result, checked_scores
from risingsearch.scheduling.ledger import Ledger
from risingsearch.scheduling.policy_adapter import PolicyAdapter
from risingsearch.scheduling.policy_choice import choose_policy, horizon_and_limit
from risingsearch.scheduling.proposers import InformedProposer, Proposer
from risingsearch.scheduling.recording import Recorder
from risingsearch.scheduling.saved_state import EARLIER, SavedState, check_identity
from risingsearch.scheduling.view import SchedulerView


class Scheduler(SchedulerView):
    """Decide which arm gets the next epochs, within a budget.

    A budget in epochs is exact; one in time or any cost can be overrun if jobs
    in flight cost more than expected.

    Pure bookkeeping around a policy: no model, no disk, no clock. ``ask`` hands out
    jobs, ``tell`` and ``fail`` take back what came of them, with any number in flight.

    Parameters
    ----------
    policy : str, callable or policy, default "auto"
        A registered name (see ``list_policies``), a factory
        ``(n_arms, horizon, max_pulls, **policy_params) -> policy``, or a policy, which
        is copied.
        ``"auto"`` is ``trusted-damped-slope``; see ``choose_policy``.
    n_arms : int
        Arms that may be opened, at least 1; more than the budget can try is fine.
    budget : int or Budget
        Epochs in all, at least 1; or ``Budget(hours=...)``, ``Budget(cost=...)``: then
        the horizon of an arm is the rest of it, divided by the arm's own measured cost
        per epoch. With ``Budget(wall_hours=...)`` that is the time left, times
        ``n_jobs`` (by default, as many as have been in flight at once). A time may be
        text, such as "8h"; see ``RisingSearch``.
    max_epochs : int, optional
        Epochs one arm can use at most. By default the whole budget; a budget that is
        not in epochs needs it.
    policy_params : dict, optional
        Parameters of the policy, such as ``reward_range=(lowest, highest)`` for the
        scores possible (both negated if lower scores are better).
    epochs_per_job : int, optional
        Epochs of a job, at least 1. By default the policy decides. The default policy
        opens fewer arms if that makes its first jobs longer.
    direction : {"maximize", "minimize"}, default "maximize"
        Whether higher or lower scores are better.
    seed : int, optional
        Seed of all draws, at least 0.
    deterministic : bool, default False
        Whether several jobs in flight give the same run in any order of finishing:
        decision ``k`` sees exactly the results of decisions ``1 .. k - n_jobs`` (and of
        the next ones, one by one, if nothing can start without them). By default
        results are recorded in the order told, so no worker waits for a slower one.
    n_jobs : int, optional
        Jobs in flight at most, at least 1. No limit by default; 1 if
        ``deterministic``.
    error_score : float, optional
        The score that a failed epoch or a score that is not finite counts as. By
        default the worst score seen so far; what fails before the first score counts
        as that one, once it is known, and as 0 until then.
    max_failures : int, default 0
        Failures after which an arm is still retried; one more retires it.
    opening_order : sequence of int, optional
        All arms, in the order in which they are to be opened; by default the order of
        their numbers. When to open one is the policy's decision.
    proposer : Proposer, optional
        Picks the arm, where the policy opens one and lets it be proposed; see
        ``risingsearch.scheduling.proposers``. By default the next in the opening order.
        With ``policy="auto"`` it is asked where there are more
        arms than the budget opens.
    epoch_costs : sequence of float, optional
        Costs of the epochs of an arm one after the other, if they are not alike:
        one number above 0 for each of ``max_epochs``. A budget in epochs is charged
        them, and never exceeded; under another an epoch is expected to cost in
        proportion.
    min_epochs : int, default 1
        Epochs before an arm is judged, at least 1 and at most ``max_epochs``: the first
        job of an arm is at least as long, also if ``epochs_per_job`` is smaller, and no
        arm is opened that the rest of the budget cannot train so long.
    enqueue : sequence of int, optional
        Arms that are opened first, in this order, before the policy or the proposer
        opens another and before the search runs out of patience.

    Raises
    ------
    InvalidParameterError
        If an argument is outside its range, or there is no such policy or parameter.

    Notes
    -----
    Failures and scores that are not finite follow one rule: the epochs are charged, the
    policy is told ``error_score`` for each of them, the arm is retried or retired as
    ``max_failures`` says, and the search continues.

    Examples
    --------
    >>> scheduler = Scheduler(n_arms=3, budget=8, max_epochs=5)
    >>> while (job := scheduler.ask()) is not None:
    ...     epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
    ...     scheduler.tell(job, [1 - 1 / (epoch + job.arm + 1) for epoch in epochs])
    >>> [(arm.epochs, arm.status) for arm in scheduler.explain()]
    [(2, 'paused'), (2, 'paused'), (4, 'paused')]
    >>> scheduler.best_arm, scheduler.best_epoch, round(scheduler.best_score, 3)
    (2, 4, 0.857)
    """

    def __init__(
        self,
        policy: str | Callable[..., Policy] | Policy = "auto",
        n_arms: int | None = None,
        budget: int | str | Budget | None = None,
        max_epochs: int | None = None,
        policy_params: dict[str, Any] | None = None,
        epochs_per_job: int | None = None,
        direction: str = "maximize",
        seed: int | None = None,
        *,
        deterministic: bool = False,
        n_jobs: int | None = None,
        error_score: float | None = None,
        max_failures: int = 0,
        opening_order: Iterable[int] | None = None,
        proposer: Proposer | None = None,
        epoch_costs: Iterable[float] | None = None,
        min_epochs: int = 1,
        enqueue: Iterable[int] = (),
    ) -> None:
        named = dict(locals())  # the signature is the only list of the arguments
        self._arguments = given = Arguments.among(named)
        self.n_arms, self.max_epochs = given.n_arms, given.max_epochs
        self.policy_params, self.direction = given.policy_params, given.direction
        self.deterministic, self.n_jobs, self.epochs_per_job = (
            given.deterministic,
            given.n_jobs,
            given.epochs_per_job,
        )
        self.max_failures, self.epoch_costs = given.max_failures, given.epoch_costs
        self._budget = Ledger(
            given.budget, given.n_arms, given.n_jobs, given.epoch_costs
        )
        self._draws = Draws(given.seed)
        n_known = getattr(proposer, "n_arms", self.n_arms)
        if n_known != self.n_arms:
            msg = (
                f"the proposer was made for {n_known} candidates, and there are "
                f"{self.n_arms} arms: make it for the candidates of this search"
            )
            raise InvalidParameterError(msg)
        self._proposer = self._given_proposer = proposer
        if isinstance(policy, str):
            self._compose_named(policy)
        else:
            self._compose(policy, dict(given.policy_params or {}))

    def _compose_named(self, policy: str) -> None:
        """Put the parts together for the policy that a name stands for."""
        given, proposer = self._arguments, self._given_proposer
        chosen = choose_policy(
            policy,
            given.budget,
            given.max_epochs,
            given.n_arms,
            parameters=given.policy_params,
            min_epochs=given.min_epochs,
            epochs_per_job=given.epochs_per_job,
            proposals=proposer is not None,
        )
        if isinstance(proposer, InformedProposer):
            chosen = chosen.informed(proposer.policy_params())
        elif chosen.opens_all:
            proposer = None
        self._proposer = proposer
        self._compose(chosen.name, chosen.parameters)

    def _compose(
        self, policy: str | Callable[..., Policy] | Policy, params: dict[str, Any]
    ) -> None:
        """Put the parts together: records, decisions, jobs and saved state."""
        given = self._arguments
        horizon, limit = horizon_and_limit(given.budget, given.max_epochs, given.n_arms)
        self._jobs = Jobs()
        self._records = ArmRecords(
            given.n_arms, limit, given.direction, given.error_score, given.max_failures
        )
        self._policy = PolicyAdapter(
            policy,
            params,
            given.max_epochs,
            given.opening_order,
            self._records,
            self._budget,
            given.openings,
        )
        self._policy.build(horizon)
        parts = (self._policy, self._records, self._budget, self._jobs)
        self._decider = Decider(
            *parts,
            self._proposer,
            self._draws,
            given.epochs_per_job,
            given.openings,
            given.deterministic,
        )
        self._recorder = Recorder(*parts, self._draws)
        self._saved = SavedState(*parts, self._decider, self._draws)

    # ------------------------------------------------------------------ the contract

    def ask(self) -> Job | None:
        """Return the next job and reserve its epochs.

        Returns
        -------
        Job or None
            None when nothing can start now: all workers or arms are busy, the policy
            waits for a result, or the search is ``done`` once all jobs in flight
            are back.

        Raises
        ------
        PolicyError
            If the policy chose an arm that is not available.
        """
        chosen = self._decide()
        if chosen is None:
            return None
        job = self._decider.start_chosen(chosen)
        self._record_due()
        return job

    def peek(self) -> Job | None:
        """Return the job that ``ask`` would return now; nothing is reserved.

        Returns
        -------
        Job or None
            As ``ask``.

        Raises
        ------
        PolicyError
            As ``ask``.
        """
        chosen = self._decide()
        if chosen is None:
            return None
        from_epoch = int(self._records.epochs[chosen.arm])
        return Job(chosen.arm, from_epoch, chosen.n_epochs, self.n_asked)

    def why(self, job: Job) -> tuple[str, dict[str, float]]:
        """Return why a job is in flight, or would be the next one.

        Parameters
        ----------
        job : Job
            From ``ask`` and not yet told, or from ``peek``.

        Returns
        -------
        reason : str
            As ``history`` will have it.
        parts : dict of str to float
            The parts of the arm's index when it was chosen.

        Raises
        ------
        InvalidParameterError
            If the job is neither.

        Examples
        --------
        >>> scheduler = Scheduler(n_arms=3, budget=8, max_epochs=5)
        >>> scheduler.why(scheduler.peek())
        ('opened', {})
        """
        if job not in self.in_flight and job == self.peek():
            chosen = self._decide()
            assert chosen is not None
            decision = self._decider.why(chosen)
        else:
            decision = self._jobs.why(job)
        return decision.reason, decision.parts

    def decision(self, job: Job) -> Decision:
        """Return the decision to start a job in flight."""
        return self._jobs.why(job)

    def repeat(self, job: Job, why: Decision) -> None:
        """Start a job that was decided before, without deciding it again.

        Parameters
        ----------
        job : Job
            The next one, as it was started; one in flight is only tried again.
        why : Decision
            Why it was started.

        Raises
        ------
        RunDirError
            If it is not the next job, or its arm cannot have been started.
        """
        if self._jobs.in_flight.get(job.id) == job:
            return
        while why.seen is not None and self._jobs.n_recorded_in_order < why.seen:
            if not self._jobs.next_is_told:
                break
            self._record(*self._jobs.next_result())
        fits = job.id == self.n_asked and job.arm < self.n_arms
        if not fits or self._records.busy[job.arm]:
            msg = f"{job} cannot be the next job of this search: its journal is damaged"
            raise RunDirError(msg)
        self._decider.repeat(job, why)
        with suppress(PolicyError):
            self._record_due()

    def start(self, arm: int, n_epochs: int | None = None) -> Job:
        """Give an arm epochs that were decided elsewhere, and reserve them.

        For a search that several schedulers follow: each records the decisions of
        the others. An arm that a failure has retired comes back, the failure forgiven.

        Parameters
        ----------
        arm : int
            Which arm; not one in training, nor one that has finished.
        n_epochs : int, optional
            How many epochs, at least 1. By default as many as ``ask`` would give it.

        Returns
        -------
        Job
            To be told or failed as one from ``ask``.

        Raises
        ------
        InvalidParameterError
            If the arm cannot train so long, or the budget does not pay for it. Nothing
            changes.

        Examples
        --------
        >>> scheduler = Scheduler(n_arms=3, budget=8, max_epochs=5)
        >>> scheduler.start(2, n_epochs=4)
        Job(arm=2, from_epoch=0, n_epochs=4, id=0)
        """
        arm = checked_int("arm", arm, 0)
        if n_epochs is not None:
            n_epochs = checked_int("n_epochs", n_epochs, 1)
        records = self._records
        finished = arm >= self.n_arms or records.has_finished(arm)
        if finished or records.busy[arm]:
            msg = (
                f"arm {arm} cannot start: start takes an arm below {self.n_arms} that "
                "is neither in training nor finished"
            )
            raise InvalidParameterError(msg)
        job = self._decider.start(arm, n_epochs)
        self._record_due()
        return job

    def tell(
        self,
        job: Job,
        scores: float | Iterable[float],
        cost: float | None = None,
        *,
        ended: bool = True,
        now: float | None = None,
    ) -> None:
        """Record the result of a job.

        Parameters
        ----------
        job : Job
            From ``ask``, told once.
        scores : float or sequence of float
            One score per epoch. Fewer than asked for: the arm ended by itself, and the
            rest of its reservation returns to the budget.
        cost : float, optional
            Cost of the job, in the unit of the budget; needed under one that is
            not in epochs. In wall-clock time, that of its training; by default
            all the time since ``ask`` returned it.
        ended : bool, default True
            What fewer scores mean: False says that the job was cut short and the arm
            can continue.
        now : float, optional
            Wall-clock time since the search began, in the unit of the budget;
            needed under one in wall-clock time, and refused under any other.

        Raises
        ------
        InvalidParameterError
            If the job is unknown, was told before or gets too many scores, a score is
            not a number, or the cost or the time is missing. Nothing changes.
        """
        is_wall_clock = self._budget.is_wall_clock
        if is_wall_clock and now is None:
            msg = f"the budget is in {self.unit}: tell needs now, when {job} came back"
            raise InvalidParameterError(msg)
        if cost is None and self.unit != "epochs" and not is_wall_clock:
            msg = f"the budget is in {self.unit}: tell needs the cost of {job}"
            raise InvalidParameterError(msg)
        self._tell(job, scores, cost, now, failure=None, ended=ended)

    def fail(
        self,
        job: Job,
        reason: object,
        scores: Iterable[float] = (),
        cost: float | None = None,
        *,
        now: float | None = None,
        attempts: int = 1,
    ) -> None:
        """Record that a job failed; all its epochs are charged.

        Parameters
        ----------
        job : Job
            From ``ask``, told or failed once.
        reason : object
            Why, for ``explain``: a message or an exception.
        scores : sequence of float
            Scores of the epochs before the failure.
        cost : float, optional
            Cost of the job; by default the expected cost.
        now : float, optional
            As in ``tell``; without it, the clock stays where it is.
        attempts : int, default 1
            How many failed attempts to train the job this stands for; they count
            towards ``max_failures``.

        Raises
        ------
        InvalidParameterError
            As ``tell``.
        """
        failure = str(reason) or type(reason).__name__
        attempts = checked_int("attempts", attempts, 1)
        self._tell(
            job, scores, cost, now, failure=failure, ended=False, attempts=attempts
        )

    def end(self, arm: int) -> None:
        """Record that an arm has ended by itself, however many epochs it had left.

        Parameters
        ----------
        arm : int
            Which arm; not one in training, whose job tells that.

        Raises
        ------
        InvalidParameterError
            If the arm is in training or there is no such arm. Nothing changes.
        """
        arm = checked_int("arm", arm, 0)
        if arm >= self.n_arms or self._records.busy[arm]:
            msg = f"end takes an arm below {self.n_arms} that does not train; got {arm}"
            raise InvalidParameterError(msg)
        with self._event():
            self._records.end(arm)

    @property
    def done(self) -> bool:
        """Whether nothing will ever start again, unless the budget is extended."""
        if self.in_flight:
            return False
        return self._selected() is None

    def settled(self) -> Scheduler:
        """Return the scheduler as if everything told so far was recorded.

        If ``deterministic``, a result is recorded only once a decision may see it. This
        is a copy with all of them, for reading; itself if all are recorded.
        """
        if not self._jobs.has_told:
            return self
        copy = deepcopy(self)
        while copy._jobs.has_told:
            copy._record(*copy._jobs.earliest_told())
        return copy

    def extend(self, budget: int | str | Budget) -> None:
        """Add to the budget, as if the larger one had come later.

        Nothing is retrained. A policy that plans the whole horizon ahead plans anew,
        from all rewards so far.

        Parameters
        ----------
        budget : int, str or Budget
            Amount to add: epochs to epochs, hours or seconds to either, and so on.

        Raises
        ------
        InvalidParameterError
            If it is of another kind than the budget, or if the policy was given
            ready-made: it cannot plan anew.
        """
        replan = self.max_epochs is None or self._policy.plans_rounds
        if replan and self._policy.ready_made:
            msg = (
                "a ready-made policy cannot plan anew for a larger budget: "
                "give its name or its factory to the Scheduler"
            )
            raise InvalidParameterError(msg)
        with self._event():
            self._budget.extend(budget)
            if self.max_epochs is None:
                self._records.max_epochs = int(self.budget)
            if replan:
                self._recorder.replan(self._horizon)
            self._records.begin_count_anew()

    def resize(self, n_jobs: int) -> None:
        """Have at most so many jobs in flight from the next decision on.

        Parameters
        ----------
        n_jobs : int
            At least 1. Where more are in flight now, they come back first.

        Raises
        ------
        InvalidParameterError
            If that is no number of jobs.
        """
        n_jobs = checked_int("n_jobs", n_jobs, 1)
        with self._event():
            self.n_jobs = n_jobs
            self._budget.n_workers = n_jobs

    def advance(self, now: float) -> None:
        """Put the clock forward, for time that passes without a job.

        Parameters
        ----------
        now : float
            Time since the search began, in the unit of the budget; the clock never
            goes back.

        Raises
        ------
        InvalidParameterError
            If that is no time, or the budget is not in wall-clock time.

        Examples
        --------
        >>> budget = Budget(wall_seconds=60)
        >>> scheduler = Scheduler(n_arms=3, budget=budget, max_epochs=5)
        >>> scheduler.advance(60)
        >>> scheduler.stop_reason
        'the budget of 60 wall_seconds is spent'
        """
        at = self._checked_now(now)
        with self._event():
            self._budget.pass_until(at)

    @property
    def stop_reason(self) -> str | None:
        """Why the search is done, as a sentence; None while it is not."""
        try:
            if not self.done:
                return None
        except PolicyError:  # ``ask`` raises it: the results can be shown
            return None
        left = self.budget - self.spent
        if self._decider.waits:
            why = f"{self.policy_name} stopped by its own rule"
        elif self._decider.opens_too_late():
            least = self._arguments.min_epochs
            why = f"what is left trains no new arm for min_epochs={least}"
        elif self._records.live().any() or left <= 0:
            return f"the budget of {self.budget:g} {self.unit} is spent"
        else:
            why = "no arm can train any more"
        return f"{why}, {left:g} of {self.budget:g} {self.unit} left"

    # ------------------------------------------------------------------ saved states

    def state_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, to resume later as if never interrupted."""
        state = self._saved.to_json(self._identity())
        if self.n_jobs != self._arguments.n_jobs:
            state["n_jobs"] = self.n_jobs  # by ``resize``
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned.

        Parameters
        ----------
        state : dict
            From a scheduler made with the same arguments; its budget may have been
            extended since.

        Raises
        ------
        RunDirError
            If the state is damaged, of another version or of another search; the
            message names the argument that differs. Nothing changes.
        """
        before = self.state_dict()
        try:
            check_identity(state, self._identity())
            self._load(state)
        except RunDirError:
            self._load(before)
            raise
        except Exception as error:
            self._load(before)
            msg = f"the state is damaged ({error!r}): nothing was loaded"
            raise RunDirError(msg) from error

    def _load(self, state: dict[str, Any]) -> None:
        self.n_jobs = state.get("n_jobs", self._arguments.n_jobs)
        self._budget.load_state_dict(state["ledger"])
        if self.max_epochs is None:
            self._records.max_epochs = int(self.budget)
        self._policy.build(self._horizon)
        self._saved.load(state)

    def _identity(self) -> dict[str, Any]:
        identity = {
            "policy": self.policy_name,
            "budget_unit": self.unit,
            **self._arguments.identity(),
            "proposer": self._proposer and type(self._proposer).__qualname__,
        }
        digests = getattr(self._proposer, "digests", None)
        return identity | {EARLIER: digests} if digests else identity

    # ----------------------------------------------------------- decisions and results

    @property
    def _horizon(self) -> int:
        given: dict[str, Any] = {self.unit: self.budget}
        return horizon_and_limit(Budget(**given), self.max_epochs, self.n_arms)[0]

    @property
    def _is_full(self) -> bool:
        """Whether no worker is free."""
        return self.n_jobs is not None and len(self.in_flight) >= self.n_jobs

    @property
    def _is_due(self) -> bool:
        """Whether the next decision has to see another result first."""
        n_seen = self._jobs.n_recorded_in_order
        return self.deterministic and n_seen <= self.n_asked - (self.n_jobs or 1)

    @property
    def _may_decide(self) -> bool:
        """Whether a worker is free, and all is recorded that a decision has to see."""
        return not (self._is_full or self._is_due)

    def _selected(self) -> int | None:
        """Return the arm that the policy wants to train; None if nothing can start."""
        self._record_due()
        return self._decider.select() if self._may_decide else None

    def _decide(self) -> Choice | None:
        """Return the job that starts next; None if nothing can start now."""
        return None if self._selected() is None else self._decider.choose()

    def _policy_waits(self) -> bool:
        if not self.in_flight:
            return False
        with suppress(PolicyError):  # ``ask`` raises it
            return self._selected() is None and self._decider.waits
        return False

    def _record_due(self) -> None:
        """Record results in the order of the decisions, as far as the next may see."""
        if not self.deterministic:
            return
        while self._jobs.next_is_told and not self._is_full:
            if not self._is_due and self._decider.select() is not None:
                break
            self._record(*self._jobs.next_result())

    def _tell(
        self,
        job: Job,
        scores: float | Iterable[float],
        cost: float | None,
        now: float | None,
        *,
        failure: str | None,
        ended: bool,
        attempts: int = 1,
    ) -> None:
        result = Result(
            self._jobs.checked(job),
            checked_scores(job, scores),
            None if cost is None else _checked_cost("cost", cost),
            failure,
            ended,
            attempts,
        )
        at = None if now is None else self._checked_now(now)
        with self._event():
            if at is not None:
                self._budget.pass_until(at)
                if cost is None:
                    result = result._replace(cost=self._budget.away(job, at))
            self._jobs.tell(result)
            if not self.deterministic:
                self._record(*self._jobs.result_of(job.id))

    def _checked_now(self, now: float) -> float:
        if not self._budget.is_wall_clock:
            msg = f"now is for a budget of wall-clock time; this is in {self.unit}"
            raise InvalidParameterError(msg)
        return _checked_cost("now", now)

    @contextmanager
    def _event(self) -> Iterator[None]:
        """Let something happen, and what follows from it."""
        with suppress(PolicyError):  # ``ask`` raises it
            self._record_due()
        yield
        self._decider.forget()
        with suppress(PolicyError):
            self._record_due()

    def _record(self, result: Result, why: Decision) -> None:
        self._recorder.record(result, why, self._horizon)
        self._decider.forget()


def _checked_cost(name: str, cost: float) -> float:
    return checked_float(name, cost, 0.0, LARGEST_SCORE, open_low=False)
