"""The result of a search as pages and figures read it: its room lies above this one."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from risingsearch.arms import Arm, Report
from risingsearch.budget import Budget

Row = Mapping[str, Any]
"""A row of a history, or a configuration: values by name."""


class ShownResult(Protocol):
    """A ``SearchResult``, which documents these attributes."""

    @property
    def arms(self) -> Sequence[Arm]:
        """The status of every arm."""

    @property
    def begun(self) -> str | None:
        """Date and time when the search was made."""

    @property
    def best_arm(self) -> int | None:
        """The arm with the best score."""

    @property
    def best_epoch(self) -> int:
        """The epoch of that score."""

    @property
    def best_params(self) -> Row:
        """The parameters of that arm."""

    @property
    def best_score(self) -> float:
        """That score."""

    @property
    def budget(self) -> Budget | None:
        """The budget, with all that was added."""

    @property
    def candidates(self) -> Sequence[Row]:
        """The parameters of every arm."""

    @property
    def curves(self) -> Mapping[int, Sequence[float]]:
        """The scores of every opened arm."""

    @property
    def direction(self) -> str:
        """Whether higher or lower scores are better."""

    @property
    def failures(self) -> Sequence[Report]:
        """The jobs that failed."""

    @property
    def history(self) -> Sequence[Row]:
        """One row per epoch, in the order told."""

    @property
    def left_out(self) -> str | None:
        """The facts that are not shown, in one sentence."""

    @property
    def max_epochs(self) -> int | None:
        """Epochs one arm can use at most."""

    @property
    def metric(self) -> str:
        """The name of the score."""

    @property
    def n_epochs(self) -> int:
        """Epochs charged."""

    @property
    def opened_by_prior(self) -> Sequence[int]:
        """The arms that earlier searches have opened."""

    @property
    def other_metrics(self) -> Sequence[str]:
        """The names of the other numbers in the history."""

    @property
    def repeats(self) -> Mapping[int, Sequence[float]]:
        """By arm, its scores with other seeds."""

    @property
    def returned_at(self) -> Mapping[int, float]:
        """By job, after how many wall-clock seconds it came back."""

    @property
    def standing(self) -> str:
        """How the best arm stands among all, as a clause."""

    @property
    def stop_reason(self) -> str:
        """Why the search ended."""

    @property
    def training_seconds(self) -> float:
        """Seconds of training, over all workers."""

    @property
    def trust_in_prior(self) -> Mapping[str, float]:
        """How far each earlier search is trusted."""

    @property
    def wall_seconds(self) -> float:
        """Wall-clock seconds in which the search ran."""
