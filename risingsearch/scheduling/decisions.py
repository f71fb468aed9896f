"""Decisions: which arm trains next; and the effects of starts and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from risingsearch.arms import (
    CONTINUED,
    ENQUEUED,
    OPENED,
    PRIOR,
    PROPOSED,
    REVIVED,
    Configuration,
    Job,
    Params,
)
from risingsearch.budget import Budget, in_words
from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError, PolicyError, RunDirError
from risingsearch.identity.comparison import first_difference
from risingsearch.json_values import Json
from risingsearch.policies import WAIT, Policy, policy_info
from risingsearch.policies.arrays import Bools, Floats, Ints, Rng
from risingsearch.proposers.base import Opened, Proposal, Proposer, checked_proposer
from risingsearch.scheduling.arm_table import ArmTable
from risingsearch.scheduling.events import Started
from risingsearch.scheduling.ledger import Ledger, Result
from risingsearch.scheduling.options import SchedulerOptions, SearchOptions
from risingsearch.scheduling.policy_adapter import PolicyAdapter
from risingsearch.scheduling.policy_choice import choose_policy, horizon_and_limit

STATE_VERSION = 4
SELECT, PROPOSE, UPDATE = range(3)
NO_PROPOSAL = Proposal()
_JUMP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""As far as ``PCG64.jumped`` goes: streams that far apart do not overlap."""


class Draws:
    """Random generators that depend on the seed and on the number of an event alone.

    So asking twice gives the same answer, and events can be applied without drawing.
    """

    def __init__(self, seed: int | None) -> None:
        self._rng = np.random.default_rng(seed)
        self.start = self._rng.bit_generator.state

    def load(self, start: Mapping[str, Any]) -> None:
        """Restore ``start`` from a saved state."""
        self._rng.bit_generator.state = start
        self.start = start

    def stream(self, kind: int, number: int) -> Rng:
        """Return the generator of the event of a kind, by its number from 0."""
        bits: Any = self._rng.bit_generator
        bits.state = self.start
        bits.advance((3 * number + kind) * _JUMP % 2**128)
        return self._rng


