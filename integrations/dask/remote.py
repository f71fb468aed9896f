"""What runs in the workers: parts of jobs, on data and states that stay there."""

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

KEPT_SHARE = 0.1
"""Of a worker's memory, for the states of paused arms."""
KEPT_BYTES = 2**30
"""The same where a worker's memory has no limit."""


@dataclass
class Counters:
    """What has come to one worker process since it started.

    Parameters
    ----------
    data : int
        How often the data of a search arrived.
    data_bytes : int
        Their size, added up.
    parts : int
        Parts of jobs that were trained: an epoch each, or some where these are short.
    stayed : int
        Those that went on from a state that was still there.
    sent : int
        Those that went on from a checkpoint that was sent.
    sent_bytes : int
        The size of these checkpoints, added up.
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
    """Return what has come to the workers of a cluster, by their addresses.

    Good for finding out what searches send over the network: a worker should get the
    data of a search once, and most arms should go on where they were.

    Parameters
    ----------
    client : distributed.Client
        A client of the cluster.

    Returns
    -------
    dict of str to Counters
        All searches since a worker started are added up.
    """
    counted: dict[str, dict[str, int]] = client.run(_counted)
    return {address: Counters(**numbers) for address, numbers in counted.items()}


def _counted() -> dict[str, int]:
    return asdict(_COUNTERS)


def _count(**numbers: int) -> None:
    with _COUNTING:
        for name, number in numbers.items():
            setattr(_COUNTERS, name, getattr(_COUNTERS, name) + number)


class Sent:
    """A trainable as it is sent: pickled once, unpickled once in every process.

    What training changes in it does not travel on to other workers.

    Parameters
    ----------
    pickled : bytes
        The trainable without its arrays.
    arrays : list of PickleBuffer
        These arrays, which are not copied.
    """

    def __init__(self, pickled: bytes, arrays: list[pickle.PickleBuffer]) -> None:
        self._pickled = pickled
        self._arrays = arrays
        self._trainable: Any = None
        self._lock = threading.Lock()

    @classmethod
    def of(cls, trainable: Any) -> Sent:
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
        return _arrived, (self._pickled, self._arrays)


def _arrived(pickled: bytes, arrays: list[pickle.PickleBuffer]) -> Sent:
    sent = Sent(pickled, arrays)
    _count(data=1, data_bytes=sent.n_bytes)
    return sent


class There:
    """What one worker has of a search: the trainable, and states of paused arms.

    Dask drops copies of data that no task needs just now, but not what only one worker
    has. That is never moved: what Dask moves or spills arrives empty, and the driver
    sends the data again if they are needed there.

    Parameters
    ----------
    sent : Sent, optional
        The trainable.
    """

    def __init__(self, sent: Sent | None = None) -> None:
        self.sent = sent
        self.states = KeptStates()

    def __reduce__(self) -> tuple[type[There], tuple[()]]:
        return There, ()


class KeptStates:
    """The live states of paused arms in a worker, those used last.

    A state is taken out before it is trained, so what is here has always been trained
    to the end of an epoch. Every time it is put back under another token: who asks by
    token gets the state that was reported, or none.
    """

    def __init__(self) -> None:
        self._states: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._n_bytes = 0
        self._lock = threading.Lock()

    def put(self, state: Any, n_bytes: int, most_bytes: float) -> str | None:
        """Keep a state and return its token, None if it is too large to be kept."""
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
        """Return a state and keep it no longer.

        Raises
        ------
        KeyError
            If it is not there.
        """
        with self._lock:
            state, n_bytes = self._states.pop(token)
            self._n_bytes -= n_bytes
        return state


class Reply(NamedTuple):
    """What comes back from a worker."""

    outcome: Outcome | None = None  # None where something was missing
    token: str | None = None  # of the state that stays there
    error: Exception | None = None  # not of the arm: the search ends


def train_arm(
    there: There, pickled: bytes, checkpoint: bytes | None, token: str | None
) -> Reply:
    """Train one part of a job, from a state that is here or from a checkpoint.

    Parameters
    ----------
    there : There
        What this worker has of the search.
    pickled : bytes
        The task, without its state.
    checkpoint : bytes or None
        The state, where it was sent.
    token : str or None
        Of the state that should be here.

    Returns
    -------
    Reply
        An empty one if the data or the state are not here.
    """
    if there.sent is None:
        return Reply()
    task: Task = pickle.loads(pickled)._replace(state=checkpoint)
    live = []
    if token is not None:
        try:
            live.append(there.states.take(token))
        except KeyError:
            return Reply()
    _count_part(task)
    try:
        trainable = there.sent.trainable
        begin = live.pop if live else partial(start_or_restore, trainable, task)
        outcome, state = run_from(begin, trainable, task)
    except Exception as error:
        return Reply(error=portable(error))
    if state is None:
        return Reply(outcome)
    n_bytes = len(outcome.resume_from)
    return Reply(outcome, there.states.put(state, n_bytes, _most_bytes()))


def _count_part(task: Task) -> None:
    if task.state is not None:
        _count(parts=1, sent=1, sent_bytes=len(task.state))
    elif task.behind < task.job.from_epoch:
        _count(parts=1, stayed=1)
    else:
        _count(parts=1)


def _most_bytes() -> float:
    """Return what states may take of this worker's memory."""
    limit = get_worker().memory_manager.memory_limit
    return KEPT_SHARE * limit if limit else KEPT_BYTES
