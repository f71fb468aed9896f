"""Which arm trains next: chosen by the policy, or proposed where one is opened."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Job
from risingsearch.errors import JobError, ProposalError, RisingSearchError
from risingsearch.policies import WAIT
from risingsearch.scheduling.arm_records import ArmRecords
from risingsearch.scheduling.jobs import Decision, Jobs
from risingsearch.scheduling.ledger import Ledger
from risingsearch.scheduling.openings import ENQUEUED, Openings
from risingsearch.scheduling.policy_adapter import PolicyAdapter
from risingsearch.scheduling.proposers import InformedProposer, Opened, Proposer
from risingsearch.scheduling.undo import Undo

OPENED_BEFOREHAND = "opened by prior"
"""Why an arm started that was opened for what was known before the search."""


class Choice(NamedTuple):
    """What starts next."""

    arm: int
    n_epochs: int
    beforehand: bool = False  # proposed for what was known before the search


@dataclass
class Decider:
    """Chooses the next arm and reserves its epochs.

    To choose is a transition of its own, which the start of the arm commits: where
    nothing starts, whatever the policy has changed while it chose is put back.
    """

    _policy: PolicyAdapter
    _records: ArmRecords
    _budget: Ledger
    _jobs: Jobs
    proposer: Proposer | None
    _rng: np.random.Generator
    _slice: int | None
    _openings: Openings
    _undo: Undo
    _in_order: bool  # results are recorded in the order of the decisions
    waits: bool = False  # the policy wants another result first
    _selected: int | None = None  # by the policy, for now
    _chosen: Choice | None = None  # of it; another arm may have been proposed

    def select(self) -> int | None:
        """Return the arm that the policy wants to train, the same until ``drop``."""
        if self._selected is None and not self.waits:
            self._policy.refresh(self._jobs.rounds)
            if self._policy.can_choose():
                self._select()
        return self._selected

    def _select(self) -> None:
        self._undo.begin()
        try:
            selected = self._owed()
            if selected is None:
                selected = self._policy.select(self._jobs.rounds + 1)
            if selected == WAIT:
                self._undo.put_back()
                self.waits = True
            else:
                self._selected = selected
        except BaseException:
            self.drop()
            raise

    def owes(self) -> bool:
        """Whether an arm is due that was promised its epochs."""
        return self._owed() is not None

    def opens_too_late(self) -> bool:
        """Whether the budget could train a new arm, but not for its ``min_epochs``."""
        affordable = self._budget.affordable()
        late = self._openings.too_late(self._records, affordable)
        return bool((self._records.live() & late & (affordable > 0)).any())

    def _owed(self) -> int | None:
        return self._openings.owed(self._records, self._budget.affordable())

    def choose(self) -> Choice | None:
        """Return what starts next, the same until it starts or is dropped."""
        selected = self.select()
        if self._chosen is None and selected is not None:
            try:
                arm, beforehand = self._proposed(selected)
                n_epochs = max(1, self._wanted(arm, selected))
                self._chosen = Choice(arm, n_epochs, beforehand)
            except BaseException:
                self.drop()
                raise
        return self._chosen

    def drop(self) -> None:
        """Forget a choice that has not started, and all that came of it."""
        self._selected, self._chosen, self.waits = None, None, False
        if self._undo.is_under_way:
            self._undo.put_back()

    def start_chosen(self) -> Job:
        """Start what was chosen."""
        assert self._selected is not None
        assert self._chosen is not None
        return self._start(self._selected, self._chosen)

    def start(self, arm: int, n_epochs: int | None, *, wanted: bool) -> Job:
        """Start an arm that was decided on elsewhere.

        ``wanted`` says that ``select`` has named it, so that the policy agrees.
        """
        if not wanted:
            self.drop()
            self._undo.begin()
        self._policy.refresh(self._jobs.rounds)
        most = self._most(arm)
        given = self._wanted(arm, arm) if n_epochs is None else n_epochs
        if not 1 <= given <= most:
            self.drop()
            msg = f"arm {arm} can get {most} epochs now at most; got {n_epochs=}"
            raise JobError(msg)
        return self._start(arm, Choice(arm, given), given=True)

    def repeat(self, job: Job, why: Decision) -> Job:
        """Start a job that was decided before, as far as the policy agrees with that.

        A policy that decides otherwise now has the arm opened, or trained, instead.
        """
        with suppress(RisingSearchError):  # it was decided nevertheless
            self.select() if why.given else self.choose()
        arm, selected = job.arm, self._selected
        takes_place = False
        if not why.given and selected is not None:
            takes_place = not self._records.charged[[arm, selected]].any()
        if selected != arm and not takes_place:
            self.drop()
            self._undo.begin()
            self._policy.refresh(self._jobs.rounds)
            selected = arm
        assert selected is not None
        return self._start(selected, Choice(arm, job.n_epochs), why)

    def _start(
        self,
        selected: int,
        choice: Choice,
        why: Decision | None = None,
        *,
        given: bool = False,
    ) -> Job:
        arm, n_epochs, _ = choice
        try:
            if arm != selected:
                self._policy.open_instead(selected, arm)
            self._policy.started(self._jobs.rounds + 1, arm)
            own = (why or self.why(choice))._replace(round=self._jobs.rounds + 1)
            why = own._replace(given=own.given or given)
            job = self._jobs.start(arm, int(self._records.epochs[arm]), n_epochs, why)
            self._budget.reserve(job)
            self._records.start(arm)
            self._selected, self._chosen, self.waits = None, None, False
            self._undo.commit()
            return job
        except BaseException:
            self._selected, self._chosen, self.waits = None, None, False
            self._undo.put_back()
            raise

    def why(self, choice: Choice) -> Decision:
        """Return why this starts."""
        reason = OPENED_BEFOREHAND if choice.beforehand else self._reason(choice.arm)
        round_, seen = self._jobs.rounds + 1, self._jobs.n_recorded_in_order
        parts = self._index(choice.arm)
        return Decision(round_, reason, parts, seen if self._in_order else None)

    def _index(self, arm: int) -> dict[str, float]:
        """Return the named parts of an arm's index; none before it is opened."""
        return self._policy.explain([arm])[0] if self._records.charged[arm] else {}

    def ends(self, arms: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return where arms are expected to end, as rewards."""
        records = self._records
        best = records.sign * records.best[arms]
        best[np.isnan(best)] = records.worst_reward
        projected = np.array([self._policy.projection(int(arm)) for arm in arms])
        return np.where(~records.live()[arms], best, np.fmax(best, projected))

    def _wanted(self, arm: int, selected: int) -> int:
        """Return how many epochs an arm gets that is trained where one is selected."""
        wanted = self._slice or self._policy.slice_length(selected)
        missing = self._openings.missing(int(self._records.epochs[arm]))
        return min(max(wanted, missing), self._most(arm))

    def _most(self, arm: int) -> int:
        """Return how many epochs an arm and the budget have left for it."""
        left = self._records.max_epochs - self._records.charged[arm]
        return int(min(self._budget.affordable()[arm], left))

    def _reason(self, arm: int) -> str:
        if not self._records.charged[arm]:
            return ENQUEUED if arm in self._openings.enqueued else "opened"
        history = self._records.history
        return "continued" if history and history[-1]["arm"] == arm else "revived"

    def _proposed(self, arm: int) -> tuple[int, bool]:
        """Return the arm to train where the policy has chosen this one.

        And whether that is for what was known before the search.
        """
        proposer = self.proposer
        is_given = self._records.charged[arm] or arm in self._openings.enqueued
        if proposer is None or is_given:
            return arm, False
        unopened = self._records.unopened()
        if isinstance(proposer, InformedProposer):
            proposed = proposer.propose_beforehand(self.opened(), unopened)
            if proposed is not None:
                return self._unopened(proposed, unopened), True
        if not self._policy.proposing():
            return arm, False
        proposed = proposer.propose(self.opened(), unopened, self._rng)
        return arm if proposed is None else self._unopened(proposed, unopened), False

    def _unopened(self, proposed: int, unopened: NDArray[np.int64]) -> int:
        """Return a proposed arm, or raise that it cannot be opened."""
        if proposed not in unopened:
            msg = (
                f"{type(self.proposer).__name__} proposed arm {proposed!r}, which is "
                "not among the unopened arms"
            )
            raise ProposalError(msg)
        return int(proposed)

    def opened(self) -> Opened:
        """Return what a proposer is told of the arms that were opened."""
        records = self._records
        arms = np.flatnonzero(records.charged > 0)
        finished = ~records.live()[arms]
        return Opened(
            arms,
            records.charged[arms],
            self.ends(arms),
            finished,
            records.max_epochs,
            np.flatnonzero(records.busy & (records.charged == 0)),
        )
