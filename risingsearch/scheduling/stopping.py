"""Rules that end a search with budget left: a target is reached, or patience is out."""

from __future__ import annotations

from typing import Any

from risingsearch.arms import Job
from risingsearch.scheduling.options import SearchOptions
from risingsearch.scheduling.scheduler import Scheduler


class StoppingScheduler(Scheduler):
    """Scheduler that starts nothing more once a stop rule applies.

    The rules do not define a search: a saved one may continue under others.

    Parameters
    ----------
    patience : int, optional
        Epochs of the whole search, failed ones included, without a new best score after
        which it ends; at least 1. Jobs in flight are still told. The count begins anew
        with ``extend``.
    target_score : float, optional
        The search ends once the best score is as good, in the direction of the scores.
    **arguments
        Those of ``Scheduler``.

    Raises
    ------
    InvalidParameterError
        If an argument is outside its range.
    """

    def __init__(
        self,
        *,
        patience: int | None = None,
        target_score: float | None = None,
        **arguments: Any,
    ) -> None:
        self.stop_when(patience, target_score)
        super().__init__(**arguments)

    def stop_when(
        self, patience: int | None = None, target_score: float | None = None
    ) -> None:
        """Replace the rules.

        Raises
        ------
        InvalidParameterError
            If one is outside its range.
        """
        options = SearchOptions(patience=patience, target_score=target_score)
        self._patience, self._target_score = options.patience, options.target_score

    @property
    def found_enough(self) -> str | None:
        """Which rule ends the search, as a clause; None if none applies."""
        target, patience = self._target_score, self._patience
        if target is not None and self.sign * (self.best_score - target) >= 0.0:
            return f"the target_score of {target:g} is reached"
        if patience is None or self._records.n_without_news < patience:
            return None
        if self.spent >= self.budget or self._decider.owes():
            return None
        return f"the patience of {patience} epochs without a new best is exhausted"

    def ask(self) -> Job | None:
        """Return the next job, as ``Scheduler`` does; None once a rule applies."""
        return None if self.found_enough is not None else super().ask()

    def peek(self) -> Job | None:
        """Return the job that ``ask`` would return now; nothing is reserved."""
        return None if self.found_enough is not None else super().peek()

    @property
    def done(self) -> bool:
        """Whether nothing will start again under these rules and within the budget."""
        if self.in_flight:
            return False
        return super().done or self.found_enough is not None

    @property
    def stop_reason(self) -> str | None:
        """Why the search is done, as a sentence; None while it is not."""
        if self.in_flight or self.found_enough is None:
            return super().stop_reason
        left = self.budget - self.spent
        return f"{self.found_enough}, {left:g} of {self.budget:g} {self.unit} left"
