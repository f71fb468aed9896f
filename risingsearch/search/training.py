"""The training of one job: its task, its worker, its epochs and its outcome."""

import json
import math
import pickle
import re
import sys
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from risingsearch.arms import COLUMNS, Configuration, Job, Params, Report
from risingsearch.checks import (
    LARGEST_COST,
    LARGEST_SCORE,
    checked_magnitude,
    is_cost,
    is_number,
    shown,
    unwrapped,
)
from risingsearch.errors import (
    InvalidParameterError,
    NotTrainableError,
    RunDirError,
    ScriptError,
    SearchFailedError,
    SetupError,
)
from risingsearch.json_values import as_json
from risingsearch.search.examples import (
    EXAMPLES,
    SCORES_OF,
    Measured,
    checked_examples,
)
from risingsearch.search.processes import LONGEST, time_limit
from risingsearch.search.trainable import (
    State,
    Trainable,
    dump,
    has_method,
    restore,
    trains_anew,
)

COST = "cost"
_FORKED = re.compile(
    r"CUDA in forked subprocess|CUDA error: initialization error|"
    r"combination with fork-based multiprocessing"
)
_GPU_ERROR = re.compile(r"\b(CUDA|HIP) error\b(?!: out of memory)")
RESERVED = frozenset(COLUMNS) - {COST}  # that is what an epoch reports of itself


class Task(NamedTuple):
    """A job with all that a worker needs to run it."""

    job: Job
    params: Configuration
    seed: int
    state: State  # to resume from: the live object, or its checkpoint
    as_bytes: bool  # the state comes back as a checkpoint
    may_retry: bool  # keep the state of the last good epoch, should the next one fail
    sign: float  # +1 where higher scores are better, else -1
    best_reward: float  # a snapshot is taken of what beats it
    wants_checkpoint: bool = False  # of the last state, to be saved
    wants_cost: bool = False  # of every epoch, since the budget is one
    is_checkpoint: bool = False  # the state, to be loaded by the job
    metric: str = "score"  # name of the score, by which train may return it
    epochs_missing: int = 0  # of those before the job: the state has not seen them
    interrupted: Callable[[], bool] = bool  # asked between epochs; bool() says no
    deadline: float = math.inf  # on time.time, after which no other epoch begins
    skips: bool = False  # nor the first one
    epoch_timeout: float = math.inf  # seconds of an epoch, after which its process ends


class Outcome(NamedTuple):
    """Outcome of a job: the report, the state, and the best state of the job."""

    report: Report
    ended: bool | str = False  # the arm, by itself; text: why
    resume_from: State = None  # the state, as in a task; None where nothing will resume
    snapshot: tuple[int, bytes] | None = None  # the arm's epoch, its state then
    n_calls: int = 0  # of train; not those that have only said that the arm has ended
    elapsed: float = 0.0  # seconds of training, a failed epoch's included
    checkpoint: bytes | None = None  # the state after the last score, to be saved
    now: float | None = None  # wall-clock time of the return, in the budget's unit
    clock: float | None = None  # the same in seconds, under any budget
    cost: float | None = None  # in the unit of the budget; None: not known
    attempts: int = 1  # that a failure stands for
    charged: int | None = None  # epochs that a failed job has trained; None: not known
    startup: float | None = None  # of that, before the first epoch; NaN: not known
    examples: Measured | None = None  # of the epoch of the job that the arm counts by
    leaves_gpu_unusable: bool = False  # no later job of the process can use its GPU

    @property
    def last_epoch(self) -> int:
        """The arm's last epoch with a score, after the job."""
        return self.report.job.from_epoch + len(self.report.scores)


class Workers(ABC):
    """Where a search has its jobs trained."""

    gpus: float | None = None  # of each worker, if it is given some
    is_own = False  # they belong to the search, not to its caller
    shares_process = False  # jobs run in this process, so that one can kill the search
    isolates_jobs = False  # one that dies takes one job with it, and is replaced
    end_jobs: Callable[[], object] = bool  # ends the processes that have one, at once
    progress_note: Callable[[], str] = str  # says why jobs have to wait, if they do

    def __init__(self, *, is_elastic: bool = False) -> None:
        self.is_elastic = is_elastic

    @property
    @abstractmethod
    def n_workers(self) -> int | None:
        """Number of jobs that can run at the same time now; None if it is unknown."""

    @abstractmethod
    def train(self, trainable: Trainable, task: Task) -> Future[Outcome]:
        """Start a job, as ``run_task`` would run it."""

    def recorded(self, job: Job) -> None:  # noqa: B027, most keep nothing
        """Drop files of a job that the search has recorded."""

    def release_idle(self) -> None:  # noqa: B027, most keep nothing
        """Release resources kept between jobs, when no job follows soon."""


