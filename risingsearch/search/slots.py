"""Variables that running processes share out, such as the GPU that each one gets."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


class Slots:
    """Sets of variables, each for one running process at a time.

    >>> slots = Slots([{"GPU": "0"}, {"GPU": "1"}])
    >>> with slots.taken() as first, slots.taken() as second:
    ...     slots.variables[first], slots.variables[second]
    ({'GPU': '0'}, {'GPU': '1'})
    """

    def __init__(self, variables: Sequence[Mapping[str, str]]) -> None:
        self.variables = [dict(each) for each in variables]
        self._free = list(range(len(variables)))
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, wanted: int | None = None) -> Iterator[int]:
        """Yield the number of a slot, once one is free that is like the wanted one."""

        def fitting() -> list[int]:
            return [slot for slot in self._free if self._is_like(slot, wanted)]

        with self._changed:
            [slot, *_] = self._changed.wait_for(fitting)
            self._free.remove(slot)
        try:
            yield slot
        finally:
            with self._changed:
                self._free.append(slot)
                self._changed.notify_all()

    def _is_like(self, slot: int, wanted: int | None) -> bool:
        return wanted is None or self.variables[slot] == self.variables[wanted]
