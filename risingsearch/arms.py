"""The small facts that travel between scheduler, workers and users."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from risingsearch.errors import MissingDependencyError
from risingsearch.json_values import Json

Configuration = Mapping[str, Any]
"""The value of each parameter, by its name."""
Params = dict[str, Any]
"""A configuration that can be changed."""

Status = Literal["unopened", "running", "paused", "finished", "failed"]

# Why an arm trains; the first four open it.
OPENED = "opened"
ENQUEUED = "opened as enqueued"
PROPOSED = "opened as proposed"
PRIOR = "opened by prior"
CONTINUED = "continued"
REVIVED = "revived"

# Of a history: no part of an index, and no metric, may be called that.
COLUMNS = (
    "arm",
    "epoch",
    "score",
    "seconds",
    "round",
    "job",
    "cost",
    "reason",
    "failure",
)


def as_frame(rows: Sequence[Mapping[str, object]]) -> Any:
    """Return rows as a pandas DataFrame."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "pandas is not installed; run: pip install pandas"
        ) from error
    return pd.DataFrame(list(rows))


def sign_of(direction: str) -> float:
    """Return the factor for scores that makes higher better: 1.0 or -1.0."""
    return {"maximize": 1.0, "minimize": -1.0}[direction]


@dataclass(frozen=True, slots=True)
class Job:
    """A reservation: this arm trains now, for so many epochs.

    Parameters
    ----------
    arm : int
        Which arm, from 0.
    from_epoch : int
        How many epochs the arm has behind it: 0 opens it, more resumes it.
    n_epochs : int
        How many epochs it gets, at least 1.
    id : int
        Unique in its search; jobs are numbered in the order of the decisions.

    Examples
    --------
    >>> from risingsearch import Scheduler
    >>> Scheduler("round-robin", n_arms=2, budget=4).ask()
    Job(arm=0, from_epoch=0, n_epochs=1, id=0)
    """

    arm: int
    from_epoch: int
    n_epochs: int
    id: int

    def to_json(self) -> list[int]:
        """Return the job as JSON values."""
        return [
            self.arm,
            self.from_epoch,
            self.n_epochs,
            self.id,
        ]

    @classmethod
    def from_json(cls, values: Sequence[int]) -> Job:
        """Read the values of ``to_json``, or raise a ValueError or TypeError."""
        if not all(type(value) is int and value >= 0 for value in values):
            raise ValueError(
                f"a job is four whole numbers of at least 0; got {values!r:.100}"
            )
        return cls(*values)


