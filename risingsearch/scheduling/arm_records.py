"""What every arm has shown so far: its epochs, its scores, how it stands."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from risingsearch.arms import Job, Status
from risingsearch.json_values import as_json, from_json


class Standings:
    """The arms' bookkeeping, and the one rule for scores that are not finite.

    Inside, higher is better: this is the only place where ``direction`` counts.

    Parameters
    ----------
    n_arms : int
        Number of arms.
    direction : {"maximize", "minimize"}
        Whether higher or lower scores are better.
    error_score : float or None
        What a failed epoch or a score that is not finite counts as; None for the worst
        score so far, or 0 before the first.
    """

    def __init__(self, n_arms: int, direction: str, error_score: float | None) -> None:
        self.sign = 1.0 if direction == "maximize" else -1.0
        self.error_score = error_score
        self.charged = np.zeros(n_arms, dtype=np.int64)  # epochs charged
        self.epochs = np.zeros(n_arms, dtype=np.int64)  # epochs trained
        self.failures = np.zeros(n_arms, dtype=np.int64)
        self.busy = np.zeros(n_arms, dtype=np.bool_)
        self.ended = np.zeros(n_arms, dtype=np.bool_)  # by itself
        self.failed = np.zeros(n_arms, dtype=np.bool_)  # and retired
        self.last = np.full(n_arms, math.nan)
        self.best = np.full(n_arms, math.nan)
        self.best_epoch = np.zeros(n_arms, dtype=np.int64)
        self.worst_reward = math.inf
        self.best_arm: int | None = None  # the first to reach the best score
        self.history: list[dict[str, Any]] = []

    def record(
        self,
        job: Job,
        round_: int,
        score: float,
        facts: dict[str, Any],
        *,
        trained: bool,
    ) -> float:
        """Enter one charged epoch and return the reward that the policy is told.

        ``trained`` is False for an epoch that a failure has swallowed; ``facts`` go
        into the row of the history.
        """
        arm = job.arm
        self.charged[arm] += 1
        self.epochs[arm] += trained
        epoch = int(self.epochs[arm]) + (not trained)
        self.history.append(
            {"arm": arm, "epoch": epoch, "score": score, "round": round_, "job": job.id}
            | facts
        )
        self._note(arm, epoch, score)
        return self._reward(score)

    def _note(self, arm: int, epoch: int, score: float) -> None:
        if not math.isfinite(score):
            return
        reward = self.sign * score
        self.last[arm] = score
        self.worst_reward = min(self.worst_reward, reward)
        if math.isnan(self.best[arm]) or reward > self.sign * self.best[arm]:
            self.best[arm] = score
            self.best_epoch[arm] = epoch
            leader = self.best_arm
            if leader is None or reward > self.sign * self.best[leader]:
                self.best_arm = arm

    def _reward(self, score: float) -> float:
        if math.isfinite(score):
            return self.sign * score
        if self.error_score is not None:
            return self.sign * self.error_score
        return self.worst_reward if math.isfinite(self.worst_reward) else 0.0

    @property
    def guessing(self) -> bool:
        """Whether failures count as 0 because no score is known yet."""
        unknown = self.error_score is None and math.isinf(self.worst_reward)
        return unknown and bool(self.history)

    def rewards(self) -> list[tuple[int, int, float]]:
        """Return (round, arm, reward) of every charged epoch, in the order told.

        The worst score so far is the one of today: a failed epoch counts as that.
        """
        return [
            (row["round"], row["arm"], self._reward(row["score"]))
            for row in self.history
        ]

    def live(self, limit: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which arms could still train, busy ones included."""
        return ~self.ended & ~self.failed & (self.charged < limit)

    def status(self, arm: int, limit: int) -> Status:
        """Return where the arm stands."""
        if self.busy[arm]:
            return "running"
        if self.failed[arm]:
            return "failed"
        if self.ended[arm] or self.charged[arm] >= limit:
            return "finished"
        return "paused" if self.charged[arm] else "unopened"

    def state_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "charged": self.charged.tolist(),
            "epochs": self.epochs.tolist(),
            "failures": self.failures.tolist(),
            "busy": self.busy.tolist(),
            "ended": self.ended.tolist(),
            "failed": self.failed.tolist(),
            "history": [as_json(row) for row in self.history],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what ``state_dict`` returned."""
        for name in ("charged", "epochs", "failures", "busy", "ended", "failed"):
            getattr(self, name)[:] = state[name]
        self.last[:] = self.best[:] = math.nan
        self.best_epoch[:] = 0
        self.worst_reward = math.inf
        self.best_arm = None
        self.history = [from_json(row) for row in state["history"]]
        for row in self.history:
            self._note(row["arm"], row["epoch"], row["score"])