class InProcess(Workers):
    """The process of the search: a job has run when ``train`` returns."""

    n_workers = 1
    shares_process = True

    def train(self, trainable: Trainable, task: Task) -> Future[Outcome]:
        """Run a job."""
        future: Future[Outcome] = Future()
        future.set_result(run_task(trainable, task))
        return future


class StartedEpochs(list[Any]):
    """Results of ``train_epochs``, with the seconds of the start and why they end."""

    def __init__(
        self, epochs: Iterable[Any], startup: float, why_ended: str | None = None
    ) -> None:
        super().__init__(epochs)
        self.startup = startup
        self.why_ended = why_ended


def run_task(trainable: Trainable, task: Task) -> Outcome:
    """Train the epochs of one job; a failure comes back in the report."""
    return run_from(partial(start_or_restore, trainable, task), trainable, task)[0]


def run_from(
    begin: Callable[[], State], trainable: Trainable, task: Task
) -> tuple[Outcome, State]:
    """Train the epochs of one job from the state that ``begin`` returns."""
    run = _JobRun(trainable, task)
    failure: Exception | None = None
    state = resume_from = None
    try:
        if task.skips and time.time() >= task.deadline:
            return run.outcome(None, task.state), None
        with run.clock, run.limited(1 + task.epochs_missing):
            state = begin()
        run.startup = run.clock.total
        run.train(state)
        if run.ended:
            state = None
        else:
            resume_from = run.kept if task.as_bytes else state
    except (RunDirError, SetupError):
        raise
    except Exception as error:
        if _FORKED.search(str(error)):
            raise SetupError(
                "a forked process cannot train with torch where its parent has used "
                "CUDA (torch.cuda.is_available() is enough): give a GpuPool as "
                "executor, or call multiprocessing.set_start_method('spawn') first"
            ) from error
        failure = error
        if task.as_bytes:
            failure = portable(error)
        state = None
        resume_from = run.kept if task.may_retry else None
    return run.outcome(failure, resume_from), state


