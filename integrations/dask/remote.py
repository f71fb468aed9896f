"""Code that runs in the workers: it trains jobs on data and states held there."""

from __future__ import annotations

import pickle
import threading
import uuid
from functools import partial
from typing import Any, NamedTuple

import cloudpickle
from distributed import get_worker
from zict import LRU

from risingsearch.search.training import (
    Outcome,
    Task,
    portable,
    run_from,
    start_or_restore,
)

STATES_SHARE = 0.1  # the share of a worker's memory for the states of paused arms
STATES_BYTES = 2**30  # the same in bytes, if a worker's memory has no limit


class SharedTrainable:
    """Trainable that is pickled once, and unpickled once in every process."""

    def __init__(self, pickled: bytes, arrays: list[pickle.PickleBuffer]) -> None:
        self._pickled = pickled
        self._arrays = arrays
        self._trainable: Any = None
        self._lock = threading.Lock()

    @classmethod
    def of(cls, trainable: object) -> SharedTrainable:
        """Pickle a trainable, with functions and classes that only this process has."""
        arrays: list[pickle.PickleBuffer] = []
        return cls(
            cloudpickle.dumps(
                trainable,
                protocol=5,
                buffer_callback=arrays.append,
            ),
            arrays,
        )

    @property
    def trainable(self) -> Any:
        """The trainable, one for all threads of a process."""
        with self._lock:
            if self._trainable is None:
                self._trainable = pickle.loads(self._pickled, buffers=self._arrays)
            return self._trainable

    def __sizeof__(self) -> int:  # for Dask's memory management
        arrays = sum(memoryview(array).nbytes for array in self._arrays)
        return len(self._pickled) + arrays

    def __reduce__(self) -> tuple[type[SharedTrainable], tuple[object, ...]]:
        return SharedTrainable, (self._pickled, self._arrays)


class WorkerData:
    """Trainable and live states of paused arms that one worker holds.

    The most recently used states are kept, within a share of the worker's memory. A
    state is removed before it is trained, and comes back under a new token every time,
    so a token gives the state that was reported with it, or none.

    Parameters
    ----------
    shared : SharedTrainable, optional
        The trainable; None where it was lost.
    most_bytes : float, optional
        For states; by default a tenth of the worker's memory.

    Examples
    --------
    >>> data = WorkerData(most_bytes=10)
    >>> token = data.put("state", n_bytes=7)
    >>> data.take(token)
    'state'
    """

    def __init__(
        self, shared: SharedTrainable | None = None, most_bytes: float | None = None
    ) -> None:
        self.shared = shared
        if most_bytes is None and shared:  # by how much memory this worker may take
            limit = get_worker().memory_manager.memory_limit
            most_bytes = STATES_SHARE * limit if limit else STATES_BYTES
        self._states: LRU[str, tuple[object, int]] = LRU(
            most_bytes or 0, {}, weight=lambda _, sized: sized[1]
        )

    def __reduce__(self) -> tuple[type[WorkerData], tuple[()]]:
        return WorkerData, ()

    def put(self, state: object, n_bytes: int) -> str | None:
        """Keep a state.

        Parameters
        ----------
        state : object
            The live state.
        n_bytes : int
            Its size.

        Returns
        -------
        str or None
            Its token; None if the state is too large.
        """
        token = uuid.uuid4().hex
        self._states[token] = state, n_bytes
        return token if token in self._states else None

    def take(self, token: str) -> object:
        """Remove a state and return it.

        Parameters
        ----------
        token : str
            As ``put`` has returned it.

        Returns
        -------
        object
            The live state.

        Raises
        ------
        KeyError
            If there is none of this token.
        """
        state, _ = self._states.pop(token)
        return state


class Reply(NamedTuple):
    """Answer of a worker for a job."""

    outcome: Outcome | None = None  # None if the data or the state were missing
    token: str | None = None  # of the state that stays on the worker
    error: Exception | None = None  # not the arm's fault: it ends the search


def train_job(
    data: WorkerData,
    pickled: bytes,
    checkpoint: bytes | None,
    token: str | None,
) -> Reply:
    """Train one job, from a state that is held here or from a checkpoint.

    Parameters
    ----------
    data : WorkerData
        What this worker holds.
    pickled : bytes
        The task, without its state.
    checkpoint : bytes or None
        The state that it begins from, if none is held here.
    token : str or None
        That of the state that is held here.

    Returns
    -------
    Reply
        Without an outcome where the data or the state are missing.
    """
    if data.shared is None:
        return Reply()
    task: Task = pickle.loads(pickled)._replace(state=checkpoint)
    live = []
    if token is not None:
        try:
            live.append(data.take(token))
        except KeyError:
            return Reply()
    try:
        trainable = data.shared.trainable
        begin = live.pop if live else partial(start_or_restore, trainable, task)
        outcome, state = run_from(begin, trainable, task)
    except Exception as error:
        return Reply(error=portable(error))
    if state is None:
        return Reply(outcome)
    return Reply(outcome, data.put(state, len(outcome.resume_from)))
