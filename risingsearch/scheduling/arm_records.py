"""The arms: their epochs, scores and status, and the epochs they are promised."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Job, Status, sign_of
from risingsearch.json_values import as_json, from_json

_SAVED = ("charged", "epochs", "failures", "busy", "ended", "failed")


class ArmRecords:
    """The arms' bookkeeping, and the one rule for failures and non-finite scores.

    Rewards are scores with the sign of the direction: higher is better. A failed epoch
    and a score that is not finite count as ``error_score``; by default as the worst
    score so far, or 0 before the first.
    """

    def __init__(
        self,
        n_arms: int,
        max_epochs: int,
        direction: str = "maximize",
        error_score: float | None = None,
        max_failures: int = 0,
    ) -> None:
        self.max_epochs = max_epochs
        self.sign = sign_of(direction)
        self.error_score = error_score
        self.max_failures = max_failures
        self.charged = np.zeros(n_arms, dtype=np.int64)  # epochs charged
        self.epochs = np.zeros(n_arms, dtype=np.int64)  # epochs trained
        self.failures = np.zeros(n_arms, dtype=np.int64)
        self.busy = np.zeros(n_arms, dtype=np.bool_)
        self.ended = np.zeros(n_arms, dtype=np.bool_)  # by itself
        self.failed = np.zeros(n_arms, dtype=np.bool_)  # and retired
        self._forget_scores()
        self.history: list[dict[str, Any]] = []
        self.counted_from = 0  # length of the history when the count began anew

    def _forget_scores(self) -> None:
        n_arms = len(self.charged)
        self.last = np.full(n_arms, math.nan)
        self.best = np.full(n_arms, math.nan)
        self.best_epoch = np.zeros(n_arms, dtype=np.int64)
        self.worst_reward = math.inf
        self.best_arm: int | None = None  # the first to reach the best score
        self.news_at = 0  # length of the history at the last new best score

    # --------------------------------------------------------------------- recording

    def forgive(self, arm: int) -> None:
        """Take back an arm that its failures have retired: it can fail once more."""
        self.failed[arm] = False
        self.failures[arm] = self.max_failures

    def stop(self, arm: int, n_failures: int, *, ended: bool) -> None:
        """Record that an arm trains no longer, and whether it can train again."""
        self.busy[arm] = False
        self.ended[arm] = ended
        self.failures[arm] += n_failures
        self.failed[arm] = self.failures[arm] > self.max_failures

    def end(self, arm: int) -> None:
        """Record that an arm that does not train has ended by itself."""
        self.ended[arm] = True

    def record(
        self,
        job: Job,
        round_: int,
        score: float,
        facts: dict[str, Any],
        *,
        trained: bool,
    ) -> float:
        """Record one charged epoch and return the reward that the policy is told.

        ``trained`` is False for an epoch that was lost to a failure; ``facts`` go into
        the row of the history.
        """
        arm = job.arm
        self.charged[arm] += 1
        self.epochs[arm] += trained
        epoch = int(self.epochs[arm]) + (not trained)
        self.history.append(
            {"arm": arm, "epoch": epoch, "score": score, "round": round_, "job": job.id}
            | facts
        )
        self._compare(arm, epoch, score, len(self.history))
        return self._reward(score)

    def _compare(self, arm: int, epoch: int, score: float, n_rows: int) -> None:
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
            if self.best_arm == arm:
                self.news_at = n_rows

    def _reward(self, score: float) -> float:
        if math.isfinite(score):
            return self.sign * score
        if self.error_score is not None:
            return self.sign * self.error_score
        return self.worst_reward if math.isfinite(self.worst_reward) else 0.0

    def begin_count_anew(self) -> None:
        """Count the epochs without a new best score from here on."""
        self.counted_from = len(self.history)

    # ----------------------------------------------------------------------- queries

    @property
    def n_without_news(self) -> int:
        """Epochs charged since there was a new best score."""
        return len(self.history) - max(self.news_at, self.counted_from)

    @property
    def has_provisional_rewards(self) -> bool:
        """Whether failures count as 0 because no score is known yet."""
        unknown = self.error_score is None and math.isinf(self.worst_reward)
        return unknown and bool(self.history)

    def rewards(self) -> list[tuple[int, int, float]]:
        """Return (round, arm, reward) of every charged epoch, in the order told.

        A failed epoch counts as the worst score known today.
        """
        return [
            (row["round"], row["arm"], self._reward(row["score"]))
            for row in self.history
        ]

    def live(self) -> NDArray[np.bool_]:
        """Return which arms could still train, busy ones included."""
        return ~self.ended & ~self.failed & (self.charged < self.max_epochs)

    def unopened(self) -> NDArray[np.int64]:
        """Return the arms that could be opened."""
        return np.flatnonzero((self.charged == 0) & ~self.busy & self.live())

    def has_finished(self, arm: int) -> bool:
        """Return whether the arm has ended by itself or used all its epochs."""
        return bool(self.ended[arm] or self.charged[arm] >= self.max_epochs)

    def status(self, arm: int) -> Status:
        """Return where the arm stands."""
        if self.busy[arm]:
            return "running"
        if self.failed[arm]:
            return "failed"
        if self.has_finished(arm):
            return "finished"
        return "paused" if self.charged[arm] else "unopened"

    def last_failures(self) -> dict[int, str]:
        """Return why arms failed last, by arm, where it was more than a score."""
        return {row["arm"]: row["failure"] for row in self.history if "failure" in row}

    # ------------------------------------------------------------------ saved states

    def state_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        arrays = {name: getattr(self, name).tolist() for name in _SAVED}
        history = [as_json(row) for row in self.history]
        anew = {"counted_from": self.counted_from} if self.counted_from else {}
        return arrays | {"history": history} | anew

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        for name in _SAVED:
            getattr(self, name)[:] = state[name]
        self._forget_scores()
        self.history = [from_json(row) for row in state["history"]]
        for n_rows, row in enumerate(self.history, start=1):
            self._compare(row["arm"], row["epoch"], row["score"], n_rows)
        self.counted_from = state.get("counted_from", 0)


ENQUEUED = "opened as enqueued"
"""Why an arm started that was to be opened before all others."""


class Openings(NamedTuple):
    """Arms that train before the policy is asked: enqueued, or below ``min_epochs``.

    An arm that is opened trains for ``min_epochs`` before it is judged, and none is
    opened that the budget cannot train so long. The arms ``enqueued`` come first, in
    that order.
    """

    min_epochs: int
    enqueued: tuple[int, ...]

    def owed(self, records: ArmRecords, affordable: NDArray[np.int64]) -> int | None:
        """Return the arm that trains before the policy is asked; None for no such."""
        if self.min_epochs == 1 and not self.enqueued:
            return None
        due = records.live() & ~records.busy & (affordable > 0)
        due &= records.epochs < self.min_epochs
        opened = due & (records.charged > 0)
        if self.min_epochs > 1 and opened.any():
            return int(opened.argmax())
        due &= ~self.too_late(records, affordable)
        return next((arm for arm in self.enqueued if due[arm]), None)

    def too_late(
        self, records: ArmRecords, affordable: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which arms are not opened, since the budget cannot train them long."""
        late: NDArray[np.bool_] = (records.charged == 0) & (
            affordable < self.min_epochs
        )
        return late

    def missing(self, epochs: int) -> int:
        """Return how many epochs an arm with so many lacks before it is judged."""
        return max(0, self.min_epochs - epochs)
