"""Passes over a data loader that can stop and resume anywhere."""

from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

from risingsearch.checks import checked_int
from risingsearch.integrations.torch.random_states import (
    States,
    loader_state,
    random_states,
    set_loader_state,
    set_random_states,
)


class Batches:
    """The batches of a loader, pass after pass, as many at a time as wanted.

    For searches whose unit is a number of steps instead of an epoch. A resumed run gets
    the same batches in the same order: earlier ones are loaded again and skipped.
    Lightning takes it as a loader, and saves its state.

    Parameters
    ----------
    loader : DataLoader
        The source of the batches, not empty.
    n_batches : int
        Batches of one iteration, at least 1: the steps of an epoch of the search.

    Raises
    ------
    InvalidParameterError
        If ``n_batches`` is not a whole number of at least 1.

    Examples
    --------
    >>> batches = Batches(DataLoader([1, 2, 3, 4, 5], batch_size=2), 4)
    >>> [batch.tolist() for batch in batches]
    [[1, 2], [3, 4], [5], [1, 2]]
    >>> [batch.tolist() for batch in batches]
    [[3, 4], [5], [1, 2], [3, 4]]
    """

    def __init__(self, loader: DataLoader, n_batches: int) -> None:
        self.loader = loader
        self.n_batches = checked_int("n_batches", n_batches, 1)
        self._n_delivered = 0  # of the present pass
        self._begin: States | None = None
        self._iterator: Iterator[object] | None = None

    def __len__(self) -> int:
        return self.n_batches

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self.n_batches):
            yield self._next()

    def state_dict(self) -> States:
        """Return where the pass began, how far it is, and the loader's generators."""
        return {
            "begin": self._begin,
            "delivered": self._n_delivered,
            "own": loader_state(self.loader),
        }

    def load_state_dict(self, state: States) -> None:
        """Resume where ``state_dict`` was called; global random states stay as is."""
        self._begin = state["begin"]
        self._n_delivered = state["delivered"]
        set_loader_state(self.loader, state["own"])
        self._iterator = None

    def _next(self) -> object:
        if self._iterator is None:
            self._iterator = self._resumed()
        batch = next(self._iterator, None)
        if batch is None:
            self._begin = None
            self._n_delivered = 0
            self._iterator = self._resumed()
            batch = next(self._iterator)
        self._n_delivered += 1
        return batch

    def _resumed(self) -> Iterator[object]:
        if self._begin is None:
            self._begin = self._states()
            return iter(self.loader)
        now = self._states()
        self._set_states(self._begin)
        iterator: Iterator[object] = iter(self.loader)
        for _ in range(self._n_delivered):
            next(iterator)
        self._set_states(now)
        return iterator

    def _states(self) -> States:
        return {"global": random_states(), "own": loader_state(self.loader)}

    def _set_states(self, states: States) -> None:
        set_random_states(states["global"])
        set_loader_state(self.loader, states["own"])
