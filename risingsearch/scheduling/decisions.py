"""Decisions: which arm trains next; and the effects of starts and results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import (
    CONTINUED,
    ENQUEUED,
    OPENED,
    PRIOR,
    PROPOSED,
    REVIVED,
    Job,
    Params,
)
from risingsearch.budget import Budget, in_words
from risingsearch.checks import shown
from risingsearch.comparison import first_difference
from risingsearch.errors import InvalidParameterError, PolicyError, RunDirError
from risingsearch.events import Started
from risingsearch.json_values import Json
from risingsearch.policies import WAIT, policy_info
from risingsearch.proposers.base import Opened, Proposal, Proposer, checked_proposer
from risingsearch.scheduling.arm_table import ArmTable, Result
from risingsearch.scheduling.ledger import Ledger
from risingsearch.scheduling.options import SchedulerOptions, SearchOptions
from risingsearch.scheduling.policy_adapter import PolicyAdapter
from risingsearch.scheduling.policy_choice import choose_policy, horizon_and_limit

STATE_VERSION = 4


class Draws:
    """Random generators that depend on the seed and on the number of an event alone.

    So asking twice gives the same answer, and events can be applied without drawing.
    """

    def __init__(self, seed: int | None) -> None:
        self._rng = np.random.default_rng(seed)
        self.start: Any = self._rng.bit_generator.state

    def load(self, start: Any) -> None:
        """Restore ``start`` from a saved state."""
        self._rng.bit_generator.state = start
        self.start = start

    def of(self, kind: int, number: int) -> np.random.Generator:
        """Return the generator of the event of a kind, by its number from 0."""
        bits: Any = self._rng.bit_generator
        bits.state = self.start
        bits.advance((3 * number + kind) * _JUMP % 2**128)
        return self._rng


SELECT, PROPOSE, UPDATE = range(3)
_JUMP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""As far as ``PCG64.jumped`` goes: streams that far apart do not overlap."""


def no_problem(params: object) -> str | None:
    """Return None: any configuration may be proposed."""
    return None


