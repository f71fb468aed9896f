"""A budget, spent one epoch at a time: who trains next, and for how long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from risingsearch.arms import Arm, Budget, Job, Status
from risingsearch.checks import (
    checked_choice,
    checked_float,
    checked_int,
    checked_order,
    checked_range,
)
from risingsearch.errors import (
    InvalidParameterError,
    JobError,
    ProposalError,
    StateError,
)
from risingsearch.json_values import as_json, from_json
from risingsearch.policies import PROPOSED, WAIT, Policy, recommended_arms
from risingsearch.scheduling.arm_records import Standings
from risingsearch.scheduling.budgets import open_ledger
from risingsearch.scheduling.policy_adapter import PolicyCaller
from risingsearch.scheduling.proposers import Opened, Proposer

STATE_VERSION = 2


class Scheduler:
    """Decide which arm gets the next epochs, within a budget.

    A budget in epochs is exact; one in seconds or any cost can be overrun by what the
    jobs in flight cost above what was expected.

    Pure bookkeeping around a policy: no model, no disk, no clock. ``ask`` hands out
    jobs, ``tell`` and ``fail`` take back what came of them, with any number in flight.

    Parameters
    ----------
    policy : str, callable or policy, default "auto"
        A registered name (see ``list_policies``), a factory
        ``(n_arms, horizon, max_pulls, **policy_params) -> policy``, or a policy, which
        is copied.
        ``"auto"`` is ``screened-damped-slope`` for ``objective="best"``
        (``gated-damped-slope`` where it asks a ``proposer``), and ``cure-ucb`` for
        ``objective="sum"``.
    n_arms : int
        Arms that may be opened, at least 1; more than the budget can try is fine.
    budget : int or Budget
        Epochs in all, at least 1; or ``Budget(seconds=...)``, ``Budget(cost=...)``:
        then the horizon of an arm is what is left, divided by the arm's own measured
        cost per epoch.
    max_epochs : int, optional
        Epochs one arm can use at most. By default the whole budget; a budget that is
        not in epochs needs it.
    policy_params : dict, optional
        Parameters of the policy.
    objective : {"best", "sum"}, default "best"
        What ``policy="auto"`` aims at: the best model at the end, or the sum of all
        scores.
    slice : int, optional
        Epochs of a job, at least 1. By default the policy decides.
    direction : {"maximize", "minimize"}, default "maximize"
        Whether higher or lower scores are better.
    seed : int, optional
        Seed of all draws, at least 0.
    order : {"completion", "ask"}, optional
        With several jobs in flight: ``"completion"`` (the default without ``n_jobs``)
        never lets a worker wait, unless the policy waits for the last results of a rung
        or a sweep, and the same order of tells gives the same run; ``"ask"`` (the
        default with ``n_jobs``) gives the same run whatever
        finishes first, because decision ``k`` sees exactly the results of decisions
        ``1 .. k - n_jobs`` (of the next ones too, one by one, where nothing can start
        without them).
    n_jobs : int, optional
        Jobs in flight at most, at least 1. No limit by default; 1 with
        ``order="ask"``.
    error_score : float, optional
        The score that a failed epoch or a score that is not finite counts as. By
        default the worst score seen so far; what fails before the first score counts
        as that one, once it is known, and as 0 until then.
    max_failures : int, default 0
        Failures after which an arm is still retried; one more retires it.
    score_range : (float, float), optional
        Lowest and highest score possible. Where declared, no projection exceeds it.
    opening_order : sequence of int, optional
        All arms, in the order in which they are to be opened; by default the order of
        their numbers. When to open one is the policy's decision.
    proposer : Proposer, optional
        Picks the arm, where the policy opens one and lets it be proposed; see
        ``risingsearch.scheduling.proposers``. By default the next in the opening order.
        With ``policy="auto"`` it is asked where there are more arms than the budget
        opens, for ``objective="best"`` and without ``policy_params``.

    Raises
    ------
    InvalidParameterError
        If an argument is outside its range.
    UnknownNameError
        If there is no such policy or parameter.

    Notes
    -----
    Failures and scores that are not finite follow one rule: the epochs are charged, the
    policy is told ``error_score`` for each of them, the arm is retried or retired as
    ``max_failures`` says, and the search goes on.

    Examples
    --------
    >>> scheduler = Scheduler(n_arms=3, budget=8, max_epochs=5)
    >>> while (job := scheduler.ask()) is not None:
    ...     epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
    ...     scheduler.tell(job, [1 - 1 / (epoch + job.arm + 1) for epoch in epochs])
    >>> [(arm.epochs, arm.status) for arm in scheduler.explain()]
    [(3, 'paused'), (5, 'finished'), (0, 'unopened')]
    >>> scheduler.best_arm, scheduler.best_epoch, round(scheduler.best_score, 3)
    (1, 5, 0.857)
    """

    def __init__(
        self,
        policy: str | Callable[..., Policy] | Policy = "auto",
        n_arms: int | None = None,
        budget: int | Budget | None = None,
        max_epochs: int | None = None,
        policy_params: dict[str, Any] | None = None,
        objective: str = "best",
        slice: int | None = None,
        direction: str = "maximize",
        seed: int | None = None,
        *,
        order: str | None = None,
        n_jobs: int | None = None,
        error_score: float | None = None,
        max_failures: int = 0,
        score_range: tuple[float, float] | None = None,
        opening_order: Iterable[int] | None = None,
        proposer: Proposer | None = None,
    ) -> None:
        if n_arms is None or budget is None:
            msg = f"give both n_arms and budget; got {n_arms=} and {budget=}"
            raise InvalidParameterError(msg)
        self.n_arms = checked_int("n_arms", n_arms, 1)
        self.objective = checked_choice("objective", objective, ("best", "sum"))
        self.direction = checked_choice(
            "direction", direction, ("maximize", "minimize")
        )
        if order is None:
            order = "completion" if n_jobs is None else "ask"
        self.order = checked_choice("order", order, ("completion", "ask"))
        if n_jobs is None and order == "ask":
            n_jobs = 1
        self.n_jobs = None if n_jobs is None else checked_int("n_jobs", n_jobs, 1)
        self.slice = None if slice is None else checked_int("slice", slice, 1)
        if max_epochs is not None:
            max_epochs = checked_int("max_epochs", max_epochs, 1)
        self.max_epochs = max_epochs
        if error_score is not None:
            error_score = checked_float(
                "error_score", error_score, -math.inf, open_low=False
            )
        self.max_failures = checked_int("max_failures", max_failures, 0)
        if not isinstance(policy_params, Mapping | None):
            msg = f"policy_params must be a dict of parameters; got {policy_params!r}"
            raise InvalidParameterError(msg)
        self.policy_params = dict(policy_params or {})
        self.score_range = (
            None if score_range is None else checked_range("score_range", score_range)
        )
        self._opening_order = checked_order(
            "opening_order",
            range(self.n_arms) if opening_order is None else opening_order,
            self.n_arms,
        )
        self._ledger = open_ledger(budget, self.n_arms)
        if isinstance(policy, str) and policy == "auto" and not self._has_choice():
            proposer = None
        self._proposer = proposer
        self._standings = Standings(self.n_arms, direction, error_score)
        self._rng = np.random.default_rng(
            None if seed is None else checked_int("seed", seed, 0)
        )
        self._policy = PolicyCaller(
            policy,
            self.policy_params,
            self.objective,
            self.max_epochs,
            self._reward_range(),
            self._opening_order,
            self._rng,
            proposals=proposer is not None,
        )
        self._check_unit()
        self._policy.build(self._horizon)
        self._in_flight: dict[int, Job] = {}
        self._decisions: dict[int, _Decision] = {}  # by job, until taken in
        self._n_asked = 0
        self._told: dict[int, _Result] = {}  # with order="ask", until taken in
        self._n_taken_in = 0  # with order="ask", the results of the first jobs
        self._rounds = 0  # charged or reserved
        self._waiting = False  # the policy wants another result first
        self._next: _Next | None = None  # decided and not yet asked for

    # ------------------------------------------------------------------ the contract

    def ask(self) -> Job | None:
        """Return the next job and reserve its epochs.

        Returns
        -------
        Job or None
            None when nothing can start now: all workers or arms are busy, the policy
            waits for a result, or the search is ``done``.

        Raises
        ------
        PolicyError
            If the policy chose an arm that is not available.
        """
        decided = self._decide()
        if decided is None:
            return None
        self._next = None
        if decided.arm != decided.in_turn:
            self._policy.open_instead(decided.in_turn, decided.arm)
        return self._begin(decided.arm, decided.n_epochs)

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
        decided = self._decide()
        return None if decided is None else self._job(decided.arm, decided.n_epochs)

    def start(self, arm: int, n_epochs: int | None = None) -> Job:
        """Give an arm epochs that were decided elsewhere, and reserve them.

        For a search that several schedulers follow: each takes in what the others have
        decided. An arm that a failure has retired comes back, the failure forgiven.

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
        JobError
            If the arm cannot train so long, or the budget does not pay for it. Nothing
            changes.

        Examples
        --------
        >>> scheduler = Scheduler(n_arms=3, budget=8, max_epochs=5)
        >>> scheduler.start(2, n_epochs=4)
        Job(arm=2, from_epoch=0, n_epochs=4, id=0)
        """
        arm = checked_int("arm", arm, 0)
        at = self._standings
        finished = arm >= self.n_arms or at.ended[arm] or at.charged[arm] >= self._limit
        if finished or at.busy[arm]:
            msg = (
                f"arm {arm} cannot start: start takes an arm below {self.n_arms} that "
                "is neither in training nor finished"
            )
            raise JobError(msg)
        self._drop_next()
        left = self._most(arm, self._refresh_policy())
        wanted = (
            min(self.slice or self._policy.slice_length(arm), left)
            if n_epochs is None
            else checked_int("n_epochs", n_epochs, 1)
        )
        if not 1 <= wanted <= left:
            msg = f"arm {arm} can get {left} epochs now at most; got {n_epochs=}"
            raise JobError(msg)
        if at.failed[arm]:
            at.failed[arm] = False
            at.failures[arm] = self.max_failures
        return self._begin(arm, wanted)

    def tell(
        self,
        job: Job,
        scores: float | Iterable[float],
        cost: float | None = None,
        *,
        ended: bool = True,
    ) -> None:
        """Take in what a job brought back.

        Parameters
        ----------
        job : Job
            From ``ask``, told once.
        scores : float or sequence of float
            One score per epoch. Fewer than asked for: the arm ended by itself, and the
            rest of its reservation returns to the budget.
        cost : float, optional
            What the job has cost; needed under a budget that is not in epochs.
        ended : bool, default True
            What fewer scores mean: False says that the job was cut short and the arm
            can go on.

        Raises
        ------
        JobError
            If the job is unknown, was told before or gets too many scores. Nothing
            changes.
        InvalidParameterError
            If a score is not a number, or the cost is missing. Nothing changes.
        """
        if cost is None and self._ledger.unit != "epochs":
            msg = f"the budget is in {self._ledger.unit}: tell needs the cost of {job}"
            raise InvalidParameterError(msg)
        self._take(job, scores, cost, failure=None, ended=ended)

    def fail(
        self,
        job: Job,
        reason: object,
        scores: Iterable[float] = (),
        cost: float | None = None,
    ) -> None:
        """Take in that a job failed; all its epochs are charged.

        Parameters
        ----------
        job : Job
            From ``ask``, told or failed once.
        reason : object
            Why, for ``explain``: a message or an exception.
        scores : sequence of float
            Scores of the epochs before the failure.
        cost : float, optional
            What the job has cost; by default what was expected.

        Raises
        ------
        JobError, InvalidParameterError
            As ``tell``.
        """
        failure = str(reason) or type(reason).__name__
        self._take(job, scores, cost, failure=failure, ended=False)

    def end(self, arm: int) -> None:
        """Take in that an arm has ended by itself, whatever epochs it had left.

        Parameters
        ----------
        arm : int
            Which arm; not one in training, whose job tells that.

        Raises
        ------
        JobError
            If the arm is in training or there is no such arm. Nothing changes.
        """
        arm = checked_int("arm", arm, 0)
        if arm >= self.n_arms or self._standings.busy[arm]:
            msg = f"end takes an arm below {self.n_arms} that does not train; got {arm}"
            raise JobError(msg)
        self._drop_next()
        self._standings.ended[arm] = True

    def expected_end(self, arm: int) -> float:
        """Return where an arm is expected to end, in the user's direction.

        Parameters
        ----------
        arm : int
            Which arm.

        Returns
        -------
        float
            The best score of an arm that has finished; else where the policy projects
            it, if that is better. The worst score of all where it has none of its own;
            NaN while there is none at all.
        """
        at = self._standings
        if not math.isfinite(at.worst_reward):
            return math.nan
        return float(at.sign * self._ends(np.array([arm]))[0])

    @property
    def trusts_first_looks(self) -> bool:
        """Whether the first slice of an arm tells enough of its end to propose by."""
        return self._policy.trusts_first_looks()

    @property
    def done(self) -> bool:
        """Whether nothing will ever start again, unless the budget is extended."""
        return not self._in_flight and self._decide() is None

    def flush(self) -> int:
        """Take in all results told so far, in the order of the decisions.

        With ``order="ask"`` results wait for the decision that may see them; this is
        for the end of a search that is broken off.

        Returns
        -------
        int
            How many had waited.
        """
        self._drop_next()
        before = self._n_taken_in
        while self._take_in_next():
            pass
        return self._n_taken_in - before

    def extend(self, budget: int | Budget) -> None:
        """Add to the budget, as if the larger one had come later.

        Nothing is retrained. A policy that plans the whole horizon ahead plans anew,
        from all rewards so far.

        Parameters
        ----------
        budget : int or Budget
            What is added, in the unit of the budget.

        Raises
        ------
        InvalidParameterError
            If the unit differs, or if the policy was given ready-made: it cannot plan
            anew.
        """
        replan = self.max_epochs is None or self._policy.plans_rounds
        if replan and self._policy.ready_made:
            msg = (
                "a ready-made policy cannot plan anew for a larger budget: "
                "give its name or its factory to the Scheduler"
            )
            raise InvalidParameterError(msg)
        if not self._in_flight:
            self._decide()  # a finished search has taken in all its results
        self._ledger.extend(budget)
        self._drop_next()
        self._waiting = False
        if replan:
            self._replay()

    def explain(self) -> list[Arm]:
        """Return where every arm stands, why, and the parts of its index.

        Returns
        -------
        list of Arm
            In the order of the arms.
        """
        self._refresh_policy()
        at = self._standings
        return [
            Arm(
                arm=i,
                status=at.status(i, self._limit),
                epochs=int(at.epochs[i]),
                charged=int(at.charged[i]),
                last_score=float(at.last[i]),
                best_score=float(at.best[i]),
                best_epoch=int(at.best_epoch[i]),
                failures=int(at.failures[i]),
                reason=self._why(i),
                index=self._index(i),
            )
            for i in range(self.n_arms)
        ]

    # ----------------------------------------------------------------- what it knows

    @property
    def policy_name(self) -> str:
        """Registered name of the policy, or the name of its class."""
        return self._policy.name

    @property
    def budget(self) -> float:
        """The whole budget, in its unit."""
        return self._ledger.total

    @property
    def unit(self) -> str:
        """The unit of the budget: "epochs", "seconds" or "cost"."""
        return self._ledger.unit

    @property
    def spent(self) -> float:
        """What has been charged so far, in the unit of the budget."""
        return self._ledger.spent

    @property
    def n_epochs(self) -> int:
        """Epochs charged so far, over all arms."""
        return int(self._standings.charged.sum())

    @property
    def n_asked(self) -> int:
        """Jobs asked for so far."""
        return self._n_asked

    @property
    def in_flight(self) -> tuple[Job, ...]:
        """Jobs asked for and not yet told."""
        return tuple(self._in_flight.values())

    @property
    def stop_reason(self) -> str | None:
        """Why the search is done, in words; None while it is not."""
        if not self.done:
            return None
        left = self.budget - self.spent
        if self._waiting:
            return (
                f"{self.policy_name} stopped by its own rule, "
                f"{left:g} of {self.budget:g} {self.unit} left"
            )
        if self._standings.live(self._limit).any() or left <= 0:
            return f"the budget of {self.budget:g} {self.unit} is spent"
        return (
            f"no arm can train any more, {left:g} of {self.budget:g} {self.unit} left"
        )

    def status(self, arm: int) -> Status:
        """Return where one arm stands."""
        return self._standings.status(arm, self._limit)

    def statuses(self) -> list[Status]:
        """Return where every arm stands."""
        return [self.status(arm) for arm in range(self.n_arms)]

    @property
    def history(self) -> list[dict[str, Any]]:
        """One row per charged epoch, in the order in which the policy was told.

        Keys: ``arm``, ``epoch`` (the arm's own, from 1), ``score``, ``round`` (of the
        search; an arm that ends early gives its rounds back, and they come again),
        ``job``, ``cost`` (NaN where not told), ``reason`` (``"opened"``,
        ``"continued"`` or ``"revived"``), the parts of the arm's index when it was
        chosen (by the rewards told: rounds in flight are not counted), and ``failure``
        on the epochs that a failure has swallowed; on the last one if it came after
        that.
        """
        return self._standings.history

    @property
    def best_arm(self) -> int | None:
        """The arm with the best score so far; None before the first finite one."""
        return self._standings.best_arm

    @property
    def best_score(self) -> float:
        """The best score so far; NaN before the first finite one."""
        arm = self.best_arm
        return math.nan if arm is None else float(self._standings.best[arm])

    @property
    def best_epoch(self) -> int:
        """The best arm's epoch with the best score; 0 before the first finite one."""
        arm = self.best_arm
        return 0 if arm is None else int(self._standings.best_epoch[arm])

    # ------------------------------------------------------------------ saved states

    def state_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, to go on later as if never interrupted."""
        self._refresh_policy()  # so that looking at ``explain`` leaves no trace
        decided = self._next
        rng = self._rng.bit_generator.state if decided is None else decided.rng_before
        return {
            "version": STATE_VERSION,
            "search": self._identity(),
            "ledger": self._ledger.state_dict(),
            "standings": self._standings.state_dict(),
            "policy": self._policy.state_dict(),
            "rng": rng,
            "in_flight": [list(astuple(job)) for job in self._in_flight.values()],
            "decisions": [
                [job_id, made.round, made.reason, as_json(made.parts)]
                for job_id, made in self._decisions.items()
            ],
            "n_asked": self._n_asked,
            "told": [
                [list(astuple(r.job)), as_json(r.scores), r.cost, r.failure, r.ended]
                for r in self._told.values()
            ],
            "n_taken_in": self._n_taken_in,
            "rounds": self._rounds,
            "waiting": self._waiting,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what ``state_dict`` returned.

        Parameters
        ----------
        state : dict
            From a scheduler made with the same arguments; its budget may have been
            extended since.

        Raises
        ------
        StateError
            If the state is damaged, of another version or of another search; the
            message names the argument that differs. Nothing changes.
        """
        before = self.state_dict()
        try:
            self._check_identity(state)
            self._load(state)
        except StateError:
            self._load(before)
            raise
        except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            self._load(before)
            msg = f"the state is damaged ({error!r}): nothing was loaded"
            raise StateError(msg) from error

    def _load(self, state: dict[str, Any]) -> None:
        self._ledger.load_state_dict(state["ledger"])
        self._standings.load_state_dict(state["standings"])
        self._policy.build(self._horizon)
        self._policy.load_state_dict(state["policy"])
        self._rng.bit_generator.state = state["rng"]
        self._next = None
        self._in_flight = {job[3]: Job(*job) for job in state["in_flight"]}
        self._decisions = {
            job_id: _Decision(round_, reason, from_json(parts))
            for job_id, round_, reason, parts in state["decisions"]
        }
        self._n_asked = state["n_asked"]
        self._told = {
            job[3]: _Result(Job(*job), tuple(from_json(scores)), *rest)
            for job, scores, *rest in state["told"]
        }
        self._n_taken_in = state["n_taken_in"]
        self._rounds = state["rounds"]
        self._waiting = state["waiting"]

    def _identity(self) -> dict[str, Any]:
        return {
            "policy": self.policy_name,
            "policy_params": {k: repr(v) for k, v in self.policy_params.items()},
            "n_arms": self.n_arms,
            "budget_unit": self.unit,
            "max_epochs": self.max_epochs,
            "slice": self.slice,
            "direction": self.direction,
            "order": self.order,
            "n_jobs": self.n_jobs,
            "error_score": self._standings.error_score,
            "max_failures": self.max_failures,
            "score_range": as_json(self.score_range),
            "opening_order": self._opening_order.tolist(),
            "proposer": None if self._proposer is None else _class_of(self._proposer),
        }

    def _check_identity(self, state: dict[str, Any]) -> None:
        if state.get("version") != STATE_VERSION:
            msg = (
                f"this state has version {state.get('version')!r}, this release reads "
                f"version {STATE_VERSION}: load it with the release that saved it"
            )
            raise StateError(msg)
        for name, mine in self._identity().items():
            saved = state["search"].get(name)
            if saved != mine:
                msg = (
                    f"this state was saved with {name}={saved!r}, the scheduler has "
                    f"{name}={mine!r}: make it with the same arguments"
                )
                raise StateError(msg)

    # --------------------------------------------------------------------- decisions

    @property
    def _limit(self) -> int:
        return int(self.budget) if self.max_epochs is None else self.max_epochs

    @property
    def _horizon(self) -> int:
        if self.unit == "epochs":
            return int(self.budget)
        return self.n_arms * self._limit  # until costs are known

    def _has_choice(self) -> bool:
        """Whether ``"auto"`` leaves a proposer a choice, and has parameters for it."""
        opened = recommended_arms(PROPOSED, self._horizon, self._limit)
        plain = self.objective == "best" and not self.policy_params
        return plain and self.n_arms > opened

    def _reward_range(self) -> tuple[float, float] | None:
        if self.score_range is None or self.direction == "maximize":
            return self.score_range
        low, high = self.score_range
        return -high, -low

    def _decide(self) -> _Next | None:
        # Kept until asked for, so that looking at ``done`` decides nothing twice.
        if self._next is None:
            self._next = self._choose()
        return self._next

    def _drop_next(self) -> None:
        if self._next is not None:
            self._rng.bit_generator.state = self._next.rng_before
            self._next = None

    def _choose(self) -> _Next | None:
        if self.n_jobs is not None and len(self._in_flight) >= self.n_jobs:
            return None
        if self.order == "ask":
            unseen = (self.n_jobs or 1) - 1
            while self._n_taken_in < self._n_asked - unseen:
                if not self._take_in_next():
                    return None
        while (choice := self._choose_now()) is None:
            if not self._take_in_next():
                return None
        return choice

    def _choose_now(self) -> _Next | None:
        if self._waiting:
            return None
        affordable = self._refresh_policy()
        if not self._policy.can_choose():
            return None
        rng_before = dict(self._rng.bit_generator.state)
        arm = self._policy.select(self._rounds + 1)
        if arm == WAIT:
            self._rng.bit_generator.state = rng_before  # an ask in vain draws nothing
            self._waiting = True
            return None
        wanted = self.slice or self._policy.slice_length(arm)
        in_turn, arm = arm, self._proposed(arm)
        most = self._most(arm, affordable)
        return _Next(arm, max(1, min(wanted, most)), rng_before, in_turn)

    def _most(self, arm: int, affordable: np.ndarray[Any, np.dtype[np.int64]]) -> int:
        """Return how many epochs the arm can get now."""
        return int(min(affordable[arm], self._limit - self._standings.charged[arm]))

    def _job(self, arm: int, n_epochs: int) -> Job:
        return Job(arm, int(self._standings.epochs[arm]), n_epochs, self._n_asked)

    def _begin(self, arm: int, n_epochs: int) -> Job:
        """Reserve what was decided, here or elsewhere."""
        job = self._job(arm, n_epochs)
        self._n_asked += 1
        self._decisions[job.id] = _Decision(
            self._rounds + 1, self._why_now(arm), self._index(arm)
        )
        self._ledger.reserve(job)
        self._rounds += n_epochs
        self._in_flight[job.id] = job
        self._standings.busy[arm] = True
        return job

    def _proposed(self, arm: int) -> int:
        """Return the arm to train where the policy has chosen this one."""
        at = self._standings
        if self._proposer is None or at.charged[arm] or not self._policy.proposing():
            return arm
        unopened = np.flatnonzero((at.charged == 0) & ~at.busy & at.live(self._limit))
        proposed = self._proposer.propose(self._opened(), unopened, self._rng)
        if proposed is None:
            return arm
        if proposed not in unopened:
            msg = (
                f"{type(self._proposer).__name__} proposed arm {proposed!r}, which is "
                "not among the unopened arms"
            )
            raise ProposalError(msg)
        return int(proposed)

    def _opened(self) -> Opened:
        at = self._standings
        arms = np.flatnonzero(at.charged > 0)
        finished = ~at.live(self._limit)[arms]
        return Opened(arms, at.charged[arms], self._ends(arms), finished, self._limit)

    def _ends(self, arms: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
        """Return where arms are expected to end; higher is better."""
        at = self._standings
        best = at.sign * at.best[arms]
        best[np.isnan(best)] = at.worst_reward
        projected = np.array([self._policy.projection(int(arm)) for arm in arms])
        return np.where(~at.live(self._limit)[arms], best, np.fmax(best, projected))

    def _refresh_policy(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Bring the caller's arrays up to date; return the epochs each arm can pay."""
        at = self._standings
        affordable = self._ledger.affordable()
        live = at.live(self._limit)
        left = np.where(live, self._limit - at.charged, 0)
        if self.unit != "epochs":
            left = np.where(live & ~at.busy, np.minimum(left, affordable), left)
        self._policy.refresh(
            live & ~at.busy & (affordable > 0),
            left,
            self._ledger.horizon(self._rounds),
        )
        return affordable

    def _index(self, arm: int) -> dict[str, float]:
        return self._policy.explain(arm) if self._standings.charged[arm] else {}

    def _why_now(self, arm: int) -> str:
        if not self._standings.charged[arm]:
            return "opened"
        last = self.history[-1]["arm"] if self.history else None
        return "continued" if last == arm else "revived"

    def _why(self, arm: int) -> str:
        status = self._standings.status(arm, self._limit)
        if status == "unopened":
            return "not opened: the policy opens arms when it sees fit"
        if status == "running":
            return "in training"
        if status == "failed":
            failures = (
                row["failure"]
                for row in reversed(self.history)
                if row["arm"] == arm and "failure" in row
            )
            return f"retired: {next(failures, 'score is not finite')}"
        if status == "finished":
            by_itself = self._standings.ended[arm]
            return "ended by itself" if by_itself else "has used all its epochs"
        if self._waiting and self._in_flight:
            return f"paused: {self.policy_name} waits for what is in training"
        if not self.history:
            return "paused"
        other = self.history[-1]["arm"]
        if other == arm:
            return "trained last"
        return f"paused: {self.policy_name} preferred arm {other}"

    # ----------------------------------------------------------------------- results

    def _take(
        self,
        job: Job,
        scores: float | Iterable[float],
        cost: float | None,
        *,
        failure: str | None,
        ended: bool,
    ) -> None:
        result = _Result(
            self._checked_job(job),
            self._checked_scores(job, scores),
            None if cost is None else checked_float("cost", cost, 0.0, open_low=False),
            failure,
            ended,
        )
        self._drop_next()
        del self._in_flight[job.id]
        self._told[job.id] = result
        if self.order == "completion":
            self._take_in(self._told.pop(job.id))

    def _take_in_next(self) -> bool:
        """Take in the result of the next job in the order of the decisions."""
        result = self._told.pop(self._n_taken_in, None)
        if result is None:
            return False
        self._n_taken_in += 1
        self._take_in(result)
        return True

    def _take_in(self, result: _Result) -> None:
        job, scores, cost, failure, ended = result
        at = self._standings
        charged = len(scores) if failure is None else job.n_epochs
        self._ledger.settle(job, charged, cost, failed=failure is not None)
        self._rounds -= job.n_epochs - charged
        self._waiting = False
        at.busy[job.arm] = False
        at.ended[job.arm] = ended and charged < job.n_epochs
        n_lost = sum(not math.isfinite(score) for score in scores)
        at.failures[job.arm] += n_lost + (failure is not None)
        at.failed[job.arm] = at.failures[job.arm] > self.max_failures
        made = self._decisions.pop(job.id)
        facts = {
            "cost": math.nan if cost is None else cost / max(1, charged),
            "reason": made.reason,
            **made.parts,
        }
        for k in range(charged):
            trained = k < len(scores)
            score = scores[k] if trained else math.nan
            if failure is not None and k >= min(len(scores), charged - 1):
                facts["failure"] = failure
            guessing = at.guessing
            reward = at.record(job, made.round + k, score, facts, trained=trained)
            if guessing and not at.guessing:
                self._replay()
            else:
                self._tell_policy(made.round + k, job.arm, reward)

    def _tell_policy(self, round_: int, arm: int, reward: float) -> None:
        self._refresh_policy()
        self._policy.update(round_, arm, reward)

    def _replay(self) -> None:
        """Build the policy anew and tell it all rewards so far."""
        self._policy.build(self._horizon)
        for round_, arm, reward in self._standings.rewards():
            self._tell_policy(round_, arm, reward)

    # ------------------------------------------------------------------------ checks

    def _check_unit(self) -> None:
        if self.unit != "epochs" and self.max_epochs is None:
            msg = (
                f"a budget in {self.unit} needs max_epochs: "
                "how many epochs one arm can use at most"
            )
            raise InvalidParameterError(msg)
        if self.unit != "epochs" and self._policy.name and self._policy.plans_rounds:
            msg = (
                f"{self._policy.name} plans all its rounds ahead, so its budget must "
                f"be in epochs; got a budget in {self.unit}"
            )
            raise InvalidParameterError(msg)

    def _checked_job(self, job: Job) -> Job:
        if not isinstance(job, Job):
            msg = f"tell and fail take a Job from ask; got {job!r}"
            raise JobError(msg)
        if self._in_flight.get(job.id) == job:
            return job
        if 0 <= job.id < self._n_asked and job.id not in self._in_flight:
            msg = f"{job} was told before; a job is told once"
        else:
            msg = f"{job} was never asked for; tell and fail take the jobs ask gave"
        raise JobError(msg)

    def _checked_scores(
        self, job: Job, scores: float | Iterable[float]
    ) -> tuple[float, ...]:
        given: tuple[Any, ...]
        try:
            given = tuple(scores)  # type: ignore[arg-type]
        except TypeError:
            given = (scores,)
        for score in given:
            if not isinstance(score, Real) or isinstance(score, bool):
                msg = f"scores must be numbers, one per epoch; got {score!r}"
                raise InvalidParameterError(msg)
        if len(given) > job.n_epochs:
            msg = f"{job} has {job.n_epochs} epochs; got {len(given)} scores"
            raise JobError(msg)
        return tuple(float(score) for score in given)


def _class_of(proposer: Proposer) -> str:
    return type(proposer).__qualname__


class _Next(NamedTuple):
    arm: int
    n_epochs: int
    rng_before: dict[str, Any]
    in_turn: int  # the arm that the policy chose; another may have been proposed


class _Decision(NamedTuple):
    round: int  # of the job's first epoch
    reason: str
    parts: dict[str, float]  # of the arm's index


class _Result(NamedTuple):
    job: Job
    scores: tuple[float, ...]
    cost: float | None
    failure: str | None
    ended: bool  # if there are fewer scores than epochs
