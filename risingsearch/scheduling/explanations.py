"""Explanations: where every arm stands, and why it is not in training."""

from collections.abc import Mapping, Sequence

import numpy as np

from risingsearch.arms import OPENED, PRIOR, Arm, ArmList
from risingsearch.proposers.base import Proposal
from risingsearch.scheduling.arm_table import ArmTable
from risingsearch.scheduling.policy_adapter import PolicyAdapter


class Explanations:
    """Explains arms; ``why`` nothing starts, and the search is ``over``, if so."""

    def __init__(
        self,
        arms: ArmTable,
        policy: PolicyAdapter,
        why: str | None,
        over: str | None,
    ) -> None:
        self._arms = arms
        self._policy = policy
        self._why = why
        self._over = over
        self._best = arms.scores.best_arm
        rows = arms.history
        self._failures: dict[int, str] = {}
        for row in rows:
            if "failure" in row:
                self._failures[row["arm"]] = row["failure"]
        self._reached = np.empty(0)  # by the best arm after each of its epochs
        if self._best is not None:
            self._reached = np.maximum.accumulate(arms.scores.curve(self._best))

    def all_arms(self, trust: Mapping[str, float]) -> ArmList:
        """Return all arms; with the trust in the prior, those that it has opened."""
        arms = self._arms
        self._policy.refresh()
        reasons = [(row["arm"], row["reason"]) for row in arms.history]
        reasons += [(why.job.arm, why.reason) for why in arms.in_flight.values()]
        opened_as = dict(reversed(reasons))  # by arm, the first reason
        explained = []
        for arm in range(arms.n_arms):
            first_reason = opened_as.get(arm, OPENED)
            like = arms.proposals.get(arm, Proposal()).like
            best = arms.scores.best(arm)
            explained.append(
                Arm(
                    arm=arm,
                    status=arms.status(arm),
                    epochs=int(arms.epochs[arm]),
                    charged=int(arms.charged[arm]),
                    last_score=arms.scores.last.get(arm, np.nan),
                    best_score=best.score,
                    best_epoch=best.epoch,
                    failures=int(arms.failures[arm]),
                    reason=self._reason(arm) + _origin(first_reason, like),
                    index=self._policy.explain(arm) if arms.charged[arm] else {},
                    trust_in_prior=dict(trust) if first_reason == PRIOR else {},
                    like=like,
                )
            )
        return ArmList(explained, "maximize" if arms.scores.sign > 0 else "minimize")

    def _reason(self, arm: int) -> str:
        """Return why an arm has its status."""
        arms = self._arms
        why = self._why
        match arms.status(arm):
            case "unopened":
                return f"not opened: {why}" if why else "not opened yet"
            case "running":
                return "in training"
            case "failed":
                return f"retired: {self._failures.get(arm, 'score is not finite')}"
            case "finished":
                early = f"ended before its last epoch{arms.why_ended.get(arm, '')}"
                return early if arms.ended[arm] else "has used all its epochs"
        last = arms.history[-1]["arm"]
        if last == arm and (self._over or not why):
            return "trained last"
        if arm == self._best:
            paused = "paused with the best score"
        elif self._over and arms.scores.best(arm).epoch:
            return f"paused: {self._beside_best(arm)}; {self._over}"
        else:
            paused = "paused"
        return f"{paused}: {why or f'{self._policy.name} preferred arm {last}'}"

    def _beside_best(self, arm: int) -> str:
        """Return how an arm compares with the best one, by its last epoch and later."""
        scores = self._arms.scores
        n = int(self._arms.epochs[arm])
        score = scores.best(arm).score
        best = scores.best(self._best)
        epoch = min(n, len(self._reached))
        then = scores.sign * self._reached[epoch - 1]
        words = f"{score:.4g} by epoch {n}, where arm {self._best} had {then:.4g}"
        if best.epoch > n:
            words += f" and later {best.score:.4g}"
        expected = scores.sign * self._policy.projection(arm)
        if scores.sign * expected > scores.sign * score + 1e-9:
            words += f"; {expected:.4g} was expected at its end"
        return words


def _origin(opened_as: str, like: Sequence[int]) -> str:
    """Return how an arm was opened, if not in order, and which others it is like."""
    how = ""
    if opened_as != OPENED:
        how = f"; {opened_as}"
    if like:
        arms = "arms" if len(like) > 1 else "arm"
        numbers = ", ".join(map(str, like))
        how += f"; resembles {arms} {numbers}"
    return how