class _JobRun:
    """Trains the epochs of one job, and holds their results so far."""

    def __init__(self, trainable: Trainable, task: Task) -> None:
        self.clock = _Clock()
        self.startup = 0.0
        self.ended: bool | str = False
        self.kept = task.state  # what the arm can be resumed from
        self._trainable = trainable
        self._task = task
        self._best_reward = task.best_reward
        self._snapshot: tuple[int, bytes] | None = None
        self._n_begun = 1  # epochs, of which the last may have failed
        self._scores: list[float] = []
        self._seconds: list[float] = []
        self._metrics: list[Params] = []
        self._examples: Measured | None = None
        self._n_calls = 0

    def train(self, state: State) -> None:
        """Train until the job is done, an epoch fails, or the arm or search ends."""
        task = self._task
        job = task.job
        last = job.from_epoch + job.n_epochs
        at_once = has_method(self._trainable, "train_epochs")
        dumped: Callable[[], bytes] = partial(dump, self._trainable, state)
        if at_once:
            results = self._all_at_once(state)
            dumped = cache(dumped)  # all epochs have changed the state
        else:
            results = self._one_by_one(state)
        for epoch, (seconds, result) in enumerate(results, job.from_epoch + 1):
            score, metrics = self._checked(epoch, result)
            is_over = (
                not math.isfinite(score)
                or task.interrupted()
                or time.time() >= task.deadline
            )
            is_last = epoch == last or (is_over and not at_once)
            self._keep(epoch, score, dumped, is_last=is_last)
            self._scores.append(score)
            self._metrics.append(metrics)
            self._seconds.append(seconds)
            if is_last:
                break

    def _one_by_one(self, state: State) -> Iterator[tuple[float, object]]:
        """Train epoch after epoch; yield the seconds and the result of each."""
        while True:
            self._n_calls += 1
            self._n_begun = self._n_calls
            try:
                with self.clock, self.limited(1):
                    result = self._trainable.train(state)
            except StopIteration as end:
                self._n_calls -= 1
                self._end(end.value)
                return
            yield self.clock.lap(), result

    def _all_at_once(self, state: State) -> Iterator[tuple[float, object]]:
        """Train all epochs in one call; yield their share of its seconds, and each."""
        self._n_begun = self._task.job.n_epochs
        with self.clock, self.limited(self._n_begun):
            results = self._trainable.train_epochs(state, self._n_begun)  # type: ignore[attr-defined]
        share = self.clock.lap() / max(1, len(results))
        self._n_begun = max(1, len(results))
        self.startup += getattr(results, "startup", 0.0)
        for result in results:
            self._n_calls += 1
            yield share, result
        self._end(getattr(results, "why_ended", None))

    def _end(self, why: object) -> None:
        """Note that the arm has ended by itself, and why if that is a text."""
        self.ended = why if why and isinstance(why, str) else True

    def limited(self, n_epochs: int) -> AbstractContextManager[None]:
        """End this process, with its traceback, if epochs take too long."""
        seconds = self._task.epoch_timeout * n_epochs
        if seconds > LONGEST:
            return nullcontext()
        return time_limit(seconds)

    def _checked(self, epoch: int, result: object) -> tuple[float, Params]:
        """Return the score and the metrics of an epoch, or raise an error."""
        task = self._task
        by = getattr(self._trainable, "scored_by", "train")
        score, metrics = checked_score(result, task.metric, by)
        if np.ndim(metrics.get(EXAMPLES, 0)):  # else it is a metric of that name
            self._keep_examples(epoch, score, metrics.pop(EXAMPLES), by)
        if task.wants_checkpoint and metrics:
            metrics = savable(metrics)
        if task.wants_cost and not is_cost(metrics.get(COST)):
            raise InvalidParameterError(
                "the budget is a cost, so train must return a mapping with 'score' and "
                f"'cost', a number from 0 to {LARGEST_COST:g}; got {shown(result)}"
            )
        return score, metrics

    def _keep_examples(self, epoch: int, score: float, examples: Any, by: str) -> None:
        """Keep the scores of examples if the arm counts by this epoch of the job."""
        sign = self._task.sign
        before = self._examples
        if not math.isfinite(score):
            return
        latest_counts = trains_anew(self._trainable)
        is_better = before is None or sign * score > sign * before.score
        if not is_better and not latest_counts:
            return
        if np.ndim(examples) == 1 or not has_method(self._trainable, SCORES_OF):
            examples = checked_examples(examples, score, by)
        self._examples = Measured(epoch, score, examples)

    def _keep(
        self, epoch: int, score: float, dumped: Callable[[], bytes], *, is_last: bool
    ) -> None:
        """Save the parts of the state that are kept after an epoch."""
        task = self._task
        is_best = math.isfinite(score) and task.sign * score > self._best_reward
        needed = is_last and (task.as_bytes or task.wants_checkpoint)
        if is_best or task.may_retry or needed:
            self.kept = dumped()
        if is_best:
            self._best_reward = task.sign * score
            self._snapshot = epoch, self.kept

    def outcome(self, failure: Exception | None, resume_from: State) -> Outcome:
        """Return the outcome of the job."""
        task = self._task
        resumes = self._scores and not self.ended and resume_from is not None
        return Outcome(
            Report(
                task.job,
                tuple(self._scores),
                tuple(self._seconds),
                tuple(self._metrics),
                failure,
            ),
            self.ended,
            resume_from,
            self._snapshot,
            self._n_calls,
            self.clock.total,
            checkpoint=self.kept if task.wants_checkpoint and resumes else None,
            charged=None if failure is None else self._n_charged(failure),
            startup=min(self.startup, self.clock.total),
            examples=self._examples,
            leaves_gpu_unusable=self._has_lost_gpu(failure),
        )

    def _n_charged(self, failure: Exception) -> int:
        """Return how many epochs were trained, the one that has failed included."""
        if isinstance(failure, ScriptError) and failure.n_reported is not None:
            return min(failure.n_reported + 1, self._task.job.n_epochs)
        return self._n_begun

    def _has_lost_gpu(self, failure: Exception | None) -> bool:
        """Whether no later job of this process can use its GPU: ask torch."""
        if failure is None and all(map(math.isfinite, self._scores)):
            return False
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            return bool(_GPU_ERROR.search(str(failure)))
        try:
            for device in range(torch.cuda.device_count()):
                if torch.cuda.memory_reserved(device):  # else it would be set up now
                    torch.cuda.synchronize(device)
        except RuntimeError:
            return True
        return False


