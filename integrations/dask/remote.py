"""Code that runs in the workers: it trains chunks on data and states held there."""

from __future__ import annotations

import pickle
import threading
import uuid
from collections import OrderedDict
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import cloudpickle
from distributed import Client, get_worker

from risingsearch.search.trainable import (
    Outcome,
    Task,
    portable,
    run_from,
    start_or_restore,
)

STATES_SHARE = 0.1
"""The share of a worker's memory for the states of paused arms."""
STATES_BYTES = 2**30
"""The same in bytes, if a worker's memory has no limit."""


@dataclass
class Counters:
    """Numbers of what one worker process has received since it started.

    Parameters
    ----------
    data : int
        How often the data of a search arrived.
    data_bytes : int
        Their total size.
    parts : int
        Chunks of jobs that were trained: an epoch each, or several short ones.
    stayed : int
        Chunks that continued from a state that the worker still held.
    sent : int
        Chunks that continued from a checkpoint that was sent.
    sent_bytes : int
        The total size of these checkpoints.
    """

    data: int = 0
    data_bytes: int = 0
    parts: int = 0
    stayed: int = 0
    sent: int = 0
    sent_bytes: int = 0


_COUNTERS = Counters()
_COUNTING = threading.Lock()


def counters(client: Client) -> dict[str, Counters]:
    """Count what the workers of a cluster have received, by their addresses.

    This shows what searches send over the network: a worker should get the data of a
    search once, and most arms should stay where they were.

    Parameters
    ----------
    client : distributed.Client
        A client of the cluster.

    Returns
    -------
    dict of str to Counters
        Totals over all searches since a worker started.
    """
    counted: dict[str, dict[str, int]] = client.run(_counted)
    return {address: Counters(**numbers) for address, numbers in counted.items()}


def _counted() -> dict[str, int]:
    return asdict(_COUNTERS)


def _count(**numbers: int) -> None:
    with _COUNTING:
        for name, number in numbers.items():
            setattr(_COUNTERS, name, getattr(_COUNTERS, name) + number)


class SharedTrainable:
    """A trainable that is pickled once, and unpickled once in every process.

    Its arrays are pickled separately and not copied. Changes by training do not reach
    other workers.
    """

    def __init__(self, pickled: bytes, arrays: list[pickle.PickleBuffer]) -> None:
        self._pickled = pickled
        self._arrays = arrays
        self._trainable: Any = None
        self._lock = threading.Lock()

    @classmethod
    def of(cls, trainable: Any) -> SharedTrainable:
        """Pickle a trainable, with functions and classes that only this process has."""
        arrays: list[pickle.PickleBuffer] = []
        return cls(
            cloudpickle.dumps(trainable, protocol=5, buffer_callback=arrays.append),
            arrays,
        )

    @property
    def trainable(self) -> Any:
        """The trainable, one for all threads of a process."""
        with self._lock:
            if self._trainable is None:
                self._trainable = pickle.loads(self._pickled, buffers=self._arrays)
            return self._trainable

    @property
    def n_bytes(self) -> int:
        """The size of all that is sent."""
        arrays = sum(memoryview(array).nbytes for array in self._arrays)
        return len(self._pickled) + arrays

    def __sizeof__(self) -> int:
        return self.n_bytes  # for Dask's memory management

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self._pickled, self._arrays)


def _received(pickled: bytes, arrays: list[pickle.PickleBuffer]) -> SharedTrainable:
    shared = SharedTrainable(pickled, arrays)
    _count(data=1, data_bytes=shared.n_bytes)
    return shared


class WorkerData:
    """Trainable and states of paused arms that one worker holds.

    Dask drops copies of data that no task needs at the moment, but not the only one.
    This cannot be moved: if Dask moves or spills it, it arrives empty, and the driver
    sends the data again if they are needed.
    """

    def __init__(self, shared: SharedTrainable | None = None) -> None:
        self.shared = shared
        self.states = LiveStates()

    def __reduce__(self) -> tuple[type[WorkerData], tuple[()]]:
        return WorkerData, ()


class LiveStates:
    """Live states of the most recently used paused arms in a worker.

    A state is removed before it is trained, so all that are here ended an epoch. It
    comes back under a new token every time, so a token gives the state that was
    reported with it, or none.
    """

    def __init__(self) -> None:
        self._states: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._n_bytes = 0
        self._lock = threading.Lock()

    def put(self, state: Any, n_bytes: int, most_bytes: float) -> str | None:
        """Keep a state and return its token; None if the state is too large."""
        if n_bytes > most_bytes:
            return None
        token = uuid.uuid4().hex
        with self._lock:
            self._n_bytes += n_bytes
            while self._n_bytes > most_bytes:
                _, (_, freed) = self._states.popitem(last=False)
                self._n_bytes -= freed
            self._states[token] = state, n_bytes
        return token

    def take(self, token: str) -> Any:
        """Remove a state and return it; a KeyError if there is none of this token."""
        with self._lock:
            state, n_bytes = self._states.pop(token)
            self._n_bytes -= n_bytes
        return state


class Reply(NamedTuple):
    """Answer of a worker for a chunk."""

    outcome: Outcome | None = None  # None if the data or the state were missing
    token: str | None = None  # of the state that stays on the worker
    error: Exception | None = None  # not the arm's fault: it ends the search


def train_chunk(
    data: WorkerData, pickled: bytes, checkpoint: bytes | None, token: str | None
) -> Reply:
    """Train one chunk of a job, from a state that is held here or from a checkpoint.

    ``pickled`` is the task without its state, which was sent as a checkpoint or is held
    here under the token. The reply is empty if the data or the state are missing.
    """
    if data.shared is None:
        return Reply()
    task: Task = pickle.loads(pickled)._replace(state=checkpoint)
    live = []
    if token is not None:
        try:
            live.append(data.states.take(token))
        except KeyError:
            return Reply()
    _count_chunk(task)
    try:
        trainable = data.shared.trainable
        begin = live.pop if live else partial(start_or_restore, trainable, task)
        outcome, state = run_from(begin, trainable, task)
    except Exception as error:
        return Reply(error=portable(error))
    if state is None:
        return Reply(outcome)
    n_bytes = len(outcome.resume_from)
    return Reply(outcome, data.states.put(state, n_bytes, _most_bytes()))


def _count_chunk(task: Task) -> None:
    _count(parts=1)
    if task.state is not None:
        _count(sent=1, sent_bytes=len(task.state))
    elif task.epochs_missing < task.job.from_epoch:
        _count(stayed=1)


def _most_bytes() -> float:
    """Return how much of this worker's memory states may take."""
    limit = get_worker().memory_manager.memory_limit
    return STATES_SHARE * limit if limit else STATES_BYTES