class Decider:
    """Decides which job starts next, which changes nothing; applies starts and results.

    Applying one changes the arms, the ledger and the policy.
    """

    def __init__(
        self,
        options: SchedulerOptions,
        policy: str | Callable[..., Policy],
        proposer: Proposer | None,
    ) -> None:
        self.proposer = checked_proposer(proposer)
        if (n_candidates := self.proposer.n_arms) not in (None, options.n_arms):
            raise InvalidParameterError(
                f"the proposer was made for {n_candidates} candidates, and there are "
                f"{options.n_arms} arms: make it for the candidates of this search"
            )
        params = dict(options.policy_params or {})
        if isinstance(policy, str):
            policy, params = _chosen(policy, options, self.proposer)
        _, limit = horizon_and_limit(options.budget, options.max_epochs, options.n_arms)
        self.arms = ArmTable(options, limit)
        self.ledger = Ledger(
            options.budget,
            options.n_arms,
            options.n_jobs,
            options.epoch_costs,
        )
        self.policy = PolicyAdapter(
            policy,
            params,
            options,
            self.arms,
            self.ledger,
        )
        self._draws = Draws(options.seed)
        self.options = options
        self.rules = SearchOptions()  # patience and target_score
        self.problem_of: Callable[[Configuration], str | None] | None = None
        self.follow_up()

    def follow_up(self) -> None:
        """Decide anew, since something has changed."""
        self._is_selected = False
        self.waits = False  # the policy wants another result first
        self._selected: int | None = None  # by the policy
        self._decision: Started | None = None  # another arm may have been proposed

    @property
    def in_flight(self) -> dict[int, Started]:
        """The decisions to start the jobs in flight, by the ids of the jobs."""
        return self.arms.in_flight

    # --------------------------------------------------------------------- decisions

    def next(self) -> Started | None:
        """Return the job that starts next; None if nothing can start now."""
        if self.stop_rule is not None:
            return None
        selected = self.select()
        if self._decision is None and selected is not None:
            self._decision = self._decided_for(selected)
        return self._decision

    def select(self) -> int | None:
        """Return the arm that the policy selects; None if nothing can start now."""
        if self.arms.is_full:
            return None
        if not self._is_selected:
            self.policy.refresh()
            if self.policy.policy.available.any():
                selected = self._promised()
                if selected is None:
                    rng = self._draws.stream(SELECT, self.arms.n_asked)
                    selected = self.policy.select(self.arms.rounds + 1, rng)
                self.waits = selected == WAIT
                self._selected = None if self.waits else selected
            self._is_selected = True
        return self._selected

    def _promised(self) -> int | None:
        """Return the arm that trains before the policy is asked; None for no such."""
        least = self.options.min_epochs
        enqueued = self.options.enqueue
        if least == 1 and not enqueued:
            return None
        arms = self.arms
        affordable = self.ledger.affordable()
        due = arms.can_train() & ~arms.busy & (affordable > 0) & (arms.epochs < least)
        opened = due & (arms.charged > 0)
        if least > 1 and opened.any():
            return int(opened.argmax())
        due &= ~self.arms.too_late(affordable)
        return next((arm for arm in enqueued if due[arm]), None)

    @property
    def stop_rule(self) -> str | None:
        """Which rule of ``stop_when`` ends the search, as a clause; None if none."""
        target = self.rules.target_score
        patience = self.rules.patience
        scores = self.arms.scores
        if target is not None and scores.best_reward >= scores.sign * target:
            return f"the target_score of {target:g} is reached"
        if patience is None or self.arms.epochs_since_improvement < patience:
            return None
        if self.ledger.spent >= self.ledger.total or self._promised() is not None:
            return None
        return f"the patience of {patience} epochs without a new best is exhausted"

    def stop_reason(self) -> str:
        """Return why nothing will start any more, as a sentence."""
        rule = self.stop_rule
        total = self.ledger.total
        left = total - self.ledger.spent
        unit = in_words(self.ledger.unit)
        can_train = self.arms.can_train()
        affordable = self.ledger.affordable()
        too_late = can_train & self.arms.too_late(affordable) & (affordable > 0)
        if rule is not None:
            why = rule
        elif self.waits:
            why = f"{self.policy.name} stopped by its own rule"
        elif too_late.any():
            least = self.options.min_epochs
            why = f"what is left trains no new arm for min_epochs={least}"
        elif can_train.any() or left <= 0:
            kept = self.ledger.kept
            why = f"the budget of {total:g} {unit} is spent"
            if kept:
                return f"{why} but for {kept:.3g}, kept for the refit"
            return why
        else:
            why = "no arm can train any more"
        return f"{why}, {left:g} of {total:g} {unit} left"

    def requested(self, arm: int, n_epochs: int | None) -> Started:
        """Return the decision of a caller; raise if the arm cannot train so long."""
        self.policy.refresh()
        limit = self._limit(arm)
        if n_epochs is None:
            n_epochs = self._wanted(arm, arm)
        if not 1 <= n_epochs <= limit:
            raise InvalidParameterError(
                f"arm {arm} can get {limit} epochs now at most; got {n_epochs=}"
            )
        return self._decided(arm, n_epochs)

    def _decided(
        self, arm: int, n_epochs: int, proposal: Proposal = NO_PROPOSAL
    ) -> Started:
        """Return the decision to train an arm, with the reason for it."""
        arms = self.arms
        job = Job(arm, int(arms.epochs[arm]), n_epochs, arms.n_asked)
        if arms.charged[arm]:
            is_last = arms.history[-1]["arm"] == arm
            reason = CONTINUED if is_last else REVIVED
            return Started(job=job, reason=reason, parts=self.policy.explain(arm))
        reason = OPENED
        if arm in self.options.enqueue:
            reason = ENQUEUED
        if proposal.by_prior:
            reason = PRIOR
        elif proposal.params or proposal.arm is not None:
            reason = PROPOSED
        if proposal.params:
            params = dict(proposal.params)
            return Started(
                job=job, reason=reason, parts={}, params=params, like=proposal.like
            )
        is_late = arm >= self.options.n_arms  # drawn after the header was written
        drawn = None
        if is_late:
            drawn = dict(self.proposer.candidates[arm])
        return Started(job=job, reason=reason, parts={}, params=drawn)

    def _decided_for(self, selected: int) -> Started:
        """Return the decision to train the selected arm, or one proposed for it."""
        proposal = self._proposed(selected)
        arm = selected
        if proposal.arm is not None:
            arm = int(proposal.arm)
        n_epochs = max(1, self._wanted(arm, selected))
        decision = self._decided(arm, n_epochs, proposal)
        if arm == selected:
            return decision
        return replace(decision, instead_of=selected)

    def _wanted(self, arm: int, selected: int) -> int:
        """Return how many epochs an arm gets that is trained for the selected one."""
        options = self.options
        wanted = options.epochs_per_job or self.policy.slice_length(selected)
        missing = options.min_epochs - int(self.arms.epochs[arm])
        return min(max(wanted, missing), self._limit(arm))

    def _limit(self, arm: int) -> int:
        """Return how many epochs an arm can get now."""
        left = self.arms.max_epochs - self.arms.charged[arm]
        return int(min(self.policy.affordable[arm], left))

    # --------------------------------------------------------------------- proposals

    def _proposed(self, arm: int) -> Proposal:
        """Return the proposal for an arm, an empty one if none is due."""
        arms = self.arms
        proposer = self.proposer
        n_begun = int(np.count_nonzero(arms.has_told | arms.busy))
        is_new = not arms.charged[arm] and arm not in self.options.enqueue
        if not (is_new and proposer.is_due(n_begun, self.policy.proposing())):
            return NO_PROPOSAL
        unopened = arms.unopened()
        rng = self._draws.stream(PROPOSE, arms.n_asked)
        opened = self.opened()
        proposal = proposer.propose(opened, unopened, rng)
        if not isinstance(proposal, Proposal):
            proposal = Proposal(arm=proposal)
        if problem := self._problem_with(proposal, opened, unopened):
            raise PolicyError(f"{type(proposer).__name__} proposed {problem}")
        like = np.ravel(proposal.like).tolist()
        return proposal._replace(like=tuple(map(int, like)))

    def _problem_with(
        self,
        proposal: Proposal,
        opened: Opened,
        unopened: Ints,
    ) -> str | None:
        """Return the fault of a proposal in words; None if there is none."""
        params = proposal.params
        given = shown(params)
        if not isinstance(params, Mapping):
            return f"{given}, which is no dict of parameters"
        problem = None
        if params and self.problem_of:
            problem = self.problem_of(params)
        if problem:
            return f"{given}, which is no configuration of this search: {problem}"
        if proposal.arm is not None and proposal.arm not in unopened:
            return (
                f"arm {shown(proposal.arm)}, which is not among the unopened arms; "
                "a configuration is proposed by Proposal(params)"
            )
        begun = {*opened.arms.tolist(), *opened.without_score.tolist()}
        if not begun.issuperset(np.ravel(proposal.like).tolist()):
            return f"like={shown(proposal.like)}, which are not all begun arms"
        return None

    def opened(self) -> Opened:
        """Return the opened arms as a proposer sees them."""
        arms = self.arms
        opened = np.flatnonzero(arms.has_told)
        failed = arms.has_failed(opened)
        finished = ~arms.can_train()[opened]
        return Opened(
            arms=opened,
            epochs=arms.charged[opened],
            ends=self._expected_ends(opened, finished, failed),
            finished=finished,
            max_epochs=arms.max_epochs,
            without_score=np.flatnonzero(arms.busy & ~arms.has_told),
            curves=tuple(arms.scores.curve(arm) for arm in opened.tolist()),
            wanted=self.policy.proposing(),
            failed=np.flatnonzero(failed & ~failed.all()),
        )

    def _expected_ends(
        self,
        opened: Ints,
        finished: Bools,
        failed: Bools,
    ) -> Floats:
        """Return where arms are expected to end, as rewards."""
        scores = self.arms.scores
        best = np.array([scores.best(arm).score for arm in opened.tolist()])
        best = np.where(failed, scores.worst_reward, scores.sign * best)
        projected = np.array([self.policy.projection(arm) for arm in opened.tolist()])
        return np.where(finished, best, np.fmax(best, projected))

    # ------------------------------------------------------------- starts and results

    def start(self, decision: Started) -> None:
        """Start a job: reserve its epochs."""
        job = decision.job
        arms = self.arms
        if arms.failed[job.arm]:
            arms.forgive(job.arm)
            self.policy.refresh()
        selected = job.arm
        if decision.instead_of is not None:
            selected = decision.instead_of
        self.policy.started(arms.rounds + 1, selected)
        if selected != job.arm:
            self.policy.swap(selected, job.arm)
        arms.start(decision)
        self.ledger.reserve(job)
        self._refill()
        self.follow_up()

    def _refill(self) -> None:
        """Add arms if all are opened, and fewer than epochs that the budget pays."""
        if not len(self.arms.unopened()):
            payable = self.ledger.horizon(self.arms.rounds).max()
            if self.arms.n_arms < payable:
                self._has_more_slots()

    def _has_more_slots(self) -> bool:
        """Add the arms that the proposer of a space has more of, if it has any."""
        n_arms = self.arms.n_arms
        n = self.proposer.more_slots(n_arms, self.arms.proposals)
        self._resize(n)
        return n > n_arms

    def _resize(self, n: int) -> None:
        if n != self.arms.n_arms:
            for part in (self.arms, self.ledger, self.policy):
                part.resize(n)

    def repeat(self, decision: Started) -> None:
        """Start a job that was decided before, without deciding it again."""
        job = decision.job
        arms = self.arms
        is_next = job.id == arms.n_asked and job.arm < arms.n_arms
        if not is_next or arms.busy[job.arm]:
            raise RunDirError(
                f"{job} cannot be the next job of this search: its journal is damaged"
            )
        self.policy.refresh()
        self.start(decision)

    def tell(self, result: Result) -> None:
        """Apply a result: its cost, its arm, its epochs one by one.

        All of it is applied, even if the policy raises an error.
        """
        arms = self.arms
        self.follow_up()
        self.ledger.charge(result)
        decision = arms.take_back(result)
        errors: list[PolicyError] = []
        for k, row in enumerate(result.rows(decision)):
            was_provisional = arms.has_provisional_rewards
            arms.add(row)
            try:
                if was_provisional and not arms.has_provisional_rewards:
                    self._replan()
                elif not errors:
                    if k == 0:
                        self.policy.refresh()
                    else:
                        self.policy.refresh_arm(row["arm"])
                    self._update(len(arms.history) - 1, row)
            except PolicyError as error:
                errors.append(error)
        if errors:
            raise errors[-1]

    def _update(self, number: int, row: Json) -> None:
        """Tell the policy an epoch, by its number in the history."""
        reward = self.arms.scores.reward(row["score"])
        rng = self._draws.stream(UPDATE, number)
        self.policy.update(row["round"], row["arm"], reward, rng)

    def _replan(self) -> None:
        """Build the policy anew and tell it all starts and rewards so far."""
        self.policy.build()
        self.policy.refresh()
        before = None
        for number, row in enumerate(self.arms.history):
            if row["job"] != before:
                self.policy.started(row["round"], row["arm"])
            before = row["job"]
            self._update(number, row)
        for decision in self.in_flight.values():
            self.policy.started(decision.round, decision.job.arm)

    def hand_over_all(self) -> None:
        """Apply the results that are held back: none is."""

    def extend(self, budget: int | str | Budget) -> None:
        """Add to the budget; a policy that plans the whole horizon plans anew."""
        self.ledger.extend(budget)
        self._raise_limit()
        if self.options.max_epochs is None or self.policy.plans_rounds:
            self._replan()
        self.arms.counted_from = len(self.arms.history)
        self._refill()

    def _raise_limit(self) -> None:
        if self.options.max_epochs is None:  # an arm may use the whole budget
            self.arms.max_epochs = int(self.ledger.total)

    # ------------------------------------------------------------------ saved states

    def state_dict(self) -> Json:
        """Return everything as JSON values."""
        self.policy.refresh()
        policy = self.policy.state_dict()  # or an error, before the work
        return {
            "version": STATE_VERSION,
            "search": self._identity(),
            "ledger": self.ledger.state_dict(),
            "arms": self.arms.state_dict(),
            "policy": policy,
            "rng": self._draws.start,
        }

    def load_state_dict(self, state: Json) -> None:
        """Restore the values of ``state_dict``; after an error it is of no use."""
        self._check(state)
        n = len(state["arms"]["charged"])
        self.arms.load_proposals(state["arms"])
        while self.arms.n_arms < n and self._has_more_slots():
            pass
        self._resize(n)
        self.ledger.load_state_dict(state["ledger"])
        self._raise_limit()
        self.arms.load_state_dict(state["arms"])
        self.policy.build()
        self.policy.load_state_dict(state["policy"])
        self._draws.load(state["rng"])
        self.follow_up()

    def _identity(self) -> Json:
        """Return the settings that must be the same to load a saved state, as JSON."""
        return self.options.identity() | {
            "policy": self.policy.name,
            "budget_unit": self.ledger.unit,
            "proposer": self.proposer.identity,
        }

    def _check(self, state: Json) -> None:
        if state.get("version") != STATE_VERSION:
            raise RunDirError(
                f"this state has version {state.get('version')!r}, this release reads "
                f"version {STATE_VERSION}: load it with the release that saved it"
            )
        if differs := first_difference(state["search"], self._identity()):
            name, saved, mine, also = differs
            raise RunDirError(
                f"this state was saved with {name}={saved}, the scheduler has "
                f"{name}={mine}: make it with the same arguments{also}"
            )


def _chosen(
    name: str,
    options: SchedulerOptions,
    proposer: Proposer,
) -> tuple[str, Params]:
    """Return the policy that a name stands for, and its parameters."""
    chosen = choose_policy(
        name,
        options.budget,
        options.max_epochs,
        options.n_arms,
        parameters=options.policy_params,
        min_epochs=options.min_epochs,
        epochs_per_job=options.epochs_per_job,
    )
    allowed = policy_info(chosen.name).parameters
    learnt = proposer.policy_params()
    taken: Params = {name: learnt[name] for name in learnt if name in allowed}
    return chosen.name, taken | chosen.parameters
