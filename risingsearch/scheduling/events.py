"""Events of a search: its journal is a list of them.

Every event is a line of JSON, named by its ``event``. ``Died``, ``Released`` and
``Stopped`` say what became of processes and runs, ``TrialOpened`` and ``TrialReported``
what another tool has done: these change no scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from risingsearch.arms import Configuration, Job
from risingsearch.budget import Budget
from risingsearch.checks import is_number
from risingsearch.errors import RunDirError
from risingsearch.identity.comparison import described
from risingsearch.json_values import Json, as_json, from_json


@dataclass(frozen=True, kw_only=True)
class Event:
    """Base class of events: a dataclass with the name that it has in a journal.

    Attributes
    ----------
    name : str
        The name.
    changes_scheduler : bool, default True
        Whether ``replay.apply`` does anything with it. If not, a replay is as without
        it, and the reason of a stop before it still holds.
    """

    name: ClassVar[str]
    changes_scheduler: ClassVar[bool] = True

    def to_json(self) -> Json:
        """Return the event as JSON values, without those at their defaults."""
        values: Json = {"event": self.name}
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                values[field.name] = _saved(value)
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> Self:
        """Read the values of ``to_json``; an unknown value is an error."""
        taken = {
            name: _READERS.get(name, _as_it_is)(from_json(value))
            for name, value in values.items()
            if name != "event"
        }
        if unknown := sorted(taken.keys() - {field.name for field in fields(cls)}):
            raise RunDirError(
                f"the journal has {unknown[0]!r} in an event {cls.name!r}, which is "
                "unknown here: use the release that wrote it"
            )
        return cls(**cls._completed(taken))

    @classmethod
    def _completed(cls, values: Json) -> Json:
        """Return the fields with those that are not saved."""
        return values


@dataclass(frozen=True, kw_only=True)
class Started(Event):
    """A job began, or is tried again: the decision to start it.

    Parameters
    ----------
    job : Job
        The job.
    reason : str
        Why it starts, as of ``EpochFacts``.
    parts : dict
        The parts of its arm's index.
    seen : int, optional
        The results applied before it; None if they are applied in the order told.
    instead_of : int, optional
        The unopened arm that the policy had selected, if another was proposed for it.
    params : dict, optional
        The configuration that was proposed for the arm.
    like : tuple of int
        The arms that this configuration resembles.
    here : bool, optional
        Whether the job trains in the process that searches, so that it can end it.
    asked : float, optional
        When a program asked for the job, to train it by itself, in Unix time; None
        if the search has it trained.
    round : int
        The round of its first epoch, once it has started; not in a journal.
    """

    name = "started"
    job: Job
    reason: str
    parts: dict[str, float]
    seen: int | None = None
    instead_of: int | None = None
    params: Configuration | None = None
    like: tuple[int, ...] = ()
    here: bool | None = None
    asked: float | None = None
    round: int = 0

    def to_json(self) -> Json:
        """Return the event as JSON values, without its round."""
        values = super().to_json()
        values.pop("round", None)
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> Self:
        """Read the values of ``to_json``, or raise a ValueError."""
        started = super().from_json(values)
        numbers = [*started.like, started.instead_of, started.seen]
        counts = [number for number in numbers if number is not None]
        is_start = (
            all(type(count) is int and count >= 0 for count in counts)
            and isinstance(started.params, Mapping | None)
            and isinstance(started.reason, str)
            and (started.asked is None or is_number(started.asked))
            and all(map(is_number, started.parts.values()))
        )
        if not is_start:
            raise ValueError(f"the start of {started.job} is none")
        return started


@dataclass(frozen=True, kw_only=True)
class Returned(Event):
    """A job came back with its scores.

    Parameters
    ----------
    job : Job
        The job.
    scores : tuple of float
        One per epoch.
    seconds, metrics : tuple
        The time and the other values of each of these epochs.
    elapsed : float, optional
        Seconds of training, a failed epoch's included; None where they are not known.
    calls : int
        Calls of ``train``.
    cost : float, optional
        Cost in the unit of the budget, ``elapsed`` if it is not in the journal.
    startup : float, optional
        Seconds before the first epoch; NaN if they are not known.
    now : float, optional
        Wall-clock time of the return, in the unit of the budget.
    clock : float, optional
        The same in seconds, ``now`` if it is not in the journal.
    ended : bool or str
        Whether the arm has ended by itself; a text says why.
    best : int, optional
        The arm's epoch whose state was kept as the best.
    checkpoint : str, optional
        The name of the checkpoint after these epochs, where another tool keeps it.
    """

    name = "result"
    job: Job
    scores: tuple[float, ...]
    seconds: tuple[float, ...] = ()
    metrics: tuple[Json, ...] = ()
    elapsed: float | None = None
    calls: int = 0
    cost: float | None = None
    startup: float | None = None
    now: float | None = None
    clock: float | None = None
    ended: bool | str = False
    best: int | None = None
    checkpoint: str | None = None

    def to_json(self) -> Json:
        """Return the event as JSON values."""
        values = super().to_json()
        if self.elapsed is not None or self.metrics:
            for name in ("seconds", "metrics", "calls"):
                values[name] = _saved(getattr(self, name))
        values.pop("cost", None)
        if self.cost != self.elapsed:
            values["cost"] = self.cost
        if self.clock == self.now:
            values.pop("clock", None)
        return values

    @classmethod
    def _completed(cls, values: Json) -> Json:
        values.setdefault("cost", values.get("elapsed"))
        values.setdefault("clock", values.get("now"))
        return values


@dataclass(frozen=True, kw_only=True)
class Failed(Returned):
    """A job that has failed after its scores.

    Parameters
    ----------
    failure : str
        Why, as text.
    failure_type : str
        The name of the exception's type.
    failure_module : str, optional
        The module of that type, if it is none of Python's own.
    attempts : int
        Failed attempts that it stands for.
    charged : int
        Epochs that were trained; all of the job in journals of before this was noted.
    """

    name = "failed"
    failure: str
    charged: int
    failure_type: str = "Exception"
    failure_module: str | None = None
    attempts: int = 1

    @classmethod
    def _completed(cls, values: Json) -> Json:
        values.setdefault("charged", values["job"].n_epochs)
        return super()._completed(values)


@dataclass(frozen=True, kw_only=True)
class TrialOpened(Event):
    """An arm is a trial that another tool has proposed.

    Parameters
    ----------
    arm : int
        The arm.
    trial : str
        The id of the trial.
    params : dict
        Its configuration.
    """

    name = "opened"
    changes_scheduler = False
    arm: int
    trial: str
    params: Configuration


@dataclass(frozen=True, kw_only=True)
class TrialReported(Event):
    """A trial of another tool has reported an epoch; its job may still train.

    Parameters
    ----------
    trial : str
        The id of the trial.
    epoch : int
        Its epoch, from 1.
    score : float
        The score of the epoch.
    result : dict
        All that was reported.
    number : int, optional
        The number of the checkpoint that holds the epoch, if one does.
    safe : bool
        Whether that checkpoint was there before the report.
    """

    name = "reported"
    changes_scheduler = False
    trial: str
    epoch: int
    score: float
    result: Json
    number: int | None
    safe: bool


@dataclass(frozen=True, kw_only=True)
class Ended(Event):
    """These arms train no more, though no job said so."""

    name = "ended"
    arms: list[int]


@dataclass(frozen=True, kw_only=True)
class Extended(Event):
    """So much was added to the budget; ``kept`` more, in its unit, for repeats."""

    name = "extended"
    budget: Budget
    kept: float = 0


@dataclass(frozen=True, kw_only=True)
class Advanced(Event):
    """The clock stands at ``now``, though no job came back; the rest may be kept."""

    name = "advanced"
    now: float
    keeps_rest: bool = False


@dataclass(frozen=True, kw_only=True)
class Resized(Event):
    """So many jobs may be in flight from here on."""

    name = "resized"
    n_jobs: int


@dataclass(frozen=True, kw_only=True)
class Died(Event):
    """The process ended in which these jobs trained: an attempt of each."""

    name = "died"
    changes_scheduler = False
    jobs: list[int]


@dataclass(frozen=True, kw_only=True)
class Released(Event):
    """The jobs in flight were interrupted, which is no attempt."""

    name = "released"
    changes_scheduler = False


@dataclass(frozen=True, kw_only=True)
class Stopped(Event):
    """The search has ended early, for this reason."""

    name = "stopped"
    changes_scheduler = False
    reason: str


@dataclass(frozen=True, kw_only=True)
class Repeated(Event):
    """An arm was trained again with another seed, which tells of its noise.

    Parameters
    ----------
    arm, number : int
        The arm, and the number of the repeat among those of the arm, from 0.
    scores : tuple of float
        One per epoch.
    elapsed, cost : float
        Seconds of training, and the cost in the unit of the budget.
    failure : str, optional
        Why it has no score of the arm's best epoch.
    """

    name = "repeated"
    changes_scheduler = False
    arm: int
    number: int
    scores: tuple[float, ...]
    elapsed: float
    cost: float
    failure: str | None = None


KINDS: dict[str, type[Event]] = {
    kind.name: kind
    for kind in (
        Started,
        Returned,
        Failed,
        TrialOpened,
        TrialReported,
        Ended,
        Extended,
        Advanced,
        Resized,
        Died,
        Released,
        Stopped,
        Repeated,
    )
}


def event_of(values: Mapping[str, Any]) -> Event:
    """Return the event of a line of a journal.

    Parameters
    ----------
    values : dict
        The line, as JSON values.

    Returns
    -------
    Event
        An instance of the class with its name.

    Raises
    ------
    RunDirError
        If this release does not know such an event, or a value in it.

    Examples
    --------
    >>> event_of({"event": "resized", "n_jobs": 2})
    Resized(n_jobs=2)
    """
    kind = KINDS.get(values["event"])
    if kind is None:
        raise RunDirError(
            f"the journal has an event {values['event']!r}, which is unknown here: "
            "use the release that wrote it"
        )
    return kind.from_json(values)


_READERS: dict[str, Callable[[Any], object]] = {
    "job": Job.from_json,
    "budget": Budget.from_json,
    "scores": tuple,
    "seconds": tuple,
    "metrics": tuple,
    "like": tuple,
}
"""Make fields of JSON values, by their names; others are saved as they are."""


def _as_it_is(value: object) -> object:
    return value


def _saved(value: object) -> object:
    """Return a field as JSON values."""
    if isinstance(value, Job | Budget):
        return value.to_json()
    if isinstance(value, Mapping):
        return saved_params(value)
    return as_json(list(value) if isinstance(value, tuple) else value)


def saved_params(params: Configuration) -> Json:
    """Return a configuration as JSON; values that it cannot hold by their digest."""
    values: Json = {}
    for name, value in params.items():
        try:
            values[name] = as_json(value)
        except TypeError:
            values[name] = described(value)
    return {"$dict": values} if any(name[:1] == "$" for name in values) else values
