"""Results become records, and the rewards that the policy is told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from risingsearch.errors import PolicyError
from risingsearch.scheduling.arm_records import ArmRecords
from risingsearch.scheduling.decisions import Draws
from risingsearch.scheduling.jobs import Decision, Jobs, Result
from risingsearch.scheduling.ledger import Ledger
from risingsearch.scheduling.policy_adapter import PolicyAdapter


@dataclass
class Recorder:
    """Records results in the order given."""

    _policy: PolicyAdapter
    _records: ArmRecords
    _budget: Ledger
    _jobs: Jobs
    _draws: Draws

    def record(self, result: Result, why: Decision, horizon: int) -> None:
        """Record a result: its cost, its arm, its epochs one by one.

        All of it is recorded, even if the policy raises an error.
        """
        job, scores, failed = result.job, result.scores, result.failure is not None
        records, charged = self._records, result.charged
        self._budget.settle(result)
        n_lost = sum(not math.isfinite(score) for score in scores)
        ended = result.ended and charged < job.n_epochs
        records.stop(job.arm, n_lost + failed * result.attempts, ended=ended)
        facts: dict[str, Any] = {
            "cost": math.nan if result.cost is None else result.cost / max(1, charged),
            "reason": why.reason,
            **why.parts,
        }
        error: PolicyError | None = None
        for k in range(charged):
            trained = k < len(scores)
            if failed and k >= min(len(scores), charged - 1):
                facts["failure"] = result.failure
            provisional = records.has_provisional_rewards
            reward = records.record(
                job,
                why.round + k,
                scores[k] if trained else math.nan,
                facts,
                trained=trained,
            )
            try:
                if provisional and not records.has_provisional_rewards:
                    self.replan(horizon)
                elif error is None:
                    n_before = len(records.history) - 1
                    self._tell_policy(n_before, why.round + k, job.arm, reward)
            except PolicyError as raised:
                error = raised
        if error is not None:
            raise error

    def replan(self, horizon: int) -> None:
        """Build the policy anew and tell it all rewards so far."""
        self._policy.build(horizon)
        for n_before, (round_, arm, reward) in enumerate(self._records.rewards()):
            self._tell_policy(n_before, round_, arm, reward)

    def _tell_policy(self, n_before: int, round_: int, arm: int, reward: float) -> None:
        self._policy.refresh(self._jobs.rounds)
        self._policy.update(round_, arm, reward, self._draws.update(n_before))
