"""Which runs are on the device, which wait in memory, and which on disk."""

from __future__ import annotations

import itertools
import math
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Protocol


class MovableRun(Protocol):
    """A run that can leave the device, and memory."""

    @property
    def is_live(self) -> bool:
        """Whether it is on the device."""
        ...

    def park(self) -> None:
        """Leave the device for memory."""
        ...

    def spill(self, path: Path) -> None:
        """Leave memory for a file."""
        ...


_Runs = weakref.WeakKeyDictionary[MovableRun, None]


class Residents:
    """Keeps the runs used last on the device, the others in memory, then on disk.

    ``max_resident`` runs live on the device at the same time and ``max_host`` wait in
    memory; None stands for all. Where none may live there, the one that trains does.
    """

    def __init__(self, max_resident: int | None, max_host: int | None) -> None:
        self.max_resident = max_resident
        self.max_host = max_host
        # Dictionaries keep the order: the run used longest ago comes first.
        self._live: _Runs = weakref.WeakKeyDictionary()
        self._waiting: _Runs = weakref.WeakKeyDictionary()
        self._folder: Path | None = None
        self._files = itertools.count()

    def make_room(self, run: MovableRun) -> None:
        """Park the run used longest ago, so that one more may be on the device."""
        self._waiting.pop(run, None)
        self._live.pop(run, None)
        self._live[run] = None
        self._park_beyond(1)

    def settle(self) -> None:
        """Park the run that has trained last, where none may stay on the device."""
        self._park_beyond(0)

    def _park_beyond(self, least: int) -> None:
        """Keep ``max_resident`` runs on the device, or the least."""
        most = math.inf if self.max_resident is None else self.max_resident
        while len(self._live) > max(least, most):
            oldest = next(iter(self._live))
            if oldest.is_live:
                oldest.park()
                self._waiting[oldest] = None
            self._live.pop(oldest)
        while self.max_host is not None and len(self._waiting) > self.max_host:
            oldest = next(iter(self._waiting))
            oldest.spill(self._new_file())
            self._waiting.pop(oldest)

    def _new_file(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="risingsearch-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / f"run-{next(self._files)}.pt"
