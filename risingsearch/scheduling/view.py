"""Read-only view of a scheduler."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from risingsearch.arms import Arm, Job, Status
from risingsearch.scheduling.arm_records import ArmRecords
from risingsearch.scheduling.decisions import OPENED_BEFOREHAND, Decider
from risingsearch.scheduling.jobs import Jobs
from risingsearch.scheduling.ledger import Ledger
from risingsearch.scheduling.policy_adapter import PolicyAdapter
from risingsearch.scheduling.proposers import InformedProposer, Opened


class SchedulerView(ABC):
    """The part of a ``Scheduler`` that changes nothing."""

    n_arms: int
    max_epochs: int | None  # that one arm can use at most
    n_jobs: int | None  # in flight at most
    deterministic: bool
    direction: str
    max_failures: int  # after which an arm is still retried
    _records: ArmRecords
    _budget: Ledger
    _jobs: Jobs
    _policy: PolicyAdapter
    _decider: Decider

    @property
    def policy_name(self) -> str:
        """Registered name of the policy, or the name of its class."""
        return self._policy.name

    @property
    def budget(self) -> float:
        """The whole budget, in its unit."""
        return self._budget.total

    @property
    def unit(self) -> str:
        """The unit of the budget, as ``Budget`` names it: "epochs", "hours", ..."""
        return self._budget.unit

    @property
    def spent(self) -> float:
        """Amount charged so far, in the unit of the budget."""
        return self._budget.spent

    @property
    def n_epochs(self) -> int:
        """Epochs charged so far, over all arms."""
        return int(self._records.charged.sum())

    @property
    def n_asked(self) -> int:
        """Jobs asked for so far."""
        return self._jobs.n_asked

    @property
    def in_flight(self) -> tuple[Job, ...]:
        """Jobs asked for and not yet told."""
        return tuple(self._jobs.in_flight.values())

    def status(self, arm: int) -> Status:
        """Return where one arm stands."""
        return self._records.status(arm)

    def statuses(self) -> list[Status]:
        """Return where every arm stands."""
        return [self.status(arm) for arm in range(self.n_arms)]

    @property
    def history(self) -> list[dict[str, Any]]:
        """One row per charged epoch, in the order in which the policy was told.

        Keys: ``arm``, ``epoch`` (the arm's own, from 1), ``score``, ``round`` (of the
        search; an arm that ends early gives its rounds back, and they come again),
        ``job``, ``cost`` (NaN where not told), ``reason`` (``"opened"``, ``"opened by
        prior"`` for what earlier searches say of it, ``"continued"`` or
        ``"revived"``), the parts of the arm's index when it was
        chosen (by the rewards told: rounds in flight are not counted), and ``failure``
        on the epochs that were lost to a failure; on the last one if it came after
        that.
        """
        return self._records.history

    @property
    def best_arm(self) -> int | None:
        """The arm with the best score so far; None before the first finite one."""
        return self._records.best_arm

    @property
    def best_score(self) -> float:
        """The best score so far; NaN before the first finite one."""
        arm = self.best_arm
        return math.nan if arm is None else float(self._records.best[arm])

    @property
    def best_epoch(self) -> int:
        """The best arm's epoch with the best score; 0 before the first finite one."""
        arm = self.best_arm
        return 0 if arm is None else int(self._records.best_epoch[arm])

    @property
    def sign(self) -> float:
        """Factor for scores that makes higher better: 1.0 or -1.0."""
        return self._records.sign

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
            it, if that is better. The worst score of all if it has none yet; NaN
            while no arm has one.
        """
        if not math.isfinite(self._records.worst_reward):
            return math.nan
        return float(self.sign * self._decider.ends(np.array([arm]))[0])

    def opened(self) -> Opened:
        """Return the opened arms as a proposer sees them."""
        return self._decider.opened()

    @property
    def trusts_first_looks(self) -> bool:
        """Whether the first slice of an arm tells enough of its end to propose by."""
        return self._policy.trusts_first_looks()

    def trust_in_prior(self) -> dict[str, float]:
        """Return how far each earlier search is trusted.

        Returns
        -------
        dict
            By the name of the search, from 0 (it ranks the arms here no better than
            chance) to 1; all together are the expected correlation of their
            predictions. Empty without a proposer that knows earlier searches.
        """
        proposer = self._decider.proposer
        if not isinstance(proposer, InformedProposer):
            return {}
        return proposer.trusted(self._decider.opened())

    @abstractmethod
    def _policy_waits(self) -> bool:
        """Return whether the policy waits for jobs in training."""

    def explain(self) -> list[Arm]:
        """Return where every arm stands, why, and the parts of its index.

        And how far earlier searches are trusted, for the arms opened because of them.

        Returns
        -------
        list of Arm
            In the order of the arms.
        """
        waits = self._policy_waits()
        records, failures = self._records, self._records.last_failures()
        opened = np.flatnonzero(records.charged).tolist()
        trust = self.trust_in_prior()
        by_prior = set(self._opened_by_prior()) if trust else set()
        self._policy.refresh(self._jobs.rounds)
        indices = dict(zip(opened, self._policy.explain(opened), strict=True))
        return [
            Arm(
                arm=arm,
                status=records.status(arm),
                epochs=int(records.epochs[arm]),
                charged=int(records.charged[arm]),
                last_score=float(records.last[arm]),
                best_score=float(records.best[arm]),
                best_epoch=int(records.best_epoch[arm]),
                failures=int(records.failures[arm]),
                reason=self._reason(arm, waits, failures),
                index=indices.get(arm, {}),
                trust_in_prior=dict(trust) if arm in by_prior else {},
            )
            for arm in range(self.n_arms)
        ]

    def _opened_by_prior(self) -> Iterator[int]:
        """Yield the arms that were opened for what earlier searches say."""
        for row in self._records.history:
            if row["reason"] == OPENED_BEFOREHAND:
                yield row["arm"]
        for arm, why in self._jobs.unrecorded():
            if why.reason == OPENED_BEFOREHAND:
                yield arm

    def _reason(self, arm: int, waits: bool, failures: Mapping[int, str]) -> str:
        records, status = self._records, self.status(arm)
        if status == "unopened":
            return "not opened: the policy opens arms when it sees fit"
        if status == "running":
            return "in training"
        if status == "failed":
            return f"retired: {failures.get(arm, 'score is not finite')}"
        if status == "finished":
            by_itself = records.ended[arm]
            return "ended by itself" if by_itself else "has used all its epochs"
        if waits:
            return f"paused: {self.policy_name} waits for what is in training"
        last = records.history[-1]["arm"] if records.history else None
        if last is None:
            return "paused"
        if last == arm:
            return "trained last"
        if arm == self.best_arm:
            went_on = f"{self.policy_name} went on to arm {last}"
            return f"paused with the best score: {went_on}"
        return f"paused: {self.policy_name} preferred arm {last}"