@dataclass(frozen=True, slots=True)
class Report:
    """Outcome of a job.

    Parameters
    ----------
    job : Job
        The job that ran.
    scores : tuple of float
        One score per epoch trained; fewer than asked: the arm ended by itself,
        or the job failed after them.
    seconds : tuple of float
        Training time of each of these epochs.
    metrics : tuple of dict
        Other values that the trainable reported, one dict per epoch.
    failure : BaseException, optional
        Why the job stopped before its time.

    Examples
    --------
    >>> from risingsearch import Job, Report
    >>> job = Job(arm=2, from_epoch=3, n_epochs=1, id=9)
    >>> Report(job, scores=(0.8,)).failure is None
    True
    """

    job: Job
    scores: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    metrics: tuple[Json, ...] = ()
    failure: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Arm:
    """Where one arm stands, and why it waits.

    Parameters
    ----------
    arm : int
        Its number.
    status : {"unopened", "running", "paused", "finished", "failed"}
        ``finished``: it has used its ``max_epochs`` or ended by itself;
        ``failed``: it was retired after a failure.
    epochs : int
        Epochs trained.
    charged : int
        Epochs paid for: those trained and those lost to failures.
    last_score, best_score : float
        In the user's own direction; NaN before the first finite score.
    best_epoch : int
        The epoch of ``best_score``, from 1; 0 before the first finite score.
    failures : int
        Failed jobs and non-finite scores.
    reason : str
        Why the arm has its status, as text.
    index : dict of str to float
        The named parts of the policy's index, from ``explain``.
    trust_in_prior : dict of str to float
        Where earlier searches have opened the arm, how far each of them is
        trusted by now, by its name, from 0 to 1; else empty.
    like : tuple of int
        The arms that its configuration resembles, where it was proposed for that.
    params : dict
        Its parameters; empty in ``explain`` of a ``Scheduler``, which knows none.
    seed : int, optional
        The seed that ``start`` gets with them; None where no search has given one.

    Examples
    --------
    >>> from risingsearch import Scheduler
    >>> scheduler = Scheduler("round-robin", n_arms=2, budget=4)
    >>> scheduler.tell(scheduler.ask(), 0.7)
    >>> arm = scheduler.explain()[0]
    >>> arm.status, arm.epochs, arm.best_score
    ('paused', 1, 0.7)
    """

    arm: int
    status: Status
    epochs: int
    charged: int
    last_score: float
    best_score: float
    best_epoch: int
    failures: int
    reason: str = ""
    index: dict[str, float] = field(default_factory=dict)
    trust_in_prior: dict[str, float] = field(default_factory=dict)
    like: tuple[int, ...] = ()
    params: Configuration = field(default_factory=dict)
    seed: int | None = None

    @property
    def opened_by_prior(self) -> bool:
        """Whether earlier searches have opened the arm."""
        return bool(self.trust_in_prior)