class _Clock:
    """Sum of the seconds inside ``with``, or of counts in their place."""

    def __init__(self) -> None:
        self.total = 0.0
        self._at_last_lap = 0.0

    def __enter__(self) -> None:
        self._token = _COUNTED.set([])
        self._since = time.perf_counter()

    def __exit__(self, *exception: object) -> None:
        passed = time.perf_counter() - self._since
        self.total += sum(_COUNTED.get()) if _COUNTED.get() else passed
        _COUNTED.reset(self._token)

    def lap(self) -> float:
        """Return the seconds since the last lap."""
        seconds = self.total - self._at_last_lap
        self._at_last_lap = self.total
        return seconds


_COUNTED: ContextVar[list[float]] = ContextVar("counted")


def count_seconds(seconds: float) -> None:
    """Say how long the call of ``train`` or ``train_epochs`` that asks has trained."""
    _COUNTED.get([]).append(seconds)


def start_or_restore(trainable: Trainable, task: Task) -> State:
    """Return the state that a task begins from."""
    if task.epochs_missing < task.job.from_epoch:
        as_bytes = task.as_bytes or task.is_checkpoint
        state = task.state
        if as_bytes:
            state = restore(trainable, task.state)
    else:
        try:
            state = trainable.start(task.params, task.seed)
        except StopIteration as error:
            raise NotTrainableError(
                "start raised StopIteration; only train may say that an arm has ended"
            ) from error
    for _ in range(task.epochs_missing):
        trainable.train(state)
    return state


def checked_score(
    result: object, metric: str = "score", by: str = "train"
) -> tuple[float, Params]:
    """Split the result of ``train`` into the score (or ``metric``) and the others."""
    if type(result) is float and abs(result) <= LARGEST_SCORE:
        return result, {}
    more: Params = {}
    score: Any = unwrapped(result)
    if isinstance(result, Mapping):
        more = {name: unwrapped(value) for name, value in result.items()}
        named = more.get(metric)
        score = more.pop("score", named)
        if is_number(score) and is_number(named) and not _is_same(score, named):
            raise SetupError(
                f"metric={metric!r} is the name of the score, and {by} returned "
                f"{shown(named)} as {metric!r} and {shown(score)} as 'score': return "
                "the value to be searched for as 'score', and others under other names"
            )
        if taken := sorted(RESERVED & more.keys()):
            raise InvalidParameterError(
                f"{by} returned metrics named {taken}, which the history uses itself"
            )
    if not is_number(score):
        raise InvalidParameterError(
            f"{by} must return a number, or a mapping with a number as 'score'; "
            f"got {shown(result)}"
        )
    return checked_magnitude(f"the score that {by} returns", score), more


def _is_same(score: float, named: float) -> bool:
    return score == named or (math.isnan(score) and math.isnan(named))


def savable(metrics: Mapping[Any, object]) -> Params:
    """Return the metrics of an epoch, as text where JSON cannot hold them."""
    saved: Params = {}
    for name, value in metrics.items():
        text = name if isinstance(name, str) else shown(name)
        try:
            json.dumps(as_json({text: value}), ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError):
            msg = (
                f"the metric {text} is a {type(value).__name__}, which the run_dir "
                "keeps as text: return a number, text, or a list of them instead"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
            value = shown(value)
        saved[text] = value
    return saved


def raise_failure(report: Report, params: Configuration) -> None:
    """Raise the failure of a job, or its first score that is not finite, if any."""
    if report.failure is not None:
        raise report.failure
    for k, score in enumerate(report.scores):
        if not math.isfinite(score):
            epoch = report.job.from_epoch + k + 1
            raise SearchFailedError(
                f"arm {report.job.arm} with {params} scored {score} at epoch {epoch}, "
                "and error_score is 'raise'"
            )


def without_frames(error: BaseException) -> None:
    """Turn the traceback of an error into text: its frames would keep states alive."""
    if error.__traceback__ is not None:
        error.add_note("".join(traceback.format_exception(error)).rstrip())
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__


def portable(error: Exception) -> Exception:
    """Return the error fit to travel between processes."""
    text = "".join(traceback.format_exception(error))
    without_frames(error)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(text)
    return error