class Decider:
    """Decides which job starts next, which changes nothing; applies starts and results.

    Applying one changes the arms, the ledger and the policy.
    """

    def __init__(
        self,
        options: SchedulerOptions,
        policy: Any,
        proposer: Proposer | None,
    ) -> None:
        self.proposer = checked_proposer(proposer)
        params: Params = dict(options.policy_params or {})
        if isinstance(policy, str):
            policy, params = _chosen(policy, options, self.proposer)
        if (n_candidates := self.proposer.n_arms) not in (None, options.n_arms):
            raise InvalidParameterError(
                f"the proposer was made for {n_candidates} candidates, and there are "
                f"{options.n_arms} arms: make it for the candidates of this search"
            )
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
        self._options = options
        self.rules = SearchOptions()  # patience and target_score
        self.waits_for_starts = False  # while recorded events are applied
        self.problem_of: Callable[[Any], str | None] = no_problem
        self._forget()

    def _forget(self) -> None:
        """Forget the next decision, since something has changed."""
        self._is_selected = False
        self.waits = False  # the policy wants another result first
        self._selected: int | None = None  # by the policy
        self._decision: Started | None = None  # another arm may have been proposed

    # --------------------------------------------------------------------- decisions

    def next(self) -> Started | None:
        """Return the job that starts next; None if nothing can start now."""
        if self.stop_rule is not None:
            return None
        selected = self.select()
        if self._decision is None and selected is not None:
            params, like, proposed, by_prior = self._proposed(selected)
            arm = selected if proposed is None else int(proposed)
            decision = self._decided(arm, max(1, self._wanted(arm, selected)))
            if by_prior or params or proposed is not None:
                decision = replace(decision, reason=PRIOR if by_prior else PROPOSED)
            if arm != selected:
                decision = replace(decision, instead_of=selected)
            if params:
                decision = replace(
                    decision,
                    params=dict(params),
                    like=like,
                )
            self._decision = decision
        return self._decision

    def select(self) -> int | None:
        """Return the arm that the policy selects; None if nothing can start now."""
        self.apply_due()
        return None if self.arms.is_full or self.arms.must_see_next else self._select()

    def _select(self) -> int | None:
        if not self._is_selected:
            self.policy.refresh()
            if self.policy.policy.available.any():
                selected = self.arms.promised(self.ledger)
                if selected is None:
                    rng = self._draws.of(SELECT, self.arms.n_asked)
                    selected = self.policy.select(self.arms.rounds + 1, rng)
                self.waits = selected == WAIT
                self._selected = None if self.waits else selected
            self._is_selected = True
        return self._selected

    @property
    def stop_rule(self) -> str | None:
        """Which rule of ``stop_when`` ends the search, as a clause; None if none."""
        target = self.rules.target_score
        patience = self.rules.patience
        if target is not None and self.arms.best_reward >= self.arms.sign * target:
            return f"the target_score of {target:g} is reached"
        if patience is None or self.arms.epochs_since_improvement < patience:
            return None
        promised = self.arms.promised(self.ledger)
        if self.ledger.spent >= self.ledger.total or promised is not None:
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
            least = self.arms.min_epochs
            why = f"what is left trains no new arm for min_epochs={least}"
        elif can_train.any() or left <= 0:
            kept = self.ledger.kept
            why = f"the budget of {total:g} {unit} is spent"
            return f"{why} but for {kept:.3g}, kept for the refit" if kept else why
        else:
            why = "no arm can train any more"
        return f"{why}, {left:g} of {total:g} {unit} left"

    def requested(self, arm: int, n_epochs: int | None) -> Started:
        """Return the decision of a caller; raise if the arm cannot train so long."""
        self.policy.refresh()
        most = self._most(arm)
        n_epochs = self._wanted(arm, arm) if n_epochs is None else n_epochs
        if not 1 <= n_epochs <= most:
            msg = f"arm {arm} can get {most} epochs now at most; got {n_epochs=}"
            raise InvalidParameterError(msg)
        return self._decided(arm, n_epochs)

    def _decided(self, arm: int, n_epochs: int) -> Started:
        arms = self.arms
        is_opened = bool(self.arms.charged[arm])
        job = Job(
            arm,
            int(arms.epochs[arm]),
            n_epochs,
            arms.n_asked,
        )
        reason = ENQUEUED if arm in arms.enqueued else OPENED
        if is_opened:
            reason = CONTINUED if arms.history[-1]["arm"] == arm else REVIVED
        parts = self.policy.explain([arm])[0] if is_opened else {}
        seen = arms.n_applied if arms.deterministic else None
        drawn: Any = None  # what was drawn later than the header was written
        if arm >= self._options.n_arms and not is_opened:
            drawn = dict(self.proposer.candidates[arm])
        return Started(
            job=job,
            reason=reason,
            parts=parts,
            seen=seen,
            params=drawn,
        )

    def _wanted(self, arm: int, selected: int) -> int:
        """Return how many epochs an arm gets that is trained for the selected one."""
        wanted = self._options.epochs_per_job or self.policy.slice_length(selected)
        missing = self.arms.min_epochs - int(self.arms.epochs[arm])
        return min(max(wanted, missing), self._most(arm))

    def _most(self, arm: int) -> int:
        left = self.arms.max_epochs - self.arms.charged[arm]
        return int(min(self.policy.affordable[arm], left))

    # --------------------------------------------------------------------- proposals

    def _proposed(self, arm: int) -> Proposal:
        """Return the proposal for an arm, an empty one if none is due."""
        arms = self.arms
        proposer = self.proposer
        n_begun = int(np.count_nonzero(arms.has_told | arms.busy))
        is_new = not arms.charged[arm] and arm not in arms.enqueued
        if not (is_new and proposer.is_due(n_begun, self.policy.proposing())):
            return Proposal()
        unopened = arms.unopened()
        rng = self._draws.of(PROPOSE, arms.n_asked)
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
        unopened: NDArray[np.int64],
    ) -> str | None:
        """Return the fault of a proposal in words; None if there is none."""
        params = proposal.params
        if not isinstance(params, Mapping):
            return f"{shown(params)}, which is no dict of parameters"
        if params and (problem := self.problem_of(params)):
            given = shown(params)
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
        return Opened(
            opened,
            arms.charged[opened],
            self.expected_ends(opened),
            ~arms.can_train()[opened],
            arms.max_epochs,
            np.flatnonzero(arms.busy & ~arms.has_told),
            tuple(arms.curve(arm) for arm in opened.tolist()),
            self.policy.proposing(),
            np.flatnonzero(failed & ~failed.all()),
        )

    def expected_ends(self, opened: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return where arms are expected to end, as rewards."""
        arms = self.arms
        best = arms.sign * arms.best[opened]
        best[arms.has_failed(opened)] = arms.worst_reward
        projected = np.array([self.policy.projection(int(arm)) for arm in opened])
        return np.where(~arms.can_train()[opened], best, np.fmax(best, projected))

    # ------------------------------------------------------------- starts and results

    def start(self, decision: Started) -> None:
        """Start a job: reserve its epochs."""
        job = decision.job
        arms = self.arms
        if decision.instead_of is not None:
            self.policy.open_instead(decision.instead_of, job.arm)
        if arms.failed[job.arm]:
            arms.forgive(job.arm)
            self.policy.refresh()
        round_ = arms.rounds + 1
        try:
            self.policy.started(round_, job.arm)
        except PolicyError:
            if decision.instead_of is not None:
                self.policy.open_instead(job.arm, decision.instead_of)
            raise
        arms.start(replace(decision, round=round_))
        self.ledger.reserve(job)
        self._refill()
        self._forget()

    def _refill(self) -> None:
        """Add arms if all are opened, and fewer than epochs that the budget pays."""
        if not len(self.arms.unopened()):
            payable = self.ledger.horizon(self.arms.rounds).max()
            if len(self.arms.busy) < payable:
                self._has_more_slots()

    def _has_more_slots(self) -> bool:
        """Add the arms that the proposer of a space has more of, if it has any."""
        n_arms = len(self.arms.busy)
        n = self.proposer.more_slots(n_arms, self.arms.proposals)
        self._resize(n)
        return bool(n > n_arms)

    def _resize(self, n: int) -> None:
        if n != len(self.arms.busy):
            for part in (self.arms, self.ledger, self.policy):
                part.resize(n)

    def repeat(self, decision: Started) -> None:
        """Start a job that was decided before, without deciding it again."""
        job = decision.job
        arms = self.arms
        seen = decision.seen
        while seen is not None and arms.n_applied < seen and arms.holds_next:
            self.apply(arms.n_applied)
        is_next = job.id == arms.n_asked and job.arm < len(arms.busy)
        if not is_next or arms.busy[job.arm]:
            msg = f"{job} cannot be the next job of this search: its journal is damaged"
            raise RunDirError(msg)
        self.policy.refresh()
        self.start(decision)

    def tell(self, result: Result) -> None:
        """Take the result of a job, and apply it unless it has to wait for others."""
        self.arms.hold(result)
        if not self.arms.deterministic:
            self.apply(result.job.id)
        self.follow_up()

    def follow_up(self) -> None:
        """Decide anew after an event; apply the results that are due by it."""
        self._forget()
        if self.waits_for_starts:
            return
        with suppress(PolicyError):  # the next decision raises it
            self.apply_due()

    def apply_due(self) -> None:
        """Apply held results in the order of the decisions, as far as the next may see.

        They are those that it has to see, and others if nothing can start without them.
        """
        arms = self.arms
        while arms.deterministic and arms.holds_next and not arms.is_full:
            if not arms.must_see_next and self._select() is not None:
                break
            self.apply(arms.n_applied)

    def apply(self, job_id: int | None = None) -> None:
        """Apply a held result: its cost, its arm, its epochs one by one.

        All of it is applied, even if the policy raises an error.
        """
        arms = self.arms
        (result, decision) = self.arms.release(job_id)
        job = result.job
        scores = result.scores
        failed = result.failure is not None
        charged = result.charged
        n_scores = len(scores)
        self._forget()
        self.ledger.charge(
            job,
            charged,
            n_scores,
            result.cost,
            failed=failed,
        )
        n_lost = sum(not math.isfinite(score) for score in scores)
        ended = result.has_ended and result.ended
        arms.free(job.arm, n_lost + failed * result.attempts, ended=ended)
        facts: Json = {
            "cost": math.nan if result.cost is None else result.cost / max(1, charged),
            "reason": decision.reason,
            **decision.parts,
        }
        error: PolicyError | None = None
        for k in range(charged):
            if failed and k >= min(n_scores, charged - 1):
                facts["failure"] = result.failure
            provisional = arms.has_provisional_rewards
            n_before = len(arms.history)
            round_ = decision.round + k
            score = scores[k] if k < n_scores else math.nan
            reward = arms.add_epoch(
                job,
                k,
                round_,
                score,
                facts,
                trained=k < n_scores,
            )
            try:
                if provisional and not arms.has_provisional_rewards:
                    self._replan()
                elif error is None:
                    if k == 0:
                        self.policy.refresh()
                    else:
                        self.policy.refresh_arm(job.arm)
                    rng = self._draws.of(UPDATE, n_before)
                    self.policy.update(
                        round_,
                        job.arm,
                        reward,
                        rng,
                    )
            except PolicyError as raised:
                error = raised
        if error is not None:
            raise error

    def _replan(self) -> None:
        """Build the policy anew and tell it all starts and rewards so far."""
        self.policy.build()
        self.policy.refresh()
        before = None
        for n_before, (job, round_, arm, reward) in enumerate(self.arms.rewards()):
            if job != before:
                self.policy.started(round_, arm)
            before = job
            rng = self._draws.of(UPDATE, n_before)
            self.policy.update(
                round_,
                arm,
                reward,
                rng,
            )
        for decision in self.arms.decisions.values():
            self.policy.started(decision.round, decision.job.arm)

    def extend(self, budget: int | str | Budget) -> None:
        """Add to the budget; a policy that plans the whole horizon plans anew."""
        self.ledger.extend(budget)
        self._raise_limit()
        if self._options.max_epochs is None or self.policy.plans_rounds:
            self._replan()
        self.arms.counted_from = len(self.arms.history)
        self._refill()
        self.follow_up()

    def _raise_limit(self) -> None:
        if self._options.max_epochs is None:  # an arm may use the whole budget
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
        """Restore the values of ``state_dict``, or raise and change nothing."""
        parts = (self.arms, self.ledger, self.policy)
        start = self._draws.start
        before = [dict(vars(part)) for part in parts]
        try:
            self._check(state)
            self._load(state)
        except Exception as error:
            for part, values in zip(parts, before, strict=True):
                vars(part).update(values)  # loading replaces arrays, and changes none
            self._draws.load(start)
            self._forget()
            if isinstance(error, PolicyError | RunDirError):
                raise
            msg = f"the state is damaged ({error!r}): nothing was loaded"
            raise RunDirError(msg) from error

    def _load(self, state: Json) -> None:
        n = len(state["arms"]["charged"])
        self.arms.load_proposals(state["arms"])
        while len(self.arms.busy) < n and self._has_more_slots():
            pass
        self._resize(n)
        self.ledger.load_state_dict(state["ledger"])
        self._raise_limit()
        self.arms.load_state_dict(state["arms"])
        self.policy.build()
        self.policy.load_state_dict(state["policy"])
        self._draws.load(state["rng"])
        self._forget()

    def _identity(self) -> Json:
        """Return the settings that must be the same to load a saved state, as JSON."""
        return self._options.identity() | {
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
) -> tuple[str, dict[str, Any]]:
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
    taken: dict[str, Any] = {name: learnt[name] for name in learnt if name in allowed}
    return chosen.name, taken | chosen.parameters
