"""The trials of a study that have not finished, as one process knows them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from optuna.trial import FrozenTrial, TrialState

from risingsearch.arms import Job
from risingsearch.integrations.optuna.trial_attributes import Slice


@dataclass
class OpenTrial:
    """A trial that has not finished."""

    trial: FrozenTrial
    slice: Slice
    job: Job | None = None  # None where it waits for epochs, or for its arm
    reserved: int = 0  # epochs it can be charged at most
    n_reports: int = 0
    heard: float = 0.0  # when it last reported, on this process's clock
    lost: bool = False  # taken for dead

    @property
    def is_undecided(self) -> bool:
        """Whether it is not known yet what it trains."""
        return self.slice.n_epochs is None

    @property
    def is_waiting(self) -> bool:
        """Whether it waits in the study's queue."""
        return self.trial.state == TrialState.WAITING

    @property
    def has_progressed(self) -> bool:
        """Whether it has reported, or finished, since it was last heard."""
        reports = self.trial.intermediate_values
        return self.trial.state.is_finished() or len(reports) > self.n_reports

    def hear(self) -> None:
        """Note the time if the trial has progressed."""
        if not self.heard or self.has_progressed:
            self.heard = time.monotonic()
            self.n_reports = len(self.trial.intermediate_values)


class OpenTrials(dict[int, OpenTrial]):
    """All trials that have not finished, by number."""

    def read(self, trials: Sequence[FrozenTrial]) -> None:
        """Replace each trial by what the storage says of it now."""
        for number, opened in self.items():
            opened.trial = trials[number]

    def is_taken(self, number: int, slice_: Slice) -> bool:
        """Whether a trial that came first may train the same epochs of the arm."""
        return any(
            i < number and o.reserved and o.slice[:2] == slice_[:2]
            for i, o in self.items()
        )

    def reserved_before(self, number: int) -> int:
        """Return what trials that came first can still be charged."""
        return sum(o.reserved for i, o in self.items() if i < number and not o.lost)

    def undecided_before(self, number: int) -> bool:
        """Whether a trial that came first may still give back what it has reserved."""
        return any(
            i < number
            and o.is_undecided
            and not o.lost
            and o.trial.state == TrialState.RUNNING
            for i, o in self.items()
        )

    def silent(self, seconds: float, mine: Collection[int]) -> Iterator[OpenTrial]:
        """Iterate over running trials of other processes that are silent for longer."""
        now = time.monotonic()
        for number, opened in self.items():
            runs = opened.trial.state == TrialState.RUNNING and number not in mine
            expected = runs and opened.reserved and not opened.lost
            if expected and now - opened.heard > seconds:
                yield opened
