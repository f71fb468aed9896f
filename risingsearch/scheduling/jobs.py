"""Jobs, from the decision to start one until its result is recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice
from typing import Any, NamedTuple

from risingsearch.arms import Job
from risingsearch.checks import checked_magnitude, is_number, shown
from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import as_json, from_json

# Iterable, but not as numbers one after the other.
_NO_SEQUENCES = (str, bytes, bytearray, memoryview, Mapping, Set)


class Decision(NamedTuple):
    """Why a job was started."""

    round: int  # of the job's first epoch
    reason: str
    parts: dict[str, float]  # of the arm's index
    seen: int | None = None  # results recorded before it; None: in the order told
    given: bool = False  # by the caller of ``start``
    instead_of: int | None = None  # the unopened arm that the policy had selected


class Result(NamedTuple):
    """Result of a job: its scores and its cost."""

    job: Job
    scores: tuple[float, ...]
    cost: float | None
    failure: str | None
    ended: bool  # what fewer scores than epochs mean
    attempts: int = 1  # that a failure stands for

    @property
    def charged(self) -> int:
        """Epochs that are paid for: a failure costs all that were reserved."""
        return len(self.scores) if self.failure is None else self.job.n_epochs

    def to_json(self) -> list[Any]:
        """Return the result as JSON values."""
        return [self.job.to_json(), as_json(self.scores), *self[2:]]

    @classmethod
    def from_json(cls, values: list[Any]) -> Result:
        """Read what ``to_json`` wrote."""
        job, scores, *rest = values
        return cls(Job.from_json(job), tuple(from_json(scores)), *rest)


class Jobs:
    """Jobs in flight, and results that wait for the decision that may see them."""

    def __init__(self) -> None:
        self.n_asked = 0
        self.rounds = 0  # epochs charged or reserved
        self.n_recorded_in_order = 0
        self.in_flight: dict[int, Job] = {}
        self._decisions: dict[int, Decision] = {}  # until the result is recorded
        self._told: dict[int, Result] = {}

    def start(self, arm: int, from_epoch: int, n_epochs: int, why: Decision) -> Job:
        """Return a new job."""
        job = Job(arm, from_epoch, n_epochs, self.n_asked)
        self.n_asked += 1
        self.rounds += n_epochs
        self._decisions[job.id] = why
        self.in_flight[job.id] = job
        return job

    def tell(self, result: Result) -> None:
        """Keep the result of a job in flight until it is recorded."""
        del self.in_flight[result.job.id]
        self._told[result.job.id] = result

    @property
    def next_is_told(self) -> bool:
        """Whether the next job in the order of the decisions has a result."""
        return self.n_recorded_in_order in self._told

    @property
    def has_told(self) -> bool:
        """Whether a result is told and not recorded."""
        return bool(self._told)

    def earliest_told(self) -> tuple[Result, Decision]:
        """Return the result told of the earliest decision, jobs in flight left out."""
        self.n_recorded_in_order = min(self._told)
        return self.next_result()

    def next_result(self) -> tuple[Result, Decision]:
        """Return the result of the next job in the order of the decisions."""
        self.n_recorded_in_order += 1
        return self.result_of(self.n_recorded_in_order - 1)

    def result_of(self, job_id: int) -> tuple[Result, Decision]:
        """Return the result of a job that was told, and why it had been started."""
        result = self._told.pop(job_id)
        self.rounds -= result.job.n_epochs - result.charged
        return result, self._decisions.pop(job_id)

    def why(self, job: Job) -> Decision:
        """Return why a job was started that is not recorded yet."""
        return self._decisions[self.checked(job).id]

    def unrecorded(self) -> Iterator[tuple[int, Decision]]:
        """Yield the arm of every job that is not recorded yet, and why it started."""
        for job_id, why in self._decisions.items():
            told = self._told.get(job_id)
            yield (self.in_flight[job_id] if told is None else told.job).arm, why

    def checked(self, job: Job) -> Job:
        """Return the job if it is in flight, else raise an error."""
        if not isinstance(job, Job) or type(job.id) is not int:
            msg = f"tell and fail take a Job from ask; got {shown(job)}"
            raise InvalidParameterError(msg)
        if self.in_flight.get(job.id) == job:
            return job
        if 0 <= job.id < self.n_asked and job.id not in self.in_flight:
            msg = f"{shown(job)} was told before; a job is told once"
        else:
            msg = (
                f"{shown(job)} was never asked for; tell and fail take the jobs ask "
                "gave"
            )
        raise InvalidParameterError(msg)

    # ------------------------------------------------------------------ saved states

    def state_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "in_flight": [job.to_json() for job in self.in_flight.values()],
            "decisions": [
                [job_id, *why._replace(parts=as_json(why.parts))]
                for job_id, why in self._decisions.items()
            ],
            "n_asked": self.n_asked,
            "told": [result.to_json() for result in self._told.values()],
            "n_taken_in": self.n_recorded_in_order,
            "rounds": self.rounds,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        in_flight = [Job.from_json(job) for job in state["in_flight"]]
        told = [Result.from_json(values) for values in state["told"]]
        self.in_flight = {job.id: job for job in in_flight}
        self._told = {result.job.id: result for result in told}
        self._decisions = {
            job_id: Decision(round_, reason, from_json(parts), *others)
            for job_id, round_, reason, parts, *others in state["decisions"]
        }
        self.n_asked = state["n_asked"]
        self.n_recorded_in_order = state["n_taken_in"]
        self.rounds = state["rounds"]


def checked_scores(job: Job, scores: float | Iterable[float]) -> tuple[float, ...]:
    """Return the scores of a job, one per epoch; raise an error if they are invalid."""
    given: tuple[Any, ...]
    try:
        given = tuple(islice(scores, job.n_epochs + 1))  # type: ignore[arg-type]
    except TypeError:
        given = (scores,)
    if isinstance(scores, _NO_SEQUENCES):
        given = (scores,)
    for score in given:
        if not is_number(score):
            msg = f"scores must be numbers, one per epoch; got {shown(score)}"
            raise InvalidParameterError(msg)
    if len(given) > job.n_epochs:
        msg = f"{job} has {job.n_epochs} epochs; got more scores"
        raise InvalidParameterError(msg)
    return tuple(checked_magnitude("a score", score) for score in given)
