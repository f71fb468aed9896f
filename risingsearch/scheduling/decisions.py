"""Which arm trains next: chosen by the policy, or proposed where one is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Job
from risingsearch.errors import InvalidParameterError, PolicyError
from risingsearch.policies import WAIT
from risingsearch.scheduling.arm_records import ENQUEUED, ArmRecords, Openings
from risingsearch.scheduling.jobs import Decision, Jobs
from risingsearch.scheduling.ledger import Ledger
from risingsearch.scheduling.policy_adapter import PolicyAdapter
from risingsearch.scheduling.proposers import InformedProposer, Opened, Proposer

OPENED_BEFOREHAND = "opened by prior"
"""Reason why an arm started that was opened by knowledge from before the search."""


class Choice(NamedTuple):
    """The job that starts next."""

    arm: int
    n_epochs: int
    selected: int  # by the policy; another arm may have been proposed for it
    beforehand: bool = False  # proposed from knowledge older than the search


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

    def select(self, n_asked: int) -> np.random.Generator:
        """Return the generator of a decision."""
        return self._at(3 * n_asked)

    def propose(self, n_asked: int) -> np.random.Generator:
        """Return the generator of a proposal."""
        return self._at(3 * n_asked + 1)

    def update(self, n_epochs: int) -> np.random.Generator:
        """Return the generator of an epoch that is recorded after so many others."""
        return self._at(3 * n_epochs + 2)

    def _at(self, number: int) -> np.random.Generator:
        bits: Any = self._rng.bit_generator
        bits.state = self.start
        bits.advance(number * _JUMP % 2**128)
        return self._rng


_JUMP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""As far as ``PCG64.jumped`` goes: streams that far apart do not overlap."""


@dataclass
class Decider:
    """Chooses the next arm and reserves its epochs. Choosing changes nothing."""

    _policy: PolicyAdapter
    _records: ArmRecords
    _budget: Ledger
    _jobs: Jobs
    proposer: Proposer | None
    _draws: Draws
    _epochs_per_job: int | None
    _openings: Openings
    _in_order: bool  # results are recorded in the order of the decisions
    waits: bool = False  # the policy wants another result first
    _is_selected: bool = False  # since the last event
    _selected: int | None = None  # by the policy
    _chosen: Choice | None = None  # of it; another arm may have been proposed

    def forget(self) -> None:
        """Forget the next decision, since something has changed."""
        self._is_selected = self.waits = False
        self._selected = self._chosen = None

    def select(self) -> int | None:
        """Return the arm that the policy wants to train."""
        if not self._is_selected:
            self._policy.refresh(self._jobs.rounds)
            if self._policy.can_choose():
                selected = self._owed()
                if selected is None:
                    rng = self._draws.select(self._jobs.n_asked)
                    selected = self._policy.select(self._jobs.rounds + 1, rng)
                self.waits = selected == WAIT
                self._selected = None if self.waits else selected
            self._is_selected = True
        return self._selected

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
        """Return the job that starts next."""
        selected = self.select()
        if self._chosen is None and selected is not None:
            arm, beforehand = self._proposed(selected)
            n_epochs = max(1, self._wanted(arm, selected))
            self._chosen = Choice(arm, n_epochs, selected, beforehand)
        return self._chosen

    def start(self, arm: int, n_epochs: int | None) -> Job:
        """Start an arm that was decided on elsewhere."""
        self._policy.refresh(self._jobs.rounds)
        most = self._most(arm)
        given = self._wanted(arm, arm) if n_epochs is None else n_epochs
        if not 1 <= given <= most:
            msg = f"arm {arm} can get {most} epochs now at most; got {n_epochs=}"
            raise InvalidParameterError(msg)
        why = self.why(Choice(arm, given, arm))._replace(given=True)
        return self._start(arm, given, why)

    def start_chosen(self, choice: Choice) -> Job:
        """Start the chosen job."""
        return self._start(choice.arm, choice.n_epochs, self.why(choice))

    def repeat(self, job: Job, why: Decision) -> Job:
        """Start a job that was decided before, without deciding it again."""
        self._policy.refresh(self._jobs.rounds)
        now = why._replace(round=self._jobs.rounds + 1)
        return self._start(job.arm, job.n_epochs, now)

    def _start(self, arm: int, n_epochs: int, why: Decision) -> Job:
        if why.instead_of is not None:
            self._policy.open_instead(why.instead_of, arm)
        if self._records.failed[arm]:
            self._records.forgive(arm)
            self._policy.refresh(self._jobs.rounds)
        self._policy.started(why.round, arm)
        job = self._jobs.start(arm, int(self._records.epochs[arm]), n_epochs, why)
        self._budget.reserve(job)
        self._records.busy[arm] = True
        self.forget()
        return job

    def why(self, choice: Choice) -> Decision:
        """Return why this starts."""
        reason = OPENED_BEFOREHAND if choice.beforehand else self._reason(choice.arm)
        round_, seen = self._jobs.rounds + 1, self._jobs.n_recorded_in_order
        parts = self._index(choice.arm)
        return Decision(
            round_,
            reason,
            parts,
            seen if self._in_order else None,
            instead_of=None if choice.arm == choice.selected else choice.selected,
        )

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
        wanted = self._epochs_per_job or self._policy.slice_length(selected)
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

        And whether that is for knowledge from before the search.
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
        proposed = proposer.propose(
            self.opened(), unopened, self._draws.propose(self._jobs.n_asked)
        )
        return arm if proposed is None else self._unopened(proposed, unopened), False

    def _unopened(self, proposed: int, unopened: NDArray[np.int64]) -> int:
        """Return a proposed arm, or raise that it cannot be opened."""
        if proposed not in unopened:
            msg = (
                f"{type(self.proposer).__name__} proposed arm {proposed!r}, which is "
                "not among the unopened arms"
            )
            raise PolicyError(msg)
        return int(proposed)

    def opened(self) -> Opened:
        """Return the opened arms as a proposer sees them."""
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
