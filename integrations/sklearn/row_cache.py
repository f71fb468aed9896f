"""Rows that transformers have made, kept for other candidates within a bound."""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import joblib

LIMIT = 2**30  # bytes in a process, over all folds of a search


class Prepared:
    """Rows, and the fitted transformers that made them one after the other."""

    def __init__(self, transformers: tuple[Any, ...], rows: Any) -> None:
        self.transformers = transformers
        self.rows = rows

    @cached_property
    def digest(self) -> str:
        """Return what tells these rows from others, to the last bit."""
        return str(joblib.hash(self.rows))


class RowCache:
    """Keeps rows by their key, up to ``limit`` bytes: the longest unused go first.

    Threads may share it. While one makes rows, others that need the same wait for it.

    Examples
    --------
    >>> import numpy as np
    >>> def made():
    ...     print("made", key)
    ...     return Prepared((), np.ones(100))
    >>> cache = RowCache(limit=2000)
    >>> for key in (1, 2, 1, 3, 1, 2):  # of 800 bytes each
    ...     rows = cache.get(key, made)
    made 1
    made 2
    made 3
    made 2
    >>> cache.size < 2000
    True
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.size = 0  # bytes
        self._limit = limit
        self._kept: OrderedDict[Hashable, tuple[Prepared, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[Hashable, Any] = defaultdict(threading.Lock)

    def get(self, key: Hashable, make: Callable[[], Prepared]) -> Prepared:
        """Return what is kept under the key, or what ``make`` returns."""
        with self._lock:
            making = self._making[key]
        with making:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key][0]
            made = make()
            self._keep(key, made)
            return made

    def _keep(self, key: Hashable, made: Prepared) -> None:
        size = size_of(made.rows)
        with self._lock:
            self._kept[key] = made, size
            self.size += size
            while self.size > self._limit:
                _, (_, dropped) = self._kept.popitem(last=False)
                self.size -= dropped


def size_of(rows: Any) -> int:
    """Return how many bytes rows take, whatever holds them; large parts not copied."""
    parts: list[pickle.PickleBuffer] = []
    rest = pickle.dumps(rows, protocol=5, buffer_callback=parts.append)
    return len(rest) + sum(part.raw().nbytes for part in parts)
