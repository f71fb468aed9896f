"""What can be trained by epochs, and how one job of it runs, here or in a worker."""

from __future__ import annotations

import os
import pickle
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, Protocol

from risingsearch.arms import Job, Report
from risingsearch.errors import InvalidParameterError, NotTrainableError

RESERVED = frozenset(
    {"arm", "epoch", "score", "seconds", "round", "job", "reason", "failure"}
)


class Trainable(Protocol):
    """Anything that trains: two methods, and two more to keep its state elsewhere.

    ``start(params, seed) -> state`` builds a model that has seen nothing.
    ``train(state) -> score`` trains it one epoch more, in place, and returns its
    validation score: a number, or a mapping with a ``"score"`` and other metrics.
    Raising ``StopIteration`` says that there is nothing more to train.

    ``save(state, path)`` and ``load(path) -> state`` are optional, together: they write
    and read one file. Without them states are pickled, so they must be picklable where
    they travel to another process, and a run directory should come from people you
    trust: unpickling a file can run any code in it.
    """

    def start(self, params: Mapping[str, Any], seed: int) -> Any:
        """Return a state that has seen nothing."""
        ...

    def train(self, state: Any) -> float | Mapping[str, Any]:
        """Train one epoch more and return the validation score."""
        ...


@dataclass(frozen=True, slots=True)
class Functions:
    """Functions as a trainable.

    Parameters
    ----------
    start : callable
        ``start(params, seed) -> state``.
    train : callable
        ``train(state) -> score``, one epoch more.
    save, load : callable, optional
        ``save(state, path)`` and ``load(path) -> state``.

    Examples
    --------
    >>> def start(params, seed):
    ...     return {"epochs": 0, **params}
    >>> def train(state):
    ...     state["epochs"] += 1
    ...     return 1 - 1 / (state["rate"] * state["epochs"] + 1)
    >>> counting = Functions(start, train)
    >>> counting.train(counting.start({"rate": 1.0}, seed=0))
    0.5
    """

    start: Callable[[Mapping[str, Any], int], Any]
    train: Callable[[Any], float | Mapping[str, Any]]
    save: Callable[[Any, str], None] | None = None
    load: Callable[[str], Any] | None = None


def checked_trainable(trainable: Any) -> Trainable:
    """Return the trainable, or raise what it lacks.

    Raises
    ------
    NotTrainableError
        If ``start`` or ``train`` is missing, or one of ``save`` and ``load``.
    """
    for name in ("start", "train"):
        if not callable(getattr(trainable, name, None)):
            msg = (
                f"{trainable!r} has no {name}: a trainable has start(params, seed) and "
                "train(state); wrap plain functions in Functions(start, train)"
            )
            raise NotTrainableError(msg)
    if _has(trainable, "save") != _has(trainable, "load"):
        msg = f"{trainable!r} has one of save and load: give both or neither"
        raise NotTrainableError(msg)
    return trainable  # type: ignore[no-any-return]


def dump(trainable: Any, state: Any) -> bytes:
    """Return the state as bytes, by the trainable's own ``save`` or by pickle."""
    if not _has(trainable, "save"):
        return pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL)
    with tempfile.TemporaryDirectory(prefix="risingsearch-") as folder:
        path = os.path.join(folder, "checkpoint")
        trainable.save(state, path)
        with open(path, "rb") as file:
            return file.read()


def restore(trainable: Any, checkpoint: bytes) -> Any:
    """Return the state that ``dump`` wrote."""
    if not _has(trainable, "load"):
        return pickle.loads(checkpoint)
    with tempfile.TemporaryDirectory(prefix="risingsearch-") as folder:
        path = os.path.join(folder, "checkpoint")
        with open(path, "wb") as file:
            file.write(checkpoint)
        return trainable.load(path)


def _has(trainable: Any, name: str) -> bool:
    return callable(getattr(trainable, name, None))


class Task(NamedTuple):
    """A job with all that a worker needs to run it."""

    job: Job
    params: Mapping[str, Any]
    seed: int
    state: Any  # None: start; bytes if it travels, else the live object
    travels: bool
    protected: bool  # keep the state of the last good epoch, for a retry
    sign: float  # +1 where higher scores are better, else -1
    best_reward: float  # a snapshot is taken of what beats it


class Outcome(NamedTuple):
    """What a worker brings back: the report, the state, the best state of the job."""

    report: Report
    state: Any
    snapshot: tuple[int, bytes] | None  # the arm's epoch, its state then
    n_calls: int  # of train
    elapsed: float  # seconds of training, a failed epoch's included


def run_task(trainable: Any, task: Task) -> Outcome:
    """Train the epochs of one job; a failure comes back in the report.

    The clock runs while the arm starts, resumes and trains, not while it is saved.
    """
    scores: list[float] = []
    seconds: list[float] = []
    metrics: list[dict[str, Any]] = []
    snapshot = None
    best_reward = task.best_reward
    failure: BaseException | None = None
    state = None
    good = task.state
    n_calls = 0
    lost = 0.0
    since = time.perf_counter()
    try:
        state = _begin(trainable, task)
        for k in range(task.job.n_epochs):
            n_calls += 1
            score, more = _score_of(trainable.train(state))
            scores.append(score)
            metrics.append(more)
            seconds.append(time.perf_counter() - since)
            if task.sign * score > best_reward:
                best_reward = task.sign * score
                snapshot = (task.job.from_epoch + k + 1, dump(trainable, state))
            if task.protected:
                good = dump(trainable, state)
            since = time.perf_counter()
    except StopIteration:
        n_calls -= 1
    except Exception as error:
        lost = time.perf_counter() - since
        failure = _portable(error) if task.travels else error
    if failure is not None:
        state = good if task.protected else None
    elif task.travels:
        state = dump(trainable, state)
    report = Report(task.job, tuple(scores), tuple(seconds), tuple(metrics), failure)
    return Outcome(report, state, snapshot, n_calls, sum(seconds) + lost)


def _begin(trainable: Any, task: Task) -> Any:
    if task.state is None:
        return trainable.start(task.params, task.seed)
    return restore(trainable, task.state) if task.travels else task.state


def _score_of(result: float | Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
    """Split what ``train`` returned into the score and the other metrics."""
    more: dict[str, Any] = {}
    score: Any = result
    if isinstance(result, Mapping):
        more = dict(result)
        score = more.pop("score", None)
        taken = sorted(RESERVED & more.keys())
        if taken:
            msg = f"train returned metrics named {taken}, which the history uses itself"
            raise InvalidParameterError(msg)
    if isinstance(score, bool) or not isinstance(score, Real):
        msg = (
            "train must return a number, or a mapping with a number as 'score'; "
            f"got {result!r}"
        )
        raise InvalidParameterError(msg)
    return float(score), more


def _portable(error: Exception) -> Exception:
    """Return the error fit to travel between processes, with its traceback."""
    error.add_note("in the worker:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error
