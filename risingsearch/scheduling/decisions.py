"""Which arm trains next: chosen by the policy, or proposed where one is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Job
from risingsearch.errors import ProposalError
from risingsearch.policies import WAIT
from risingsearch.scheduling.arm_records import ArmRecords
from risingsearch.scheduling.budgets import CostBudget, EpochBudget
from risingsearch.scheduling.jobs import Decision, Jobs
from risingsearch.scheduling.policy_adapter import PolicyAdapter
from risingsearch.scheduling.proposers import Opened, Proposer


class Choice(NamedTuple):
    """What starts next, and what it takes to forget the choice again."""

    arm: int
    n_epochs: int
    rng_before: dict[str, Any]
    in_turn: int  # the arm that the policy chose; another may have been proposed


@dataclass
class Decider:
    """Chooses the next arm and reserves its epochs."""

    _policy: PolicyAdapter
    _records: ArmRecords
    _budget: EpochBudget | CostBudget
    _jobs: Jobs
    _proposer: Proposer | None
    _rng: np.random.Generator
    _slice: int | None
    waiting: bool = False  # the policy wants another result first
    chosen: Choice | None = None  # and not yet started

    def choose(self) -> Choice | None:
        """Return what starts next, the same until it starts or is dropped."""
        if self.chosen is not None or self.waiting:
            return self.chosen
        affordable = self._policy.refresh(self._jobs.rounds)
        if not self._policy.can_choose():
            return None
        rng_before = dict(self._rng.bit_generator.state)
        in_turn = self._policy.select(self._jobs.rounds + 1)
        if in_turn == WAIT:
            self._rng.bit_generator.state = rng_before  # an ask in vain draws nothing
            self.waiting = True
            return None
        arm = self._proposed(in_turn)
        wanted = self._slice or self._policy.slice_length(in_turn)
        n_epochs = max(1, min(wanted, self._most(arm, affordable)))
        self.chosen = Choice(arm, n_epochs, rng_before, in_turn)
        return self.chosen

    def drop(self) -> None:
        """Forget a choice that has not started, and what was drawn for it."""
        if self.chosen is not None:
            self._rng.bit_generator.state = self.chosen.rng_before
            self.chosen = None

    def start_chosen(self) -> Job:
        """Start what was chosen."""
        choice = self.chosen
        assert choice is not None
        self.chosen = None
        if choice.arm != choice.in_turn:
            self._policy.open_instead(choice.in_turn, choice.arm)
        return self.start(choice.arm, choice.n_epochs)

    def start(self, arm: int, n_epochs: int) -> Job:
        """Start an arm, and reserve its epochs."""
        why = Decision(self._jobs.rounds + 1, self._reason(arm), self.index(arm))
        job = self._jobs.start(arm, int(self._records.epochs[arm]), n_epochs, why)
        self._budget.reserve(job)
        self._records.start(arm)
        return job

    def startable(self, arm: int) -> tuple[int, int]:
        """Return how many epochs an arm would get now, and how many it can get."""
        most = self._most(arm, self._policy.refresh(self._jobs.rounds))
        return min(self._slice or self._policy.slice_length(arm), most), most

    def index(self, arm: int) -> dict[str, float]:
        """Return the named parts of an arm's index; none before it is opened."""
        return self._policy.explain(arm) if self._records.charged[arm] else {}

    def ends(self, arms: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return where arms are expected to end, as rewards."""
        records = self._records
        best = records.sign * records.best[arms]
        best[np.isnan(best)] = records.worst_reward
        projected = np.array([self._policy.projection(int(arm)) for arm in arms])
        return np.where(~records.live()[arms], best, np.fmax(best, projected))

    def _most(self, arm: int, affordable: NDArray[np.int64]) -> int:
        left = self._records.max_epochs - self._records.charged[arm]
        return int(min(affordable[arm], left))

    def _reason(self, arm: int) -> str:
        if not self._records.charged[arm]:
            return "opened"
        history = self._records.history
        return "continued" if history and history[-1]["arm"] == arm else "revived"

    def _proposed(self, arm: int) -> int:
        """Return the arm to train where the policy has chosen this one."""
        records = self._records
        opens = not records.charged[arm]
        if self._proposer is None or not opens or not self._policy.proposing():
            return arm
        unopened = records.unopened()
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
        records = self._records
        arms = np.flatnonzero(records.charged > 0)
        finished = ~records.live()[arms]
        return Opened(
            arms, records.charged[arms], self.ends(arms), finished, records.max_epochs
        )