class ArmList(list[Arm]):
    """Every arm, at the place of its number; prints those opened, the best first.

    ``standing`` is asked, when it is printed, how the best one stands among all.
    """

    def __init__(
        self, arms: Iterable[Arm], direction: str, standing: Callable[[], str] = str
    ) -> None:
        super().__init__(arms)
        self._direction = direction
        self._standing = standing

    def with_standing(self, standing: Callable[[], str]) -> ArmList:
        """Return the arms with a line on how the best one stands among all."""
        return ArmList(self, self._direction, standing)

    def to_frame(self) -> Any:
        """Return all arms as a pandas DataFrame, with the parts of their index."""
        rows = [{k: getattr(arm, k) for k in _PLAIN} | arm.index for arm in self]
        return as_frame(rows)

    def __repr__(self) -> str:
        sign = 1 if self._direction == "minimize" else -1
        opened = [arm for arm in self if arm.status != "unopened"]
        opened.sort(key=lambda arm: (math.isnan(arm.best_score), sign * arm.best_score))
        table = [("arm", "status", "epochs", "best", "at epoch", "last", "why")]
        table += [
            (
                str(arm.arm),
                arm.status,
                str(arm.epochs),
                f"{arm.best_score:.6g}",
                str(arm.best_epoch),
                f"{arm.last_score:.6g}",
                arm.reason.partition("\n")[0],  # of a failure, which may be long
            )
            for arm in opened
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
        if n_more := len(self) - len(opened):
            lines.append(f"{n_more} more are not opened")
        if standing := self._standing():
            lines.append(standing)
        return "\n".join(lines)


_PLAIN = tuple(
    part.name for part in fields(Arm) if part.name not in ("index", "params", "seed")
)


@dataclass(frozen=True, slots=True)
class EpochFacts:
    """Facts of an epoch for callbacks, the same on every interface of a search.

    Parameters
    ----------
    search : str
        Which search: the same when it is resumed.
    number : int
        Epochs charged up to this one, over all arms.
    arm : int
        Which arm; in Optuna, the number of the trial that opened it.
    params : dict
        Its parameters.
    epoch : int
        The arm's own epoch, from 1.
    score : float
        Its score, in the user's direction; NaN where a failure has cost the epoch.
    metrics : dict
        Other values that were reported.
    seconds : float
        Seconds of training; NaN where they are not known.
    reason : str
        Why the arm trained: "opened", "opened as enqueued", "opened as proposed",
        "opened by prior", "continued" or "revived".
    failure : str, optional
        Why the epoch was lost, or the failure after it.
    best_arm : int, optional
        The arm with the best score so far; None before the first finite one.
    best_score : float
        That score; NaN before the first finite one.
    best_epoch : int
        Its epoch; 0 before the first finite one.
    budget_left : float
        The rest of the budget, in its unit; NaN for an epoch that was told to an
        earlier process under a budget that is not in epochs.
    stop : callable
        ``epoch.stop()`` ends the search once the jobs in flight are back; a resumed
        search continues. In Optuna it is ``study.stop``.

    Examples
    --------
    >>> from risingsearch import Functions, RisingSearch
    >>> def start(params, seed):
    ...     return dict(params)
    >>> def train(state):
    ...     return state["top"]
    >>> def show(facts):
    ...     print(facts.number, facts.params, facts.score, facts.reason)
    >>> search = RisingSearch(
    ...     Functions(start, train), [{"top": 0.7}], budget=2, callbacks=[show], seed=0
    ... )
    >>> result = search.run()
    1 {'top': 0.7} 0.7 opened
    2 {'top': 0.7} 0.7 continued
    """

    search: str
    number: int
    arm: int
    params: Configuration
    epoch: int
    score: float
    metrics: Mapping[str, Any]
    seconds: float
    reason: str
    failure: str | None
    best_arm: int | None
    best_score: float
    best_epoch: int
    budget_left: float
    stop: Callable[[], object] = field(repr=False, compare=False)

    @property
    def is_lost(self) -> bool:
        """Whether a failure has cost the epoch, so that it may be trained again."""
        return self.failure is not None and math.isnan(self.score)

    @property
    def is_best(self) -> bool:
        """Whether the epoch has brought the best score so far."""
        return (self.arm, self.epoch) == (self.best_arm, self.best_epoch)


@dataclass(frozen=True, slots=True)
class SearchFacts:
    """Facts of a search for callbacks, when it begins, resumes or ends.

    Parameters
    ----------
    search : str
        Which search: the same when it is resumed.
    policy : str
        Name of the policy.
    metric : str
        The name of the score.
    direction : {"maximize", "minimize"}
        Whether higher or lower scores are better.
    budget : float
        The whole budget.
    unit : str
        Its unit: "epochs", "cost", "seconds", "hours", "gpu_hours", "wall_seconds" or
        "wall_hours".
    max_epochs : int, optional
        Epochs that one arm can use at most.
    best_arm, best_score, best_epoch
        As in ``EpochFacts``, by now.
    best_params : dict
        The parameters of the best arm; empty before the first finite score.
    stop_reason : str, optional
        Why there is nothing left to train; None if the search can continue.
    earlier : sequence of EpochFacts
        When a search begins: the epochs of this search so far, in the order told. Not
        empty if it is resumed. Empty at its end.
    save_best : callable, optional
        At the end: writes the best model into a folder, given as a ``Path``.

    Examples
    --------
    >>> from risingsearch import Callback, Functions, RisingSearch
    >>> class Ends(Callback):
    ...     def on_end(self, facts):
    ...         print(facts.best_params, facts.stop_reason)
    >>> def start(params, seed):
    ...     return dict(params)
    >>> def train(state):
    ...     return state["top"]
    >>> trainable = Functions(start, train)
    >>> search = RisingSearch(trainable, [{"top": 0.7}], budget=2, callbacks=[Ends()])
    >>> result = search.run()
    {'top': 0.7} the budget of 2 epochs is spent
    """

    search: str
    policy: str
    metric: str
    direction: str
    budget: float
    unit: str
    max_epochs: int | None
    best_arm: int | None
    best_score: float
    best_epoch: int
    best_params: Configuration
    stop_reason: str | None = None
    earlier: Sequence[EpochFacts] = field(default=(), repr=False)
    save_best: Callable[[Any], object] | None = field(default=None, repr=False)
