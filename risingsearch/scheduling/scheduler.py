"""A budget, spent one epoch at a time: who trains next, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy

from risingsearch.arms import ArmList, Configuration, Job, Status
from risingsearch.budget import Budget, in_words
from risingsearch.checks import LARGEST_SCORE, checked_float, checked_int, shown
from risingsearch.errors import InvalidParameterError, PolicyError, RunDirError
from risingsearch.json_values import Json
from risingsearch.policies import Policy
from risingsearch.proposers.base import Opened, Proposal, Proposer
from risingsearch.scheduling.decisions import Decider
from risingsearch.scheduling.events import Started
from risingsearch.scheduling.explanations import Explanations
from risingsearch.scheduling.in_order import InOrder
from risingsearch.scheduling.ledger import Result, checked_scores
from risingsearch.scheduling.options import SchedulerOptions, SearchOptions


class Scheduler:
    """Decide which arm gets the next epochs, within a budget.

    A budget in epochs is exact; another is overrun if jobs cost more than expected.
    Pure bookkeeping around a policy: no model, no disk, no clock. ``ask`` hands out
    jobs, ``tell`` and ``fail`` take their results back, with any number in flight.
    A scheduler is for one thread at a time (``RisingSearch`` takes care of threads).

    Parameters
    ----------
    policy : str or callable, default "auto"
        A registered name (see ``list_policies``), a class of policies, or a factory
        ``(n_arms, horizon, max_pulls, **policy_params) -> policy``. ``"auto"`` is
        ``looks-then-slope``.
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
        Parameters of the policy, such as ``reward_range=(lowest, highest)`` of scores
        (both negated if lower is better).
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
        results are applied in the order told. Measured times differ all the same.
    n_jobs : int, optional
        Jobs in flight at most, at least 1. No limit by default; 1 if ``deterministic``.
    error_score : float, optional
        The score of a failed epoch, or of one that is not finite. By default the worst
        so far; before the first score that one, once it is known, and 0 until then.
    max_failures : int, default 0
        Failures after which an arm is still retried.
    opening_order : sequence of int, optional
        All arms in the order in which they open; by default that of their numbers.
    proposer : Proposer, optional
        Picks the arm that the policy opens, or its configuration. By default the next
        in the opening order.
    epoch_costs : sequence of float, optional
        Costs of the epochs of an arm, one number above 0 for each of ``max_epochs``. A
        budget in epochs is charged them; another expects them in proportion.
    trains_anew : bool, default False
        Whether every epoch trains anew, on more of a resource than the one before. Then
        an arm counts by its last score instead of its best, and of the budget the
        cost of the best arm's last epochs is kept for it.
    min_epochs : int, default 1
        Epochs before an arm is judged, from 1 to ``max_epochs``: its first job is at
        least as long, and none is opened that the budget cannot train so long.
    enqueue : sequence of int, optional
        Arms that are opened first, in this order.

    Raises
    ------
    InvalidParameterError
        If an argument is outside its range, or there is no such policy or parameter.

    Examples
    --------
    >>> scheduler = Scheduler(n_arms=3, budget=8, max_epochs=5)
    >>> while (job := scheduler.ask()) is not None:
    ...     epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
    ...     scheduler.tell(job, [1 - 1 / (epoch + job.arm + 1) for epoch in epochs])
    >>> [(arm.epochs, arm.status) for arm in scheduler.explain()]
    [(1, 'paused'), (2, 'paused'), (5, 'finished')]
    >>> scheduler.best_arm, scheduler.best_epoch, round(scheduler.best_score, 3)
    (2, 5, 0.875)
    """

    def __init__(
        self,
        policy: str | Callable[..., Policy] = "auto",
        n_arms: int | None = None,
        budget: int | str | Budget | None = None,
        max_epochs: int | None = None,
        policy_params: Configuration | None = None,
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
        trains_anew: bool = False,
        min_epochs: int = 1,
        enqueue: Iterable[int] = (),
    ) -> None:
        options = SchedulerOptions(
            policy=policy,
            n_arms=n_arms,  # type: ignore[arg-type]
            budget=budget,
            max_epochs=max_epochs,
            policy_params=policy_params,
            epochs_per_job=epochs_per_job,
            direction=direction,
            seed=seed,
            deterministic=deterministic,
            n_jobs=n_jobs,
            error_score=error_score,
            max_failures=max_failures,
            opening_order=opening_order,
            epoch_costs=epoch_costs,
            min_epochs=min_epochs,
            enqueue=enqueue,
            trains_anew=trains_anew,
        )
        self.direction = options.direction
        self.max_failures = options.max_failures
        self.max_epochs = options.max_epochs
        self.epoch_costs = options.epoch_costs
        self.epochs_per_job = options.epochs_per_job
        self._decider = Decider(options, policy, proposer)
        self._arms = self._decider.arms
        self._ledger = self._decider.ledger
        self._results: Decider | InOrder = self._decider
        if options.deterministic:
            self._results = InOrder(self._decider)
        self._waits_for_starts = False

    def _follow_up(self) -> None:
        """Decide anew after an event, unless recorded decisions follow."""
        if not self._waits_for_starts:
            self._results.follow_up()

    def ask(self) -> Job | None:
        """Return the next job and reserve its epochs.

        Returns
        -------
        Job or None
            None if nothing can start now: all workers or arms are busy, the policy
            waits for a result, or the search is ``done`` once all jobs are back.

        Raises
        ------
        PolicyError
            If the policy chose an arm that is not available.
        """
        decision = self._decider.next()
        if decision is None:
            return None
        self._results.start(decision)
        self._follow_up()
        return decision.job

    def peek(self) -> Job | None:
        """Return the job that ``ask`` would return now; nothing is reserved."""
        decision = self._decider.next()
        return None if decision is None else decision.job

    def why(self, job: Job) -> Started:
        """Return the decision to start a job in flight, with its reason and index."""
        msg = f"tell and fail take a Job from ask; {shown(job)} was never asked for"
        if isinstance(job, Job):
            decision = self._results.in_flight.get(job.id)
            if decision is not None and decision.job == job:
                return decision
            if decision is None and 0 <= job.id < self.n_asked:
                msg = f"{shown(job)} was told before; a job is told once"
        raise InvalidParameterError(msg)

    def repeat(self, decision: Started) -> None:
        """Start the next job by a recorded decision; one in flight is tried again."""
        if decision.job not in self.in_flight:
            self._results.repeat(decision)
            self._follow_up()

    def wait_for_starts(self) -> None:
        """Keep results until a repeated start has seen them.

        Only where results are applied in the order of the decisions.
        """
        self._waits_for_starts = True

    def wait_no_longer(self) -> None:
        """Apply the results kept by ``wait_for_starts`` that the next decision sees."""
        self._waits_for_starts = False
        self._follow_up()

    def start(self, arm: int, n_epochs: int | None = None) -> Job:
        """Reserve epochs for an arm as another scheduler of the same search decided.

        By default as many as ``ask`` would give it. An arm that a failure has retired
        comes back, the failure forgiven.
        """
        arm = checked_int("arm", arm, 0)
        if n_epochs is not None:
            n_epochs = checked_int("n_epochs", n_epochs, 1)
        finished = arm >= self.n_arms or self._arms.has_finished(arm)
        if finished or self._arms.busy[arm]:
            raise InvalidParameterError(
                f"arm {arm} cannot start: start takes an arm below {self.n_arms} that "
                "is neither in training nor finished"
            )
        decision = self._decider.requested(arm, n_epochs)
        self._results.start(decision)
        self._follow_up()
        return decision.job

    def tell(
        self,
        job: Job,
        scores: float | Iterable[float],
        cost: float | None = None,
        *,
        ended: bool | str = True,
        now: float | None = None,
    ) -> None:
        """Hand over the result of a job.

        Parameters
        ----------
        job : Job
            From ``ask``, told once.
        scores : float or sequence of float
            One score per epoch. Fewer than asked for: the arm ended by itself, unless
            the last one is not finite, which is a failure; either way the rest of its
            reservation returns to the budget.
        cost : float, optional
            Cost of the job, in the unit of the budget; needed under one that is
            not in epochs. In wall-clock time, that of its training; by default
            all the time since ``ask`` returned it.
        ended : bool or str, default True
            Of fewer scores: False says that the job was cut short and the arm
            can continue; a text says why it has ended, for ``explain``.
        now : float, optional
            Wall-clock time since the search began, in the unit of the budget;
            needed under one in wall-clock time, and refused under any other.

        Raises
        ------
        InvalidParameterError
            If the job is unknown, was told before or gets too many scores, a score is
            not a number, or the cost or the time is missing. Nothing changes.
        PolicyError
            If the policy raised an error. The result is recorded all the same, and
            charged; ``ask`` raises the error again.
        """
        is_wall_clock = self._ledger.is_wall_clock
        missing = None
        if is_wall_clock and now is None:
            missing = f"now, when {job} came back"
        elif cost is None and self.unit != "epochs" and not is_wall_clock:
            missing = f"the cost of {job}"
        if missing:
            msg = f"the budget is in {in_words(self.unit)}: tell needs {missing}"
            raise InvalidParameterError(msg)
        told = checked_scores(self.why(job).job, scores)
        self._tell(
            Result(
                job=job,
                scores=told,
                cost=cost,
                failure=None,
                ended=ended,
                attempts=1,
                charged=len(told),
            ),
            now,
        )

    def fail(
        self,
        job: Job,
        reason: object,
        scores: Iterable[float] = (),
        cost: float | None = None,
        *,
        now: float | None = None,
        attempts: int = 1,
        charged: int | None = None,
    ) -> None:
        """Hand over a failed job; the epochs that it has trained are charged.

        Parameters
        ----------
        job : Job
            From ``ask``, told or failed once.
        reason : object
            Why, for ``explain``: a message or an exception.
        scores : sequence of float
            Scores of the epochs before the failure.
        cost : float, optional
            Cost of the job; by default the expected cost of the epochs charged.
        now : float, optional
            As in ``tell``; without it, the clock stays where it is.
        attempts : int, default 1
            Failed attempts that this stands for, which count towards ``max_failures``.
        charged : int, optional
            Epochs that were trained, from those with a score to all of the job. By
            default those with a score and the one that failed. The rest of the
            reservation returns to the budget.

        Raises
        ------
        InvalidParameterError, PolicyError
            As ``tell``.
        """
        told = checked_scores(self.why(job).job, scores)
        if charged is None:
            charged = min(len(told) + 1, job.n_epochs)
        charged = checked_int("charged", charged, max(1, len(told)), job.n_epochs)
        attempts = checked_int("attempts", attempts, 1)
        failure = str(reason) or type(reason).__name__
        self._tell(
            Result(
                job=job,
                scores=told,
                cost=cost,
                failure=failure,
                ended=False,
                attempts=attempts,
                charged=charged,
            ),
            now,
        )

    def end(self, arm: int) -> None:
        """Mark an arm that is not in training as ended by itself."""
        arm = checked_int("arm", arm, 0)
        if arm >= self.n_arms or any(job.arm == arm for job in self.in_flight):
            msg = f"end takes an arm below {self.n_arms} that does not train; got {arm}"
            raise InvalidParameterError(msg)
        self._arms.ended[arm] = True
        self._follow_up()

    def _tell(self, result: Result, now: float | None) -> None:
        """Record a result, and that so much wall-clock time has passed, if it is told.

        Under such a budget, this time since the start is the cost by default.
        """
        cost = result.cost
        at = None if now is None else self._checked_now(now)
        if cost is not None:
            cost = checked_float(
                "cost",
                cost,
                0.0,
                LARGEST_SCORE,
                open_low=False,
            )
        if at is not None:
            self._ledger.pass_until(at)
            cost = self._ledger.away(result.job, at) if cost is None else cost
        self._results.tell(result._replace(cost=cost))
        self._follow_up()

    def _checked_now(self, now: float) -> float:
        if not self._ledger.is_wall_clock:
            unit = in_words(self.unit)
            msg = f"now is for a budget of wall-clock time; this is in {unit}"
            raise InvalidParameterError(msg)
        return checked_float(
            "now",
            now,
            0.0,
            LARGEST_SCORE,
            open_low=False,
        )

    @property
    def done(self) -> bool:
        """Whether nothing will start again, unless the budget is extended."""
        if self.in_flight:
            return False
        return self.stop_rule is not None or self._decider.select() is None

    def stop_when(
        self, patience: int | None = None, target_score: float | None = None
    ) -> None:
        """Set the rules that end the search early, in place of those before.

        They do not define a search: a saved one may continue under others. Patience
        counts the epochs of the whole search, failed ones included, since the last new
        best score or ``extend``; jobs in flight are still told.
        """
        self._decider.rules = SearchOptions(
            patience=patience, target_score=target_score
        )

    def check_proposals(
        self, problem_of: Callable[[Configuration], str | None]
    ) -> None:
        """Refuse proposed parameters of which this says why they are invalid."""
        self._decider.problem_of = problem_of

    @property
    def stop_rule(self) -> str | None:
        """Which rule of ``stop_when`` ends the search, as a clause; None if none."""
        return self._decider.stop_rule

    @property
    def stop_reason(self) -> str | None:
        """Why the search is done, as a sentence; None while it is not."""
        with suppress(PolicyError):  # ``ask`` raises it: the results can be shown
            return self._decider.stop_reason() if self.done else None
        return None

    def copy(self) -> Scheduler:
        """Return a copy that shares the arguments: for events, not for decisions."""
        decider = self._decider
        given = (
            decider.options,
            decider.policy.create,
            decider.problem_of,
            decider.proposer,
        )
        return deepcopy(self, {id(part): part for part in given})

    def with_all_results(self) -> Scheduler:
        """Return a copy to which all results are applied; itself if they are."""
        if len(self._results.in_flight) == len(self._arms.in_flight):
            return self
        copy = self.copy()
        copy._results.hand_over_all()
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
            If it is of another kind than the budget.
        """
        self._decider.extend(budget)
        self._follow_up()

    def resize(self, n_jobs: int) -> None:
        """Have at most so many jobs in flight, from the next decision on."""
        n_jobs = checked_int("n_jobs", n_jobs, 1)
        self._arms.n_jobs = self._ledger.n_workers = n_jobs
        self._follow_up()

    def advance(self, now: float, *, keeps_rest: bool = False) -> None:
        """Put the wall clock forward; the rest may be kept, then the search is done."""
        self._ledger.pass_until(self._checked_now(now), keeps_rest=keeps_rest)
        self._follow_up()

    def state_dict(self) -> Json:
        """Return everything as JSON values, to resume later as if never interrupted.

        A policy that holds more than numbers and arrays of them is a ``PolicyError``.
        """
        return self._results.state_dict()

    def load_state_dict(self, state: Json) -> None:
        """Restore the result of ``state_dict`` of a scheduler with the same arguments.

        Its budget may have been extended since. An error changes nothing.
        """
        loaded = self.copy()
        try:
            loaded._results.load_state_dict(state)
        except (PolicyError, RunDirError):
            raise
        except Exception as error:
            msg = f"the state is damaged ({error!r}): nothing was loaded"
            raise RunDirError(msg) from error
        vars(self).update(vars(loaded))

    @property
    def n_arms(self) -> int:
        """Arms that may be opened; those of a space become more as they are used."""
        return self._arms.n_arms

    @property
    def policy_name(self) -> str:
        """Registered name of the policy, or the name of its class."""
        return self._decider.policy.name

    @property
    def n_jobs(self) -> int | None:
        """Jobs in flight at most; None for no limit."""
        return self._arms.n_jobs

    @property
    def budget(self) -> float:
        """The whole budget, in its unit."""
        return self._ledger.total

    @property
    def unit(self) -> str:
        """The unit of the budget, as ``Budget`` names it: "epochs", "hours", ..."""
        return self._ledger.unit

    @property
    def spent(self) -> float:
        """Amount charged so far, in the unit of the budget."""
        return self._ledger.spent

    @property
    def n_epochs(self) -> int:
        """Epochs charged so far, over all arms."""
        return int(self._arms.charged.sum())

    @property
    def n_asked(self) -> int:
        """Jobs asked for so far."""
        return self._arms.n_asked

    @property
    def in_flight(self) -> tuple[Job, ...]:
        """Jobs asked for and not yet told."""
        return tuple(decision.job for decision in self._results.in_flight.values())

    def status(self, arm: int) -> Status:
        """Return where one arm stands."""
        return self._arms.status(arm)

    def statuses(self) -> list[Status]:
        """Return where every arm stands."""
        return [self.status(arm) for arm in range(self.n_arms)]

    @property
    def history(self) -> list[Json]:
        """One row per charged epoch, in the order in which the policy was told.

        Keys: ``arm``, ``epoch`` (the arm's own, from 1), ``score``, ``round`` (of the
        search; an arm that ends early gives its rounds back, and they come again),
        ``job``, ``cost`` (NaN if not told), ``reason`` (as of ``EpochFacts``), the
        parts of the arm's index when it was chosen (by the rewards told: rounds in
        flight are not counted), and ``failure`` on the epochs that were lost to a
        failure, or on the last one if it came after that.
        """
        return self._arms.history

    @property
    def best_arm(self) -> int | None:
        """The arm with the best score so far; None before the first finite one."""
        return self._arms.scores.best_arm

    @property
    def best_score(self) -> float:
        """The best score so far; NaN before the first finite one."""
        return self._arms.scores.best(self.best_arm).score

    @property
    def best_epoch(self) -> int:
        """The best arm's epoch with the best score; 0 before the first finite one."""
        return self._arms.scores.best(self.best_arm).epoch

    @property
    def sign(self) -> float:
        """Factor for scores that makes higher better: 1.0 or -1.0."""
        return self._arms.scores.sign

    @property
    def proposals(self) -> Mapping[int, Proposal]:
        """Configurations that are not among the first candidates, by arm."""
        return self._arms.proposals

    def opened(self) -> Opened:
        """Return the opened arms as a proposer sees them."""
        return self._decider.opened()

    def trust_in_prior(self) -> dict[str, float]:
        """Return how far each earlier search is trusted, by its name.

        From 0 (it ranks the arms here no better than chance) to 1; all together are the
        expected correlation of their predictions. Empty without such a proposer.
        """
        return self._decider.proposer.trusted(self.opened())

    def explain(self) -> ArmList:
        """Return where every arm stands, why, and the parts of its index.

        And how far earlier searches are trusted, for the arms opened because of them.
        It is a list by the number of the arm; printed, it is a table of the opened
        arms, the best first; ``explain().to_frame()`` is a pandas DataFrame.
        """
        decider = self._decider
        policy = decider.policy
        over = self.stop_reason
        why = over and f"{policy.name} preferred others, and {over}"
        with suppress(PolicyError):  # ``ask`` raises it
            if self.in_flight and decider.select() is None and decider.waits:
                why = f"{policy.name} waits for the arms in training"
        return Explanations(self._arms, policy, why, over).all_arms(
            self.trust_in_prior()
        )
