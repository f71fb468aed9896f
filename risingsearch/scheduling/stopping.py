"""When a search ends that has budget left: it has found enough, or nothing for long."""

from __future__ import annotations

from dataclasses import dataclass

from risingsearch.scheduling.arm_records import ArmRecords
from risingsearch.scheduling.options import SearchOptions


@dataclass(frozen=True)
class Stopping:
    """The rules by which a search stops looking.

    They are no part of what defines a search: it may go on under others.

    Parameters
    ----------
    patience : int, optional
        Epochs of the whole search without a new best score.
    target_score : float, optional
        The score that is enough.

    Raises
    ------
    InvalidParameterError
        If one is outside its range.
    """

    patience: int | None = None
    target_score: float | None = None

    def __post_init__(self) -> None:
        SearchOptions(patience=self.patience, target_score=self.target_score)

    def reached(self, records: ArmRecords) -> str | None:
        """Return that the target is reached, in words; None where it is not."""
        best = records.best_arm
        if self.target_score is None or best is None:
            return None
        if records.sign * (records.best[best] - self.target_score) < 0.0:
            return None
        return f"the target_score of {self.target_score:g} is reached"

    def exhausted(self, records: ArmRecords) -> str | None:
        """Return that the patience is exhausted, in words; None where it is not."""
        if self.patience is None or records.n_without_news < self.patience:
            return None
        return f"the patience of {self.patience} epochs without a new best is exhausted"


NEVER = Stopping()
"""Only the end of the budget ends a search."""
