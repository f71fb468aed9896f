"""What starting a job takes, learnt from jobs, and how long jobs are because of it."""

from __future__ import annotations

import math
from statistics import median_low
from typing import Any, NamedTuple

FIRST_SHARE, LATER_SHARE = 0.25, 0.5
"""Of the epochs that a start is worth: so many have the first job of an arm and the
later ones at least. Longer jobs open too few arms, shorter ones do little but start:
the lab book has the regrets, on recorded curves and in the simulated cluster."""
WHOLE_SHARE = 0.5
"""Of an arm's epochs: where a start is worth as many, pausing saves too little."""
STEP = 2.0
"""Factor by which what a start is worth changes before jobs do: a new estimate that
says nearly the same changes nothing, nor do starts that take less than two epochs."""
UNKNOWN = 0.0
"""What a start is worth while jobs do not tell: they have two epochs, which can."""
MOST = 2.0**30
N_RECENT = 5
"""Starts that say what the next one is expected to take: their median, because the
first job of a worker can take long where no other does."""


class JobLengths(NamedTuple):
    """Epochs that jobs have at least."""

    first: int  # of an arm
    later: int


def job_lengths(worth: float, max_epochs: int) -> JobLengths:
    """Return how long jobs are that take as long to start as so many epochs.

    A later job trains half as long as it starts, and the first of an arm a quarter:
    what pays here is another arm. Where a start is worth half of an arm's epochs, the
    arm is trained in one go.

    Examples
    --------
    >>> job_lengths(worth=30.0, max_epochs=81)
    JobLengths(first=8, later=15)
    >>> job_lengths(worth=30.0, max_epochs=50)
    JobLengths(first=50, later=50)
    >>> job_lengths(worth=0.5, max_epochs=81)
    JobLengths(first=1, later=1)
    """
    if worth == UNKNOWN:
        two = min(2, max_epochs)
        return JobLengths(two, two)
    if worth > 1.0 and worth >= WHOLE_SHARE * max_epochs:
        return JobLengths(max_epochs, max_epochs)
    first, later = math.ceil(FIRST_SHARE * worth), math.ceil(LATER_SHARE * worth)
    return JobLengths(max(1, first), max(1, later))


class Start(NamedTuple):
    """What of a job was none of its epochs."""

    within: float = 0.0  # of its cost; NaN: nobody knows
    besides: float = 0.0  # by the clock, the time away that is no part of its cost

    @property
    def is_known(self) -> bool:
        """Whether somebody has measured it."""
        return not math.isnan(self.within)


class SlowStarts(NamedTuple):
    """What the starts of jobs have cost so far, in the unit of the budget.

    A job whose start nobody has measured has it in its cost. As long as there are only
    such jobs, they say what an epoch costs.

    Examples
    --------
    >>> SlowStarts().known(cost=30.0).compared(epoch=2.0).worth
    15.0
    >>> SlowStarts().known(cost=0.3).compared(epoch=2.0).worth
    1.0
    """

    cost: float = 0.0  # of all starts that are known
    recent: tuple[float, ...] = ()  # the last of them
    unknown_cost: float = 0.0  # of jobs that came back while none was known
    unknown_epochs: float = 0.0  # of these, weighted as the budget weights them
    worth: float = 1.0  # epochs that cost as much as a start; jobs are as long for it

    @property
    def expected(self) -> float:
        """What a start is expected to cost; 0 while none is known."""
        return median_low(self.recent) if self.recent else 0.0

    def known(self, cost: float) -> SlowStarts:
        """Return what is known with one start more."""
        recent = (*self.recent, cost)[-N_RECENT:]
        return self._replace(cost=self.cost + cost, recent=recent)

    def unknown(self, cost: float, epochs: float) -> SlowStarts:
        """Return what is known with a job whose start was not measured."""
        return self._replace(
            unknown_cost=self.unknown_cost + cost,
            unknown_epochs=self.unknown_epochs + epochs,
        )

    def compared(self, epoch: float) -> SlowStarts:
        """Return the same with a start compared with what an epoch costs."""
        if not self.recent:
            return self._replace(worth=UNKNOWN if self.unknown_epochs else 1.0)
        worth = max(1.0, min(self.expected / epoch, MOST) if epoch else MOST)
        worth = worth if self.expected else 1.0
        if self.worth / STEP < worth < self.worth * STEP:
            return self
        return self._replace(worth=worth)

    @classmethod
    def from_json(cls, values: Any) -> SlowStarts:
        """Return what was saved as a list; states of earlier releases have none."""
        if values is None:
            return NOTHING_KNOWN
        cost, recent, *rest = values
        return cls(cost, tuple(recent), *rest)


NOTHING_KNOWN = SlowStarts()
