"""What is half done is put back: a transition happens as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Part(Protocol):
    """A part of a scheduler that transitions change."""

    def arrays(self) -> list[NDArray[Any]]:
        """Return the arrays that are changed in place, and copied as a whole."""

    def facts(self) -> Any:
        """Return all else that changes, in a form that later changes leave alone."""

    def put_back(self, facts: Any) -> None:
        """Restore what ``facts`` returned; the arrays are not its business."""


class Draws:
    """The part that draws are made from."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def arrays(self) -> list[NDArray[Any]]:
        """Return no arrays."""
        return []

    def facts(self) -> Any:
        """Return where the generator stands."""
        return self._rng.bit_generator.state

    def put_back(self, facts: Any) -> None:
        """Let the next draws be those that came after ``facts``."""
        self._rng.bit_generator.state = facts


class Rows:
    """Rows of large arrays, kept one by one before they change."""

    def __init__(self) -> None:
        self._kept: list[tuple[NDArray[Any], int, Any]] = []

    def keep(self, arrays: Iterable[NDArray[Any]], row: int) -> None:
        """Keep a row of each array."""
        self._kept += [(array, row, array[row].copy()) for array in arrays]

    def forget(self) -> None:
        """Let the rows be as they are now."""
        self._kept = []

    def put_back(self) -> None:
        """Let the rows be as they were when they were kept first."""
        for array, row, before in reversed(self._kept):
            array[row] = before


class _Copy(Enum):
    OUTDATED = "the parts have changed since"
    CURRENT = "equal to the parts"
    IN_USE = "the parts may be half-way to another state"


class Undo:
    """Keeps a copy of the parts while a transition is under way.

    An exception of any kind, Ctrl-C included, puts the copy back, whatever line it
    comes at; should it come while the copy is put back, the next ``begin`` does it
    again.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._arrays: list[NDArray[Any]] = []
        self._copies: list[NDArray[Any]] = []
        self._facts: list[Any] = []
        self._copy = _Copy.OUTDATED

    @contextmanager
    def transition(self) -> Iterator[None]:
        """Make what happens inside happen as a whole or not at all."""
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            self.put_back()
            raise

    @contextmanager
    def look(self) -> Iterator[None]:
        """Let what happens inside leave no trace."""
        self.begin()
        try:
            yield
        finally:
            self.put_back()

    @property
    def is_under_way(self) -> bool:
        """Whether something has begun that is neither committed nor put back."""
        return self._copy is _Copy.IN_USE

    def begin(self) -> None:
        """Copy the parts, unless nothing has changed since they were copied."""
        if self._copy is _Copy.IN_USE:
            self.put_back()
        if self._copy is _Copy.OUTDATED:
            self._copy_parts()
        self._copy = _Copy.IN_USE

    def commit(self) -> None:
        """Let the parts be as they are now."""
        self._copy = _Copy.OUTDATED

    def put_back(self) -> None:
        """Let the parts be as they were when the transition began."""
        for part, facts in zip(self._parts, self._facts, strict=True):
            part.put_back(facts)
        for array, copy in zip(self._arrays, self._copies, strict=True):
            np.copyto(array, copy)
        self._copy = _Copy.CURRENT

    def _copy_parts(self) -> None:
        arrays = [array for part in self._parts for array in part.arrays()]
        known = map(id, self._arrays)
        if list(map(id, arrays)) != list(known):
            self._copies = [np.empty_like(array) for array in arrays]
            self._arrays = arrays
        for array, copy in zip(self._arrays, self._copies, strict=True):
            np.copyto(copy, array)
        self._facts = [part.facts() for part in self._parts]
