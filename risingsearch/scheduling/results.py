"""Results of jobs, as they are told to a scheduler."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from risingsearch.arms import Job
from risingsearch.checks import checked_magnitude, is_number, shown, unwrapped
from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import Json, as_json, from_json
from risingsearch.scheduling.events import Started


class Result(NamedTuple):
    """Scores and cost of a job.

    Parameters
    ----------
    job : Job
        The job.
    scores : tuple of float
        One for each epoch that has one.
    cost : float or None
        In the unit of the budget, if it is known.
    failure : str or None
        Why it failed, if it did.
    ended : bool or str
        Whether fewer scores than epochs mean that the arm has ended; a text says why.
    attempts : int
        Failed attempts that a failure stands for.
    charged : int
        Epochs that were trained, with and without a score.
    """

    job: Job
    scores: tuple[float, ...]
    cost: float | None
    failure: str | None
    ended: bool | str
    attempts: int
    charged: int

    @property
    def has_ended(self) -> bool:
        """Whether the arm has ended by itself; a last lost score is a failure."""
        is_short = len(self.scores) < self.job.n_epochs
        is_lost = not all(map(math.isfinite, self.scores[-1:]))
        return bool(self.ended) and is_short and not is_lost

    @property
    def n_failures(self) -> int:
        """Failed attempts and scores that are not finite."""
        n_lost = sum(not math.isfinite(score) for score in self.scores)
        return n_lost if self.failure is None else n_lost + self.attempts

    def rows(self, decision: Started) -> list[Json]:
        """Return a row of the history for each epoch that is charged.

        The epochs without a score have failed, or the last one if the failure came
        after it.
        """
        job = self.job
        n_scores = len(self.scores)
        cost = math.nan if self.cost is None else self.cost / max(1, self.charged)
        facts = {"cost": cost, "reason": decision.reason, **decision.parts}
        rows = []
        for k in range(self.charged):
            if self.failure is not None and k >= min(n_scores, self.charged - 1):
                facts["failure"] = self.failure
            row: Json = {
                "arm": job.arm,
                "epoch": job.from_epoch + k + 1,
                "score": self.scores[k] if k < n_scores else math.nan,
                "round": decision.round + k,
                "job": job.id,
            }
            rows.append(row | facts | row)  # no part of an index stands for these
        return rows

    def to_json(self) -> list[object]:
        """Return the result as JSON values."""
        return [self.job.to_json(), as_json(self.scores), *self[2:]]

    @classmethod
    def from_json(cls, values: list[Any]) -> Result:
        """Read the values of ``to_json``."""
        job = Job.from_json(values[0])
        scores = tuple(from_json(values[1]))
        rest = values[2:]
        if len(rest) == 4:  # an earlier release charged a failure the whole job
            rest.append(len(scores) if rest[1] is None else job.n_epochs)
        return cls(job, scores, *rest)


def checked_scores(job: Job, scores: float | Iterable[float]) -> tuple[float, ...]:
    """Return the scores of a job, one per epoch; raise an error if they are invalid."""
    try:
        told: tuple[object, ...] = tuple(scores)  # type: ignore[arg-type]
    except TypeError:
        told = (scores,)
    checked = []
    for score in map(unwrapped, told):
        if not is_number(score):
            msg = f"scores must be numbers, one per epoch; got {shown(score)}"
            raise InvalidParameterError(msg)
        checked.append(checked_magnitude("a score", score))
    if len(checked) > job.n_epochs:
        msg = f"{job} has {job.n_epochs} epochs; got {len(checked)} scores"
        raise InvalidParameterError(msg)
    return tuple(checked)
